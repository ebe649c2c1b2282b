//! The step that converts an image to another layout.

use candle_plan_kernels::blocking::Blocking;
use candle_plan_kernels::convolution::blocked;
use candle_plan_kernels::threads::Threads;

use crate::bail;
use crate::error::Result;
use crate::kernel::{Call, Kernel};
use crate::layout::{in_blocks, in_rows, Layout};
use crate::types::Types;
use crate::value::{alloc_uninit, element_count, Array, Value};

/// Converts an image to the other layout. An image without a batch axis counts as a batch of one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reorder {
    pub to: Layout,
    pub channels: usize,
    /// The rank of the image in rows.
    pub rank: usize,
    /// The blocks that it converts to or from.
    pub blocking: Blocking,
}

impl Kernel for Reorder {
    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        Some(0)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        self.apply(call.tensor(0)?, call.threads).map(|array| vec![array.into()])
    }
}

impl Reorder {
    /// Converts an image to the other layout.
    ///
    /// # Errors
    /// The tensor is not an image with this number of channels.
    pub fn apply(&self, x: &Array, threads: &Threads) -> Result<Array> {
        let dims = self.dims(x.dims())?;
        let plane = element_count(&dims[2..self.rank])?;
        let images = blocked::Images { batch: dims[0], channels: self.channels, plane };
        let (x, out) = (x.read::<f32>()?, alloc_uninit(&dims)?);
        let out = out.overwrite(|out| match self.to {
            Layout::Blocks => blocked::to_blocks(self.blocking, threads, images, x, out),
            Layout::Rows => blocked::from_blocks(self.blocking, threads, images, x, out),
        });
        Array::new(out, &dims)
    }

    /// Returns the dimensions of the result.
    fn dims(&self, x: &[usize]) -> Result<Vec<usize>> {
        match self.to {
            Layout::Rows => in_rows(x, self.channels),
            Layout::Blocks => {
                let mut rows = vec![1; self.rank.saturating_sub(x.len())];
                rows.extend(x);
                if rows.len() != self.rank || rows.get(1) != Some(&self.channels) {
                    bail!("{x:?} is no image of {} channels", self.channels);
                }
                Ok(in_blocks(&rows, self.blocking))
            }
        }
    }
}
