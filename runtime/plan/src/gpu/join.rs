//! GPU kernels: concatenation and split.

use candle_plan_descriptors::strided::View;
use candle_plan_device::Gpu;

use super::copy::{copied, copy};
use super::launch::alloc_uninit;
use super::OnGpu;
use crate::axes;
use crate::bail;
use crate::error::Result;
use crate::gpu::gpu_kernel;
use crate::kernel::Call;
use crate::ops::join::{joined_dims, place_of, Concat, Split};
use crate::value::{Array, Value};

gpu_kernel!(Concat: "copy");

impl OnGpu for Concat {
    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let parts: Vec<&Array> = (0..call.len()).map(|i| call.tensor(i)).collect::<Result<_>>()?;
        let (axis, dims) = joined_dims(&parts, self.axis)?;
        if let Some(other) = parts.iter().find(|part| part.dtype() != parts[0].dtype()) {
            bail!("the inputs must have one type, found {} and {}", parts[0].dtype(), other.dtype());
        }
        let y = alloc_uninit(gpu, &dims, parts[0].dtype())?;
        let mut start = 0;
        for part in parts {
            let all = View::contiguous(part.dims());
            let mut place = View { dims: part.dims().to_vec(), ..View::contiguous(&dims) };
            place.offset = start * place.strides[axis] as usize;
            copy(gpu, (part, &all), (&y, &place))?;
            start += part.dims()[axis];
        }
        Ok(vec![y.into()])
    }
}

gpu_kernel!(Split: "copy");

impl OnGpu for Split {
    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let sizes = call.optional_tensor(1)?.map(axes::numbers).transpose()?;
        let (axis, sizes) = self.parts(x.dims(), sizes.as_deref(), call.outputs)?;
        let mut start = 0;
        let part = |size: usize| {
            let part = match place_of(x.dims(), axis, start, size) {
                None => x.narrow_outer(axis, start, size)?,
                Some(view) => copied(gpu, x, &view)?,
            };
            start += size;
            Ok(part.into())
        };
        sizes.into_iter().map(part).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, run_outputs, tensor};

    fn numbers(dims: &[usize], from: u16) -> Option<Value> {
        let count = dims.iter().product::<usize>() as u16;
        Some(tensor(&(from..from + count).collect::<Vec<_>>(), dims))
    }

    /// `run` also compares with the host.
    #[test]
    fn joins_and_splits_along_every_axis() {
        for axis in 0..4 {
            let dims = |size: usize| {
                let mut dims = [3, 5, 7, 16];
                dims[axis] = size;
                dims
            };
            let inputs = [numbers(&dims(1), 0), numbers(&dims(0), 0), numbers(&dims(40), 700), numbers(&dims(9), 9)];
            let y = run(&Concat { axis: axis as i64 - 4 }, &inputs).expect("equal sizes");
            let sizes = Some(tensor(&[8i64, 0, 41, 1], &[4]));
            run_outputs(&Split { axis: axis as i64 }, &[Some(y), sizes], 4).expect("50 rows");
        }
    }
}
