//! CPU kernels: functions of two elements.

use candle_plan_kernels::elementwise::integer::Integer;
use candle_plan_kernels::elementwise::{float, logic, zip, Comparable, OperandPair, Undefined};
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::program::{Argument, Binary as Function, Bound, Program};
use candle_plan_kernels::scratch::Scratch;
use candle_plan_kernels::threads::Threads;
use half::{bf16, f16};

use super::blocks::elementwise;
use super::bounds::{counted, len, output_len};
use super::choice::{HasBlocksKernel, OnBlocks};
use super::convert::{read_widened, widened_bytes, Float};
use super::elementwise::run_program;
use super::packed::{HasKernel, Packed};
use super::planned::CpuOperands;
use super::power::power;
use crate::broadcast::join;
use crate::dispatch;
use crate::dtype::{Bool, DType, Element};
use crate::error::{Error, Result};
use crate::kernel::{Call, Kernel};
use crate::ops::binary::{divided_by_zero, Binary};
use crate::types::{Type, Types};
use crate::value::{alloc_uninit, Array, Strings, Value};

impl HasKernel for Binary {
    fn kernel(&self, operands: &CpuOperands) -> Result<Box<dyn Kernel>> {
        let is_single = |kind: &Option<&Type>| {
            kind.and_then(|kind| kind.tensor().ok()).is_some_and(|kind| kind.dtype == DType::Float32)
        };
        let packed = operands.constants.types.iter().all(is_single).then(|| self.program());
        Ok(Packed::boxed(self, packed))
    }
}

impl HasBlocksKernel for Binary {
    fn on_blocks(&self, operands: &CpuOperands, outputs: &[Option<&Type>]) -> Option<OnBlocks> {
        elementwise(operands, outputs).map(OnBlocks::with_own)
    }
}

impl Kernel for Packed<Binary, Option<Program>> {
    fn takes(&self, input: usize, dtype: DType) -> bool {
        dtype == DType::Float32 && self.op.replaceable().contains(&input)
    }

    fn scratch(&self, inputs: &Types) -> Option<usize> {
        let (op, packed) = (&self.op, self.packed.as_ref());
        if op.function != Function::Pow || packed.is_some() {
            return widened_bytes(op, inputs, |_| false);
        }
        // In double precision. The result takes over no input.
        let result = output_len(op, inputs)?;
        let lens = [len(inputs, 0)?, len(inputs, 1)?, result, result];
        Some(lens.into_iter().map(counted::<f64>).fold(0, usize::saturating_add))
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (op, packed) = (&self.op, self.packed.as_ref());
        if let (Value::Strings(x), Value::Strings(y)) = (call.value(0)?, call.value(1)?) {
            return Ok(vec![equal_strings(x, y)?.into()]);
        }
        let (x, y) = (call.tensor(0)?.dtype(), call.tensor(1)?.dtype());
        let output = match x {
            DType::Bool => op.logic(call)?,
            _ if op.is_comparison() => op.compare(call)?,
            DType::Float32 if y == DType::Float32 => match packed {
                Some(program) => run_program(program, call)?,
                None => run_program(&op.program(), call)?,
            },
            _ if op.function == Function::Pow => power(call)?,
            DType::Float16 => op.half::<f16>(call)?,
            DType::Bfloat16 => op.half::<bf16>(call)?,
            DType::Float64 => op.typed(call, |operands, out| float::binary(op.function, operands, out))?,
            dtype => dispatch!(format!("{:?}", op.function), dtype, [i8, i16, i32, i64, u8, u16, u32, u64], T => {
                op.typed::<T>(call, |operands, out| T::binary(op.function, operands, out))
            })?,
        };
        Ok(vec![output.into()])
    }
}

impl Binary {
    /// Computes in the type of the inputs.
    fn typed<T: Element>(
        &self,
        call: &Call,
        compute: impl Fn(OperandPair<T>, &mut [T]) -> std::result::Result<(), Undefined>,
    ) -> Result<Array> {
        let (dims, broadcast) = join(&[call.tensor(0)?.dims(), call.tensor(1)?.dims()])?;
        let (out, x, y) = (alloc_uninit(&dims)?, call.read::<T>(0)?, call.read::<T>(1)?);
        let operands = OperandPair { threads: call.threads, broadcast: &broadcast, x, y };
        let out = out.try_overwrite(|out| compute(operands, out));
        Array::new(out.map_err(|error| self.explain(error, T::DTYPE))?, &dims)
    }

    fn explain(&self, error: Undefined, dtype: DType) -> Error {
        match error {
            Undefined::Function => Error::op(format!("{:?} is not defined for {dtype}", self.function)),
            Undefined::DivisionByZero(place) => Error::Op(divided_by_zero(place)),
        }
    }

    fn half<T: Float<Wide = f32>>(&self, call: &mut Call) -> Result<Array> {
        let (x, y) = (call.tensor(0)?, call.tensor(1)?);
        let (dims, _) = join(&[x.dims(), y.dims()])?;
        let (wide_x, wide_y) = (read_widened::<T>(x)?, read_widened::<T>(y)?);
        let arguments = [Argument::Tensor(&wide_x, x.dims()), Argument::Tensor(&wide_y, y.dims())];
        let program = self.program();
        let bound = Bound::new(&program, &dims, &arguments).map_err(|error| Error::op(error.to_string()))?;
        let out = alloc_uninit(&dims)?.overwrite(|out| bound.run_all(Isa::get(), call.threads, out));
        Array::new(T::narrow(out), &dims)
    }

    fn compare(&self, call: &Call) -> Result<Array> {
        let (x, y) = (call.tensor(0)?, call.tensor(1)?);
        let (dims, broadcast) = join(&[x.dims(), y.dims()])?;
        let out = alloc_uninit::<Bool>(&dims)?.try_overwrite(|out| {
            let bytes = bytemuck::cast_slice_mut(out);
            dispatch!(format!("{:?}", self.function), x.dtype(), [f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64], T => {
                let (x, y) = (call.read::<T>(0)?, call.read::<T>(1)?);
                T::compare(self.function, OperandPair { threads: call.threads, broadcast: &broadcast, x, y }, bytes)
                    .map_err(|error| self.explain(error, T::DTYPE))
            })
        })?;
        Array::new(out, &dims)
    }

    fn logic(&self, call: &Call) -> Result<Array> {
        let (x, y) = (call.read::<Bool>(0)?, call.read::<Bool>(1)?);
        let (dims, broadcast) = join(&[call.tensor(0)?.dims(), call.tensor(1)?.dims()])?;
        let operands = (bytemuck::cast_slice(x), bytemuck::cast_slice(y));
        let out = alloc_uninit::<Bool>(&dims)?.try_overwrite(|out| {
            logic(call.threads, self.function, &broadcast, operands, bytemuck::cast_slice_mut(out))
        });
        Array::new(out.map_err(|error| self.explain(error, DType::Bool))?, &dims)
    }
}

fn equal_strings(x: &Strings, y: &Strings) -> Result<Array> {
    let (dims, broadcast) = join(&[&x.dims, &y.dims])?;
    let [xs, ys] = [x, y].map(|strings| Scratch::of(strings.data.iter().map(String::as_str)));
    let compare = |out: &mut [Bool]| zip(&Threads::serial(), &broadcast, (&xs, &ys), out, |x, y| Bool::from(x == y));
    Array::new(alloc_uninit(&dims)?.overwrite(compare), &dims)
}
