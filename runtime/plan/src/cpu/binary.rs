//! CPU kernels: functions of two elements.

use std::borrow::Cow;

use candle_plan_kernels::elementwise::integer::Integer;
use candle_plan_kernels::elementwise::{float, logic, zip, Comparable, OperandPair, Undefined};
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::program::{Argument, Binary as Function, Bound, Program};
use candle_plan_kernels::rewrite::Rewrite;
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

    fn half<T: Float<Wide = f32>>(&self, call: &Call) -> Result<Array> {
        let (x, y) = (call.tensor(0)?, call.tensor(1)?);
        let (dims, _) = join(&[x.dims(), y.dims()])?;
        if let Some((whole, row)) = rows_of(&dims, [x.dims(), y.dims()]) {
            return self.half_rows::<T>(call, &dims, whole, row);
        }
        let (wide_x, wide_y) = (read_widened::<T>(x)?, read_widened::<T>(y)?);
        let arguments = [Argument::Tensor(&wide_x, x.dims()), Argument::Tensor(&wide_y, y.dims())];
        let program = self.program();
        let bound = Bound::new(&program, &dims, &arguments).map_err(|error| Error::op(error.to_string()))?;
        let out = alloc_uninit(&dims)?.overwrite(|out| bound.run_all(Isa::get(), call.threads, out));
        Array::new(T::narrow(out), &dims)
    }

    /// Computes rows of `row` elements, some of them at a time. The operand `whole` has as many elements as the result. The
    /// other one too, or it has those of one row.
    fn half_rows<T: Float<Wide = f32>>(
        &self,
        call: &Call,
        dims: &[usize],
        whole: usize,
        row: Option<usize>,
    ) -> Result<Array> {
        let (program, x, other) = (self.program(), call.read::<T>(whole)?, call.read::<T>(1 - whole)?);
        let repeated = row.map(|_| T::widen(other));
        let compute = |_: &Threads, first: usize, x: Rewrite<f32>| {
            let part = repeated.as_deref().map_or_else(|| T::widen(&other[first..][..x.len()]), Cow::Borrowed);
            let shape = [x.len() / part.len(), part.len()];
            let mut arguments = [Argument::Result; 2];
            arguments[1 - whole] = Argument::Tensor(&part, &shape[1..]);
            let bound = Bound::new(&program, &shape, &arguments).expect("the operands fit the result");
            bound.run(Isa::get(), 0, x.copied());
        };
        let out = alloc_uninit(dims)?;
        let out = out.overwrite(|out| T::rewrite_rows(call.threads, row.unwrap_or(1), x, out, compute));
        Array::new(out, dims)
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

/// The operand that has as many elements as a result of shape `dims`, and the length of its rows if the other operand is
/// repeated for each row. `None` for operands that are repeated in another way.
fn rows_of(dims: &[usize], operands: [&[usize]; 2]) -> Option<(usize, Option<usize>)> {
    let count = |dims: &[usize]| dims.iter().product::<usize>();
    let is_whole = operands.map(|operand| count(operand) == count(dims));
    let whole = is_whole.iter().position(|&is_whole| is_whole)?;
    if is_whole == [true; 2] {
        return Some((whole, None));
    }
    let other = operands[1 - whole];
    let own = &other[other.iter().take_while(|&&size| size == 1).count()..];
    dims.ends_with(own).then(|| (whole, Some(count(own))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, tensor};

    /// Operands with an element for each of the result, for each of a row, and for each of a column.
    #[test]
    fn halves_are_computed_in_f32_and_rounded_once() {
        let shapes: [[&[usize]; 2]; 9] = [
            [&[3, 5000], &[3, 5000]],
            [&[3, 5000], &[5000]],
            [&[1, 5000], &[3, 5000]],
            [&[3, 5000], &[3, 1]],
            [&[4], &[]],
            [&[1, 1], &[6]],
            [&[2, 1], &[1, 3]],
            [&[20_000, 3], &[3]],
            [&[0, 3], &[3]],
        ];
        for [x, y] in shapes {
            let values = |dims: &[usize], step: usize| -> Vec<f32> {
                let count = dims.iter().product();
                (0..count).map(|i| f16::from_f32((i * step % 97) as f32 / 7.0 + 0.1).to_f32()).collect()
            };
            let (a, b) = (values(x, 13), values(y, 5));
            let half = |x: &[f32]| x.iter().map(|&x| f16::from_f32(x)).collect::<Vec<f16>>();
            for function in [Function::Sub, Function::Div] {
                let op = Binary { function };
                let exact = run(&op, &[Some(tensor(&a, x)), Some(tensor(&b, y))]).unwrap();
                let found = run(&op, &[Some(tensor(&half(&a), x)), Some(tensor(&half(&b), y))]).unwrap();
                let (exact, found) = (exact.tensor().unwrap(), found.tensor().unwrap());
                assert_eq!(exact.dims(), found.dims());
                assert_eq!(
                    half(exact.read::<f32>().unwrap()),
                    found.read::<f16>().unwrap(),
                    "{function:?} {x:?} {y:?}"
                );
            }
        }
    }
}
