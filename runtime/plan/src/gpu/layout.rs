//! GPU kernels: operators that reorder elements.

use bytemuck::{Pod, Zeroable};
use candle_plan_descriptors::strided::View;
use candle_plan_device::{Fault, Gpu, Grid, Report, Symbol};

use super::copy::copied;
use super::gather::Indices;
use super::launch::{alloc_uninit, count, elements_per_word, launch, word, Params};
use super::OnGpu;
use crate::error::Result;
use crate::gpu::{gpu_kernel, takes_indices};
use crate::kernel::Call;
use crate::ops::layout::{stays, DepthToSpace, Regrouped, ReverseSequence, SpaceToDepth, Transpose};
use crate::ops::recurrent_inputs::length_out_of_range;
use crate::value::{Array, Value};

gpu_kernel!(Transpose: "copy");

impl OnGpu for Transpose {
    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        Ok(vec![transposed(gpu, x, &self.order(x.rank())?)?.into()])
    }
}

gpu_kernel!(DepthToSpace: "copy");

impl OnGpu for DepthToSpace {
    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        regroup(gpu, x, &self.regrouped(x.dims())?)
    }
}

gpu_kernel!(SpaceToDepth: "copy");

impl OnGpu for SpaceToDepth {
    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        regroup(gpu, x, &self.regrouped(x.dims())?)
    }
}

fn regroup(gpu: &Gpu, x: &Array, regrouped: &Regrouped) -> Result<Vec<Value>> {
    let moved = transposed(gpu, &x.reshape(&regrouped.split)?, &regrouped.order)?;
    Ok(vec![moved.reshape(&regrouped.dims)?.into()])
}

/// Permutes the axes of `x`; returns a view if no element moves.
fn transposed(gpu: &Gpu, x: &Array, order: &[usize]) -> Result<Array> {
    let view = View::contiguous(x.dims()).permute(order);
    match stays(x.dims(), order) {
        true => x.reshape(&view.dims),
        false => copied(gpu, x, &view),
    }
}

/// X and Y are `[outer, inner, run]`, and there is one length per sequence.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(ReverseRows in "gather.cu")]
struct ReverseParams {
    x: u64,
    y: u64,
    lengths: Indices,
    fault: Fault,
    count: u32,
    outer: u32,
    inner: u32,
    run: u32,
    time_first: u32,
    padding: u32,
}

gpu_kernel!(ReverseSequence: "gather" if |self, operands| takes_indices(operands, 1));

impl OnGpu for ReverseSequence {
    fn fault(&self, report: &Report) -> String {
        length_out_of_range(report.value, report.place, report.bound(0))
    }

    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let (x, lengths) = (call.tensor(0)?, call.tensor(1)?);
        let [outer, inner] = self.axes(x.dims(), lengths.len())?;
        let y = alloc_uninit(gpu, x.dims(), x.dtype())?;
        let (width, run): (_, usize) = (x.dtype().storage_dtype()?.size_in_bytes(), x.dims()[2..].iter().product());
        let joined = elements_per_word(width, run, &[x.address()?, y.address()?]);
        let params = ReverseParams {
            x: x.address()?,
            y: y.address()?,
            lengths: Indices::of(lengths)?,
            fault: gpu.fault(&[if self.time_first { outer } else { inner }])?,
            count: count(y.len() / joined)?,
            outer: count(outer)?,
            inner: count(inner)?,
            run: count(run / joined)?,
            time_first: self.time_first.into(),
            padding: 0,
        };
        let kernel = Symbol { module: "gather", name: "reverse_rows", kind: word(width * joined) };
        launch(gpu, kernel, Grid::over(params.count), &params)?;
        Ok(vec![y.into()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, run_on_device, tensor};

    fn numbers(dims: &[usize]) -> Value {
        tensor(&(0..dims.iter().product()).map(|i| i as f32).collect::<Vec<_>>(), dims)
    }

    /// `run` also compares with the host.
    #[test]
    fn permutations_and_blocks() {
        for permutation in [None, Some(vec![0, 2, 1, 3]), Some(vec![0, 2, 3, 1]), Some(vec![3, 0, 1, 2])] {
            run(&Transpose { permutation }, &[Some(numbers(&[2, 18, 20, 17]))]).expect("four axes");
        }
        for channels_first in [false, true] {
            run(&DepthToSpace { block_size: 3, channels_first }, &[Some(numbers(&[2, 18, 5, 40]))])
                .expect("2 · 9 channels");
            run(&SpaceToDepth { block_size: 4, channels_first }, &[Some(numbers(&[2, 3, 8, 72]))])
                .expect("whole blocks");
        }
    }

    #[test]
    fn too_large_lengths_are_faults() {
        for (time_first, dims) in [(true, [9, 3, 5, 7]), (false, [3, 9, 1, 4]), (true, [9, 3, 1, 0])] {
            let inputs = |lengths: [i64; 3]| [numbers(&dims), tensor(&lengths, &[3])];
            run(&ReverseSequence { time_first }, &inputs([0, 9, 4]).map(Some)).expect("they fit");
            for lengths in [[0, 10, 1], [-1, 2, 1]] {
                let (_, found) = run_on_device(&ReverseSequence { time_first }, &inputs(lengths)).expect("it runs");
                assert_eq!(found, dims[3] > 0, "{dims:?}");
            }
            let narrow = tensor(&[0i32, 9, 4], &[3]);
            run(&ReverseSequence { time_first }, &[Some(numbers(&dims)), Some(narrow)]).expect("they fit");
        }
        let refused = [numbers(&[2, 3]), tensor(&[1i64], &[1])];
        assert!(run_on_device(&ReverseSequence { time_first: true }, &refused).is_err());
    }
}
