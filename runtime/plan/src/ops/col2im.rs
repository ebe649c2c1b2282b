//! Sliding blocks added up to an image.

use candle_plan_kernels::gemm::Term;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::conv::{room, rounded, single};
use super::padding::{check_steps, output_size};
use crate::axes;
use crate::bail;
use crate::device::{Needs, on_device, MAX_RANK};
use crate::dispatch;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::kernel::{Arity, Call, Kernel, Types};
use crate::types::{TensorType, Type};
use crate::value::{Array, Value};

/// `Y[n, c, p·s + i·d − before] += X[n, (c, i), p]`: the columns of a sliding window, each element added where it was
/// taken.
///
/// Inputs: `X [N, C · Πkernel, windows]`, `image: int64 [axes]`, the result's spatial sizes, and
/// `kernel: int64 [axes]`, for any number of axes; windows are in row-major order. The result is `[N, C, image…]`.
/// `float16` and `bfloat16` are summed in `float32` and rounded once; integers wrap.
///
/// Source: [ONNX Col2Im](https://onnx.ai/onnx/operators/onnx__Col2Im.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Col2Im {
    /// The step of the window on each axis.
    pub strides: Vec<usize>,
    /// The step inside the window on each axis.
    pub dilations: Vec<usize>,
    /// `[before, after]`: what surrounds the image on each axis.
    pub pads: Vec<[usize; 2]>,
}

impl Kernel for Col2Im {
    fn arity(&self) -> Arity {
        Arity::exact(3, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        if !(x.dtype.is_int() || crate::float::FLOATS.contains(&x.dtype)) {
            bail!("Col2Im is not defined for {}", x.dtype);
        }
        if x.rank().is_some_and(|rank| rank != 3) {
            bail!("X must be [N, C · kernel, windows], found {}", Type::Tensor(x.clone()));
        }
        check_steps(&self.strides, &self.dilations, 1)?;
        let mut shape = vec![None; 2 + self.strides.len()];
        shape[0] = x.shape.as_ref().and_then(|dims| dims[0].clone());
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape: Some(shape) })])
    }

    on_device!("col2im" if |self, _operands| self.strides.len() <= MAX_RANK);

    fn needs(&self, input: usize) -> Needs {
        if input == 0 {
            Needs::Elements
        } else {
            Needs::Numbers
        }
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let image = axes::dims(&call.tensor(1)?.to_i64()?)?;
        let kernel = axes::dims(&call.tensor(2)?.to_i64()?)?;
        let out = match x.dtype() {
            DType::Float16 | DType::Bfloat16 => {
                rounded(&self.compute::<f32>(&single(x)?, &image, &kernel)?, x.dtype())?
            }
            dtype => dispatch!("Col2Im", dtype, [f32, f64, i8, i16, i32, i64, u8, u16, u32, u64], T => {
                self.compute::<T>(x, &image, &kernel)
            })?,
        };
        Ok(vec![out.into()])
    }
}

impl Col2Im {
    fn compute<T: Term + Element>(&self, x: &Array, image: &[usize], kernel: &[usize]) -> Result<Array> {
        let (windows, dims) = self.windows(x.dims(), image, kernel)?;
        let mut out = room::<T>(&dims)?;
        out.fill(T::ZERO);
        let plane: usize = image.iter().product();
        let (taps, count): (usize, usize) = (kernel.iter().product(), windows.iter().product());
        let x = x.read::<T>()?;
        for (x, out) in x.chunks_exact((taps * count).max(1)).zip(out.chunks_exact_mut(plane.max(1))) {
            for (tap, x) in x.chunks_exact(count.max(1)).enumerate() {
                let tap = unravel(tap, kernel);
                for (window, &x) in x.iter().enumerate() {
                    if let Some(place) = self.place(image, &tap, &unravel(window, &windows)) {
                        out[place] = out[place].plus(x);
                    }
                }
            }
        }
        Array::new(out, &dims)
    }

    /// The numbers of windows on each axis, and the dimensions of the result.
    pub(crate) fn windows(&self, x: &[usize], image: &[usize], kernel: &[usize]) -> Result<(Vec<usize>, Vec<usize>)> {
        let axes = self.strides.len();
        if [self.dilations.len(), self.pads.len(), image.len(), kernel.len()] != [axes; 4] {
            bail!("image {image:?}, kernel {kernel:?}, strides, dilations and pads are not for one number of axes");
        }
        let mut windows = Vec::new();
        for a in 0..axes {
            windows.push(output_size(image[a], kernel[a], self.strides[a], self.dilations[a], self.pads[a])?);
        }
        let product = |sizes: &[usize]| sizes.iter().try_fold(1usize, |n, &size| n.checked_mul(size));
        let &[batch, rows, columns] = x else { bail!("X has shape {x:?}, not [N, C · kernel, windows]") };
        let taps = product(kernel).filter(|&taps| taps > 0 && rows.is_multiple_of(taps));
        match taps.filter(|_| product(&windows) == Some(columns)) {
            Some(taps) => Ok((windows, [&[batch, rows / taps], image].concat())),
            None => Err(Error::op(format!("{x:?} does not hold the windows {windows:?} of kernel {kernel:?}"))),
        }
    }

    /// Where a tap of a window lies in the image; `None` in the padding.
    fn place(&self, image: &[usize], tap: &[usize], window: &[usize]) -> Option<usize> {
        let mut place = 0;
        for a in 0..image.len() {
            let padded = window[a] * self.strides[a] + tap[a] * self.dilations[a];
            place = place * image[a] + padded.checked_sub(self.pads[a][0]).filter(|&p| p < image[a])?;
        }
        Some(place)
    }
}

/// The indices of element `index` of a row-major tensor.
fn unravel(mut index: usize, dims: &[usize]) -> Vec<usize> {
    let mut indices = vec![0; dims.len()];
    for (place, &size) in indices.iter_mut().zip(dims).rev() {
        *place = index % size;
        index /= size;
    }
    indices
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, tensor};

    #[test]
    fn windows_add_up() {
        let two = |size| Col2Im { strides: vec![1, size], dilations: vec![1, 1], pads: vec![[0, 0], [1, 0]] };
        let sizes = |x: &[i64]| Some(tensor(x, &[x.len()]));
        // Windows of 1 × 2 over an image of 2 × 2 with a column of padding before it.
        let x = Some(tensor(&[1f32, 2., 3., 4., 5., 6., 7., 8.], &[1, 2, 4]));
        let out = run(&two(1), &[x.clone(), sizes(&[2, 2]), sizes(&[1, 2])]).unwrap();
        assert_eq!(out.tensor().unwrap().read::<f32>().unwrap(), [5. + 2., 6., 7. + 4., 8.]);
        for (op, image, kernel) in [(two(1), [2, 3], [1, 2]), (two(1), [2, 2], [1, 3]), (two(0), [2, 2], [1, 2])] {
            assert!(run(&op, &[x.clone(), sizes(&image), sizes(&kernel)]).is_err());
        }
    }
}
