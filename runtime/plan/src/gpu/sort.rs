//! GPU kernels: indices of extrema, and the k largest or smallest elements.

use bytemuck::{Pod, Zeroable};
use candle_plan_device::{Gpu, Grid, Symbol};

use super::launch::{alloc_uninit, count, kind, launch, Params};
use super::reduce::PLACE;
use super::OnGpu;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::gpu_kernel;
use crate::kernel::Call;
use crate::ops::reduce::Groups;
use crate::ops::sort::{ArgReduce, ArgReduction, TopK, Wanted};
use crate::value::{Array, Value};

gpu_kernel!(ArgReduce: "reduce_place");

impl OnGpu for ArgReduce {
    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let (dims, [outer, n, inner]) = self.dims_and_split(x.dims())?;
        let y = alloc_uninit(gpu, &dims, DType::Int64)?;
        // The numbers are those of `reduce.cuh`.
        let function = match (self.function, self.select_last_index) {
            (ArgReduction::ArgMax, false) => 10,
            (ArgReduction::ArgMin, false) => 11,
            (ArgReduction::ArgMax, true) => 12,
            (ArgReduction::ArgMin, true) => 13,
        };
        PLACE.run(gpu, function, x, &Groups::new(&[outer, n, inner], &[false, true, false]), &y)?;
        Ok(vec![y.into()])
    }
}

/// X has `lines` lines of `n` elements, and the results as many lines of `k`. There are `list_len` entries per line,
/// where entries are written.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(TopKOf in "topk.cu")]
struct TopKParams {
    x: u64,
    values: u64,
    indices: u64,
    entries: u64,
    lines: u32,
    n: u32,
    inner: u32,
    k: u32,
    largest: u32,
    list_len: u32,
    sorted: u32,
    run: u32,
    reach: u32,
    padding: u32,
}

/// The longest line in which each element is ranked by counting.
const SHORT: u32 = 512;

/// The most entries of a line that are ranked by counting; more are sorted.
const FEW: u32 = 1024;

gpu_kernel!(TopK: "topk");

impl OnGpu for TopK {
    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let Wanted { dims, split: [outer, n, inner], k } = self.wanted(call)?;
        let (values, indices) = (alloc_uninit(gpu, &dims, x.dtype())?, alloc_uninit(gpu, &dims, DType::Int64)?);
        count(x.len())?;
        let params = TopKParams {
            x: x.address()?,
            values: values.address()?,
            indices: indices.address()?,
            lines: count(outer.saturating_mul(inner))?,
            n: count(n)?,
            inner: count(inner)?,
            k: count(k)?,
            largest: self.largest.into(),
            ..TopKParams::zeroed()
        };
        if !values.is_empty() {
            params.run(gpu, x)?;
        }
        Ok(vec![values.into(), indices.into()])
    }
}

impl TopKParams {
    fn run(mut self, gpu: &Gpu, x: &Array) -> Result<()> {
        let kind = kind(x.dtype())?;
        let kernel = |name, kind| Symbol { module: "topk", name, kind };
        if self.n <= SHORT {
            return launch(gpu, kernel("topk_rank", kind), Grid::over(self.lines * self.n), &self);
        }
        self.sorted = u32::from(self.k > FEW);
        self.list_len = if self.k > FEW { self.k.next_power_of_two() } else { self.k };
        let entries = count((self.lines as usize).saturating_mul(self.list_len as usize))?;
        // A key of up to 32 bits and an index take 8 bytes; an entry with a longer key takes 16.
        let (key, words) = if x.dtype().storage_dtype()?.size_in_bytes() == 8 { ("u64", 2) } else { ("u32", 1) };
        let scratch = alloc_uninit(gpu, &[entries as usize, words], DType::Float64)?;
        self.entries = scratch.address()?;
        launch(gpu, kernel("topk_select", kind), Grid::blocks(self.lines), &self)?;
        for (run, reach) in steps(self.list_len).filter(|_| self.sorted != 0) {
            let step = TopKParams { run, reach, ..self };
            launch(gpu, kernel("topk_step", key), Grid::over(entries / 2), &step)?;
        }
        launch(gpu, kernel("topk_write", kind), Grid::over(self.lines * self.k), &self)
    }
}

