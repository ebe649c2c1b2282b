//! The tiles of AMX: up to 32 rows of a panel.
//!
//! Stable Rust has no intrinsics for these instructions. Each loop is a single block of assembly, so only the tiles'
//! shapes outlive a block. Tiles 0 to 3 hold sums, 4 and 5 the left operand, 6 and 7 a panel
//! ([`Configured`](crate::int8::Configured)).

use std::arch::asm;

use super::shape::{SIDE, WIDTH};

/// The operands: `out[row][column] = start + Σ a[row][pair] · b[pair][column]`.
pub(super) struct Tiles {
    /// The tiles of the first 16 rows, and those of the next 16 rows.
    pub a: [*const u32; 2],
    /// Pairs of tiles of a panel.
    pub b: *const u32,
    /// The tiles along the depth.
    pub steps: usize,
    /// Where more than 16 rows prefetch [`AHEAD`] bytes per step.
    pub ahead: *const u32,
    /// Whether the sums start with the output's values, instead of zero.
    pub adds: bool,
    pub out: *mut f32,
    /// The stride of rows.
    pub out_row: usize,
    /// At most two tiles of both.
    pub rows: usize,
    pub columns: usize,
}

/// The bytes that a step prefetches: a quarter of two tiles.
pub(super) const AHEAD: usize = 512;

impl Tiles {
    /// Computes the tiles. Sums of partial tiles go through a buffer.
    ///
    /// # Safety
    /// Every address in the formula of [`Tiles`] is inside its allocation, whole tiles of the left operand and of the panel
    /// are, and nothing else writes `out`. There is at least one step. The processor has AMX, and this thread's tiles are
    /// configured for 16 quads.
    pub unsafe fn compute(&self) {
        // SAFETY: guaranteed by the caller. The buffer has two tiles of rows and of columns.
        unsafe {
            if self.rows.is_multiple_of(SIDE) && self.columns == WIDTH {
                return self.whole();
            }
            let mut buffer = [0.0; 2 * SIDE * WIDTH];
            if self.adds {
                for (row, to) in buffer.chunks_mut(WIDTH).take(self.rows).enumerate() {
                    to[..self.columns].copy_from_slice(self.out(row));
                }
            }
            Tiles { out: buffer.as_mut_ptr(), out_row: WIDTH, ..*self }.whole();
            for (row, from) in buffer.chunks(WIDTH).take(self.rows).enumerate() {
                self.out(row).copy_from_slice(&from[..self.columns]);
            }
        }
    }

    /// A row of the output.
    ///
    /// # Safety
    /// As for [`Tiles::compute`]. The caller uses one row at a time.
    unsafe fn out<'a>(&self, row: usize) -> &'a mut [f32] {
        // SAFETY: guaranteed by the caller.
        unsafe { std::slice::from_raw_parts_mut(self.out.add(row * self.out_row), self.columns) }
    }

    /// Computes all rows of tiles.
    ///
    /// # Safety
    /// As for [`Tiles::compute`]; whole tiles of the output are inside the allocation.
    unsafe fn whole(&self) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            match (self.rows > SIDE, self.adds) {
                (true, false) => two_from_zero(self),
                (true, true) => two_from_out(self),
                (false, false) => one_from_zero(self),
                (false, true) => one_from_out(self),
            }
        }
    }
}

/// The bytes of a row of a tile, and of a row of a panel.
const LINE: usize = 4 * SIDE;
const ROW: usize = 4 * WIDTH;

/// Generates a function that writes sums: it runs `$start`, `$step` for every step, and `$end`. In `$step`, `upper` is the
/// tile of the first rows, and `b` is the first tile of the panel.
macro_rules! sums {
    ($name:ident($t:ident): [$($start:literal)*] [$($step:literal)*] [$($end:literal)*] $($operand:tt)*) => {
        /// # Safety
        /// As for [`Tiles::whole`].
        unsafe fn $name($t: &Tiles) {
            // SAFETY: guaranteed by the caller; any address may be prefetched.
            unsafe {
                asm!(
                    $($start,)*
                    "2:",
                    $($step,)*
                    "add {upper}, 1024",
                    "add {b}, 2048",
                    "dec {steps}",
                    "jnz 2b",
                    $($end,)*
                    upper = inout(reg) $t.a[0] => _,
                    line = in(reg) LINE,
                    b = inout(reg) $t.b => _,
                    row = in(reg) ROW,
                    steps = inout(reg) $t.steps => _,
                    out = in(reg) $t.out,
                    out_row = in(reg) size_of::<f32>() * $t.out_row,
                    $($operand)*
                    out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                    out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                    options(nostack),
                );
            }
        }
    };
}

/// [`sums!`] for two tiles of rows.
macro_rules! two {
    ($name:ident: $start:tt) => {
        sums!($name(t): $start
            ["tileloadd tmm6, [{b} + {row}*1]" "tileloadd tmm4, [{upper} + {line}*1]" "tdpbf16ps tmm0, tmm4, tmm6"
             "tileloadd tmm7, [{b} + {row}*1 + 64]" "tdpbf16ps tmm1, tmm4, tmm7"
             "tileloadd tmm5, [{lower} + {line}*1]" "tdpbf16ps tmm2, tmm5, tmm6" "tdpbf16ps tmm3, tmm5, tmm7"
             "prefetcht1 [{ahead}]" "prefetcht1 [{ahead} + 64]" "prefetcht1 [{ahead} + 128]"
             "prefetcht1 [{ahead} + 192]" "prefetcht1 [{ahead} + 256]" "prefetcht1 [{ahead} + 320]"
             "prefetcht1 [{ahead} + 384]" "prefetcht1 [{ahead} + 448]"
             "add {lower}, 1024" "add {ahead}, {ahead_step}"]
            ["tilestored [{out} + {out_row}*1], tmm0" "tilestored [{out} + {out_row}*1 + 64], tmm1"
             "tilestored [{below} + {out_row}*1], tmm2" "tilestored [{below} + {out_row}*1 + 64], tmm3"]
            lower = inout(reg) t.a[1] => _,
            below = in(reg) t.out.wrapping_add(SIDE * t.out_row),
            ahead = inout(reg) t.ahead => _,
            ahead_step = const AHEAD,);
    };
}

/// [`sums!`] for one tile of rows.
macro_rules! one {
    ($name:ident: $start:tt) => {
        sums!($name(t): $start
            ["tileloadd tmm6, [{b} + {row}*1]" "tileloadd tmm4, [{upper} + {line}*1]" "tdpbf16ps tmm0, tmm4, tmm6"
             "tileloadd tmm7, [{b} + {row}*1 + 64]" "tdpbf16ps tmm1, tmm4, tmm7"]
            ["tilestored [{out} + {out_row}*1], tmm0" "tilestored [{out} + {out_row}*1 + 64], tmm1"]);
    };
}

two!(two_from_zero: ["tilezero tmm0" "tilezero tmm1" "tilezero tmm2" "tilezero tmm3"]);
two!(two_from_out:
    ["tileloadd tmm0, [{out} + {out_row}*1]" "tileloadd tmm1, [{out} + {out_row}*1 + 64]"
     "tileloadd tmm2, [{below} + {out_row}*1]" "tileloadd tmm3, [{below} + {out_row}*1 + 64]"]);
one!(one_from_zero: ["tilezero tmm0" "tilezero tmm1"]);
one!(one_from_out: ["tileloadd tmm0, [{out} + {out_row}*1]" "tileloadd tmm1, [{out} + {out_row}*1 + 64]"]);
