//! CPU kernels: indices of extrema along an axis, and the k largest or smallest elements.

use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::scratch::Scratch;
use candle_plan_kernels::threads::Threads;
use candle_plan_kernels::topk::{Order, Ranked};
use candle_plan_memory::buffer::{filled, is_cached};
use half::{bf16, f16};

use crate::dispatch;
use crate::dtype::Element;
use crate::error::Result;
use crate::kernel::{Call, Kernel};
use crate::operands::sort::Wanted;
use crate::ops::sort::{ArgReduce, ArgReduction, TopK};
use crate::types::Types;
use crate::value::{alloc_uninit, Array, Value};

/// Elements per task.
const TASK: usize = 1 << 14;

impl Kernel for ArgReduce {
    fn scratch(&self, inputs: &Types) -> Option<usize> {
        let (_, [_, _, inner]) = self.dims_and_split(&inputs.sizes(0).ok()??).ok()?;
        is_cached::<u64>(inner).then_some(0)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let (dims, split) = self.dims_and_split(x.dims())?;
        let y = dispatch!("ArgReduce", x.dtype(), [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64], T => {
            let x = x.read::<T>()?;
            Ok(match (self.function, self.select_last_index) {
                (ArgReduction::ArgMax, false) => places(call.threads, x, split, |v: T, best| v > best),
                (ArgReduction::ArgMax, true) => places(call.threads, x, split, |v: T, best| v >= best),
                (ArgReduction::ArgMin, false) => places(call.threads, x, split, |v: T, best| v < best),
                (ArgReduction::ArgMin, true) => places(call.threads, x, split, |v: T, best| v <= best),
            })
        })?;
        Ok(vec![Array::new(y, &dims)?.into()])
    }
}

/// Returns, for each column, the index of its last element that beats all elements before it.
fn places<T: Element>(
    threads: &Threads,
    x: &[T],
    [outer, n, inner]: [usize; 3],
    beats: impl Fn(T, T) -> bool + Sync,
) -> Vec<i64> {
    let mut out = filled(0i64, outer * inner);
    let block = n * inner;
    let blocks_per_task = (TASK / block.max(1)).max(1);
    threads.for_each_chunk(&mut out, blocks_per_task * inner, |task, out| {
        let blocks = x[task * blocks_per_task * block..].chunks_exact(block.max(1));
        for (x, out) in blocks.zip(out.chunks_exact_mut(inner.max(1))) {
            let (first, rest) = x.split_at(inner);
            let mut best = Scratch::of(first.iter().copied());
            for (k, row) in (1..).zip(rest.chunks_exact(inner.max(1))) {
                for ((&v, best), place) in row.iter().zip(best.iter_mut()).zip(out.iter_mut()) {
                    if beats(v, *best) {
                        (*best, *place) = (v, k);
                    }
                }
            }
        }
    });
    out
}

impl Kernel for TopK {
    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let Wanted { dims, split, k } = self.wanted(call)?;
        let order = Order { dims: split, k, largest: self.largest };
        dispatch!("TopK", x.dtype(), [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64], T => {
            let (x, values, indices) = (x.read()?, alloc_uninit::<T>(&dims)?, alloc_uninit(&dims)?);
            let top = |values: &mut [T], indices: &mut [i64]| {
                T::top(Isa::get(), call.threads, x, order, values, indices);
            };
            let (values, indices) = values.overwrite_both(indices, top);
            Ok(vec![Array::new(values, &dims)?.into(), Array::new(indices, &dims)?.into()])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, run_outputs, tensor};

    #[test]
    fn the_first_or_last_extremum_is_selected() {
        let nan = f32::NAN;
        let rows = [[1.0, 3.0, 3.0], [nan, 1.0, 2.0], [1.0, nan, 2.0], [2.0, 2.0, 2.0]];
        for (function, select_last_index, expected) in [
            (ArgReduction::ArgMax, false, [1, 0, 2, 0]),
            (ArgReduction::ArgMax, true, [2, 0, 2, 2]),
            (ArgReduction::ArgMin, false, [0, 0, 0, 0]),
            (ArgReduction::ArgMin, true, [0, 0, 0, 2]),
        ] {
            let op = ArgReduce { function, axis: -1, keepdims: false, select_last_index };
            let y = run(&op, &[Some(tensor(&rows.concat(), &[4, 3]))]).expect("runs");
            assert_eq!(y.tensor().and_then(Array::to_i64).expect("integers"), expected, "{op:?}");
            let columns: Vec<f32> = (0..3).flat_map(|k| rows.map(|row| row[k])).collect();
            let op = ArgReduce { axis: 0, keepdims: true, ..op };
            let y = run(&op, &[Some(tensor(&columns, &[3, 4]))]).expect("runs");
            assert_eq!(y.tensor().and_then(Array::to_i64).expect("integers"), expected, "{op:?}");
            assert_eq!(y.tensor().expect("a tensor").dims(), [1, 4]);
        }
    }

    #[test]
    fn empty_axes_have_no_extremum() {
        let op = ArgReduce { function: ArgReduction::ArgMax, axis: 1, keepdims: true, select_last_index: false };
        assert!(run(&op, &[Some(tensor::<i8>(&[], &[2, 0]))]).is_err());
        assert!(run(&op, &[Some(tensor::<i8>(&[], &[0, 0]))]).is_ok());
        assert!(run(&op, &[Some(tensor(&[true].map(crate::dtype::Bool::from), &[1, 1]))]).is_err());
    }

    #[test]
    fn top_k_orders_by_value_then_by_place() {
        let x = [2.0f32, f32::NAN, 5.0, 2.0, 7.0, -1.0];
        for (largest, k, values, indices) in [
            (true, 0, &[][..], &[][..]),
            (true, 3, &[f32::NAN, 7.0, 5.0], &[1, 4, 2]),
            (true, 5, &[f32::NAN, 7.0, 5.0, 2.0, 2.0], &[1, 4, 2, 0, 3]),
            (false, 3, &[-1.0, 2.0, 2.0], &[5, 0, 3]),
            (false, 6, &[-1.0, 2.0, 2.0, 5.0, 7.0, f32::NAN], &[5, 0, 3, 2, 4, 1]),
        ] {
            for inner in [1, 2] {
                let op = TopK { axis: 0, largest };
                let x: Vec<f32> = x.iter().flat_map(|&v| vec![v; inner]).collect();
                let inputs = [Some(tensor(&x, &[6, inner])), Some(tensor(&[k as i64], &[1]))];
                let found = run_outputs(&op, &inputs, 2).expect("runs");
                let bits = |v: &[f32]| v.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
                let repeated: Vec<f32> = values.iter().flat_map(|&v| vec![v; inner]).collect();
                assert_eq!(bits(found[0].tensor().unwrap().read::<f32>().unwrap()), bits(&repeated), "{op:?} {k}");
                let repeated: Vec<i64> = indices.iter().flat_map(|&v| vec![v; inner]).collect();
                assert_eq!(found[1].tensor().unwrap().to_i64().unwrap(), repeated, "{op:?} {k}");
            }
        }
        let too_many = [Some(tensor(&x, &[6])), Some(tensor(&[7i64], &[1]))];
        assert!(run_outputs(&TopK { axis: 0, largest: true }, &too_many, 2).is_err());
    }
}
