//! GPU kernels: slices of a tensor.

use std::borrow::Cow;

use candle_plan_device::Gpu;

use super::copy::copied;
use super::OnGpu;
use crate::axes::numbers;
use crate::error::Result;
use crate::gpu::gpu_kernel;
use crate::kernel::Call;
use crate::ops::slice::{sliced, Slice};
use crate::value::Value;

gpu_kernel!(Slice: "copy");

impl OnGpu for Slice {
    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let list = |i| call.optional_tensor(i)?.map(|list| numbers(list).map(Cow::Owned)).transpose();
        let ranges = self.ranges(x.dims(), list)?;
        Ok(vec![sliced(x, &ranges, |x, view| copied(gpu, x, view))?.into()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, tensor};

    /// `run` also compares with the host.
    #[test]
    fn slices_have_positive_and_negative_steps() {
        let x = tensor(&(0..4 * 9 * 50).map(|i| i as f32).collect::<Vec<_>>(), &[4, 9, 50]);
        let list = |numbers: &[i64; 3]| Some(tensor(numbers, &[3]));
        let cases = [
            ([0, 0, 0], [4, 9, 50], [1, 1, 1]),
            ([0, 1, 4], [4, 8, 44], [1, 1, 1]),
            ([-1, -1, -1], [-9, -99, -99], [-1, -1, -1]),
            ([1, 8, 3], [4, 0, 50], [2, -3, 7]),
            ([2, 3, 0], [3, 7, 50], [1, 1, 1]),
            ([2, 3, 0], [2, 7, 50], [1, -1, 2]),
        ];
        for (starts, ends, steps) in cases {
            let inputs = [Some(x.clone()), list(&starts), list(&ends), list(&[0, 1, -1]), list(&steps)];
            run(&Slice {}, &inputs).unwrap_or_else(|error| panic!("{starts:?} {ends:?} {steps:?}: {error}"));
        }
    }
}
