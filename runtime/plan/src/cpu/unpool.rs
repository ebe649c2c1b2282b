//! CPU kernels: max unpooling, which writes pooled elements back to their positions.

use half::{bf16, f16};

use crate::dispatch;
use crate::dtype::Element;
use crate::error::Result;
use crate::kernel::{Call, Kernel};
use crate::ops::unpool::{named, MaxUnpool};
use crate::types::Types;
use crate::value::{alloc_uninit, element_count, Array, Value};

impl MaxUnpool {
    fn run_as<T: Element>(&self, x: &Array, indices: &[i64], counted: &[usize], dims: &[usize]) -> Result<Array> {
        let mut y = alloc_uninit::<T>(dims)?.fill(bytemuck::Zeroable::zeroed());
        let count = element_count(counted)?;
        for (place, (&x, &index)) in x.read::<T>()?.iter().zip(indices).enumerate() {
            y[unpooled_place(named(index, place, counted, count)?, counted, dims)] = x;
        }
        Array::new(y, dims)
    }
}

/// Returns the position, in a tensor of shape `dims`, of the element with the coordinates of element `index` of a
/// tensor of shape `counted`.
fn unpooled_place(index: usize, counted: &[usize], dims: &[usize]) -> usize {
    let (mut rest, mut stride, mut place) = (index, 1, 0);
    for (&counted, &dim) in counted.iter().zip(dims).rev() {
        place += rest % counted * stride;
        rest /= counted;
        stride *= dim;
    }
    place
}

impl Kernel for MaxUnpool {
    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        Some(0)
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
    fn pooled_elements_return_to_their_positions() {
        let x: Vec<f32> = (1..=32).map(|i| i as f32).collect();
        let (kernel, strides, pads) = (vec![2, 2], vec![2, 2], vec![[0, 0]; 2]);
        let padding = Padding::Explicit(pads.clone());
        let window = PoolWindow {
            kernel: kernel.clone(),
            strides: strides.clone(),
            dilations: vec![1, 1],
            padding,
            ceil: false,
        };
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
