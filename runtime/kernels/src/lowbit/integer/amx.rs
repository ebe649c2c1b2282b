//! Products of rows that are rounded to 8 bits, with the tiles of AMX.
//!
//! One instruction multiplies 16 rows of up to 16 quads by as many quads of 16 columns. A part of the depth takes one
//! instruction or several. Its sums are stored, and added to the output as in the tiles of vectors.

use std::arch::asm;
use std::cell::Cell;

use super::forms::{cost, loads, name, tiles, unpacked, DEPTH, IN_ADVANCE, LEFT};
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
use crate::vector::{F32x16, Vector, Words};

/// Codes are unpacked for all rows of a block, and multiplied by 16 rows at a time.
pub(crate) struct DotsInTiles;

/// The rows of a tile.
const ROWS: usize = 16;
/// The vectors of a panel.
const VECTORS: usize = 4;
/// The columns of a panel.
const WIDTH: usize = VECTORS * 16;
/// The most quads of a tile's row.
const QUADS: usize = 16;
/// The time of a part of a row and a vector of columns in addition to its products.
const PARTS: f64 = 5.0;
/// The bytes of a row of sums or of unpacked codes.
const ROW: usize = 4 * WIDTH;

thread_local! {
    /// The buffer for the bytes of a part of a panel, and the sums of a tile.
    static SCRATCH: Cell<Lines> = const { Cell::new(Lines::new()) };
}

/// The quads of a part that an instruction multiplies: a part has a multiple of them.
fn quads(block: usize) -> usize {
    let all = block.min(PART) / 4;
    (1..=QUADS).rev().find(|quads| all % quads == 0).expect("1 divides every number")
}

impl Form<LowBitCase> for DotsInTiles {
    fn name(&self, _: &LowBitCase) -> String {
        name(IN_ADVANCE, "AMX")
    }

    /// All parts have the same number of quads.
    fn fits(&self, case: &LowBitCase) -> bool {
        let is_even = case.block <= PART || case.block % PART == 0;
        case.rounds && Dots::of(case.isa).has_tiles() && is_even && case.sizes.m >= ROWS
    }

    fn cost(&self, case: &LowBitCase) -> f64 {
        let rest = case.sizes.m % ROWS;
        // An instruction takes as long as two on vectors for each row, and has `quads` quads.
        let each = 0.5 / quads(case.block) as f64 + PARTS / case.block.min(PART) as f64;
        cost(case, rest, (case.sizes.m - rest) as f64 * each, loads(case)[1])
    }
}

impl LowBitForm for DotsInTiles {
    fn run(&self, product: &Product, threads: &Threads) {
        let b = product.b;
        let left = Left::new(threads, product.m, product.a, b);
        product.for_each_block(threads, |rows, panels| {
            let mut scratch = SCRATCH.take();
            scratch.overwrite(WIDTH * DEPTH / 4 + ROWS * WIDTH, |memory| {
                let (sums, bytes) = memory.split_at_mut(ROWS * WIDTH);
                block(product, &left, rows, panels, sums.as_mut_ptr().cast(), bytes.as_mut_ptr().cast());
            });
            SCRATCH.set(scratch);
        });
    }
}

/// Computes a block of rows and panels.
fn block(product: &Product, left: &Left, rows: [usize; 2], panels: [usize; 2], sums: *mut u32, bytes: *mut u32) {
    let (b, kernels) = (product.b, Kernels::of(product.b.isa));
    // SAFETY: `fits` checked that the processor has AMX, and that the process may use it.
    let configured = unsafe { Configured::new(quads(b.block)) };
    product.for_each_part(panels, LEFT / (rows[1] - rows[0]), DEPTH, |panel, depth| {
        let words = unpacked(kernels, b, panel, depth, bytes);
        let mut row = rows[0];
        while row + ROWS <= rows[1] {
            let tile = Tile { b, left, row, panel, words, depth, sums, out: product.output(row, panel) };
            // SAFETY: the sizes fit the slices. The part of the output belongs to this task alone. AMX implies AVX-512.
            unsafe { tile.run() };
            row += ROWS;
        }
        if row < rows[1] {
            tiles(product, left, [row, rows[1]], panel, depth, words, kernels.bytes(b));
        }
    });
    drop(configured);
}

