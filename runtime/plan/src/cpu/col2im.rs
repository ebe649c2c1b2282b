//! CPU kernels: sums sliding windows into an image.

use candle_plan_kernels::gemm::Term;

use super::convert::{converted, widened_bytes};
use crate::axes;
use crate::dispatch;
use crate::dtype::{DType, Element};
use crate::error::Result;
use crate::extent::known_sizes;
use crate::kernel::{Call, Kernel};
use crate::ops::col2im::Col2Im;
use crate::types::Types;
use crate::value::{alloc_uninit, Array, Value};

impl Kernel for Col2Im {
    fn scratch(&self, inputs: &Types) -> Option<usize> {
        widened_bytes(self, inputs, |_| false)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let image = axes::dims(&call.tensor(1)?.to_i64()?)?;
        let kernel = axes::dims(&call.tensor(2)?.to_i64()?)?;
        let out = match x.dtype() {
            DType::Float16 | DType::Bfloat16 => {
                let wide = converted(x, DType::Float32, call.threads)?;
                converted(&self.compute::<f32>(&wide, &image, &kernel)?, x.dtype(), call.threads)?
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
        let dims = known_sizes(&dims)?;
        let mut out = alloc_uninit(&dims)?.fill(T::ZERO);
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

    /// Returns the position of a window's tap in the image, or `None` if it is in the padding.
    fn place(&self, image: &[usize], tap: &[usize], window: &[usize]) -> Option<usize> {
        let mut place = 0;
        for a in 0..image.len() {
            let padded = window[a] * self.strides[a] + tap[a] * self.dilations[a];
            place = place * image[a] + padded.checked_sub(self.pads[a][0]).filter(|&p| p < image[a])?;
        }
        Some(place)
    }
}

/// Returns the coordinates of element `index` of a row-major tensor.
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
