//! Numbers for element types that kernels get at run time.

use crate::bail;
use crate::dtype::DType;
use crate::error::Result;

/// Returns the number of a type, as `Number` in `numbers.cuh`. Integers of less than 8 bits occupy one byte each.
///
/// # Errors
/// Kernels do not compute with the type.
pub(super) fn number(dtype: DType) -> Result<u32> {
    Ok(match dtype {
        DType::Int8 | DType::Int4 | DType::Int2 => 0,
        DType::Int16 => 1,
        DType::Int32 => 2,
        DType::Int64 => 3,
        DType::Uint8 | DType::Uint4 | DType::Uint2 | DType::Bool => 4,
        DType::Uint16 => 5,
        DType::Uint32 => 6,
        DType::Uint64 => 7,
        DType::Float16 => 8,
        DType::Bfloat16 => 9,
        DType::Float32 => 10,
        DType::Float64 => 11,
        other => bail!("the device does not compute with {other}"),
    })
}
