//! Products of rows that are rounded to 8 bits, with the tiles of AMX.
//!
//! One instruction multiplies 16 rows of up to 16 quads by as many quads of 16 columns. A part of the depth takes one
//! instruction or several, which write integer sums to memory. Vector instructions add these, times their scales, to the
//! totals of 16 rows and 16 columns, which stay in registers. Meanwhile, AMX multiplies the next part.

use std::arch::asm;
use std::cell::Cell;

use super::forms::{cost_in_advance, tiles, unpacked, DEPTH, IN_ADVANCE, LEFT};
use super::kernels::Kernels;
use super::left::{Left, PART};
use crate::form::Form;
use crate::gemm::Lines;
use crate::int8::{Configured, Dots};
use crate::lowbit::case::LowBitCase;
use crate::lowbit::form::LowBitForm;
use crate::lowbit::output::Output;
use crate::lowbit::pack::{PackedCodes, Zeros};
use crate::lowbit::product::Product;
use crate::threads::Threads;
use crate::vector::{F32x16, Words};

/// Codes are unpacked for all rows of a block, and multiplied by 16 rows at a time.
pub(crate) struct DotsInTiles;

/// The rows of a tile.
const ROWS: usize = 16;
/// The columns of a tile.
const COLUMNS: usize = 16;
/// The columns of a panel.
const WIDTH: usize = 4 * COLUMNS;
/// The most quads of a tile's row.
const QUADS: usize = 16;
/// The bytes of a row of unpacked codes, and of a row of sums.
const ROW: usize = 4 * WIDTH;
const LINE: usize = 4 * COLUMNS;
/// The time of a part of a row and a vector of columns, in addition to its products.
const PARTS: f64 = 1.5;

thread_local! {
    /// The buffer for the bytes of a part of a panel.
    static SCRATCH: Cell<Lines> = const { Cell::new(Lines::new()) };
}

/// The quads of a part that an instruction multiplies: a part has a multiple of them.
fn quads(block: usize) -> usize {
    let all = block.min(PART) / 4;
    (1..=QUADS).rev().find(|&quads| all.is_multiple_of(quads)).expect("1 divides every number")
}

impl Form<LowBitCase> for DotsInTiles {
    fn name(&self, _: &LowBitCase) -> String {
        format!("rows in 8 bits, {IN_ADVANCE}, AMX")
    }

    /// All parts have the same number of quads.
    fn fits(&self, case: &LowBitCase) -> bool {
        let is_even = case.block <= PART || case.block.is_multiple_of(PART);
        case.rounds && Dots::of(case.isa).has_tiles() && is_even && case.sizes.m >= ROWS
    }

    fn cost(&self, case: &LowBitCase) -> f64 {
        // An instruction takes as long as two on vectors for each row, and has `quads` quads.
        let each = 0.5 / quads(case.block) as f64 + PARTS / case.block.min(PART) as f64;
        let rest = case.sizes.m % ROWS;
        cost_in_advance(case, rest, (case.sizes.m - rest) as f64 * each)
    }
}

impl LowBitForm for DotsInTiles {
    fn run(&self, product: &Product, threads: &Threads) {
        let left = Left::new(threads, product.m, product.a, product.b);
        let found = found_in_tiles(threads, &left, product);
        product.for_each_block(threads, |rows, panels| {
            let mut scratch = SCRATCH.take();
            scratch.overwrite(WIDTH * DEPTH / 4, |bytes| {
                block(product, &left, &found, rows, panels, bytes.as_mut_ptr().cast());
            });
            SCRATCH.set(scratch);
        });
    }
}

/// A scale and a sum of each row of a tile.
type Found = [[f32; ROWS]; 2];

/// The parts of a row.
fn parts(b: &PackedCodes) -> usize {
    b.k.div_ceil(b.block) * b.block.div_ceil(PART)
}

/// `[row / 16][part]`: the scales and the sums of all rows.
fn found_in_tiles(threads: &Threads, left: &Left, product: &Product) -> Lines {
    let size = parts(product.b) * 2 * ROWS;
    Lines::overwritten(product.m / ROWS * size, |found| {
        threads.for_each_chunk(found, size, |i, found| {
            for row in 0..ROWS {
                for (part, found) in found.chunks_exact_mut(2 * ROWS).enumerate() {
                    // SAFETY: the row has this part.
                    [found[row], found[ROWS + row]] = unsafe { *left.found(i * ROWS + row).wrapping_add(part) };
                }
            }
        });
    })
}

