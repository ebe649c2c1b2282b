//! GPU kernels: pooling.

use bytemuck::{Pod, Zeroable};
use candle_plan_descriptors::pool::Window;
use candle_plan_device::{Gpu, Grid, Mirror, Symbol, BLOCK, MOST_BLOCKS};

use super::launch::{alloc_uninit, count, kind, launch, Params};
use super::OnGpu;
use crate::bail;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::gpu_kernel;
use crate::kernel::Call;
use crate::ops::pool::{AveragePool, LpPool, MaxPool, PoolWindow};
use crate::value::{Array, Value};

/// The windows along an axis.
#[derive(Debug, Clone, Copy, Pod, Zeroable, Mirror)]
#[repr(C)]
#[kernel(PoolAxis in "pool.cu")]
struct PoolAxis {
    input: u32,
    output: u32,
    kernel: u32,
    stride: u32,
    dilation: u32,
    before: u32,
    after: u32,
}

/// X and the results have the sizes of the windows and `planes` planes.
#[derive(Debug, Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(Pooling in "pool.cu")]
struct PoolingParams {
    x: u64,
    y: u64,
    indices: u64,
    planes: u32,
    power: u32,
    padded: u32,
    columns_first: u32,
    axes: [PoolAxis; 2],
}

/// The fewest elements of a window for which a block per window pays off, and the most windows for which it does.
const LARGE: usize = 256;

const WINDOWS: usize = 1 << 14;

/// The names of a kernel with one thread per window, and with one block per window.
type Names = [&'static str; 2];

impl PoolAxis {
    fn of(window: &Window) -> Result<PoolAxis> {
        Ok(PoolAxis {
            input: count(window.input)?,
            output: count(window.output)?,
            kernel: count(window.kernel)?,
            stride: count(window.stride)?,
            dilation: count(window.dilation)?,
            before: count(window.pads[0])?,
            after: count(window.pads[1])?,
        })
    }
}

/// Pools input 0. `params` has the kernel's own parameters. Also returns the indices of the maxima if they are
/// `wanted`.
fn pool(
    gpu: &Gpu,
    call: &Call,
    window: &PoolWindow,
    names: Names,
    params: PoolingParams,
    with_indices: bool,
) -> Result<Vec<Value>> {
    let x = call.tensor(0)?;
    let (windows, dims) = window.windows(x.dims())?;
    let y = alloc_uninit(gpu, &dims, x.dtype())?;
    let indices = if with_indices { Some(alloc_uninit(gpu, &dims, DType::Int64)?) } else { None };
    if !y.is_empty() {
        let [rows, columns] = &windows;
        let planes = [x.dims()[0], x.dims()[1]].into_iter().try_fold(1usize, usize::checked_mul);
        let Some(planes) = planes else { bail!("{:?} is too large", x.dims()) };
        for size in [x.len(), y.len()] {
            count(size)?;
        }
        let params = PoolingParams {
            x: x.address()?,
            y: y.address()?,
            indices: indices.as_ref().map(Array::address).transpose()?.unwrap_or(0),
            planes: count(planes)?,
            axes: [PoolAxis::of(rows)?, PoolAxis::of(columns)?],
            ..params
        };
        let is_large = rows.kernel.saturating_mul(columns.kernel) >= LARGE && y.len() <= WINDOWS;
        let in_plane = count(rows.output * columns.output)?;
        let threads = in_plane.next_multiple_of(32).min(BLOCK);
        let blocks = [in_plane.div_ceil(threads), params.planes.min(MOST_BLOCKS), 1];
        let (name, grid) = match (with_indices, is_large) {
            (false, true) => (names[1], Grid::blocks(count(y.len())?)),
            (false, false) => (names[0], Grid { blocks, threads }),
            (true, _) => ("pool_place", Grid { blocks, threads }),
        };
        launch(gpu, Symbol { module: "pool", name, kind: kind(x.dtype())? }, grid, &params)?;
    }
    Ok([Some(y), indices].into_iter().flatten().map(Value::from).collect())
}

gpu_kernel!(MaxPool: "pool" if |self, operands| {
    operands.dtype(0).is_some_and(|dtype| dtype.is_float() || matches!(dtype, DType::Int8 | DType::Uint8))
});

impl OnGpu for MaxPool {
    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let params = PoolingParams { columns_first: self.column_major.into(), ..PoolingParams::zeroed() };
        pool(gpu, call, &self.window, ["pool_max", "pool_large_max"], params, call.outputs > 1)
    }
}

gpu_kernel!(AveragePool: "pool" if |self, operands| operands.dtype(0).is_some_and(DType::is_float));

impl OnGpu for AveragePool {
    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let params = PoolingParams { padded: self.count_padding.into(), ..PoolingParams::zeroed() };
        pool(gpu, call, &self.window, ["pool_mean", "pool_large_mean"], params, false)
    }
}

gpu_kernel!(LpPool: "pool" if |self, operands| operands.dtype(0).is_some_and(DType::is_float));

