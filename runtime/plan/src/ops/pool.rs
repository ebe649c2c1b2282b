//! Pooling over windows of one or two spatial axes.

use candle_plan_descriptors::pool::Window;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::padding::{check_steps, output_size, output_size_ceil, Padding};
use super::window::check_pooled;
use crate::bail;
use crate::dtype::{DType, FLOATS};
use crate::error::Result;
use crate::operator::{Arity, Operator};
use crate::types::{Dim, TensorType, Type, Types};

/// The window of a pooling op, with a number for each of the one or two spatial axes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PoolWindow {
    /// The sizes of a window.
    pub kernel: Vec<usize>,
    /// The strides of the window.
    pub strides: Vec<usize>,
    /// The dilations: the distances between the elements of a window.
    pub dilations: Vec<usize>,
    /// The padding of the input.
    pub padding: Padding,
    /// Whether the last window may extend past the padding. It must begin inside the input or the padding before it.
    pub ceil: bool,
}

/// The largest element of each window; padding is never the largest.
///
/// X `[N, C, W]` or `[N, C, H, W]`; Y as X, with the numbers of windows as spatial sizes. The optional second output,
/// of the shape of Y, holds the index of each element in all of X; of equal elements, the first one counts.
///
/// NaN is never the largest. A window that contains only padding and NaN gives −∞ or the least integer. Source:
/// [ONNX MaxPool](https://onnx.ai/onnx/operators/onnx__MaxPool.html).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MaxPool {
    /// The window.
    pub window: PoolWindow,
    /// Whether the indices count the elements of an image column by column.
    pub column_major: bool,
}

/// The mean of each window. X `[N, C, W]` or `[N, C, H, W]`; Y as X, with the numbers of windows as spatial sizes.
///
/// Source: [ONNX AveragePool](https://onnx.ai/onnx/operators/onnx__AveragePool.html).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AveragePool {
    /// The window.
    pub window: PoolWindow,
    /// Whether padding counts as zeros. Elements beyond the padding never count.
    pub count_padding: bool,
}

/// `(Σ |x|ᵖ)^(1/p)` of each window. X `[N, C, W]` or `[N, C, H, W]`; Y as X, with the numbers of windows as spatial
/// sizes.
///
/// Source: [ONNX LpPool](https://onnx.ai/onnx/operators/onnx__LpPool.html).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LpPool {
    /// The window.
    pub window: PoolWindow,
    /// The exponent, at least 1.
    pub p: u32,
}

/// The maximum length of a line of partial results.
const LONGEST_AXIS: usize = 1 << 28;

impl PoolWindow {
    /// The type of the output, as far as the shape of X is known.
    pub(crate) fn infer(&self, x: &TensorType) -> Result<TensorType> {
        let axes = self.kernel.len();
        check_pooled(&self.kernel)?;
        if [self.strides.len(), self.dilations.len()] != [axes; 2] {
            let (strides, dilations) = (&self.strides, &self.dilations);
            bail!("strides {strides:?} and dilations {dilations:?} do not fit a window of {axes} axes");
        }
        check_steps(&self.strides, &self.dilations, 1)?;
        if self.kernel.contains(&0) {
            bail!("a window needs a kernel of at least 1, found {:?}", self.kernel);
        }
        let rank = 2 + self.kernel.len();
        let Some(shape) = &x.shape else { return Ok(TensorType::ranked(x.dtype, rank)) };
        if shape.len() != rank {
            bail!("a window of {} spatial axes cannot pool a tensor of rank {}", rank - 2, shape.len());
        }
        let mut out = vec![shape[0].clone(), shape[1].clone()];
        for a in 0..rank - 2 {
            let window = x.size(2 + a).map(|size| self.axis(a, size)).transpose()?;
            out.push(window.map(|window| Dim::Size(window.output)));
        }
        Ok(TensorType { dtype: x.dtype, shape: Some(out) })
    }

    /// The windows along spatial axis `a` of size `input`.
    fn axis(&self, a: usize, input: usize) -> Result<Window> {
        let [kernel, stride, dilation] = [self.kernel[a], self.strides[a], self.dilations[a]];
        let padding = match &self.padding {
            Padding::Explicit(pads) => Padding::Explicit(pads.get(a).copied().into_iter().collect()),
            same => same.clone(),
        };
        let pads = padding.resolve(&[input], &[kernel], &[stride], &[dilation])?[0];
        let size = if self.ceil { output_size_ceil } else { output_size };
        let output = size(input, kernel, stride, dilation, pads)?;
        // The stride only matters if there are two windows or more.
        let stride = if output < 2 { 1 } else { stride };
        let extent = super::padding::window_extent(kernel, dilation)?;
        if input.max(extent).max(pads[0]).max(pads[1]) > LONGEST_AXIS {
            bail!("a window of {extent} over {input} elements and {pads:?} of padding is too large");
        }
        Ok(Window { input, output, kernel, stride, dilation, pads })
    }

    /// The windows along the rows and columns of a tensor of shape `dims`, and the shape of the output.
    pub(crate) fn windows(&self, dims: &[usize]) -> Result<([Window; 2], Vec<usize>)> {
        let [n, c, spatial @ ..] = dims else { bail!("a tensor of shape {dims:?} has no spatial axes") };
        if spatial.len() != self.kernel.len() {
            bail!("a window of {} spatial axes cannot pool a tensor of shape {dims:?}", self.kernel.len());
        }
        let found = spatial.iter().enumerate().map(|(a, &size)| self.axis(a, size)).collect::<Result<Vec<_>>>()?;
        let shape = [*n, *c].into_iter().chain(found.iter().map(|window| window.output)).collect();
        Ok((
            match found[..] {
                // Long lines are fast, so a single column becomes a row.
                [rows, Window::POINT] => [Window::POINT, rows],
                [rows, columns] => [rows, columns],
                [columns] => [Window::POINT, columns],
                _ => bail!("a pooling window must have one or two axes, not {}", found.len()),
            },
            shape,
        ))
    }
}

fn require(op: &str, x: &TensorType, allowed: &[DType]) -> Result<()> {
    if allowed.contains(&x.dtype) {
        return Ok(());
    }
    bail!("{op} is not defined for {}; allowed are {allowed:?}", x.dtype)
}

impl Operator for MaxPool {
    fn arity(&self) -> Arity {
        Arity { inputs: 1..=1, outputs: 1..=2 }
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        require("MaxPool", x, &[&FLOATS[..], &[DType::Int8, DType::Uint8]].concat())?;
        let y = self.window.infer(x)?;
        let indices = TensorType { dtype: DType::Int64, shape: y.shape.clone() };
        Ok([y, indices].into_iter().take(inputs.outputs).map(Type::Tensor).collect())
    }
}

impl Operator for AveragePool {
    fn arity(&self) -> Arity {
        Arity::exact(1, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        require("AveragePool", inputs.tensor(0)?, &FLOATS)?;
        Ok(vec![Type::Tensor(self.window.infer(inputs.tensor(0)?)?)])
    }
}

impl Operator for LpPool {
    fn arity(&self) -> Arity {
        Arity::exact(1, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        require("LpPool", inputs.tensor(0)?, &FLOATS)?;
        if self.p == 0 {
            bail!("LpPool needs an exponent of at least 1");
        }
        Ok(vec![Type::Tensor(self.window.infer(inputs.tensor(0)?)?)])
    }
}