/// Returns the run and the reach of each step that sorts `length` entries, a power of 2.
fn steps(length: u32) -> impl Iterator<Item = (u32, u32)> {
    let levels = length.max(1).ilog2();
    (1..=levels).flat_map(|run| (0..run).rev().map(move |reach| (1 << run, 1 << reach)))
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::*;
    use crate::testing::{run, run_outputs, tensor};

    /// Unordered numbers, some of them equal.
    fn values(len: usize, different: u64) -> Vec<i64> {
        (0..len as u64).map(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20) % different).map(|v| v as i64).collect()
    }

    /// The numbers in every dtype; half of them are negative in signed dtypes.
    fn every_dtype(x: &[i64], dims: &[usize]) -> Vec<Value> {
        let middle = x.iter().max().map_or(0, |most| most / 2);
        macro_rules! of {
            ($($dtype:ident)*) => { vec![$(tensor(&x.iter().map(|&v| (v - middle) as $dtype).collect::<Vec<_>>(), dims)),*] };
        }
        let mut all = of![f32 f64 i8 i16 i32 i64 u8 u16 u32 u64];
        all.push(tensor(&x.iter().map(|&v| f16::from_f64((v - middle) as f64)).collect::<Vec<_>>(), dims));
        all.push(tensor(&x.iter().map(|&v| bf16::from_f64((v - middle) as f64)).collect::<Vec<_>>(), dims));
        all
    }

    /// `run` also compares with the CPU.
    #[test]
    fn places_of_extrema_in_every_dtype() {
        for (dims, axis) in [(&[1][..], 0), (&[300, 5], 1), (&[3, 129], -1), (&[70, 33], 0), (&[2, 3, 2, 40, 3], -2)] {
            for x in every_dtype(&values(dims.iter().product(), 50), dims) {
                for function in [ArgReduction::ArgMax, ArgReduction::ArgMin] {
                    for select_last_index in [false, true] {
                        let op = ArgReduce { function, axis, keepdims: false, select_last_index };
                        run(&op, &[Some(x.clone())]).expect("runs");
                    }
                }
            }
        }
        let x: Vec<f32> =
            values(40_000, 5000).into_iter().map(|v| if v % 9 == 0 { f32::NAN } else { v as f32 }).collect();
        for (first, dims) in [(0, [1, 39_000]), (1, [3, 13_000]), (2, [1, 35_001])] {
            let x = tensor(&x[first..][..dims[0] * dims[1]], &dims);
            let op = ArgReduce { function: ArgReduction::ArgMax, axis: 1, keepdims: true, select_last_index: true };
            run(&op, &[Some(x)]).expect("runs");
        }
    }

    fn top(x: &Value, axis: i64, k: i64) {
        for largest in [false, true] {
            run_outputs(&TopK { axis, largest }, &[Some(x.clone()), Some(tensor(&[k], &[1]))], 2).expect("runs");
        }
    }

    #[test]
    fn the_first_of_short_and_long_lines() {
        for (dims, axis, different, ks) in [
            (&[1, 1][..], 1, 2, &[0, 1][..]),
            (&[3, 5, 2], 1, 6, &[1, 3, 5]),
            (&[0, 5], 1, 6, &[3]),
            (&[2, 129], -1, 100, &[40]),
            (&[1, 513], 1, 250, &[7]),
        ] {
            for x in every_dtype(&values(dims.iter().product(), different), dims) {
                ks.iter().for_each(|&k| top(&x, axis, k));
            }
        }
        for (dims, axis, different, k) in
            [(&[2, 513][..], 1, 250, 513), (&[700, 3], 0, 3, 100), (&[1, 1500], 1, 1, 257), (&[1, 900], 1, 900, 1)]
        {
            let x = values(dims.iter().product(), different);
            top(&tensor(&x.iter().map(|&v| v as u8).collect::<Vec<_>>(), dims), axis, k);
            top(&tensor(&x, dims), axis, k);
        }
    }

    #[test]
    fn large_k_is_sorted() {
        let x = values(2 * 3000, 1 << 40);
        top(&tensor(&x.iter().map(|&v| v as f32 - 5e11).collect::<Vec<_>>(), &[2, 3000]), 1, 1024);
        top(&tensor(&x.iter().map(|&v| v as f64 - 5e11).collect::<Vec<_>>(), &[2, 3000]), 1, 1025);
        top(&tensor(&x.iter().map(|&v| (v % 7) as u8).collect::<Vec<_>>(), &[3000, 2]), 0, 2500);
    }

    #[test]
    fn nan_is_last_and_zeros_are_equal() {
        let odd =
            [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1e-310, -1e-310, f64::MAX, f64::MIN];
        for (n, k) in [(20, 13), (513, 130)] {
            let x: Vec<f64> = odd.iter().copied().cycle().take(n).collect();
            top(&tensor(&x, &[n]), 0, k);
            top(&tensor(&x.iter().map(|&v| v as f32).collect::<Vec<_>>(), &[n]), 0, k);
            top(&tensor(&x.iter().map(|&v| f16::from_f64(v)).collect::<Vec<_>>(), &[n]), 0, k);
        }
    }
}
