//! The right operand of a product, packed in panels that a tile reads from front to back.

use super::codes::{is_narrow, SIGN};
use super::finish::{Finish, Out};
use super::instructions::Dots;
use super::remainder::Remainder;
use super::tiles::Tiles;
use crate::buffer::filled;
use crate::gemm::Lines;
use crate::scratch::Scratch;

/// A `[k, n]` matrix of codes inside a slice: element `(i, j)` is `bits[i · row + j · column]`.
#[derive(Debug, Clone, Copy)]
pub struct Matrix<'a> {
    /// The bits of the codes.
    pub bits: &'a [u8],
    /// Whether the codes are `i8`.
    pub signed: bool,
    /// The zero points: one for all columns, or one per column.
    pub zeros: &'a [i32],
    /// The row stride.
    pub row: usize,
    /// The column stride.
    pub column: usize,
}

/// A `[k, n]` matrix of codes in panels of columns, `[panel][quad][column][codes]`, padded with 0. A quad of a row has
/// [as many codes](Dots::codes).
///
/// A column is stored as `i8` differences from its zero point if all of them fit, else as codes with a separate zero
/// point. If the instructions saturate, the columns are [split](Remainder), and panels have additional quads.
#[derive(Debug, Clone)]
pub struct Weights {
    pub(super) dots: Dots,
    pub(super) k: usize,
    pub(super) n: usize,
    /// Vectors of columns per panel.
    pub(super) vectors: usize,
    data: Lines,
    remainder: Remainder,
    /// The sum of each column's differences from its zero point, padded.
    pub(super) sums: Vec<i32>,
    /// 128 times the sum of each column as stored, padded; empty unless the instructions
    /// [subtract 128](Dots::flips) from the other operand.
    flipped: Vec<i32>,
    /// Each column's stored zero point, padded; empty if all are 0.
    pub(super) zeros: Vec<i32>,
}

/// A panel of columns.
pub(super) struct Panel<'a> {
    pub data: &'a [i8],
    /// The offsets of the quads of a row that the additional quads multiply.
    pub again: Scratch<usize>,
}

impl Weights {
    /// The size of the packed matrix in bytes.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.data[..])
            + size_of_val(&self.sums[..])
            + size_of_val(&self.zeros[..])
            + size_of_val(&self.flipped[..])
    }

    /// The instructions that its products are summed with, in words.
    pub fn form(&self) -> &'static str {
        self.dots.name()
    }

    /// The percentage of quads that products multiply twice, because the instructions saturate.
    pub(crate) fn again(&self) -> usize {
        (100 * self.remainder.len()).checked_div(self.panels() * self.depth() / 4).unwrap_or(0)
    }

    /// Packs a matrix for some instructions.
    ///
    /// # Panics
    /// The strides reach beyond the slice, or the number of zero points is neither one nor the number of columns.
    pub(crate) fn new(dots: Dots, k: usize, n: usize, b: &Matrix) -> Weights {
        Weights::gather(dots, k, n, b, |i| Some(i * b.row))
    }

    /// Packs a matrix whose row `i` begins at `row(i)`. If this is `None`, the row is 0.
    ///
    /// # Panics
    /// As [`Weights::new`].
    pub(super) fn gather(dots: Dots, k: usize, n: usize, b: &Matrix, row: impl Fn(usize) -> Option<usize>) -> Weights {
        assert!(b.zeros.len() == 1 || b.zeros.len() == n, "{} zero points for {n} columns", b.zeros.len());
        let mut packed = Weights::zeroed(dots, k, n);
        let (width, quads, codes) = (packed.width(), dots.padded(k) / 4, dots.codes());
        let data: &mut [i8] = bytemuck::cast_slice_mut(&mut packed.data);
        let places = Scratch::of_up_to(k, (0..k).filter(|&i| row(i).is_some()));
        let rows = Scratch::of_up_to(k, (0..k).filter_map(row));
        let mut column = Scratch::filled(0, rows.len());
        let mut columns = Columns::new(b, &rows);
        for j in 0..n {
            let zero = b.zeros[if b.zeros.len() == 1 { 0 } else { j }];
            packed.zeros[j] = stored(columns.bits(j), b.signed, zero, &mut column);
            packed.sums[j] = column.iter().fold(0, |sum: i32, &w| sum.wrapping_add(i32::from(w)));
            if let Some(flipped) = packed.flipped.get_mut(j) {
                *flipped = packed.sums[j].wrapping_mul(128);
            }
            packed.sums[j] = packed.sums[j].wrapping_sub(packed.zeros[j].wrapping_mul(rows.len() as i32));
            if !rows.is_empty() {
                let panel = j / width * width * quads * codes + j % width * codes;
                scatter(&column, &places, k, codes, width * codes, &mut data[panel..]);
            }
        }
        if packed.zeros.iter().all(|&zero| zero == 0) {
            packed.zeros.clear();
        }
        packed.split();
        packed
    }

    /// A matrix of zeros that is not split.
    fn zeroed(dots: Dots, k: usize, n: usize) -> Weights {
        let tiles = Tiles::of(dots);
        let vectors = tiles.vectors(n);
        let padded = n.next_multiple_of(vectors * tiles.lanes);
        Weights {
            dots,
            k,
            n,
            vectors,
            data: Lines::zeroed((padded * (dots.padded(k) / 4) * dots.codes()).div_ceil(4)),
            remainder: Remainder::default(),
            sums: filled(0, padded),
            flipped: if dots.flips() { filled(0, padded) } else { Vec::new() },
            zeros: filled(0, padded),
        }
    }

    /// Splits columns so that no pair of products saturates, if the instructions can saturate.
    fn split(&mut self) {
        if !self.dots.saturates() {
            return;
        }
        let (size, width) = (self.depth() * self.width(), self.width());
        let panels = &bytemuck::cast_slice::<f32, i8>(&self.data)[..size * self.panels()];
        self.remainder = Remainder::of(panels, size, width);
        if self.remainder.len() > 0 {
            self.data = Lines::overwritten(panels.len() / 4 + self.remainder.len() * width, |split| {
                self.remainder.split(panels, size, width, bytemuck::cast_slice_mut(split));
            });
        }
    }

    /// The columns of a panel.
    pub(super) fn width(&self) -> usize {
        self.vectors * Tiles::of(self.dots).lanes
    }

    /// The number of panels.
    pub(super) fn panels(&self) -> usize {
        self.sums.len() / self.width()
    }

    /// Returns a panel. `pieces` are the pieces of a row of the left operand, with `quads` quads each.
    pub(super) fn panel(&self, panel: usize, pieces: &[usize], quads: usize) -> Panel<'_> {
        let first = panel * self.depth() / 4 * self.dots.codes() + self.remainder.before(panel) * 4;
        let again = self.remainder.places(panel, pieces, quads);
        Panel { data: &bytemuck::cast_slice(&self.data)[first * self.width()..], again }
    }

    /// Returns the conversion of sums over codes with the zero point `zero`, for columns `first ..` of `out`.
    ///
    /// # Panics
    /// The bias does not fit.
    pub(super) fn finish(&self, zero: i32, bias: Option<&[i32]>, out: &mut Out, first: usize) -> Finish {
        assert!(bias.is_none_or(|bias| bias.len() == self.n), "the bias does not fit");
        let mut start = Scratch::of(self.sums.iter().map(|sum| sum.wrapping_mul(zero).wrapping_neg()));
        for (start, flipped) in start.iter_mut().zip(&self.flipped) {
            *start = start.wrapping_add(*flipped);
        }
        for (start, bias) in start.iter_mut().zip(bias.unwrap_or_default()) {
            *start = start.wrapping_add(*bias);
        }
        Finish::new(out, first, self.n, start, Scratch::of(self.zeros.iter().copied()))
    }

    /// The bytes of a row of the left operand: `k` codes plus padding.
    pub(super) fn depth(&self) -> usize {
        self.dots.padded(self.k)
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

/// The columns of some rows of a matrix.
struct Columns<'a> {
    matrix: &'a Matrix<'a>,
    rows: &'a [usize],
    /// The bits of a column; empty if the bits of the matrix are contiguous.
    gathered: Scratch<u8>,
}

