//! The tensors of safetensors files.

use std::collections::BTreeMap;
use std::io::Read;

use safetensors::Dtype;

use super::weight::{unreadable, Weight};
use crate::array::backing::Backing;
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::read::{check_bits, copied, metadata_of, MAX_HEADER};
use crate::value::{with_capacity, Array};

/// Reads all tensors of a file with this number of bytes, one after the other into their own memory.
///
/// # Errors
/// The file is damaged or of another format, it has elements of a type that no plan has, or the host lacks memory.
pub fn read(mut file: impl Read, length: u64) -> Result<BTreeMap<String, Weight>> {
    let refused = || Error::op("it is neither a safetensors file nor a GGUF file, or it is cut short");
    let mut size = [0; 8];
    file.read_exact(&mut size).map_err(|_| refused())?;
    let (size, rest) = (u64::from_le_bytes(size), length.saturating_sub(8));
    if size > rest.min(MAX_HEADER) {
        return Err(refused());
    }
    let mut text = with_capacity(size as usize)?;
    file.by_ref().take(size).read_to_end(&mut text).map_err(unreadable)?;
    let metadata = metadata_of(&text, rest - size).map_err(|_| refused())?;
    let mut tensors = BTreeMap::new();
    for name in metadata.offset_keys() {
        let Some(info) = metadata.info(&name) else { continue };
        let named = |reason: String| Error::op(format!("{name:?}: {reason}"));
        let Some(dtype) = dtype_of(info.dtype) else {
            return Err(named(format!("no weight of a plan has the type {:?}", info.dtype)));
        };
        let storage = Backing::host(copied(&mut file, info).map_err(|error| match error {
            Error::Read { kind: ErrorKind::Memory, reason } => Error::Memory(reason),
            Error::Read { reason, .. } => named(reason),
            other => other,
        })?);
        check_bits(dtype, storage.bytes().unwrap_or_default()).map_err(|error| named(error.to_string()))?;
        let array = Array::lying_in(storage, &info.shape, dtype).map_err(|error| named(error.to_string()))?;
        tensors.insert(name, Weight::Array(array));
    }
    Ok(tensors)
}

/// The logical type of the elements of a file.
fn dtype_of(stored: Dtype) -> Option<DType> {
    Some(match stored {
        Dtype::BOOL => DType::Bool,
        Dtype::U8 => DType::Uint8,
        Dtype::I8 => DType::Int8,
        Dtype::I16 => DType::Int16,
        Dtype::U16 => DType::Uint16,
        Dtype::I32 => DType::Int32,
        Dtype::U32 => DType::Uint32,
        Dtype::I64 => DType::Int64,
        Dtype::U64 => DType::Uint64,
        Dtype::F16 => DType::Float16,
        Dtype::BF16 => DType::Bfloat16,
        Dtype::F32 => DType::Float32,
        Dtype::F64 => DType::Float64,
        _ => return None,
    })
}
