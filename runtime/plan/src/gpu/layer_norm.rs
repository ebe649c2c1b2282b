//! GPU kernels: normalization over the last axes.

use bytemuck::{Pod, Zeroable};
use candle_plan_descriptors::broadcast::Broadcast;
use candle_plan_device::{Gpu, Symbol};

use super::launch::{alloc_uninit, launch, Params};
use super::shapes::{Dims, Strides};
use super::team::Lines;
use super::OnGpu;
use crate::axes;
use crate::bail;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::gpu::gpu_kernel;
use crate::kernel::Call;
use crate::ops::layer_norm::{fitted, LayerNorm, RmsNorm};
use crate::value::{Array, Value};

/// X and Y have the rows. Scale and bias broadcast to them. If mean and factor have addresses, each has an element per
/// row.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(LayerNormOf in "norm.cu")]
struct LayerNormParams {
    x: u64,
    y: u64,
    scale: u64,
    bias: u64,
    means: u64,
    factors: u64,
    rows: Lines,
    centered: u32,
    by_place: u32,
    dims: Dims,
    epsilon: f64,
    scale_steps: Strides,
    bias_steps: Strides,
}

/// Returns the suffix of the kernels for X and Y of these types. Scale and bias have Y's type.
pub(crate) fn kind(x: DType, y: DType) -> Option<&'static str> {
    use DType::*;
    Some(match (x, y) {
        (Float16, Float16) => "f16",
        (Bfloat16, Bfloat16) => "bf16",
        (Float32, Float32) => "f32",
        (Float64, Float64) => "f64",
        (Float16, Float32) => "f16_f32",
        (Bfloat16, Float32) => "bf16_f32",
        (Float32, Float16) => "f32_f16",
        (Float32, Bfloat16) => "f32_bf16",
        _ => return None,
    })
}

/// Fills the parameters for X of dimensions `dims`, normalized from `axis` on, except X and the outputs.
fn params(scale: &Array, bias: Option<&Array>, dims: &[usize], axis: usize) -> Result<LayerNormParams> {
    let rows = Lines::new([dims[..axis].iter().product(), dims[axis..].iter().product(), 1])?;
    let mut params = LayerNormParams { scale: scale.address()?, rows, ..LayerNormParams::zeroed() };
    let mut operands = vec![fitted(scale.dims(), dims, axis)?];
    if let Some(bias) = bias {
        params.bias = bias.address()?;
        operands.push(fitted(bias.dims(), dims, axis)?);
    }
    let n: usize = dims[axis..].iter().product();
    let is_row = |from: &&[usize]| from.len() <= dims.len() - axis && from.iter().product::<usize>() == n;
    params.by_place = operands.iter().all(is_row).into();
    if params.by_place == 0 {
        let broadcast = Broadcast::new(dims, &operands)
            .map_err(|i| Error::op(format!("{:?} does not broadcast to {dims:?}", operands[i])))?;
        params.dims = Dims::new(&broadcast.dims)?;
        params.scale_steps = Strides::of_operand(&broadcast, 0)?;
        if operands.len() > 1 {
            params.bias_steps = Strides::of_operand(&broadcast, 1)?;
        }
    }
    Ok(params)
}

impl LayerNormParams {
    fn launch(&self, gpu: &Gpu, x: DType, y: DType) -> Result<()> {
        let Some(kind) = kind(x, y) else { bail!("the device does not normalize {x} to {y}") };
        launch(gpu, Symbol { module: "norm", name: "layer_norm", kind }, self.rows.grid(), self)
    }
}

gpu_kernel!(LayerNorm: "norm");

impl OnGpu for LayerNorm {
    fn in_place(&self) -> &'static [usize] {
        &[0]
    }

    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let (dtype, dims, axis) = (x.dtype(), x.dims().to_vec(), axes::resolve(self.axis, x.rank())?);
        let mut params = params(call.tensor(1)?, call.optional_tensor(2)?, &dims, axis)?;
        (params.x, params.centered, params.epsilon) = (x.address()?, 1, self.epsilon);
        let mut outputs = Vec::new();
        if call.outputs > 1 {
            let mut of_rows = dims.clone();
            of_rows[axis..].fill(1);
            if x.is_empty() && !of_rows.contains(&0) {
                bail!("rows of {dims:?} have no elements, and no mean");
            }
            let (means, factors) =
                (alloc_uninit(gpu, &of_rows, DType::Float32)?, alloc_uninit(gpu, &of_rows, DType::Float32)?);
            (params.means, params.factors) = (means.address()?, factors.address()?);
            outputs = vec![means.into(), factors.into()];
        }
        let y = match call.take(0) {
            Some(array) => array,
            None => alloc_uninit(gpu, &dims, dtype)?,
        };
        params.y = y.address()?;
        params.launch(gpu, dtype, dtype)?;
        outputs.insert(0, y.into());
        Ok(outputs)
    }
}

