//! The right operand of a product, packed in panels that a tile reads from front to back.

use half::{bf16, f16};

use super::case::RightCase;
use super::lines::Lines;
use super::operands::Matrix;
use super::stored::Format;
use super::tiles::Tiles;
use crate::isa::Isa;
use crate::threads::Threads;
use crate::transpose::{transpose, Plane};
use crate::vector::{dispatch_isa, Half, Vector};

/// A `[k, n]` matrix in panels of at most as many columns as the tallest tile has, `[panel][k][column]`. The last panel
/// is padded with zeros.
#[derive(Debug, Clone)]
pub struct PackedB {
    pub(super) isa: Isa,
    pub(super) k: usize,
    pub(super) n: usize,
    pub(super) width: usize,
    pub(super) format: Format,
    pub(super) data: Lines,
}

impl PackedB {
    /// The size of the packed matrix in bytes.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.data[..])
    }

    /// The type of the packed numbers.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Packs `b`, with `k` rows and `n` columns, as `f32`.
    ///
    /// # Panics
    /// `b`'s strides exceed its data.
    pub fn new(isa: Isa, threads: &Threads, k: usize, n: usize, b: &Matrix) -> PackedB {
        PackedB::of(Format::Float32, isa, threads, k, n, b)
    }

    /// Packs `b` in the narrowest format that represents all numbers exactly, so that products have the same bits. A
    /// single column stays in `f32`, because it may be read as a row of `f32`.
    ///
    /// # Panics
    /// As for [`PackedB::new`].
    pub fn narrowest(isa: Isa, threads: &Threads, k: usize, n: usize, b: &Matrix) -> PackedB {
        let format = if n == 1 { Format::Float32 } else { Format::holding(isa, b.data) };
        PackedB::of(format, isa, threads, k, n, b)
    }

    /// Packs `b` in a format that represents its numbers exactly. A single column is in `f32`, as for
    /// [`PackedB::narrowest`].
    ///
    /// # Panics
    /// As for [`PackedB::new`].
    pub(crate) fn of(format: Format, isa: Isa, threads: &Threads, k: usize, n: usize, b: &Matrix) -> PackedB {
        assert!(b.holds(k, n), "a {k} x {n} matrix does not fit its data");
        PackedB::of_panels(format, isa, threads, [k, n], &|columns, width, out| {
            pack(isa, out, width, b, [0, k], columns)
        })
    }

    /// Packs a `[k, n]` matrix, one panel at a time: `panel` writes columns `columns[0] .. columns[1]`, in rows of `width`
    /// elements. It writes zeros after the last column.
    pub(crate) fn of_panels(
        format: Format,
        isa: Isa,
        threads: &Threads,
        [k, n]: [usize; 2],
        panel: &(dyn Fn([usize; 2], usize, &mut [f32]) + Sync),
    ) -> PackedB {
        let width = Tiles::of(isa).panel_width(usize::MAX, n);
        let size = n.div_ceil(width) * width * k;
        let serial = Threads::serial();
        let threads = if k * n > SPLIT { threads } else { &serial };
        let panel = |i: usize, out: &mut [f32]| panel([i * width, n.min((i + 1) * width)], width, out);
        let data = Lines::overwritten((size * format.size()).div_ceil(size_of::<f32>()), |data| match format {
            Format::Float32 => threads.for_each_chunk(data, width * k, panel),
            Format::Float16 => narrowed::<f16>(isa, threads, data, size, width * k, panel),
            Format::Bfloat16 => narrowed::<bf16>(isa, threads, data, size, width * k, panel),
        });
        PackedB { isa, k, n, width, format, data }
    }

    /// The case of a `[k, n]` matrix, for any `k`, that is packed in a format.
    pub fn case_of(isa: Isa, n: usize, format: Format) -> RightCase {
        RightCase::Packed { format, width: Tiles::of(isa).panel_width(usize::MAX, n) }
    }

    /// The case of this matrix.
    pub(super) fn case(&self) -> RightCase {
        RightCase::Packed { format: self.format, width: self.width }
    }

    /// Converts the packed numbers from number `first` on to `f32`, until `to` is full.
    pub(super) fn widen(&self, first: usize, to: &mut [f32]) {
        let numbers = first..first + to.len();
        match self.format {
            Format::Float32 => to.copy_from_slice(&self.data[numbers]),
            Format::Float16 => f16::widen(self.isa, &bytemuck::cast_slice(&self.data)[numbers], to),
            Format::Bfloat16 => bf16::widen(self.isa, &bytemuck::cast_slice(&self.data)[numbers], to),
        }
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

/// Writes `size` 16-bit numbers to `data`; `panel` produces one panel of `length` numbers at a time.
fn narrowed<T: Half>(
    isa: Isa,
    threads: &Threads,
    data: &mut [f32],
    size: usize,
    length: usize,
    panel: impl Fn(usize, &mut [f32]) + Sync,
) {
    let data: &mut [T] = bytemuck::cast_slice_mut(data);
    threads.for_each_chunk(&mut data[..size], length, |i, out| {
        let wide = Lines::overwritten(out.len(), |wide| panel(i, wide));
        T::narrow(isa, &wide[..out.len()], out);
    });
}

/// Elements that are worth several threads.
const SPLIT: usize = 1 << 17;

/// Packs rows `rows[0] .. rows[1]` and columns `columns[0] .. columns[1]` of `b` in panels of `width` columns,
/// `[panel][row][column]`. The last panel is padded with zeros. The caller ensures that `b` has these elements.
pub(crate) fn pack(isa: Isa, out: &mut [f32], width: usize, b: &Matrix, rows: [usize; 2], columns: [usize; 2]) {
    let size = (rows[1] - rows[0]) * width;
    if size == 0 {
        return;
    }
    if b.column == 1 {
        let from = &b.data[rows[0] * b.row + columns[0]..];
        let (b_row, count) = (b.row, columns[1] - columns[0]);
        assert!(out.len() == count.div_ceil(width) * size && from.len() >= (size / width - 1) * b_row + count);
        dispatch_isa!(isa, (from: &[f32] = from, b_row: usize = b_row, out: &mut [f32] = out, width: usize = width,
            count: usize = count), V => copy_rows::<V>(from, b_row, out, width, count));
        return;
    }
    for (panel, out) in out.chunks_exact_mut(size).enumerate() {
        let first = columns[0] + panel * width;
        pack_across(isa, out, width, b, rows, [first, columns[1].min(first + width)]);
    }
}

/// Packs one panel whose columns are contiguous, or whose elements have any strides.
fn pack_across(isa: Isa, out: &mut [f32], width: usize, b: &Matrix, rows: [usize; 2], columns: [usize; 2]) {
    let count = columns[1] - columns[0];
    if count < width {
        out.fill(0.0);
    }
    let from = &b.data[rows[0] * b.row + columns[0] * b.column..];
    if b.row == 1 {
        let plane = Plane { rows: rows[1] - rows[0], columns: count, from: b.column, to: width };
        return transpose::<u32>(bytemuck::cast_slice(from), bytemuck::cast_slice_mut(out), plane, isa);
    }
    for (i, out) in out.chunks_exact_mut(width).enumerate() {
        for (j, out) in out[..count].iter_mut().enumerate() {
            *out = from[i * b.row + j * b.column];
        }
    }
}

/// Packs row by row: distributes `count` elements over the panels of `out`.
#[inline(always)]
fn copy_rows<V: Vector>(from: &[f32], b_row: usize, out: &mut [f32], width: usize, count: usize) {
    let size = out.len() / count.div_ceil(width);
    for row in 0..size / width {
        for (panel, first) in (0..count).step_by(width).enumerate() {
            let to = out[panel * size + row * width..][..width].as_mut_ptr();
            let from = from.as_ptr().wrapping_add(row * b_row + first);
            for column in (0..width).step_by(V::LANES) {
                let left = (count - first).saturating_sub(column).min(V::LANES);
                // SAFETY: `pack` checked that every row has `count` elements. The widths of panels are whole vectors.
                unsafe { V::load_first(from.wrapping_add(column), left).store(to.add(column)) };
            }
        }
    }
}
