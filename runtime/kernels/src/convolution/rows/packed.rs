//! The weights of a convolution over rows of pixels, packed once.

use super::window::{Block, Windows};
use crate::buffer::with_capacity;
use crate::conv_shape::Shape;
use crate::gemm::tiles::Tiles;
use crate::isa::Isa;
use crate::recent_values::Recent;

/// Weights in panels. A panel has as many outputs as a tile has rows. For each group and panel:
/// `[taps][outputs of the panel]`.
#[derive(Debug, Clone)]
pub struct Rows {
    pub(super) isa: Isa,
    /// The products in one output's sum.
    pub(super) taps: usize,
    /// The outputs per group.
    pub(super) outputs: usize,
    pub(super) groups: usize,
    data: Vec<f32>,
    pub(super) windows: Recent<(Shape, usize), (Windows, Vec<Block>)>,
}

/// Some outputs of one group, with their weights.
pub(super) struct Panel<'a> {
    pub first: usize,
    pub rows: usize,
    pub data: &'a [f32],
}

impl Rows {
    /// Packs `w` `[groups · outputs, taps]`.
    ///
    /// # Panics
    /// `w` does not have this shape.
    pub fn new(isa: Isa, groups: usize, outputs: usize, taps: usize, w: &[f32]) -> Rows {
        assert_eq!(Some(w.len()), groups.checked_mul(outputs).and_then(|n| n.checked_mul(taps)));
        let mut packed = Rows { isa, taps, outputs, groups, data: with_capacity(w.len()), windows: Recent::default() };
        for w in w.chunks_exact((outputs * taps).max(1)) {
            for panel in 0..packed.panels() {
                let [first, end] = packed.rows(panel);
                for tap in 0..taps {
                    packed.data.extend((first..end).map(|row| w[row * taps + tap]));
                }
            }
        }
        packed
    }

    /// The size of the packed weights in bytes.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.data[..])
    }

    /// The number of panels per group.
    pub(super) fn panels(&self) -> usize {
        self.outputs.div_ceil(Tiles::of(self.isa).rows())
    }

    /// The outputs of a panel. Panels have similar sizes: two tiles of 6 rows are faster than one of 8 and one of 4.
    fn rows(&self, panel: usize) -> [usize; 2] {
        [panel, panel + 1].map(|i| self.outputs * i / self.panels())
    }

    pub(super) fn panel(&self, group: usize, panel: usize) -> Panel<'_> {
        let [first, end] = self.rows(panel);
        let from = (group * self.outputs + first) * self.taps;
        Panel { first, rows: end - first, data: &self.data[from..from + (end - first) * self.taps] }
    }
}
