//! Rows of tensors on a GPU.

use candle_plan_descriptors::strided::View;
use candle_plan_device::Gpu;

use super::copy::{copy, fill};
use super::launch::alloc_uninit;
use crate::dtype::DType;
use crate::error::Result;
use crate::value::rows::{Mover, Runs};
use crate::value::Array;

/// Moves rows of tensors on a GPU.
pub(crate) struct RowsOnGpu<'a>(pub &'a Gpu);

impl Mover for RowsOnGpu<'_> {
    fn copy(&self, (from, source): (&Array, Runs), (to, target): (&mut Array, Runs)) -> Result<()> {
        copy(self.0, (from, &view(source)), (to, &view(target)))
    }

    fn clear(&self, (to, target): (&mut Array, Runs)) -> Result<()> {
        let (zero, place) = (self.zeros(&[1], to.dtype())?, view(target));
        let repeated = View { offset: 0, strides: vec![0; 2], dims: place.dims.clone() };
        copy(self.0, (&zero, &repeated), (to, &place))
    }

    fn zeros(&self, dims: &[usize], dtype: DType) -> Result<Array> {
        let y = alloc_uninit(self.0, dims, dtype)?;
        if !y.is_empty() {
            fill(self.0, &y, 0)?;
        }
        Ok(y)
    }
}

fn view(runs: Runs) -> View {
    View { offset: runs.offset, dims: vec![runs.count, runs.length], strides: vec![runs.pitch as isize, 1] }
}
