//! Products of bytes with AMX tiles.
//!
//! A tile is a register of 16 rows of 64 bytes. A tile of the left operand holds 16 rows of up to 16 quads of bytes. A
//! tile of a panel holds as many rows, each with one quad for each of 16 columns. A tile of sums has 16 rows and
//! columns. One instruction adds the product of the first two to the third. [`Configured`] sets the tiles' shapes for
//! the thread.
//!
//! Stable Rust has no intrinsics for these instructions. Each loop is a single block of assembly, so only the tiles'
//! shapes outlive a block.

use std::arch::asm;
use std::arch::x86_64::__m512i;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

use super::operands::Tile;
use super::rows;
use super::tile::{kernels, Kernel};

/// Rows per tile.
const ROWS: usize = 16;
/// Bytes per row.
const BYTES: usize = 64;

/// The configuration of this thread's tiles, which lasts until it is dropped. Tiles 0 to 3 hold sums, 4 and 5 the left
/// operand, 6 and 7 a panel.
pub(crate) struct Configured(PhantomData<*const ()>);

/// The operand of `ldtilecfg`.
#[repr(C, align(64))]
struct Shapes {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    /// The bytes per row of each tile.
    bytes: [u16; 16],
    rows: [u8; 16],
}

impl Configured {
    /// Configures the tiles for pieces of `quads` quads.
    ///
    /// # Safety
    /// The processor has AMX, and the operating system permits its use.
    ///
    /// # Panics
    /// `quads` is 0, or more than a tile's row holds.
    pub unsafe fn new(quads: usize) -> Configured {
        assert!((1..=BYTES / 4).contains(&quads), "{quads} quads in a tile");
        let mut shapes = Shapes { palette: 1, start_row: 0, reserved: [0; 14], bytes: [0; 16], rows: [0; 16] };
        shapes.bytes[..8].fill(BYTES as u16);
        shapes.rows[..8].fill(ROWS as u8);
        shapes.bytes[4..6].fill(4 * quads as u16);
        shapes.rows[6..8].fill(quads as u8);
        // SAFETY: guaranteed by the caller; the 64 bytes are a valid configuration.
        unsafe { asm!("ldtilecfg [{}]", in(reg) &raw const shapes, options(nostack, readonly, preserves_flags)) };
        Configured(PhantomData)
    }
}

impl Drop for Configured {
    fn drop(&mut self) {
        // SAFETY: the processor has AMX, because the tiles are configured. Nothing else uses the tiles on this thread.
        unsafe { asm!("tilerelease", options(nostack, nomem, preserves_flags)) };
    }
}

/// Computes 16 or 32 rows by one or two vectors; see [`Kernel`].
///
/// # Safety
/// As for [`Kernel`]. The tiles are [`Configured`] for the quads of a piece, and there is at least one piece.
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vnni,avx2,fma")]
pub(super) unsafe fn tile<const HEIGHT: usize, const VECTORS: usize>(t: &Tile) {
    let mut sums = MaybeUninit::<[[__m512i; VECTORS]; HEIGHT]>::uninit();
    // SAFETY: guaranteed by the caller; every version writes all sums.
    let sums = unsafe {
        match (HEIGHT / ROWS, VECTORS) {
            (2, 2) => two_by_two(t, sums.as_mut_ptr().cast()),
            (2, 1) => two_by_one(t, sums.as_mut_ptr().cast()),
            (1, 2) => one_by_two(t, sums.as_mut_ptr().cast()),
            (1, 1) => one_by_one(t, sums.as_mut_ptr().cast()),
            _ => unreachable!("{HEIGHT} rows by {VECTORS} vectors"),
        }
        sums.assume_init_ref()
    };
    // SAFETY: guaranteed by the caller.
    unsafe { rows::write_tile(sums, t) };
}

/// The kernels for eight tiles. Up to four tiles hold sums.
pub(super) static AMX: &[&[(usize, Kernel)]] = kernels!(tile: 1 [32 16] 2 [32 16]);

