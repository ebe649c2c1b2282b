//! Images in blocks of channels, `[N, C / 16, H, W, 16]`: the layout in which neighboring channels of a pixel fill a
//! vector.
//!
//! Where the number of channels is not a multiple of 16, the last block has lanes beyond it. What stands in them is not
//! read by anything that mixes lanes, so elementwise functions may leave there whatever they give.

mod conv;
mod cost;
mod depthwise;
mod direct;
mod dispatch;
mod filter;
mod form;
mod planner;
mod pool;
mod reorder;
mod separable;
mod tile;
mod weights;
mod window;
mod winograd;

#[cfg(test)]
mod tests;

pub use depthwise::{depthwise, DepthwiseFilter};
pub use planner::{alternatives, gain, is_worth_reordering, Alternative, REORDER};
pub use pool::{pool, Pool};
pub use reorder::{from_blocks, to_blocks};
pub use separable::{is_separable, separable, Stage};
pub use weights::Weights;

use crate::gemm::Finish;
use crate::threads::Threads;

/// The channels of a block.
pub const BLOCK: usize = 16;

/// What becomes of a convolution's outputs: they are limited as they are written, then finished.
#[derive(Clone, Copy)]
pub struct Epilogue<'a> {
    /// What they are no less and no more than; NaN stays NaN.
    pub limits: [f32; 2],
    /// Rewrites runs of one block of outputs.
    pub finish: Option<Finish<'a>>,
}

impl Epilogue<'_> {
    /// Any number.
    pub const NO_LIMITS: [f32; 2] = [f32::NEG_INFINITY, f32::INFINITY];
    /// They stay as they are.
    pub const NONE: Epilogue<'static> = Epilogue { limits: Epilogue::NO_LIMITS, finish: None };
}

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

/// Elements that are worth a task of their own.
const TASK: usize = 1 << 16;

impl Images {
    /// Blocks of channels of one image.
    pub fn blocks(&self) -> usize {
        self.channels.div_ceil(BLOCK)
    }

    /// Elements in rows of channels.
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

    /// The offset of a block's first channel in rows of channels, and how many channels it has. Blocks are counted through
    /// all images.
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
