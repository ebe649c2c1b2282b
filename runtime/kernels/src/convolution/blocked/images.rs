//! The sizes of images in blocks of channels.

use crate::blocking::Blocking;
use crate::threads::Threads;

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
    pub fn blocks(&self, blocking: Blocking) -> usize {
        self.channels.div_ceil(blocking.block())
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
    pub fn blocked_len(&self, blocking: Blocking) -> usize {
        self.batch * self.channels.next_multiple_of(blocking.block()) * self.plane
    }

    /// Returns the offset of a block's first channel in the layout `[N, C, H, W]`, and the number of its channels.
    /// `index` counts the blocks of all images.
    pub(super) fn block(&self, blocking: Blocking, index: usize) -> (usize, usize) {
        let (image, first) = (index / self.blocks(blocking), index % self.blocks(blocking) * blocking.block());
        ((image * self.channels + first) * self.plane, blocking.block().min(self.channels - first))
    }

    /// Calls `task` for every block of every image.
    pub(super) fn for_each_block(&self, blocking: Blocking, threads: &Threads, task: impl Fn(usize) + Sync) {
        let blocks = if self.plane == 0 { 0 } else { self.batch * self.blocks(blocking) };
        let together = (TASK / (self.plane * blocking.block()).max(1)).max(1);
        threads.for_each(blocks.div_ceil(together), |i| {
            (i * together..blocks.min((i + 1) * together)).for_each(&task);
        });
    }
}
