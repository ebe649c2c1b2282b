//! CPU kernels: selection and clipping.

use candle_plan_kernels::elementwise::{map, select};
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::program::{unary_in_place, Unary};
use half::{bf16, f16};

use super::blocks::elementwise;
use super::choice::{HasBlocksKernel, OnBlocks};
use super::planned::CpuOperands;
use crate::array::words;
use crate::bail;
use crate::broadcast::join;
use crate::by_width;
use crate::dispatch;
use crate::dtype::{Bool, DType, Element};
use crate::error::{Error, Result};
use crate::kernel::{Call, Kernel};
use crate::movable::Movable;
use crate::ops::conditional::{Clip, Where};
use crate::types::{Type, Types};
use crate::value::{alloc_uninit, Array, Value};

impl Kernel for Where {
    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        Some(0)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let condition = call.tensor(0)?;
        let choices = Movable::new(&[call.value(1)?, call.value(2)?])?;
        let [x, y] = &choices.arrays[..] else { bail!("Where takes two choices") };
        let (dims, broadcast) = join(&[condition.dims(), x.dims(), y.dims()])?;
        let condition = condition.read::<Bool>()?;
        let condition: &[u8] = bytemuck::cast_slice(condition);
        let chosen = by_width!(x.dtype(), W => {
            let (x_words, y_words) = (words::read::<W>(x)?, words::read::<W>(y)?);
            let choose = |out: &mut [W]| select(call.threads, &broadcast, (condition, x_words, y_words), out);
            let out = words::alloc_uninit::<W>(&dims)?.overwrite(choose);
            words::array(out, &dims, x.dtype())
        })?;
        Ok(vec![choices.restore(chosen)?])
    }
}

impl HasBlocksKernel for Clip {
    fn on_blocks(&self, operands: &CpuOperands, outputs: &[Option<&Type>]) -> Option<OnBlocks> {
        elementwise(operands, outputs).map(OnBlocks::with_own)
    }
}

impl Kernel for Clip {
    fn takes(&self, input: usize, dtype: DType) -> bool {
        input == 0 && dtype == DType::Float32
    }

    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        Some(0)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let dtype = call.tensor(0)?.dtype();
        if dtype == DType::Float32 {
            return Ok(vec![clip_single(call)?.into()]);
        }
        let output = dispatch!("Clip", dtype, [f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64], T => {
            clip::<T>(call)
        })?;
        Ok(vec![output.into()])
    }
}

fn clip_single(call: &mut Call) -> Result<Array> {
    let min = bound::<f32>(call, 1)?.unwrap_or(f32::NEG_INFINITY);
    let max = bound::<f32>(call, 2)?.unwrap_or(f32::INFINITY);
    let mut array = match call.take(0) {
        Some(array) => array,
        None => call.tensor(0)?.clone(),
    };
    let threads = call.threads;
    array.update::<f32>(|x| {
        threads.for_each_chunk(x, 32 * 1024, |_, x| unary_in_place(Isa::get(), Unary::Clip { min, max }, x));
        Ok(())
    })?;
    Ok(array)
}

fn clip<T: Element + PartialOrd>(call: &Call) -> Result<Array> {
    let (min, max) = (bound::<T>(call, 1)?, bound::<T>(call, 2)?);
    let x = call.read::<T>(0)?;
    let clip = |x: T| {
        let raised = min.filter(|min| *min > x).unwrap_or(x);
        max.filter(|max| *max < raised).unwrap_or(raised)
    };
    let out = alloc_uninit(&[x.len()])?.overwrite(|out| map(call.threads, x, out, clip));
    Array::new(out, call.tensor(0)?.dims())
}

/// Returns the bound that input `i` holds, if it is present.
fn bound<T: Element>(call: &Call, i: usize) -> Result<Option<T>> {
    let Some(array) = call.optional_tensor(i)? else { return Ok(None) };
    match *array.read::<T>()? {
        [value] => Ok(Some(value)),
        _ => Err(Error::op(format!("a bound must have one element, found shape {:?}", array.dims()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, tensor};

    #[test]
    fn choices_broadcast_in_any_type() {
        let condition = tensor(&[Bool(1), Bool(0)], &[2, 1]);
        let inputs = [condition.clone(), tensor(&[1u16, 2, 3], &[3]), tensor(&[9u16], &[])];
        let output = run(&Where {}, &inputs.map(Some)).expect("it fits");
        assert_eq!(output.tensor().unwrap().dims(), [2, 3]);
        assert_eq!(output.tensor().unwrap().read::<u16>().unwrap(), [1, 2, 3, 9, 9, 9]);
        let strings = |words: &[&str], dims: &[usize]| {
            let data = words.iter().map(ToString::to_string).collect();
            Value::Strings(crate::value::Strings { dims: dims.to_vec(), data })
        };
        let inputs = [condition, strings(&["a"], &[1]), strings(&["b", "c"], &[2])];
        let Value::Strings(output) = run(&Where {}, &inputs.map(Some)).expect("it fits") else { panic!("strings") };
        assert_eq!((&*output.data, &output.dims[..]), (&["a", "a", "b", "c"].map(String::from)[..], &[2, 2][..]));
    }

    #[test]
    fn bounds_may_be_absent_or_crossed() {
        let x = tensor(&[-2.0f32, 0.5, f32::NAN, 9.0], &[4]);
        let scalar = |value: f32| Some(tensor(&[value], &[]));
        let cases: [(Option<Value>, Option<Value>, [f32; 4]); 4] = [
            (scalar(0.0), scalar(1.0), [0.0, 0.5, f32::NAN, 1.0]),
            (None, scalar(1.0), [-2.0, 0.5, f32::NAN, 1.0]),
            (None, None, [-2.0, 0.5, f32::NAN, 9.0]),
            (scalar(3.0), scalar(1.0), [1.0, 1.0, f32::NAN, 1.0]),
        ];
        for (low, high, expected) in cases {
            let output = run(&Clip {}, &[Some(x.clone()), low, high]).expect("it fits");
            assert_eq!(format!("{:?}", output.tensor().unwrap().read::<f32>().unwrap()), format!("{expected:?}"));
        }
        let output =
            run(&Clip {}, &[Some(tensor(&[1u8, 200], &[2])), None, Some(tensor(&[7u8], &[1]))]).expect("it fits");
        assert_eq!(output.tensor().unwrap().read::<u8>().unwrap(), [1, 7]);
        assert!(run(&Clip {}, &[Some(x), Some(tensor(&[1.0f32, 2.0], &[2]))]).is_err());
    }
}
