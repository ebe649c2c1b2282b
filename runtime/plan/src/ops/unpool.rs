//! Pooled elements, put back where they were.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::axes;
use crate::bail;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::extent::{all_fit, text, Extent};
use crate::float::{require_dtype, FLOATS};
use crate::kernel::Call;
use crate::operator::{Arity, Needs, Operator};
use crate::types::{TensorType, Type, Types};

/// A tensor of zeros with each element of X where its index says. X and I (int64) `[N, C, W]` or `[N, C, H, W]`, and,
/// optionally, the output's shape (int64).
///
/// An index counts in the tensor that the window would pool to X: `(size − 1) × stride + kernel − pads` on each axis; where
/// the output's shape is given, the element keeps its coordinates. Source:
/// [ONNX MaxUnpool](https://onnx.ai/onnx/operators/onnx__MaxUnpool.html).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MaxUnpool {
    /// The elements of a window.
    pub kernel: Vec<usize>,
    /// The distances between windows.
    pub strides: Vec<usize>,
    /// `[before, after]` for each spatial axis.
    pub pads: Vec<[usize; 2]>,
}

impl MaxUnpool {
    /// The shape that the indices count in.
    fn unpooled(&self, dims: &[usize]) -> Result<Vec<usize>> {
        let [n, c, spatial @ ..] = dims else { bail!("a tensor of shape {dims:?} has no spatial axes") };
        if [self.kernel.len(), self.strides.len(), self.pads.len()] != [spatial.len(); 3] {
            bail!("a window of {} spatial axes cannot have pooled a tensor of shape {dims:?}", self.kernel.len());
        }
        let size = |a: usize| {
            let steps = spatial[a].checked_sub(1)?.checked_mul(self.strides[a])?;
            let end = steps.checked_add(self.kernel[a])?;
            end.checked_sub(self.pads[a][0])?.checked_sub(self.pads[a][1])
        };
        let sizes = (0..spatial.len()).map(|a| {
            size(a).ok_or_else(|| {
                Error::op(format!("a window of {:?} cannot have pooled to a tensor of shape {dims:?}", self.kernel))
            })
        });
        [Ok(*n), Ok(*c)].into_iter().chain(sizes).collect()
    }

    /// The shape that the indices count in, and that of the result, which has room for it.
    pub(crate) fn sizes(&self, call: &Call) -> Result<(Vec<usize>, Vec<usize>)> {
        let (x, indices) = (call.tensor(0)?, call.tensor(1)?);
        check_indices(x.dims(), indices.dims())?;
        let counted = self.unpooled(x.dims())?;
        let dims = match call.optional_tensor(2)? {
            Some(shape) => axes::dims(&shape.to_i64()?)?,
            None => counted.clone(),
        };
        if counted.len() != dims.len() || counted.iter().zip(&dims).any(|(counted, dim)| counted > dim) {
            bail!("the output's shape {dims:?} has no room for {counted:?}");
        }
        Ok((counted, dims))
    }
}

/// Says that an index, element `place` of the indices, is beyond the tensor of shape `counted` that it counts in.
pub(crate) fn index_out_of_range(index: i64, place: usize, counted: &[usize]) -> String {
    format!("index {index} is out of range for a tensor of shape {counted:?} (element {place} of the indices)")
}

/// Checks that X has an index for each element.
fn check_indices(x: &[impl Extent], indices: &[impl Extent]) -> Result<()> {
    if !all_fit(x, indices) {
        bail!("indices of shape {} do not fit X of shape {}", text(indices), text(x));
    }
    Ok(())
}

impl Operator for MaxUnpool {
    fn arity(&self) -> Arity {
        Arity::inputs(2..=3)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let (x, indices) = (inputs.tensor(0)?, inputs.tensor(1)?);
        require_dtype("X", x.dtype, &FLOATS)?;
        if indices.dtype != DType::Int64 {
            bail!("MaxUnpool's indices are int64, found {}", indices.dtype);
        }
        if !(1..=2).contains(&self.kernel.len()) {
            bail!("a pooling window has one or two axes, found {:?}", self.kernel);
        }
        if self.kernel.iter().chain(&self.strides).any(|&size| size == 0) {
            bail!("a window needs a kernel and a stride of at least 1, found {:?} and {:?}", self.kernel, self.strides);
        }
        if let (Some(x), Some(indices)) = (&x.shape, &indices.shape) {
            check_indices(x, indices)?;
        }
        let shape = match x.sizes() {
            Some(sizes) => Some(TensorType::sized(x.dtype, &self.unpooled(&sizes)?)).filter(|_| inputs.len() < 3),
            None => None,
        };
        Ok(vec![Type::Tensor(shape.unwrap_or_else(|| TensorType::ranked(x.dtype, 2 + self.kernel.len())))])
    }

    fn needs(&self, input: usize) -> Needs {
        if input == 2 {
            Needs::Numbers
        } else {
            Needs::Elements
        }
    }
}
