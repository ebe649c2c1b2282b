//! The right side of a product, rearranged once into panels that a tile reads from front to back.

use super::tile::Tiles;
use super::Matrix;
use crate::buffer;
use crate::isa::Isa;
use crate::threads::Threads;

/// A `[k, n]` matrix in panels of as many columns as the tallest tile has, `[panel][k][column]`; the last panel is
/// filled up with zeros.
#[derive(Debug, Clone)]
pub struct PackedB {
    pub(super) isa: Isa,
    pub(super) k: usize,
    pub(super) n: usize,
    pub(super) width: usize,
    pub(super) data: Vec<f32>,
    /// Where each row of a panel begins.
    pub(super) offsets: Vec<u32>,
}

impl PackedB {
    /// Packs `b`, of `k` rows and `n` columns.
    ///
    /// # Panics
    /// `b`'s strides reach beyond its data.
    pub fn new(isa: Isa, threads: &Threads, k: usize, n: usize, b: &Matrix) -> PackedB {
        assert!(b.holds(k, n), "a {k} x {n} matrix does not fit its data");
        let width = PackedB::width(isa);
        let mut data = buffer::for_overwrite(n.div_ceil(width) * width * k);
        let serial = Threads::serial();
        let threads = if k * n > SPLIT { threads } else { &serial };
        threads.for_each_chunk(&mut data, width * k, |panel, out| {
            let first = panel * width;
            pack_panel(out, width, b, first, width.min(n - first));
        });
        PackedB { isa, k, n, width, data, offsets: offsets(k, width) }
    }

    fn width(isa: Isa) -> usize {
        let tiles = Tiles::of(isa);
        tiles.lanes * tiles.vectors(tiles.rows())
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.k
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        self.n
    }
}

/// Elements that are worth several threads.
const SPLIT: usize = 1 << 17;

/// `0, step, 2 · step …`
pub(super) fn offsets(count: usize, step: usize) -> Vec<u32> {
    (0..count).map(|k| (k * step) as u32).collect()
}

/// Columns `first .. first + columns` of `b`, and zeros up to `width`.
fn pack_panel(out: &mut [f32], width: usize, b: &Matrix, first: usize, columns: usize) {
    if b.column == 1 {
        for (k, out) in out.chunks_exact_mut(width).enumerate() {
            let from = k * b.row + first;
            out[..columns].copy_from_slice(&b.data[from..from + columns]);
            out[columns..].fill(0.0);
        }
    } else {
        out.fill(0.0);
        // Blocks of rows, so that the lines read by one column are still in the cache for the next.
        for (block, out) in out.chunks_mut(16 * width).enumerate() {
            for c in 0..columns {
                let column = &b.data[(first + c) * b.column..];
                for (k, out) in out.chunks_exact_mut(width).enumerate() {
                    out[c] = column[(block * 16 + k) * b.row];
                }
            }
        }
    }
}
