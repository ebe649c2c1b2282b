//! The source of the right operand's panels.

use super::lines::Lines;
use super::pack::{pack, PackedB};
use super::stored::Format;
use super::Matrix;
use crate::isa::Isa;

/// The right operand as a product by tiles reads it.
pub(super) enum Source<'a> {
    /// Packed in advance.
    Packed(&'a PackedB),
    /// Panels are read in place; columns are contiguous.
    Direct(Matrix<'a>),
    /// Each block packs its panels.
    Packing(Matrix<'a>),
}

/// The depth per tile before the next tile runs: the part of the right operand that is read stays in the cache.
pub(super) const DEPTH: usize = 256;

/// Panels of the right operand.
pub(super) struct Panels {
    /// The address of the first row of the first panel, even if that row is not in memory.
    origin: *const u8,
    /// The type of the numbers.
    pub format: Format,
    /// The stride of panels.
    panel: usize,
    /// The stride of rows.
    pub row: usize,
    /// Whether prefetching is worth it.
    pub ahead: bool,
    /// The offset of each row, if rows end with the matrix; otherwise, rows are padded to whole vectors.
    pub offsets: Option<[u32; DEPTH]>,
}

impl Panels {
    fn new(origin: *const f32, panel: usize, row: usize) -> Panels {
        Panels { origin: origin.cast(), format: Format::Float32, panel, row, ahead: false, offsets: None }
    }

    /// Returns the address of a row of a panel.
    pub fn at(&self, panel: usize, depth: usize) -> *const u8 {
        self.origin.wrapping_add((panel * self.panel + depth * self.row) * self.format.size())
    }
}

impl Source<'_> {
    /// Returns panels `panels[0] .. panels[1]` of `width` columns (`n` columns in total), over a part of the depth.
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

    /// Converts rows `depth` of a panel with `width` columns to `f32`; `None` if the panel has this type.
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