gpu_kernel!(RmsNorm: "norm" if |self, operands| {
    operands.dtype(0).zip(operands.dtype(1)).is_some_and(|(x, scale)| kind(x, scale).is_some())
});

impl OnGpu for RmsNorm {
    fn in_place(&self) -> &'static [usize] {
        &[0]
    }

    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let (x, scale) = (call.tensor(0)?, call.tensor(1)?);
        let (from, to, dims, axis) = (x.dtype(), scale.dtype(), x.dims().to_vec(), axes::resolve(self.axis, x.rank())?);
        let mut params = params(scale, None, &dims, axis)?;
        (params.x, params.epsilon) = (x.address()?, self.epsilon);
        let taken = if from == to { call.take(0) } else { None };
        let y = match taken {
            Some(array) => array,
            None => alloc_uninit(gpu, &dims, to)?,
        };
        params.y = y.address()?;
        params.launch(gpu, from, to)?;
        Ok(vec![y.into()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, run_outputs, spread, tensor};

    const DTYPES: [DType; 4] = [DType::Float16, DType::Bfloat16, DType::Float32, DType::Float64];

    /// Numbers around `middle`.
    fn values(dtype: DType, middle: f64, dims: &[usize]) -> Value {
        spread(dtype, middle - 2.0, dims)
    }

    /// `run` also compares with the CPU.
    #[test]
    fn rows_of_any_length_in_every_dtype() {
        for (dims, axis, scale, bias) in [
            (&[3, 1][..], -1, &[1][..], &[1][..]),
            (&[2, 0], 1, &[0], &[0]),
            (&[0, 3], 1, &[3], &[3]),
            (&[70, 5], 1, &[5], &[1]),
            (&[3, 129], -1, &[129], &[1, 129]),
            (&[2, 1500], 1, &[1500], &[1500]),
            (&[2, 3, 5, 7], 2, &[5, 1], &[7]),
            (&[2, 2, 4], 2, &[2, 2, 1], &[4]),
            (&[2, 2, 3, 1, 2, 3], -3, &[2, 1], &[2, 2, 3, 1, 2, 3]),
        ] {
            for dtype in DTYPES {
                let x = values(dtype, 0.5, dims);
                let inputs = [Some(x), Some(values(dtype, 1.0, scale)), Some(values(dtype, 0.0, bias))];
                run(&LayerNorm { axis, epsilon: 1e-5 }, &inputs).expect("runs");
                run(&LayerNorm { axis, epsilon: 1e-3 }, &inputs[..2]).expect("runs");
                run(&RmsNorm { axis, epsilon: 1e-5 }, &inputs[..2]).expect("runs");
                if !dims.contains(&0) {
                    run_outputs(&LayerNorm { axis, epsilon: 1e-5 }, &inputs, 3).expect("runs");
                }
            }
        }
    }

    #[test]
    fn the_result_may_have_another_dtype() {
        let mut count = 0;
        for (from, to) in DTYPES.iter().flat_map(|&from| DTYPES.map(|to| (from, to))) {
            let inputs = [Some(values(from, 0.0, &[3, 200])), Some(values(to, 1.0, &[200]))];
            run(&RmsNorm { axis: -1, epsilon: 1e-6 }, &inputs).expect("runs");
            count += usize::from(kind(from, to).is_some());
        }
        assert_eq!(count, 8);
    }

    #[test]
    fn a_large_mean_costs_no_accuracy() {
        let inputs = [Some(values(DType::Float32, 50.0, &[2, 5000])), Some(tensor(&[1f32], &[]))];
        run_outputs(&LayerNorm { axis: 1, epsilon: 1e-5 }, &inputs, 3).expect("runs");
    }
}