/// 16 rows of a panel over a part of the depth.
struct Tile<'a> {
    b: &'a PackedCodes,
    left: &'a Left,
    row: usize,
    panel: usize,
    /// `[quad][column]`: the codes as bytes.
    words: *const u32,
    depth: [usize; 2],
    /// Room for `[row][column]` sums.
    sums: *mut u32,
    out: Output,
}

impl Tile<'_> {
    /// Computes the tile.
    ///
    /// # Safety
    /// The words, the rows of the left operand and of the output are inside their allocations. Nothing else writes these parts
    /// of the output. The tiles are [`Configured`] for the quads of an instruction.
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c")]
    unsafe fn run(&self) {
        let size = self.b.block.min(PART);
        for from in (self.depth[0]..self.depth[1]).step_by(size) {
            // SAFETY: guaranteed by the caller.
            unsafe {
                self.multiply(from, size / 4 / quads(self.b.block));
                self.add(from);
            }
        }
    }

    /// Stores the sums of the part from `from` on, which takes `count` instructions.
    ///
    /// # Safety
    /// As for [`Tile::run`].
    #[inline]
    unsafe fn multiply(&self, from: usize, count: usize) {
        let quads = quads(self.b.block);
        // SAFETY: guaranteed by the caller. Where the last block is partial, the quads of rows beyond its end are 0.
        unsafe {
            asm!(
                "tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3",
                "2:",
                "tileloadd tmm4, [{a} + {a_row}*1]",
                "tileloadd tmm6, [{b} + {row}*1]", "tdpbsud tmm0, tmm4, tmm6",
                "tileloadd tmm7, [{b} + {row}*1 + 64]", "tdpbsud tmm1, tmm4, tmm7",
                "tileloadd tmm6, [{b} + {row}*1 + 128]", "tdpbsud tmm2, tmm4, tmm6",
                "tileloadd tmm7, [{b} + {row}*1 + 192]", "tdpbsud tmm3, tmm4, tmm7",
                "add {a}, {a_step}",
                "add {b}, {b_step}",
                "dec {count}",
                "jnz 2b",
                "tilestored [{sums} + {row}*1], tmm0", "tilestored [{sums} + {row}*1 + 64], tmm1",
                "tilestored [{sums} + {row}*1 + 128], tmm2", "tilestored [{sums} + {row}*1 + 192], tmm3",
                a = inout(reg) self.left.quads(self.row, from) => _,
                a_row = in(reg) 4 * self.left.stride(),
                a_step = in(reg) 4 * quads,
                b = inout(reg) self.words.wrapping_add((from - self.depth[0]) / 4 * WIDTH) => _,
                b_step = in(reg) quads * ROW,
                row = in(reg) ROW,
                count = inout(reg) count => _,
                sums = in(reg) self.sums,
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm6") _, out("tmm7") _,
                options(nostack),
            );
        }
    }

    /// Adds the sums of the part from `from` on to the output.
    ///
    /// # Safety
    /// As for [`Tile::run`].
    #[inline(always)]
    unsafe fn add(&self, from: usize) {
        let block = from / self.b.block;
        let part = block * self.b.block.div_ceil(PART) + from % self.b.block / PART;
        let is_first = from == 0;
        for column in (0..self.out.columns).step_by(16) {
            let place = self.b.place(self.panel, block) + column;
            // SAFETY: guaranteed by the caller; the last panel is padded.
            unsafe {
                let scales: F32x16 = self.b.scales.load(place);
                let zeros: F32x16 = match &self.b.zeros {
                    Zeros::All(zero) => F32x16::splat(f32::from(*zero)),
                    Zeros::Each(zeros) => zeros.load(place),
                };
                for row in 0..ROWS {
                    let [scale, sum] = *self.left.found(self.row + row).wrapping_add(part);
                    let sums = F32x16::load_words(self.sums.wrapping_add(row * WIDTH + column));
                    let number = zeros.neg_mul_add(F32x16::splat(sum), F32x16::of_integers(sums));
                    let out = Output { first: self.out.first.wrapping_add(row * self.out.row), ..self.out };
                    let mut total = [[F32x16::splat(0.0)]];
                    if !is_first {
                        total = out.load(column);
                    }
                    total[0][0] = number.mul_add(scales * F32x16::splat(scale), total[0][0]);
                    out.store(column, &total);
                }
            }
        }
    }
}
