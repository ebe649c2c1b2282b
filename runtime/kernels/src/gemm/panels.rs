//! The source of the right operand's panels.

use super::lines::Lines;
use super::operands::ProductSizes;
use super::stored::Format;
use super::tiles::Tiles;

/// The depth per tile before the next tile runs: the part of the right operand that is read stays in the cache.
pub(super) const DEPTH: usize = 256;

/// Panels of the right operand.
pub(super) struct Panels {
    /// The address of the first row of the first panel, even if that row is not in memory.
    pub origin: *const u8,
    /// The type of the numbers.
    pub format: Format,
    /// The stride of panels.
    pub panel: usize,
    /// The stride of rows.
    pub row: usize,
    /// Whether prefetching is worth it.
    pub ahead: bool,
    /// The offset of each row, if rows end with the matrix; otherwise, rows are padded to whole vectors.
    pub offsets: Option<[u32; DEPTH]>,
}

impl Panels {
    pub fn new(origin: *const f32, panel: usize, row: usize) -> Panels {
        Panels { origin: origin.cast(), format: Format::Float32, panel, row, ahead: false, offsets: None }
    }

    /// Returns the address of a row of a panel.
    pub fn at(&self, panel: usize, depth: usize) -> *const u8 {
        self.origin.wrapping_add((panel * self.panel + depth * self.row) * self.format.size())
    }
}

/// The right operand as a product by tiles reads it.
pub(super) trait Source: Sync {
    /// The columns per panel.
    fn width(&self, tiles: Tiles, sizes: ProductSizes) -> usize {
        tiles.panel_width(sizes.m, sizes.n)
    }

    /// Whether each block packs its panels.
    fn is_packed_by_blocks(&self) -> bool {
        false
    }

    /// The depth that a block of `rows` rows sums before its next panel: a multiple of [`DEPTH`].
    fn length(&self, _rows: usize) -> usize {
        DEPTH
    }

    /// Returns panels `panels[0] .. panels[1]` of `width` columns, over a part of the depth.
    fn panels(&self, width: usize, panels: [usize; 2], depth: [usize; 2], buffer: &mut Lines) -> Panels;

    /// Converts rows `depth` of a panel with `width` columns to `f32`; `None` if the panel has this type.
    fn widened<'s>(
        &self,
        _panel: usize,
        _depth: [usize; 2],
        _width: usize,
        _scratch: &'s mut Lines,
    ) -> Option<&'s [f32]> {
        None
    }
}
