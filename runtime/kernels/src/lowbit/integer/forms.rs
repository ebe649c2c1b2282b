//! Products of rows that are rounded to 8 bits: of few rows, and of many.

use std::cell::Cell;

use super::kernels::{dots, Kernels};
use super::left::{Left, PART};
use super::tile::{Kernel, Tile};
use crate::form::Form;
use crate::gemm::tiles::Tiles;
use crate::gemm::{Lines, UNIT};
use crate::int8::Instructions;
use crate::lowbit::case::LowBitCase;
use crate::lowbit::form::LowBitForm;
use crate::lowbit::pack::PackedCodes;
use crate::lowbit::product::Product;
use crate::threads::Threads;

/// Each tile unpacks the codes that it multiplies.
pub(crate) struct DotsInRegisters;

/// A part of a panel is unpacked for all rows of a block.
pub(crate) struct DotsInAdvance;

/// How the codes are unpacked where several tiles read them.
pub(super) const IN_ADVANCE: &str = "codes unpacked once for all rows";
/// The time to round a vector of the left operand.
const ROUND: f64 = 4.0;
/// The time of a part of a row and a vector of columns in addition to its products.
const PARTS: f64 = 4.0;
/// The time to load a vector of codes, to take it out of words, and to store it.
const LOAD: f64 = 0.1;
const UNPACK: f64 = 0.3;
const STORE: f64 = 0.4;
/// The most codes of a column that are unpacked at a time. The bytes of a panel fit in the L1 cache.
pub(super) const DEPTH: usize = 256;
/// The bytes of the left operand that are read again for every panel; they fit in the L2 cache.
pub(super) const LEFT: usize = 1 << 19;

thread_local! {
    /// The buffer for the bytes of a part of a panel.
    static SCRATCH: Cell<Lines> = const { Cell::new(Lines::new()) };
}

/// The time to multiply a row by a vector of 16 codes.
fn product(case: &LowBitCase) -> f64 {
    let each_quad = match dots(case.isa).instructions() {
        #[cfg(target_arch = "x86_64")]
        Instructions::Avx2 if case.bits == 8 => 8.0,
        #[cfg(target_arch = "x86_64")]
        Instructions::Avx2 => 3.0,
        #[cfg(target_arch = "aarch64")]
        Instructions::Neon => 6.0,
        #[cfg(target_arch = "aarch64")]
        Instructions::Dotprod if case.bits == 8 => 4.0,
        Instructions::Scalar => 2.0,
        _ => 1.0,
    };
    let narrower = (Tiles::of(case.isa).lanes / Kernels::of(case.isa).lanes) as f64;
    narrower * (each_quad / 4.0 + PARTS / case.block.min(PART) as f64)
}

/// A time that unpacking takes: codes of 8 bits are bytes already.
fn unpack(case: &LowBitCase, time: f64) -> f64 {
    if case.bits == 8 {
        0.0
    } else {
        time
    }
}

/// The time of a product whose `rows` rows are multiplied by vectors. The others take a time of `others` for a vector of
/// codes, and it takes a time of `load` to load this vector, for all rows.
fn cost(case: &LowBitCase, rows: usize, others: f64, load: f64) -> f64 {
    let multiplied = case.cost_of(rows as f64 * product(case) + others + load);
    multiplied + ROUND * case.sizes.m as f64 * case.sizes.k as f64 / UNIT
}

/// [`cost`] of a form that unpacks codes in advance.
pub(super) fn cost_in_advance(case: &LowBitCase, rows: usize, others: f64) -> f64 {
    cost(case, rows, others, LOAD + unpack(case, UNPACK + STORE))
}

/// The name of a form.
fn name(case: &LowBitCase, how: &str) -> String {
    format!("rows in 8 bits, {how}, {}", dots(case.isa).name())
}

impl Form<LowBitCase> for DotsInRegisters {
    fn name(&self, case: &LowBitCase) -> String {
        name(case, "codes unpacked in registers")
    }

