//! Where the panels of the right side come from.

use super::lines::Lines;
use super::pack::{pack, PackedB};
use super::stored::Format;
use super::Matrix;
use crate::isa::Isa;

/// The right side as a product by tiles reads it.
pub(super) enum Source<'a> {
    /// Packed before.
    Packed(&'a PackedB),
    /// The panels are read where they are: columns that follow one another.
    Direct(Matrix<'a>),
    /// Each block packs its own.
    Packing(Matrix<'a>),
}

/// The depth that is walked before the next tile's turn: what is read of the right side stays near.
pub(super) const DEPTH: usize = 256;

/// Panels of the right side.
pub(super) struct Panels {
    /// Where the first row of the first panel is, or would be.
    origin: *const u8,
    /// The type of the numbers.
    pub format: Format,
    /// The distance from one panel to the next.
    panel: usize,
    /// The distance from one row to the next.
    pub row: usize,
    /// Whether what comes next is worth fetching.
    pub ahead: bool,
    /// Where each row begins, if they end with the matrix; else they are filled up to whole vectors.
    pub offsets: Option<[u32; DEPTH]>,
}

impl Panels {
    fn new(origin: *const f32, panel: usize, row: usize) -> Panels {
        Panels { origin: origin.cast(), format: Format::Float32, panel, row, ahead: false, offsets: None }
    }

    /// Where a row of a panel begins.
    pub fn at(&self, panel: usize, depth: usize) -> *const u8 {
        self.origin.wrapping_add((panel * self.panel + depth * self.row) * self.format.size())
    }
}

impl Source<'_> {
    /// Panels `panels[0] .. panels[1]` of `width` columns, of the `n` that there are, over part of the depth.
    pub fn panels(
        &self,
        isa: Isa,
        [n, width]: [usize; 2],
        panels: [usize; 2],
        depth: [usize; 2],
        scratch: &mut Lines,
    ) -> Panels {
        match self {
            Source::Packed(b) => {
                Panels { format: b.format(), ahead: true, ..Panels::new(b.data.as_ptr(), b.k * width, width) }
            }
            Source::Direct(b) => {
                let offsets = Some(std::array::from_fn(|i| (i * b.row) as u32));
                Panels { offsets, ..Panels::new(b.data.as_ptr(), width, b.row) }
            }
            Source::Packing(b) => {
                let length = depth[1] - depth[0];
                let room = scratch.alloc_uninit((panels[1] - panels[0]) * length * width);
                pack(isa, room, width, b, depth, panels.map(|panel| n.min(panel * width)));
                let origin = room.as_ptr().wrapping_sub(panels[0] * length * width).wrapping_sub(depth[0] * width);
                Panels::new(origin, length * width, width)
            }
        }
    }

    /// As `f32`, the rows from `depth` on of a panel, of `width` columns; none where it is `f32`.
    pub fn widened<'s>(
        &self,
        panel: usize,
        depth: [usize; 2],
        width: usize,
        scratch: &'s mut Lines,
    ) -> Option<&'s [f32]> {
        let Source::Packed(b) = self else { return None };
        if b.format() == Format::Float32 {
            return None;
        }
        let room = scratch.alloc_uninit((depth[1] - depth[0]) * width);
        b.widen((panel * b.k + depth[0]) * width, room);
        Some(room)
    }
}
