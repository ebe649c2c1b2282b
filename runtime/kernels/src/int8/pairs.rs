//! The AVX2 tiles of six rows by two vectors, the largest ones without VNNI.
//!
//! They are written in assembly, because compilers keep the panel in registers and sums in memory.

use std::arch::asm;
use std::arch::x86_64::{__m256i, _mm256_set1_epi16};

use super::dot::{Dot, Pairs, Registers, Words};
use super::operands::Tile;

const ROWS: usize = 6;
const VECTORS: usize = 2;

type Sums = [[__m256i; VECTORS]; ROWS];

/// The instructions for one row: `left` gets its quad, which `$multiply` multiplies with both vectors of the panel.
macro_rules! row {
    ($multiply:literal, $at:literal, $first:literal, $second:literal) => {
        concat!(
            "vpbroadcastd {left}, dword ptr [",
            $at,
            "]\n",
            $multiply,
            "\nvpaddd {",
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

/// The instructions for a row of bytes.
macro_rules! bytes {
    ($at:literal, $first:literal, $second:literal) => {
        row!(
            "vpmaddubsw {product}, {left}, [{panel}]
            vpmaddubsw {left}, {left}, [{panel} + 32]
            vpmaddwd {product}, {product}, {ones}
            vpmaddwd {left}, {left}, {ones}",
            $at,
            $first,
            $second
        )
    };
}

/// The instructions for a row of 16-bit numbers, and vectors of weights that are widened to 16 bits.
macro_rules! words {
    ($at:literal, $first:literal, $second:literal) => {
        row!(
            "vpmaddwd {product}, {left}, {low}
            vpmaddwd {left}, {left}, {high}",
            $at,
            $first,
            $second
        )
    };
}

/// Generates a tile. One round of its loop runs the instructions `$line`, which read `$quads` quads of each row and as many
/// times `$bytes` bytes of the panel.
macro_rules! tile {
    ($(#[$meta:meta])* $name:ident: $dot:ty, $quads:literal, [$($line:tt)*] [$($register:tt)*]) => {
        $(#[$meta])*
        ///
        /// # Safety
        /// The processor has AVX2. Every address in [`Tile`] is inside its allocation, and nothing else writes the results.
        /// The quads of a piece are whole rounds.
        #[target_feature(enable = "avx2,fma")]
        pub(super) unsafe fn $name(t: &Tile) {
            /// Adds the products of `rounds` rounds, at least one, of each row and of the panel.
            ///
            /// # Safety
            /// The processor has AVX2. The rows, which begin at `a`, and the panel have as many rounds.
            #[target_feature(enable = "avx2,fma")]
            unsafe fn add(sums: &mut Sums, a: *const u8, a_row: usize, panel: *const i8, rounds: usize) {
                let [[s0, s1], [s2, s3], [s4, s5], [s6, s7], [s8, s9], [s10, s11]] = sums;
                // SAFETY: guaranteed by the caller.
                unsafe {
                    asm!(
                        "2:",
                        $($line)*
                        "dec {rounds}",
                        "jnz 2b",
                        a = inout(reg) a => _,
                        below = inout(reg) a.wrapping_add(3 * a_row) => _,
                        row = in(reg) a_row,
                        panel = inout(reg) panel => _,
                        rounds = inout(reg) rounds => _,
                        $($register)*
                        left = out(ymm_reg) _,
                        product = out(ymm_reg) _,
                        s0 = inout(ymm_reg) *s0, s1 = inout(ymm_reg) *s1, s2 = inout(ymm_reg) *s2,
                        s3 = inout(ymm_reg) *s3, s4 = inout(ymm_reg) *s4, s5 = inout(ymm_reg) *s5,
                        s6 = inout(ymm_reg) *s6, s7 = inout(ymm_reg) *s7, s8 = inout(ymm_reg) *s8,
                        s9 = inout(ymm_reg) *s9, s10 = inout(ymm_reg) *s10, s11 = inout(ymm_reg) *s11,
                        options(nostack, readonly),
                    );
                }
            }

            // SAFETY: the caller guarantees every address.
            unsafe {
                let start = [<$dot>::start(t.finish, t.column), <$dot>::start(t.finish, t.column + <$dot>::LANES)];
                let (mut sums, mut panel) = ([start; ROWS], t.panel);
                if t.quads > 0 {
                    for &piece in t.pieces {
                        add(&mut sums, t.a.wrapping_add(piece), t.a_row, panel, t.quads / $quads);
                        panel = panel.wrapping_add(t.quads * VECTORS * <$dot>::BYTES);
                    }
                }
                for &place in t.again {
                    add(&mut sums, t.a.wrapping_add(place), t.a_row, panel, 1);
                    panel = panel.wrapping_add(VECTORS * <$dot>::BYTES);
                }
                let copy = sums;
                <$dot>::finish(std::hint::black_box(&copy), t);
            }
        }
    };
}

tile!(
    /// Computes a tile from bytes. Its twelve sums, a vector of ones, and two temporary vectors fill the registers. Each
    /// multiplication reads the panel from memory.
    six_by_two: Registers<__m256i, Pairs>, 1,
    [bytes!("{a}", "s0", "s1"),
     bytes!("{a} + {row}", "s2", "s3"),
     bytes!("{a} + 2*{row}", "s4", "s5"),
     bytes!("{below}", "s6", "s7"),
     bytes!("{below} + {row}", "s8", "s9"),
     bytes!("{below} + 2*{row}", "s10", "s11"),
     "add {a}, 4",
     "add {below}, 4",
     "add {panel}, 64",]
    [ones = in(ymm_reg) _mm256_set1_epi16(1),]
);

tile!(
    /// Computes a tile from 16-bit numbers. Its twelve sums, two vectors of the panel, and two temporary vectors fill the
    /// registers.
    six_by_two_words: Words, 2,
    ["vpmovsxbw {low}, xmmword ptr [{panel}]",
     "vpmovsxbw {high}, xmmword ptr [{panel} + 16]",
     words!("{a}", "s0", "s1"),
     words!("{a} + {row}", "s2", "s3"),
     words!("{a} + 2*{row}", "s4", "s5"),
     words!("{below}", "s6", "s7"),
     words!("{below} + {row}", "s8", "s9"),
     words!("{below} + 2*{row}", "s10", "s11"),
     "vpmovsxbw {low}, xmmword ptr [{panel} + 32]",
     "vpmovsxbw {high}, xmmword ptr [{panel} + 48]",
     words!("{a} + 4", "s0", "s1"),
     words!("{a} + {row} + 4", "s2", "s3"),
     words!("{a} + 2*{row} + 4", "s4", "s5"),
     words!("{below} + 4", "s6", "s7"),
     words!("{below} + {row} + 4", "s8", "s9"),
     words!("{below} + 2*{row} + 4", "s10", "s11"),
     "add {a}, 8",
     "add {below}, 8",
     "add {panel}, 64",]
    [low = out(ymm_reg) _,
     high = out(ymm_reg) _,]
);
