//! The AVX2 tile of six rows by two vectors, the largest one without VNNI.
//!
//! Its twelve sums, a vector of ones, and two temporary vectors fill the registers. The panel is read from memory by each
//! multiplication. The tile is written in assembly, because compilers keep the panel in registers and sums in memory.

use std::arch::asm;
use std::arch::x86_64::{__m256i, _mm256_set1_epi16};

use super::dot::{Dot, Pairs, Registers};
use super::operands::Tile;

const ROWS: usize = 6;
const VECTORS: usize = 2;
/// The bytes of a quad of the panel.
const QUAD: usize = 4 * 8 * VECTORS;

type Pair = Registers<__m256i, Pairs>;
type Sums = [[__m256i; VECTORS]; ROWS];

/// Computes a tile of six rows and two vectors.
///
/// # Safety
/// The processor has AVX2. Every address in [`Tile`] is inside its allocation, and nothing else writes the results.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn six_by_two(t: &Tile) {
    // SAFETY: the caller guarantees every address.
    unsafe {
        let start = [Pair::start(t.finish, t.column), Pair::start(t.finish, t.column + Pair::LANES)];
        let (mut sums, mut panel) = ([start; ROWS], t.panel);
        if t.quads > 0 {
            for &piece in t.pieces {
                add(&mut sums, t.a.wrapping_add(piece), t.a_row, panel, t.quads);
                panel = panel.wrapping_add(t.quads * QUAD);
            }
        }
        for &place in t.again {
            add(&mut sums, t.a.wrapping_add(place), t.a_row, panel, 1);
            panel = panel.wrapping_add(QUAD);
        }
        let copy = sums;
        Pair::finish(std::hint::black_box(&copy), t);
    }
}

/// The instructions for one row: the address of its quad, and its two sums.
macro_rules! row {
    ($at:literal, $first:literal, $second:literal) => {
        concat!(
            "vpbroadcastd {left}, dword ptr [",
            $at,
            "]\n",
            "vpmaddubsw {product}, {left}, [{panel}]\n",
            "vpmaddubsw {left}, {left}, [{panel} + 32]\n",
            "vpmaddwd {product}, {product}, {ones}\n",
            "vpmaddwd {left}, {left}, {ones}\n",
            "vpaddd {",
            $first,
            "}, {",
            $first,
            "}, {product}\n",
            "vpaddd {",
            $second,
            "}, {",
            $second,
            "}, {left}",
        )
    };
}

/// Adds the products of `quads` quads, at least one, of each row and of the panel.
///
/// # Safety
/// The processor has AVX2. The rows, which begin at `a`, and the panel have as many quads.
#[target_feature(enable = "avx2,fma")]
#[inline]
unsafe fn add(sums: &mut Sums, a: *const u8, a_row: usize, panel: *const i8, quads: usize) {
    let [[s0, s1], [s2, s3], [s4, s5], [s6, s7], [s8, s9], [s10, s11]] = sums;
    // SAFETY: guaranteed by the caller.
    unsafe {
        asm!(
            "2:",
            row!("{a}", "s0", "s1"),
            row!("{a} + {row}", "s2", "s3"),
            row!("{a} + 2*{row}", "s4", "s5"),
            row!("{below}", "s6", "s7"),
            row!("{below} + {row}", "s8", "s9"),
            row!("{below} + 2*{row}", "s10", "s11"),
            "add {a}, 4",
            "add {below}, 4",
            "add {panel}, 64",
            "dec {quads}",
            "jnz 2b",
            a = inout(reg) a => _,
            below = inout(reg) a.wrapping_add(3 * a_row) => _,
            row = in(reg) a_row,
            panel = inout(reg) panel => _,
            quads = inout(reg) quads => _,
            ones = in(ymm_reg) _mm256_set1_epi16(1),
            left = out(ymm_reg) _,
            product = out(ymm_reg) _,
            s0 = inout(ymm_reg) *s0, s1 = inout(ymm_reg) *s1, s2 = inout(ymm_reg) *s2, s3 = inout(ymm_reg) *s3,
            s4 = inout(ymm_reg) *s4, s5 = inout(ymm_reg) *s5, s6 = inout(ymm_reg) *s6, s7 = inout(ymm_reg) *s7,
            s8 = inout(ymm_reg) *s8, s9 = inout(ymm_reg) *s9, s10 = inout(ymm_reg) *s10, s11 = inout(ymm_reg) *s11,
            options(nostack, readonly),
        );
    }
}
