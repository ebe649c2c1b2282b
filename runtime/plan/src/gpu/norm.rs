//! GPU kernels: normalization by means and variances of channels, and by neighboring channels.

use bytemuck::{Pod, Zeroable};
use candle_plan_device::{Gpu, Grid, Mirror, Symbol};

use super::launch::{alloc_uninit, count, kind, launch, Params};
use super::team::Lines;
use super::OnGpu;
use crate::axes;
use crate::bail;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::gpu_kernel;
use crate::kernel::Call;
use crate::operands::norm::channel_dims;
use crate::ops::norm::{group_dims, is_by_channel, BatchNorm, GroupNorm, InstanceNorm, Lrn};
use crate::value::{Array, Value};

/// X and Y have the rows. Scale and bias have an element per channel or group.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(GroupNormOf in "norm.cu")]
struct GroupNormParams {
    x: u64,
    y: u64,
    scale: u64,
    bias: u64,
    rows: Lines,
    groups: u32,
    channels: u32,
    spatial: u32,
    scale_by_group: u32,
    bias_by_group: u32,
    epsilon: f64,
}

/// Numbers of any floating-point type.
#[derive(Clone, Copy, Pod, Zeroable, Mirror)]
#[repr(C)]
#[kernel(AnyFloats in "norm.cu")]
struct AnyFloats {
    address: u64,
    kind: u32,
    padding: u32,
}

/// X and Y have the lines. The other tensors have an element per channel.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(BatchNormOf in "norm.cu")]
struct BatchNormParams {
    x: u64,
    y: u64,
    scale: AnyFloats,
    bias: AnyFloats,
    mean: AnyFloats,
    variance: AnyFloats,
    lines: Lines,
    channels: u32,
    epsilon: f64,
}

/// X and Y have `count` elements.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(LrnOf in "norm.cu")]
struct LrnParams {
    x: u64,
    y: u64,
    count: u32,
    channels: u32,
    spatial: u32,
    before: u32,
    after: u32,
    padding: u32,
    bias: f64,
    factor: f64,
    power: f64,
}

impl AnyFloats {
    fn new(array: &Array) -> Result<AnyFloats> {
        let kind = match array.dtype() {
            DType::Float16 => 0,
            DType::Bfloat16 => 1,
            DType::Float32 => 2,
            DType::Float64 => 3,
            other => bail!("the device does not normalize by {other}"),
        };
        Ok(AnyFloats { address: array.address()?, kind, padding: 0 })
    }
}

/// Takes over input 0 if it dies here, otherwise allocates a tensor like it.
fn rewritten(gpu: &Gpu, call: &mut Call) -> Result<Array> {
    match call.take(0) {
        Some(array) => Ok(array),
        None => {
            let x = call.tensor(0)?;
            alloc_uninit(gpu, x.dims(), x.dtype())
        }
    }
}

gpu_kernel!(BatchNorm: "norm");

impl OnGpu for BatchNorm {
    fn in_place(&self) -> &'static [usize] {
        &[0]
    }

    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let (channels, spatial) = channel_dims(call)?;
        let x = call.tensor(0)?;
        let (dtype, address) = (x.dtype(), x.address()?);
        let planes = x.len().checked_div(spatial).unwrap_or(0);
        let floats = |i: usize| call.tensor(i).and_then(AnyFloats::new);
        let [scale, bias, mean, variance] = [floats(1)?, floats(2)?, floats(3)?, floats(4)?];
        let (lines, channels) = (Lines::new([planes, spatial, 1])?, count(channels)?);
        let y = rewritten(gpu, call)?;
        let (y_address, epsilon) = (y.address()?, self.epsilon);
        let params =
            BatchNormParams { x: address, y: y_address, scale, bias, mean, variance, lines, channels, epsilon };
        launch(gpu, Symbol { module: "norm", name: "batch_norm", kind: kind(dtype)? }, lines.grid(), &params)?;
        Ok(vec![y.into()])
    }
}

gpu_kernel!(InstanceNorm: "norm");

impl OnGpu for InstanceNorm {
    fn in_place(&self) -> &'static [usize] {
        &[0]
    }

    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let groups = call.tensor(0)?.dims().get(1).copied().unwrap_or(1);
        normalize_groups(gpu, call, groups, self.epsilon)
    }
}

gpu_kernel!(GroupNorm: "norm");

impl OnGpu for GroupNorm {
    fn in_place(&self) -> &'static [usize] {
        &[0]
    }

    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        normalize_groups(gpu, call, self.groups, self.epsilon)
    }
}