impl<'a> Columns<'a> {
    fn new(matrix: &'a Matrix, rows: &'a [usize]) -> Columns<'a> {
        let is_contiguous = rows.windows(2).all(|pair| pair[0] + 1 == pair[1]);
        Columns { matrix, rows, gathered: Scratch::filled(0, if is_contiguous { 0 } else { rows.len() }) }
    }

    /// The bits of a column.
    fn bits(&mut self, column: usize) -> &[u8] {
        let (bits, offset) = (self.matrix.bits, column * self.matrix.column);
        if self.gathered.is_empty() {
            let first = self.rows.first().map_or(0, |row| row + offset);
            return &bits[first..first + self.rows.len()];
        }
        self.gathered.iter_mut().zip(self.rows).for_each(|(to, row)| *to = bits[row + offset]);
        &self.gathered
    }
}

/// Writes a column to its quads, which are `step` bytes apart: the numbers of the rows `places` out of `k` rows.
fn scatter(column: &[i8], places: &[usize], k: usize, codes: usize, step: usize, out: &mut [i8]) {
    if column.len() == k {
        let quads = column.chunks(codes).zip(out.chunks_mut(step));
        return quads.for_each(|(quad, out)| copy(quad, &mut out[..quad.len()]));
    }
    for (i, &w) in places.iter().zip(column) {
        out[i / codes * step + i % codes] = w;
    }
}

/// Copies a quad.
fn copy(quad: &[i8], out: &mut [i8]) {
    // The size of a whole quad is known to the compiler.
    match (<&[i8; 4]>::try_from(quad), <&mut [i8; 4]>::try_from(&mut *out)) {
        (Ok(quad), Ok(out)) => *out = *quad,
        _ => out.copy_from_slice(quad),
    }
}

/// Writes a column in its stored form, and returns its stored zero point.
fn stored(bits: &[u8], signed: bool, zero: i32, out: &mut [i8]) -> i32 {
    if is_narrow(bits, signed, zero) {
        out.iter_mut().zip(bits).for_each(|(out, bits)| *out = bits.wrapping_sub(zero as u8) as i8);
        return 0;
    }
    let flip = if signed { 0 } else { SIGN };
    out.iter_mut().zip(bits).for_each(|(out, bits)| *out = (bits ^ flip) as i8);
    if signed {
        zero
    } else {
        zero - 128
    }
}