/// The zero point of all codes, if their differences to it are signed bytes.
fn common_zero(b: &PackedCodes) -> Option<u8> {
    match b.zeros {
        Zeros::All(zero) if b.bits < 8 && zero <= 128 => Some(zero),
        _ => None,
    }
}

/// Computes a block of rows and panels. A tile begins at a row that is a multiple of 16.
fn block(product: &Product, left: &Left, found: &Lines, rows: [usize; 2], panels: [usize; 2], bytes: *mut u32) {
    let (b, kernels, zero) = (product.b, Kernels::of(product.b.isa), common_zero(product.b));
    let [first, end] = [rows[0].next_multiple_of(ROWS), rows[1] / ROWS * ROWS];
    // SAFETY: `fits` checked that the processor has AMX, and that the process may use it.
    let configured = unsafe { Configured::new(quads(b.block)) };
    product.for_each_part(panels, LEFT / (rows[1] - rows[0]), DEPTH, |panel, depth| {
        let words = unpacked(kernels, b, panel, depth, bytes);
        for rest in [[rows[0], first.min(rows[1])], [end.max(first.min(rows[1])), rows[1]]] {
            if rest[0] < rest[1] {
                tiles(product, left, rest, panel, depth, words, kernels.bytes(b));
            }
        }
        if let Some(zero) = zero {
            let len = (depth[1] - depth[0]).next_multiple_of(32 / b.bits) * WIDTH;
            // SAFETY: `unpacked` wrote these bytes, of whole words.
            subtract(unsafe { std::slice::from_raw_parts_mut(bytes.cast(), len) }, zero);
        }
        for row in (first..end).step_by(ROWS) {
            let found = &found[row / ROWS * parts(b) * 2 * ROWS..];
            let (found, out) = (found.as_ptr().cast(), product.output(row, panel));
            Tile { b, left, found, row, panel, words, depth, out }.compute(zero.is_some());
        }
    });
    drop(configured);
}

/// Subtracts the zero point from codes.
fn subtract(codes: &mut [u8], zero: u8) {
    codes.iter_mut().for_each(|code| *code = code.wrapping_sub(zero));
}

/// 16 rows of a panel over a part of the depth.
struct Tile<'a> {
    b: &'a PackedCodes,
    left: &'a Left,
    /// `[part]`
    found: *const Found,
    row: usize,
    panel: usize,
    /// `[quad][column]`: the codes as bytes.
    words: *const u32,
    depth: [usize; 2],
    out: Output,
}

impl Tile<'_> {
    /// Adds the products of the part to the output. `signed`: the zero point is subtracted from the codes already.
    fn compute(&self, signed: bool) {
        // SAFETY: the sizes fit the slices. The part of the output belongs to one task alone. AMX implies AVX-512.
        unsafe {
            if signed {
                self.run::<true>();
            } else {
                self.run::<false>();
            }
        }
    }
}

/// The integer sums of a part, `[row][column]`.
#[repr(C, align(64))]
struct Sums([u32; ROWS * COLUMNS]);

/// Writes the sums of a part of a tile. The arguments are the instruction, and the tiles of sums, of the left operand and of
/// the panel.
macro_rules! multiply {
    ($dot:tt $sums:tt $left:tt $panel:tt: $a:expr, $a_row:expr, $b:expr, $quads:expr, $count:expr, $to:expr) => {
        asm!(
            concat!("tilezero ", $sums),
            "2:",
            concat!("tileloadd ", $panel, ", [{b} + {row}*1]"),
            concat!("tileloadd ", $left, ", [{a} + {a_row}*1]"),
            concat!($dot, " ", $sums, ", ", $left, ", ", $panel),
            "add {a}, {a_step}",
            "add {b}, {b_step}",
            "dec {count}",
            "jnz 2b",
            concat!("tilestored [{to} + {line}*1], ", $sums),
            a = inout(reg) $a => _,
            a_row = in(reg) $a_row,
            a_step = in(reg) 4 * $quads,
            b = inout(reg) $b => _,
            b_step = in(reg) $quads * ROW,
            row = in(reg) ROW,
            count = inout(reg) $count => _,
            to = in(reg) $to,
            line = in(reg) LINE,
            out($sums) _, out($left) _, out($panel) _,
            options(nostack),
        )
    };
}

