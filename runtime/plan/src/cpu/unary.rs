//! CPU kernels: functions of one element.

use candle_plan_kernels::elementwise::integer::Integer;
use candle_plan_kernels::elementwise::{float, map};
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::program::{rewrite_unary, Unary as Function};
use candle_plan_kernels::threads::Threads;
use candle_plan_memory::buffer::collected;

use super::blocks::elementwise;
use super::bounds::{counted, len};
use super::cast::widened;
use super::choice::{HasBlocksKernel, OnBlocks};
use super::convert::Float;
use super::planned::CpuOperands;
use super::rewrite::rewrite;
use crate::dispatch;
use crate::dtype::{Bool, DType, Element};
use crate::error::{Error, Result};
use crate::kernel::{Call, Kernel};
use crate::ops::unary::Unary;
use crate::types::{Type, Types};
use crate::value::{alloc_uninit, Array, Value};

/// Elements per task.
const TASK: usize = 16 * 1024;

impl HasBlocksKernel for Unary {
    fn on_blocks(&self, operands: &CpuOperands, outputs: &[Option<&Type>]) -> Option<OnBlocks> {
        elementwise(operands, outputs).map(OnBlocks::with_own)
    }
}

impl Kernel for Unary {
    fn takes(&self, input: usize, dtype: DType) -> bool {
        input == 0 && dtype == DType::Float32 && !self.is_predicate()
    }

    fn scratch(&self, inputs: &Types) -> Option<usize> {
        let dtype = inputs.tensor(0).ok()?.dtype;
        Some(if dtype.is_small_float() { counted::<f32>(len(inputs, 0)?) } else { 0 })
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let dtype = call.tensor(0)?.dtype();
        let output = match dtype {
            _ if self.is_predicate() => self.predicate(call.tensor(0)?, call.threads)?,
            DType::Float32 => self.in_f32::<f32>(call)?,
            DType::Float64 => self.double(call.tensor(0)?, call.threads)?,
            DType::Float16 => self.in_f32::<half::f16>(call)?,
            DType::Bfloat16 => self.in_f32::<half::bf16>(call)?,
            DType::Bool if self.function == Function::Not => {
                let x = call.read::<Bool>(0)?;
                Array::new(collected(x.iter().map(|x| Bool::from(!x.is_true()))), call.tensor(0)?.dims())?
            }
            dtype => dispatch!(format!("{:?}", self.function), dtype, [i8, i16, i32, i64, u8, u16, u32, u64], T => {
                self.integer::<T>(call.tensor(0)?, call.threads)
            })?,
        };
        Ok(vec![output.into()])
    }
}

impl Unary {
    /// Computes `float32` and 16-bit floats in `f32`.
    fn in_f32<T: Float<Wide = f32>>(&self, call: &mut Call) -> Result<Array> {
        rewrite::<T>(call, 0, 1, |threads, x| {
            x.for_each_chunk(threads, TASK, |_, x| rewrite_unary(Isa::get(), self.function, x));
        })
    }

    fn double(&self, array: &Array, threads: &Threads) -> Result<Array> {
        let x = array.read::<f64>()?;
        let function = |x: f64| float::unary(self.function, x);
        let out = alloc_uninit(array.dims())?.overwrite(|out| map(threads, x, out, function));
        Array::new(out, array.dims())
    }

    fn integer<T: Element + Integer>(&self, array: &Array, threads: &Threads) -> Result<Array> {
        let x = array.read::<T>()?;
        let out = alloc_uninit(array.dims())?.try_overwrite(|out| T::unary(threads, self.function, x, out));
        Array::new(out.map_err(|error| Error::op(error.to_string()))?, array.dims())
    }

    fn predicate(&self, array: &Array, threads: &Threads) -> Result<Array> {
        let holds = |x: f64| Bool::from(float::unary(self.function, x) != 0.0);
        let out = alloc_uninit::<Bool>(array.dims())?.try_overwrite(|out| -> Result<()> {
            match array.dtype() {
                DType::Float32 => map(threads, array.read::<f32>()?, out, |x| holds(f64::from(x))),
                DType::Float64 => map(threads, array.read::<f64>()?, out, holds),
                DType::Float16 => map(threads, array.read::<half::f16>()?, out, |x| holds(x.to_f64())),
                DType::Bfloat16 => map(threads, array.read::<half::bf16>()?, out, |x| holds(x.to_f64())),
                _ => map(threads, widened(array)?.read::<f32>()?, out, |x| holds(f64::from(x))),
            }
            Ok(())
        })?;
        Array::new(out, array.dims())
    }
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::*;
    use crate::testing::{run, tensor};

    fn apply(function: Function, x: Value) -> Result<Value> {
        run(&Unary { function }, &[Some(x)])
    }

    #[test]
    fn functions_run_in_every_defined_dtype() {
        let expect = |function, x: Value, y: Value| {
            let found = apply(function, x).expect("is defined");
            assert_eq!(
                format!("{:?}", found.tensor().unwrap().clone().into_candle().unwrap().to_string()),
                format!("{:?}", y.tensor().unwrap().clone().into_candle().unwrap().to_string())
            );
        };
        expect(Function::Relu, tensor(&[-1.0f32, 2.0], &[2]), tensor(&[0.0f32, 2.0], &[2]));
        expect(Function::Sqrt, tensor(&[4.0f64, 0.25], &[1, 2]), tensor(&[2.0f64, 0.5], &[1, 2]));
        expect(Function::Round, tensor(&[f16::from_f32(2.5)], &[1]), tensor(&[f16::from_f32(2.0)], &[1]));
        expect(Function::Exp, tensor(&[bf16::from_f32(0.0)], &[]), tensor(&[bf16::from_f32(1.0)], &[]));
        expect(Function::Neg, tensor(&[i8::MIN, 3], &[2]), tensor(&[i8::MIN, -3], &[2]));
        expect(Function::Abs, tensor(&[-5i64], &[1]), tensor(&[5i64], &[1]));
        expect(Function::BitwiseNot, tensor(&[1u16], &[1]), tensor(&[u16::MAX - 1], &[1]));
        expect(Function::Not, tensor(&[Bool(1), Bool(0)], &[2]), tensor(&[Bool(0), Bool(1)], &[2]));
        expect(Function::IsNaN, tensor(&[f16::NAN, f16::ONE], &[2]), tensor(&[Bool(1), Bool(0)], &[2]));
        expect(Function::Sigmoid, tensor::<f32>(&[], &[0, 3]), tensor::<f32>(&[], &[0, 3]));
    }

    #[test]
    fn other_dtypes_are_refused_by_name() {
        let error = apply(Function::Exp, tensor(&[1i32], &[1])).expect_err("is refused");
        assert_eq!(error.to_string(), "Exp is not defined for int32");
        assert!(apply(Function::Not, tensor(&[1.0f32], &[1])).is_err());
        assert!(apply(Function::BitwiseNot, tensor(&[Bool(1)], &[1])).is_err());
    }
}