impl OnGpu for LpPool {
    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let params = PoolingParams { power: self.p, ..PoolingParams::zeroed() };
        pool(gpu, call, &self.window, ["pool_norm", "pool_large_norm"], params, false)
    }
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::*;
    use crate::ops::padding::Padding;
    use crate::testing::{draw, run, run_outputs, tensor};

    fn window(seed: &mut u64, axes: usize) -> PoolWindow {
        let mut each = |from: usize, to: usize| (0..axes).map(|_| from + draw(seed, to - from)).collect::<Vec<_>>();
        let (kernel, strides, dilations, before) = (each(1, 6), each(1, 4), each(1, 3), each(0, 4));
        let pads = before.iter().zip(each(0, 4)).map(|(&before, after)| [before, after]).collect();
        let padding = match draw(seed, 4) {
            0 => Padding::SameUpper,
            1 => Padding::SameLower,
            _ => Padding::Explicit(pads),
        };
        PoolWindow { kernel, strides, dilations, padding, ceil: draw(seed, 2) == 0 }
    }

    /// Small numbers, some of them equal and some of them NaN.
    fn data(seed: &mut u64, dims: &[usize]) -> Vec<f32> {
        let strange = [f32::NAN, f32::NEG_INFINITY, -0.0];
        let number = |seed: &mut u64| match draw(seed, 40) {
            i @ 0..3 => strange[i],
            i => i as f32 - 20.0,
        };
        (0..dims.iter().product()).map(|_| number(seed)).collect()
    }

    fn of_dtype(dtype: usize, data: &[f32], dims: &[usize]) -> Value {
        macro_rules! of {
            ($from:expr) => {
                tensor(&data.iter().map(|&x| $from(x)).collect::<Vec<_>>(), dims)
            };
        }
        match dtype {
            0 => of!(f64::from),
            1 => of!(f16::from_f32),
            2 => of!(bf16::from_f32),
            3 => of!(|x: f32| x as i8),
            4 => of!(|x: f32| (x + 20.0) as u8),
            _ => of!(|x: f32| x),
        }
    }

    #[test]
    fn random_windows() {
        let seed = &mut 1;
        for _ in 0..300 {
            let axes = 1 + draw(seed, 2);
            let window = window(seed, axes);
            let dims: Vec<usize> = (0..2 + axes).map(|a| 1 + draw(seed, if a < 2 { 3 } else { 20 })).collect();
            let (dtype, data) = (draw(seed, 7), data(seed, &dims));
            let x = [Some(of_dtype(dtype, &data, &dims))];
            let max = MaxPool { window: window.clone(), column_major: draw(seed, 2) == 0 };
            run(&max, &x).unwrap();
            run_outputs(&max, &x, 2).unwrap();
            if ![3, 4].contains(&dtype) {
                run(&AveragePool { window: window.clone(), count_padding: draw(seed, 2) == 0 }, &x).unwrap();
                run(&LpPool { window, p: 1 + draw(seed, 3) as u32 }, &x).unwrap();
            }
        }
    }

    #[test]
    fn large_windows_and_many() {
        for (kernel, dims, dtypes) in
            [([17, 18], [1, 2, 20, 19], 0..6), ([40, 40], [1, 1, 40, 40], 5..6), ([1, 2], [70, 3, 1, 300], 3..6)]
        {
            let padding = Padding::Explicit(vec![[1, 0], [0, 2]]);
            let window =
                PoolWindow { kernel: kernel.to_vec(), strides: vec![2, 3], dilations: vec![1; 2], padding, ceil: true };
            for dtype in dtypes {
                let numbers: Vec<f32> =
                    data(&mut 2, &dims).into_iter().map(|x| if x.is_finite() { x } else { 1.0 }).collect();
                let x = [Some(of_dtype(dtype, &numbers, &dims))];
                run(&MaxPool { window: window.clone(), column_major: false }, &x).unwrap();
                if ![3, 4].contains(&dtype) {
                    run(&AveragePool { window: window.clone(), count_padding: true }, &x).unwrap();
                    run(&LpPool { window: window.clone(), p: 2 }, &x).unwrap();
                    run(&LpPool { window: window.clone(), p: 3 }, &x).unwrap();
                }
            }
        }
    }

    #[test]
    fn empty_inputs_give_empty_outputs() {
        let padding = Padding::Explicit(vec![[1, 1]]);
        let window = PoolWindow { kernel: vec![2], strides: vec![1], dilations: vec![1], padding, ceil: false };
        for dims in [[0, 2, 3], [2, 0, 3], [1, 2, 0]] {
            run_outputs(&MaxPool { window: window.clone(), column_major: false }, &[Some(of_dtype(5, &[], &dims))], 2)
                .unwrap();
            run(&AveragePool { window: window.clone(), count_padding: false }, &[Some(of_dtype(5, &[], &dims))])
                .unwrap();
        }
    }
}
