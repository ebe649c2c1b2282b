//! The register tile: a few rows by a few vectors of columns. The sums stay in registers over the whole depth.

use super::dot::{Dot, Scalar};
use super::operands::Tile;

/// A tile with a fixed number of rows and vectors.
///
/// # Safety
/// Every address in [`Tile`] is inside its allocation, and nothing else writes the results. The processor has the
/// instruction set, and is [`configured`](super::tiles::configured) for it.
pub(super) type Kernel = unsafe fn(&Tile);

/// See [`Kernel`].
#[inline(always)]
pub(super) unsafe fn tile<D: Dot, const ROWS: usize, const VECTORS: usize>(t: &Tile) {
    // SAFETY: the caller guarantees every address below.
    unsafe {
        let mut sums = [[D::start(t.finish, t.column); VECTORS]; ROWS];
        for v in 1..VECTORS {
            let start = D::start(t.finish, t.column + v * D::LANES);
            sums.iter_mut().for_each(|sums| sums[v] = start);
        }
        let mut panel = t.panel;
        for &piece in t.pieces {
            let mut a = t.a.wrapping_add(piece);
            for _ in 0..t.quads {
                sums = quad::<D, ROWS, VECTORS>(sums, a, t.a_row, panel);
                a = a.wrapping_add(4);
                panel = panel.wrapping_add(VECTORS * D::BYTES);
            }
        }
        for &place in t.again {
            sums = quad::<D, ROWS, VECTORS>(sums, t.a.wrapping_add(place), t.a_row, panel);
            panel = panel.wrapping_add(VECTORS * D::BYTES);
        }
        // Takes the address of a copy: the loops above keep their sums in registers only if their address is never taken.
        let copy = sums;
        D::finish(std::hint::black_box(&copy), t);
    }
}

/// Adds the products of one quad of each row and the codes of each column that it meets. The sums pass by value, so that
/// they stay in registers.
///
/// # Safety
/// The rows and the panel have these bytes.
#[inline(always)]
unsafe fn quad<D: Dot, const ROWS: usize, const VECTORS: usize>(
    mut sums: [[D::Sums; VECTORS]; ROWS],
    a: *const u8,
    a_row: usize,
    panel: *const i8,
) -> [[D::Sums; VECTORS]; ROWS] {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut right = [D::right(panel); VECTORS];
        for (v, right) in right.iter_mut().enumerate().skip(1) {
            *right = D::right(panel.add(v * D::BYTES));
        }
        for (row, sums) in sums.iter_mut().enumerate() {
            let left = D::left(a.add(row * a_row));
            for (sum, &right) in sums.iter_mut().zip(&right) {
                *sum = D::add(*sum, left, right);
            }
        }
    }
    sums
}

/// A table of [`Kernel`]s: for each number of vectors, the supported numbers of rows.
macro_rules! kernels {
    ($function:ident: $($vectors:literal [$($rows:literal)*])*) => {
        &[$(&[$(($rows as usize, $function::<$rows, $vectors> as Kernel)),*] as &[(usize, Kernel)]),*]
    };
}
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) use kernels;

unsafe fn scalar<const ROWS: usize, const VECTORS: usize>(t: &Tile) {
    // SAFETY: guaranteed by the caller.
    unsafe { tile::<Scalar, ROWS, VECTORS>(t) }
}

pub(super) static SCALAR: &[&[(usize, Kernel)]] = kernels!(scalar: 1 [2 1]);

#[cfg(target_arch = "x86_64")]
pub(super) mod x86 {
    use std::arch::x86_64::{__m256i, __m512i};

    use super::{tile, Kernel, Tile};
    use crate::int8::dot::{Pairs, Registers, Vnni, Words};
    use crate::int8::pairs;

    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vnni,avx2,fma")]
    unsafe fn avx512_vnni<const ROWS: usize, const VECTORS: usize>(t: &Tile) {
        // SAFETY: guaranteed by the caller.
        unsafe { tile::<Registers<__m512i, Vnni>, ROWS, VECTORS>(t) }
    }

    #[target_feature(enable = "avxvnni,avx2,fma")]
    unsafe fn avx_vnni<const ROWS: usize, const VECTORS: usize>(t: &Tile) {
        // SAFETY: guaranteed by the caller.
        unsafe { tile::<Registers<__m256i, Vnni>, ROWS, VECTORS>(t) }
    }

    #[target_feature(enable = "avx2,fma")]
    unsafe fn avx2<const ROWS: usize, const VECTORS: usize>(t: &Tile) {
        // SAFETY: guaranteed by the caller.
        unsafe { tile::<Registers<__m256i, Pairs>, ROWS, VECTORS>(t) }
    }

    #[target_feature(enable = "avx2,fma")]
    unsafe fn avx2_words<const ROWS: usize, const VECTORS: usize>(t: &Tile) {
        // SAFETY: guaranteed by the caller.
        unsafe { tile::<Words, ROWS, VECTORS>(t) }
    }

    /// For 32 registers: the sums, one vector of each kind of operand, and the vectors for the conversion.
    pub static AVX512_VNNI: &[&[(usize, Kernel)]] = kernels!(avx512_vnni:
        1 [12 4 2 1] 2 [12 4 2 1] 3 [8 4 2 1] 4 [6 2 1]);
    /// For 16 registers, with operands that are read once taken from memory.
    pub static AVX_VNNI: &[&[(usize, Kernel)]] = kernels!(avx_vnni: 1 [12 6 2 1] 2 [6 3 1]);
    /// For 16 registers. The pairs of products need one of them.
    pub static AVX2: &[&[(usize, Kernel)]] = &[
        &[(12, avx2::<12, 1>), (6, avx2::<6, 1>), (2, avx2::<2, 1>), (1, avx2::<1, 1>)],
        &[(6, pairs::six_by_two), (3, avx2::<3, 2>), (1, avx2::<1, 2>)],
    ];
    /// As before. The panel needs a register for each vector.
    pub static AVX2_WORDS: &[&[(usize, Kernel)]] = &[
        &[(6, avx2_words::<6, 1>), (2, avx2_words::<2, 1>), (1, avx2_words::<1, 1>)],
        &[(6, pairs::six_by_two_words), (3, avx2_words::<3, 2>), (1, avx2_words::<1, 2>)],
    ];
}