impl Tile<'_> {
    /// Computes the tile. `SIGNED` if the zero points are subtracted from the bytes.
    ///
    /// # Safety
    /// The words, the rows of the left operand and of the output are inside their allocations. Nothing else writes these parts
    /// of the output. The tiles are [`Configured`] for the quads of an instruction.
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c")]
    unsafe fn run<const SIGNED: bool>(&self) {
        // SAFETY: guaranteed by the caller.
        unsafe { self.columns::<F32x16, SIGNED>() }
    }

    /// Computes all columns, in vectors of 16 numbers.
    ///
    /// # Safety
    /// As for [`Tile::run`].
    #[inline(always)]
    unsafe fn columns<V: Words, const SIGNED: bool>(&self) {
        let size = self.b.block.min(PART);
        let (first, end) = (self.depth[0] / size, self.depth[1].div_ceil(size));
        let mut sums = [const { Sums([0; ROWS * COLUMNS]) }; 2];
        for column in (0..self.out.columns).step_by(COLUMNS) {
            // SAFETY: guaranteed by the caller.
            unsafe {
                let mut totals = [[V::splat(0.0)]; ROWS];
                if self.depth[0] > 0 {
                    totals = self.out.load(column);
                }
                self.multiply::<SIGNED>(first, column, &mut sums);
                for part in first..end {
                    if part + 1 < end {
                        self.multiply::<SIGNED>(part + 1, column, &mut sums);
                    }
                    self.add::<V, SIGNED>(part, column, &sums[part % 2], &mut totals);
                }
                self.out.store(column, &totals);
            }
        }
    }

    /// Writes the sums of a part to one of two places.
    ///
    /// # Safety
    /// As for [`Tile::run`].
    #[inline(always)]
    unsafe fn multiply<const SIGNED: bool>(&self, part: usize, column: usize, sums: &mut [Sums; 2]) {
        let (size, quads) = (self.b.block.min(PART), quads(self.b.block));
        let a = self.left.quads(self.row, part * size);
        let b = self.words.wrapping_add((part * size - self.depth[0]) / 4 * WIDTH + column);
        let (a_row, count, to) = (4 * self.left.stride(), size / 4 / quads, sums[part % 2].0.as_mut_ptr());
        // SAFETY: guaranteed by the caller. Where the last block is partial, the quads of rows beyond its end are 0.
        unsafe {
            match (SIGNED, part % 2) {
                (true, 0) => multiply!("tdpbssd" "tmm0" "tmm4" "tmm6": a, a_row, b, quads, count, to),
                (true, _) => multiply!("tdpbssd" "tmm1" "tmm5" "tmm7": a, a_row, b, quads, count, to),
                (false, 0) => multiply!("tdpbsud" "tmm0" "tmm4" "tmm6": a, a_row, b, quads, count, to),
                (false, _) => multiply!("tdpbsud" "tmm1" "tmm5" "tmm7": a, a_row, b, quads, count, to),
            }
        }
    }

    /// Adds the sums of a part to the totals.
    ///
    /// # Safety
    /// As for [`Tile::run`].
    #[inline(always)]
    unsafe fn add<V: Words, const SIGNED: bool>(
        &self,
        part: usize,
        column: usize,
        sums: &Sums,
        totals: &mut [[V; 1]; ROWS],
    ) {
        let place = self.b.place(self.panel, part * self.b.block.min(PART) / self.b.block) + column;
        // SAFETY: guaranteed by the caller; the last panel is padded.
        unsafe {
            let scales: V = self.b.scales.load(place);
            let zeros: V = match &self.b.zeros {
                Zeros::All(zero) => V::splat(f32::from(*zero)),
                Zeros::Each(zeros) => zeros.load(place),
            };
            let [row_scales, row_sums] = &*self.found.wrapping_add(part);
            for (row, [total]) in totals.iter_mut().enumerate() {
                let mut number = V::of_integers(V::load_words(sums.0.as_ptr().wrapping_add(row * COLUMNS)));
                if !SIGNED {
                    number = zeros.neg_mul_add(V::splat(row_sums[row]), number);
                }
                *total = number.mul_add(scales * V::splat(row_scales[row]), *total);
            }
        }
    }
}