    fn fits(&self, case: &LowBitCase) -> bool {
        case.rounds
    }

    fn cost(&self, case: &LowBitCase) -> f64 {
        let tiles = case.sizes.m.div_ceil(Kernels::of(case.isa).rows());
        cost(case, case.sizes.m, 0.0, (LOAD + unpack(case, UNPACK)) * tiles as f64)
    }
}

impl LowBitForm for DotsInRegisters {
    fn run(&self, product: &Product, threads: &Threads) {
        in_registers(Kernels::of(product.b.isa), product, threads);
    }
}

impl Form<LowBitCase> for DotsInAdvance {
    fn name(&self, case: &LowBitCase) -> String {
        name(case, IN_ADVANCE)
    }

    fn fits(&self, case: &LowBitCase) -> bool {
        case.rounds
    }

    fn cost(&self, case: &LowBitCase) -> f64 {
        cost_in_advance(case, case.sizes.m, 0.0)
    }
}

impl LowBitForm for DotsInAdvance {
    fn run(&self, product: &Product, threads: &Threads) {
        in_advance(Kernels::of(product.b.isa), product, threads);
    }
}

/// Computes a product whose tiles read words of codes.
pub(super) fn in_registers(kernels: &Kernels, product: &Product, threads: &Threads) {
    let b = product.b;
    let left = Left::new(threads, product.m, product.a, b);
    product.for_each_block(threads, |rows, panels| {
        for panel in panels[0]..panels[1] {
            tiles(product, &left, rows, panel, [0, b.k], b.words(panel, 0), kernels.packed(b));
        }
    });
}

/// Computes a product whose tiles read codes that were unpacked to bytes.
pub(super) fn in_advance(kernels: &Kernels, product: &Product, threads: &Threads) {
    let b = product.b;
    let left = Left::new(threads, product.m, product.a, b);
    product.for_each_block(threads, |rows, panels| {
        let mut scratch = SCRATCH.take();
        scratch.overwrite(b.width * DEPTH / 4, |bytes| {
            let bytes = bytes.as_mut_ptr().cast::<u32>();
            product.for_each_part(panels, LEFT / (rows[1] - rows[0]), DEPTH, |panel, depth| {
                let words = unpacked(kernels, b, panel, depth, bytes);
                tiles(product, &left, rows, panel, depth, words, kernels.bytes(b));
            });
        });
        SCRATCH.set(scratch);
    });
}

/// Unpacks a part of a panel to `bytes`. Returns the address of its bytes: codes of 8 bits are bytes already.
pub(super) fn unpacked(
    kernels: &Kernels,
    b: &PackedCodes,
    panel: usize,
    depth: [usize; 2],
    bytes: *mut u32,
) -> *const u32 {
    let words = b.words(panel, depth[0]);
    let Some(unpack) = kernels.unpack(b) else { return words };
    // SAFETY: the panel has these words, and `bytes` has room for `DEPTH` codes in whole words. The matrix is packed for an
    // `Isa` with the instructions of `kernels`.
    unsafe { unpack(words, (depth[1] - depth[0]).div_ceil(32 / b.bits), b.width, bytes) };
    bytes
}

/// Computes some rows of a panel over a part of the depth, tile after tile.
pub(super) fn tiles(
    product: &Product,
    left: &Left,
    rows: [usize; 2],
    panel: usize,
    depth: [usize; 2],
    words: *const u32,
    kernels: &[Kernel],
) {
    let count = (rows[1] - rows[0]).div_ceil(kernels.len());
    for i in 0..count {
        let [row, end] = [i, i + 1].map(|i| rows[0] + (rows[1] - rows[0]) * i / count);
        let tile = Tile { b: product.b, left, row, panel, words, depth, out: product.output(row, panel) };
        // SAFETY: the sizes fit the slices. The part of the output belongs to this task alone. The matrix is packed for an
        // `Isa`, whose instructions the processor has.
        unsafe { kernels[end - row - 1](&tile) };
    }
}