/// Generates a function whose tiles of sums start with each column's start value, and are written in rows of `$vectors`
/// registers. For every piece, it runs `$first` with `at` at the bytes of the first 16 rows, and `$second` with `at` at
/// those of the next 16 rows.
macro_rules! sums {
    ($name:ident, $vectors:literal: $start:tt $first:tt $second:tt $end:tt) => {
        /// # Safety
        /// As for [`tile`]; `sums` is as long as the sums.
        unsafe fn $name(t: &Tile, sums: *mut __m512i) {
            sums!(@lines t, sums, $vectors, $start $first $second $end)
        }
    };
    (@lines $t:ident, $sums:ident, $vectors:literal,
     [$($start:literal)*] [$($first:literal)*] [$($second:literal)*] [$($end:literal)*]) => {{
        let pieces = $t.pieces.as_ptr_range();
        // SAFETY: guaranteed by the caller. The row stride of the start values is 0, because all rows share them.
        unsafe {
            asm!(
                "xor {at:e}, {at:e}",
                $($start,)*
                "2:",
                "mov {at}, [{piece}]",
                "add {at}, {a}",
                $($first,)*
                "add {at}, {below}",
                $($second,)*
                "add {panel}, {panel_step}",
                "add {piece}, 8",
                "cmp {piece}, {end}",
                "jne 2b",
                $($end,)*
                at = out(reg) _,
                piece = inout(reg) pieces.start => _,
                end = in(reg) pieces.end,
                a = in(reg) $t.a,
                a_row = in(reg) $t.a_row,
                below = in(reg) ROWS * $t.a_row,
                panel = inout(reg) $t.panel => _,
                panel_step = in(reg) $t.quads * $vectors * BYTES,
                row = in(reg) $vectors * BYTES,
                start = in(reg) $t.finish.start.as_ptr().wrapping_add($t.column),
                sums = in(reg) $sums,
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack),
            );
        }
    }};
}

sums!(two_by_two, 2:
    ["tileloadd tmm0, [{start} + {at}*1]" "tileloadd tmm1, [{start} + {at}*1 + 64]"
     "tileloadd tmm2, [{start} + {at}*1]" "tileloadd tmm3, [{start} + {at}*1 + 64]"]
    ["tileloadd tmm6, [{panel} + {row}*1]" "tileloadd tmm4, [{at} + {a_row}*1]" "tdpbusd tmm0, tmm4, tmm6"
     "tileloadd tmm7, [{panel} + {row}*1 + 64]" "tdpbusd tmm1, tmm4, tmm7"]
    ["tileloadd tmm5, [{at} + {a_row}*1]" "tdpbusd tmm2, tmm5, tmm6" "tdpbusd tmm3, tmm5, tmm7"]
    ["tilestored [{sums} + {row}*1], tmm0" "tilestored [{sums} + {row}*1 + 64], tmm1"
     "tilestored [{sums} + {row}*1 + 2048], tmm2" "tilestored [{sums} + {row}*1 + 2112], tmm3"]);

sums!(two_by_one, 1:
    ["tileloadd tmm0, [{start} + {at}*1]" "tileloadd tmm2, [{start} + {at}*1]"]
    ["tileloadd tmm6, [{panel} + {row}*1]" "tileloadd tmm4, [{at} + {a_row}*1]" "tdpbusd tmm0, tmm4, tmm6"]
    ["tileloadd tmm5, [{at} + {a_row}*1]" "tdpbusd tmm2, tmm5, tmm6"]
    ["tilestored [{sums} + {row}*1], tmm0" "tilestored [{sums} + {row}*1 + 1024], tmm2"]);

sums!(one_by_two, 2:
    ["tileloadd tmm0, [{start} + {at}*1]" "tileloadd tmm1, [{start} + {at}*1 + 64]"]
    ["tileloadd tmm6, [{panel} + {row}*1]" "tileloadd tmm4, [{at} + {a_row}*1]" "tdpbusd tmm0, tmm4, tmm6"
     "tileloadd tmm7, [{panel} + {row}*1 + 64]" "tdpbusd tmm1, tmm4, tmm7"]
    []
    ["tilestored [{sums} + {row}*1], tmm0" "tilestored [{sums} + {row}*1 + 64], tmm1"]);

sums!(one_by_one, 1:
    ["tileloadd tmm0, [{start} + {at}*1]"]
    ["tileloadd tmm6, [{panel} + {row}*1]" "tileloadd tmm4, [{at} + {a_row}*1]" "tdpbusd tmm0, tmm4, tmm6"]
    []
    ["tilestored [{sums} + {row}*1], tmm0"]);
