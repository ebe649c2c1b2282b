//! Images in blocks of channels, `[N, C / 16, H, W, 16]`: a vector holds neighboring channels of a pixel.
//!
//! If the number of channels is not a multiple of 16, the last block has unused lanes. Operations that mix lanes do not
//! read them, so elementwise functions may leave arbitrary values there.

mod addend;
mod axis;
mod conv;
mod depthwise;
mod direct;
mod direct_form;
mod dispatch;
mod filter;
mod form;
mod in_place;
mod pool;
mod regions;
mod reorder;
mod separable;
mod tile;
mod window;
mod winograd;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use depthwise::DepthwiseForm;
pub(crate) use direct_form::{DirectForm, FromRowsForm};
pub use pool::{pool, Pool};
pub use reorder::{from_blocks, to_blocks};
pub use separable::{separable, separable_times, SeparableWeights, Stage};
pub(crate) use winograd::WinogradForm;

use crate::threads::Threads;

/// The channels of a block.
pub const BLOCK: usize = 16;

/// The sizes of images `[N, C, H · W]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Images {
    /// N
    pub batch: usize,
    /// C
    pub channels: usize,
    /// H · W
    pub plane: usize,
}

/// Elements that are worth a separate task.
const TASK: usize = 1 << 16;

impl Images {
    /// Blocks of channels per image.
    pub fn blocks(&self) -> usize {
        self.channels.div_ceil(BLOCK)
    }

    /// Elements in the layout `[N, C, H, W]`.
    pub fn len(&self) -> usize {
        self.batch * self.channels * self.plane
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Elements in blocks of channels.
    pub fn blocked_len(&self) -> usize {
        self.batch * self.blocks() * self.plane * BLOCK
    }

    /// Returns the offset of a block's first channel in the layout `[N, C, H, W]`, and the number of its channels.
    /// `index` counts the blocks of all images.
    fn block(&self, index: usize) -> (usize, usize) {
        let (image, first) = (index / self.blocks(), index % self.blocks() * BLOCK);
        ((image * self.channels + first) * self.plane, BLOCK.min(self.channels - first))
    }

    /// Calls `task` for every block of every image.
    fn for_each_block(&self, threads: &Threads, task: impl Fn(usize) + Sync) {
        let blocks = if self.plane == 0 { 0 } else { self.batch * self.blocks() };
        let together = (TASK / (self.plane * BLOCK).max(1)).max(1);
        threads.for_each(blocks.div_ceil(together), |i| {
            (i * together..blocks.min((i + 1) * together)).for_each(&task);
        });
    }
}
