//! `Pow` for any two types. The result has the type of the base.

use candle_plan_kernels::elementwise::integer::Integer;
use candle_plan_kernels::elementwise::zip;
use half::{bf16, f16};

use super::convert::converted;
use crate::broadcast::join;
use crate::dispatch;
use crate::dtype::{DType, Element};
use crate::error::Result;
use crate::kernel::Call;
use crate::value::{alloc_uninit, Array};

/// Computes `X ** Y`. Integers are exact and wrap; everything else is computed in double precision and rounded once.
pub(crate) fn power(call: &Call) -> Result<Array> {
    let (x, y) = (call.tensor(0)?, call.tensor(1)?);
    if x.dtype().is_int() && y.dtype().is_int() && y.dtype() != DType::Uint64 {
        let exponents = converted(y, DType::Int64, call.threads)?;
        return dispatch!("Pow", x.dtype(), [i8, i16, i32, i64, u8, u16, u32, u64], T => {
            integers::<T>(call, x, &exponents)
        });
    }
    let wide = |array| converted(array, DType::Float64, call.threads);
    let result = doubles(call, &wide(x)?, &wide(y)?)?;
    dispatch!("Pow", x.dtype(), [f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64], T => {
        converted(&result, T::DTYPE, call.threads)
    })
}

fn integers<T: Element + Integer>(call: &Call, x: &Array, y: &Array) -> Result<Array> {
    let (dims, broadcast) = join(&[x.dims(), y.dims()])?;
    let (x, y) = (x.read::<T>()?, y.read::<i64>()?);
    let out = alloc_uninit(&dims)?.overwrite(|out| T::powers(call.threads, &broadcast, (x, y), out));
    Array::new(out, &dims)
}

fn doubles(call: &Call, x: &Array, y: &Array) -> Result<Array> {
    let (dims, broadcast) = join(&[x.dims(), y.dims()])?;
    let (x, y) = (x.read::<f64>()?, y.read::<f64>()?);
    let out = alloc_uninit(&dims)?.overwrite(|out| zip(call.threads, &broadcast, (x, y), out, f64::powf));
    Array::new(out, &dims)
}