fn normalize_groups(gpu: &Gpu, call: &mut Call, groups: usize, epsilon: f64) -> Result<Vec<Value>> {
    let x = call.tensor(0)?;
    let (dtype, address, (channels, spatial)) = (x.dtype(), x.address()?, group_dims(x.dims(), groups)?);
    let (scale, bias) = (call.tensor(1)?, call.tensor(2)?);
    let scale_by_group = !is_by_channel(scale.len(), channels, groups)?;
    let bias_by_group = !is_by_channel(bias.len(), channels, groups)?;
    let channels_per_group = channels.checked_div(groups).unwrap_or(0);
    let n = channels_per_group * spatial;
    let mut params = GroupNormParams {
        x: address,
        y: 0,
        scale: scale.address()?,
        bias: bias.address()?,
        rows: Lines::new([x.len().checked_div(n).unwrap_or(0), n, 1])?,
        groups: count(groups)?,
        channels: count(channels_per_group)?,
        spatial: count(spatial)?,
        scale_by_group: scale_by_group.into(),
        bias_by_group: bias_by_group.into(),
        epsilon,
    };
    let y = rewritten(gpu, call)?;
    params.y = y.address()?;
    launch(gpu, Symbol { module: "norm", name: "group_norm", kind: kind(dtype)? }, params.rows.grid(), &params)?;
    Ok(vec![y.into()])
}

gpu_kernel!(Lrn: "norm");

impl OnGpu for Lrn {
    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let [_, channels, spatial] = axes::split(x.dims(), 1)?;
        let y = alloc_uninit(gpu, x.dims(), x.dtype())?;
        let params = LrnParams {
            x: x.address()?,
            y: y.address()?,
            count: count(x.len())?,
            channels: count(channels)?,
            spatial: count(spatial)?,
            before: count((self.size.saturating_sub(1) / 2).min(channels))?,
            after: count((self.size / 2).min(channels))?,
            padding: 0,
            bias: self.bias,
            factor: self.alpha / self.size as f64,
            power: -self.beta,
        };
        launch(gpu, Symbol { module: "norm", name: "lrn", kind: kind(x.dtype())? }, Grid::over(params.count), &params)?;
        Ok(vec![y.into()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, spread};

    const DTYPES: [DType; 4] = [DType::Float16, DType::Bfloat16, DType::Float32, DType::Float64];

    fn values(dtype: DType, least: f64, dims: &[usize]) -> Option<Value> {
        Some(spread(dtype, least, dims))
    }

    /// `run` also compares with the CPU.
    #[test]
    fn channels_of_any_size_in_every_dtype() {
        for (dims, channels) in [
            (&[4][..], &[1][..]),
            (&[300, 3], &[3]),
            (&[2, 3, 0], &[3]),
            (&[0, 3, 2], &[3]),
            (&[2, 3, 5, 13], &[3]),
            (&[2, 2, 20, 33], &[2]),
            (&[2, 3, 7], &[3, 7]),
        ] {
            for dtype in DTYPES {
                for other in [dtype, DType::Float32] {
                    let given = |least| values(other, least, channels);
                    let inputs = [values(dtype, -1.0, dims), given(0.5), given(-1.0), given(-2.0), given(0.1)];
                    run(&BatchNorm { epsilon: 1e-3 }, &inputs).expect("runs");
                }
            }
        }
    }

    #[test]
    fn groups_of_any_size_in_every_dtype() {
        for (dims, groups) in [
            (&[2, 6][..], 3),
            (&[70, 4, 3], 2),
            (&[2, 6, 0], 3),
            (&[0, 6, 2], 3),
            (&[2, 6, 5, 13], 2),
            (&[1, 4, 20, 33], 1),
            (&[2, 2, 3, 2, 5, 7], 2),
        ] {
            for dtype in DTYPES {
                for (scale, bias) in [(dims[1], dims[1]), (groups, dims[1]), (dims[1], groups)] {
                    let inputs =
                        [values(dtype, -1.0, dims), values(dtype, 0.5, &[scale]), values(dtype, -1.0, &[bias])];
                    run(&GroupNorm { groups, epsilon: 1e-5 }, &inputs).expect("runs");
                    if scale == dims[1] && bias == dims[1] && dims.len() < 5 {
                        run(&InstanceNorm { epsilon: 1e-5 }, &inputs).expect("runs");
                    }
                }
            }
        }
    }

    #[test]
    fn neighbors_of_every_channel_in_every_dtype() {
        for (dims, size) in
            [(&[3, 1][..], 1), (&[2, 0, 3], 5), (&[2, 9, 41], 4), (&[1, 300, 2], 5), (&[2, 5, 2, 3], 20)]
        {
            for dtype in DTYPES {
                run(&Lrn { size, alpha: 0.5, beta: 0.75, bias: 1.5 }, &[values(dtype, -2.0, dims)]).expect("runs");
            }
        }
        let all = Lrn { size: usize::MAX, alpha: 1e10, beta: 0.5, bias: 1.0 };
        run(&all, &[values(DType::Float32, -1.0, &[2, 3, 2])]).expect("runs");
    }
}
