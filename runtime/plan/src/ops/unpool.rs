//! Pooled elements, put back where they were.

use half::{bf16, f16};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::axes;
use crate::bail;
use crate::device::{Needs, on_device};
use crate::dispatch;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::float::{require_dtype, FLOATS};
use crate::kernel::{Arity, Call, Kernel, Types};
use crate::types::{TensorType, Type};
use crate::value::{element_count, room, Array, Value};

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
            size(a).ok_or_else(|| Error::op(format!("a window {self:?} cannot have pooled to a tensor of shape {dims:?}")))
        });
        [Ok(*n), Ok(*c)].into_iter().chain(sizes).collect()
    }

    /// The shape that the indices count in, and that of the result, which has room for it.
    pub(crate) fn sizes(&self, call: &Call) -> Result<(Vec<usize>, Vec<usize>)> {
        let (x, indices) = (call.tensor(0)?, call.tensor(1)?);
        if x.dims() != indices.dims() {
            bail!("{:?} elements cannot have {:?} indices", x.dims(), indices.dims());
        }
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

    fn run_as<T: Element>(&self, x: &Array, indices: &[i64], counted: &[usize], dims: &[usize]) -> Result<Array> {
        let mut y = room::<T>(dims)?;
        y.fill(bytemuck::Zeroable::zeroed());
        let count = element_count(counted)?;
        for (&x, &index) in x.read::<T>()?.iter().zip(indices) {
            let Some(index) = usize::try_from(index).ok().filter(|&index| index < count) else {
                bail!("index {index} is not in a tensor of shape {counted:?}");
            };
            y[place(index, counted, dims)] = x;
        }
        Array::new(y, dims)
    }
}

/// Where in a tensor of shape `dims` the element stands that is element `index` of one of shape `counted`.
fn place(index: usize, counted: &[usize], dims: &[usize]) -> usize {
    let (mut rest, mut stride, mut place) = (index, 1, 0);
    for (&counted, &dim) in counted.iter().zip(dims).rev() {
        place += rest % counted * stride;
        rest /= counted;
        stride *= dim;
    }
    place
}

impl Kernel for MaxUnpool {
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
        let shape = match x.sizes() {
            Some(sizes) => Some(TensorType::sized(x.dtype, &self.unpooled(&sizes)?)).filter(|_| inputs.len() < 3),
            None => None,
        };
        Ok(vec![Type::Tensor(shape.unwrap_or_else(|| TensorType::ranked(x.dtype, 2 + self.kernel.len())))])
    }

    on_device!("unpool" if |self, operands| operands.dtype(0).is_some());

    fn fault(&self) -> &'static str {
        "an index is beyond the result"
    }

    fn needs(&self, input: usize) -> Needs {
        if input == 2 {
            Needs::Numbers
        } else {
            Needs::Elements
        }
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (x, indices) = (call.tensor(0)?, call.tensor(1)?);
        let (counted, dims) = self.sizes(call)?;
        let indices = indices.read::<i64>()?;
        dispatch!("MaxUnpool", x.dtype(), [f32, f64, f16, bf16], T => {
            Ok(vec![self.run_as::<T>(x, indices, &counted, &dims)?.into()])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::padding::Padding;
    use crate::ops::pool::{MaxPool, PoolWindow};
    use crate::testing::{run, run_outputs, tensor};

    #[test]
    fn what_was_pooled_is_put_back() {
        let x: Vec<f32> = (1..=32).map(|i| i as f32).collect();
        let (kernel, strides, pads) = (vec![2, 2], vec![2, 2], vec![[0, 0]; 2]);
        let padding = Padding::Explicit(pads.clone());
        let window =
            PoolWindow { kernel: kernel.clone(), strides: strides.clone(), dilations: vec![1, 1], padding, ceil: false };
        let pool = MaxPool { window, column_major: false };
        let pooled = run_outputs(&pool, &[Some(tensor(&x, &[1, 2, 4, 4]))], 2).unwrap();
        let indices = pooled[1].tensor().unwrap().read::<i64>().unwrap().to_vec();
        assert_eq!(indices, [5, 7, 13, 15, 21, 23, 29, 31]);
        let unpool = MaxUnpool { kernel, strides, pads };
        let inputs = [Some(pooled[0].clone()), Some(pooled[1].clone())];
        let y = run(&unpool, &inputs).unwrap();
        assert_eq!(y.dims().unwrap(), [1, 2, 4, 4]);
        let expected: Vec<f32> = (0..32).map(|i| if indices.contains(&i) { i as f32 + 1.0 } else { 0.0 }).collect();
        assert_eq!(y.tensor().unwrap().read::<f32>().unwrap(), expected);
        let [x, i] = inputs;
        let y = run(&unpool, &[x, i, Some(tensor(&[1i64, 2, 4, 5], &[4]))]).unwrap();
        let y = y.tensor().unwrap().read::<f32>().unwrap();
        assert_eq!((y[6], y[8], y[16], y[26]), (6.0, 8.0, 14.0, 22.0));
    }

    #[test]
    fn indices_beyond_the_result_are_refused() {
        let unpool = MaxUnpool { kernel: vec![2], strides: vec![2], pads: vec![[0, 0]] };
        for index in [-1, 2] {
            let inputs = [Some(tensor(&[1f32], &[1, 1, 1])), Some(tensor(&[index], &[1, 1, 1]))];
            assert!(run(&unpool, &inputs).is_err());
        }
    }
}
