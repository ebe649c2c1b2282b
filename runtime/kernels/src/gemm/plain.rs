//! Matrix products of any element type without packing, for integers and `f64`.

use crate::threads::Threads;

/// An element type of sums of products; integers wrap around.
pub trait Term: bytemuck::Pod + Send + Sync {
    /// Zero.
    const ZERO: Self;

    /// `self + other`
    fn plus(self, other: Self) -> Self;

    /// `self + a · b`
    fn add_product(self, a: Self, b: Self) -> Self;
}

macro_rules! terms {
    ($($int:ident)*) => {
        $(impl Term for $int {
            const ZERO: $int = 0;

            #[inline(always)]
            fn plus(self, other: $int) -> $int {
                self.wrapping_add(other)
            }

            #[inline(always)]
            fn add_product(self, a: $int, b: $int) -> $int {
                self.wrapping_add(a.wrapping_mul(b))
            }
        })*
    };
}

terms! { i8 i16 i32 i64 u8 u16 u32 u64 }

macro_rules! float_terms {
    ($($float:ident)*) => {
        $(impl Term for $float {
            const ZERO: $float = 0.0;

            #[inline(always)]
            fn plus(self, other: $float) -> $float {
                self + other
            }

            #[inline(always)]
            fn add_product(self, a: $float, b: $float) -> $float {
                self + a * b
            }
        })*
    };
}

float_terms! { f32 f64 }

/// A matrix inside a slice: element `(i, j)` is `data[i · row + j · column]`.
#[derive(Debug, Clone, Copy)]
pub struct Plain<'a, T> {
    /// The elements.
    pub data: &'a [T],
    /// The row stride.
    pub row: usize,
    /// The column stride.
    pub column: usize,
}

/// Multiplications that are worth several threads.
const SPLIT: usize = 1 << 18;

/// The rows and the columns of a tile, whose sums are in registers together.
const TILE: usize = 4;

/// `out = a · b`, where `out` has `n` columns and `a` has `k`.
///
/// # Panics
/// The slices are too short for the sizes.
pub fn product<T: Term>(threads: &Threads, n: usize, k: usize, a: &Plain<T>, b: &Plain<T>, out: &mut [T]) {
    let serial = Threads::serial();
    let threads = if out.len().saturating_mul(k) > SPLIT { threads } else { &serial };
    threads.for_each_chunk(out, n.saturating_mul(TILE), |i, out| {
        let is_tiled = b.column == 1 && out.len() == n * TILE;
        let tiled = if is_tiled { n - n % TILE } else { 0 };
        for column in (0..tiled).step_by(TILE) {
            let sums = tile(k, a, b, [i * TILE, column]);
            for (out, sums) in out.chunks_exact_mut(n).zip(sums) {
                out[column..column + TILE].copy_from_slice(&sums);
            }
        }
        if tiled < n {
            for (row, out) in out.chunks_exact_mut(n).enumerate() {
                part_of_row(k, a, b, [i * TILE + row, tiled], &mut out[tiled..]);
            }
        }
    });
}

/// The elements of the product from a row and a column on. The rows of `b` are contiguous.
fn tile<T: Term>(k: usize, a: &Plain<T>, b: &Plain<T>, [row, column]: [usize; 2]) -> [[T; TILE]; TILE] {
    let mut sums = [[T::ZERO; TILE]; TILE];
    for depth in 0..k {
        let right: [T; TILE] = std::array::from_fn(|j| b.data[depth * b.row + column..][j]);
        for (i, sums) in sums.iter_mut().enumerate() {
            let left = a.data[(row + i) * a.row + depth * a.column];
            sums.iter_mut().zip(right).for_each(|(sum, right)| *sum = sum.add_product(left, right));
        }
    }
    sums
}

/// Computes the elements of a row from a column on.
fn part_of_row<T: Term>(k: usize, a: &Plain<T>, b: &Plain<T>, [row, column]: [usize; 2], out: &mut [T]) {
    out.fill(T::ZERO);
    let columns = out.len();
    for depth in 0..k {
        let left = a.data[row * a.row + depth * a.column];
        let right = &b.data[depth * b.row + column * b.column..];
        if b.column == 1 {
            out.iter_mut().zip(&right[..columns]).for_each(|(out, &right)| *out = out.add_product(left, right));
        } else {
            let right = right.iter().step_by(b.column.max(1));
            out.iter_mut().zip(right).for_each(|(out, &right)| *out = out.add_product(left, right));
        }
    }
}
