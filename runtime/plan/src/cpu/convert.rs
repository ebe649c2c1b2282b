//! Tensors as tensors of another element type.

use candle_plan_kernels::cast::{cast, convert, Convert, Target};
use candle_plan_kernels::threads::Threads;
use half::{bf16, f16};

use crate::dispatch;
use crate::dtype::{Bool, DType};
use crate::error::Result;
use crate::value::{alloc_uninit, Array};

/// Converts a tensor between types that have arithmetic.
///
/// # Errors
/// A type has no arithmetic, or there is no memory for the result.
pub(crate) fn converted(x: &Array, to: DType, threads: &Threads) -> Result<Array> {
    if x.dtype() == to {
        return Ok(x.clone());
    }
    let bytes = dispatch!("Cast", x.dtype(), [Bool, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64], S => {
        Ok(bytemuck::cast_slice::<S, u8>(x.read()?))
    })?;
    dispatch!("Cast", to, [Bool, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64], D => {
        let (out, converter) = (alloc_uninit::<D>(x.dims())?, converter(x.dtype())?);
        let out = out.overwrite(|out| cast(converter, bytes, out, threads));
        Array::new(out, x.dims())
    })
}

/// Converts a tensor of numbers to `float64`.
///
/// # Errors
/// See [`converted`].
pub(super) fn to_f64(x: &Array, threads: &Threads) -> Result<Array> {
    converted(x, DType::Float64, threads)
}

fn converter<D: Target>(from: DType) -> Result<Convert<D>> {
    dispatch!("Cast", from, [Bool, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64], S => Ok(convert::<S, D>))
}
