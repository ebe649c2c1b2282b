//! Images in blocks of channels, `[N, C / 16, H, W, 16]`: the layout in which neighbouring channels of a pixel fill a vector.
//!
//! Where the number of channels is not a multiple of 16, the last block has lanes beyond it. What stands in them is not
//! read by anything that mixes lanes, so elementwise functions may leave there whatever they give.

mod conv;
mod cost;
mod depthwise;
mod direct;
mod filter;
mod tile;
mod weights;
mod window;
mod winograd;

#[cfg(test)]
mod tests;

pub use conv::conv;
pub use cost::{gain, is_worth_reordering, REORDER};
pub use depthwise::{depthwise, DepthwiseFilter};
pub use filter::Filter;
pub use weights::Weights;

use bytemuck::{cast_slice, cast_slice_mut};

use crate::gemm::{Finish, Shared};
use crate::isa::Isa;
use crate::threads::Threads;
use crate::transpose::{transpose, Plane};

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

/// `[N, C, H · W]` → `[N, C / 16, H · W, 16]`, zeros in the lanes beyond C.
///
/// # Panics
/// The slices do not have those sizes.
pub fn to_blocks(isa: Isa, threads: &Threads, images: Images, x: &[f32], out: &mut [f32]) {
    assert!(x.len() == images.len() && out.len() == images.blocked_len(), "{images:?}");
    let (shared, size) = (Shared::new(out), images.plane * BLOCK);
    images.for_each_block(threads, |index| {
        let (start, channels) = images.block(index);
        // SAFETY: each block is one task's.
        let out = unsafe { std::slice::from_raw_parts_mut(shared.at(index * size), size) };
        if channels < BLOCK {
            out.fill(0.0);
        }
        let plane = Plane { rows: images.plane, columns: channels, from: images.plane, to: BLOCK };
        transpose::<u32>(cast_slice(&x[start..start + channels * images.plane]), cast_slice_mut(out), plane, isa);
    });
}

/// `[N, C / 16, H · W, 16]` → `[N, C, H · W]`, then `finish` over runs of whole channels.
///
/// # Panics
/// The slices do not have those sizes.
pub fn from_blocks(isa: Isa, threads: &Threads, images: Images, x: &[f32], out: &mut [f32], finish: Option<Finish>) {
    assert!(x.len() == images.blocked_len() && out.len() == images.len(), "{images:?}");
    let (shared, size) = (Shared::new(out), images.plane * BLOCK);
    images.for_each_block(threads, |index| {
        let (start, channels) = images.block(index);
        // SAFETY: each block's channels are one task's.
        let out = unsafe { std::slice::from_raw_parts_mut(shared.at(start), channels * images.plane) };
        let plane = Plane { rows: channels, columns: images.plane, from: BLOCK, to: images.plane };
        transpose::<u32>(cast_slice(&x[index * size..(index + 1) * size]), cast_slice_mut(out), plane, isa);
        if let Some(finish) = finish {
            finish(out, start);
        }
    });
}
