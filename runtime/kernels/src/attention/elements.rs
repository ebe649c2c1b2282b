//! Element types: of the computation, and of keys and values. The latter may have 16 bits, and are converted block by block.

use half::{bf16, f16};

use crate::float_types::Real;
use crate::gemm::{pack, Bias, Format, Matrix, PackedB, ProductSizes, Right};
use crate::isa::Isa;
use crate::products::multiply;
use crate::scratch::Scratch;
use crate::softmax;
use crate::threads::Threads;
use crate::vector::Half;

/// The most elements of a converted block of short vectors. They fit the L1 cache.
const BLOCK: usize = 1 << 12;

/// Vectors of one head: vector `i` has `size` elements, from `i · stride` on.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a, S> {
    pub(super) data: &'a [S],
    pub(super) stride: usize,
    pub(super) size: usize,
    pub(super) count: usize,
}

/// A matrix inside a slice: element `(i, j)` is `data[i · row + j · column]`.
pub struct Strided<'a, S> {
    pub(super) data: &'a [S],
    pub(super) row: usize,
    pub(super) column: usize,
}

/// Element types that attention computes in.
pub trait Attends: Real {
    /// [`Stored::pack`] for this type.
    fn pack_wide(isa: Isa, threads: &Threads, depth: usize, columns: usize, matrix: &Strided<Self>) -> Option<PackedB>;

    /// Replaces each `x` of `sums.len()` rows with `e^(factor · x − max)`, where `max` is the row's largest
    /// `factor · x` and `factor > 0`. Writes the sum of each row to `sums`.
    fn exponentiate(isa: Isa, factor: Self, rows: &mut [Self], sums: &mut [Self]);

    /// `out [rows, columns] = a · b`. Row `i` of `a` starts at `i · row`; `b` may have more rows and columns.
    fn multiply(isa: Isa, sizes: ProductSizes, a: &[Self], row: usize, b: &PackedB, out: &mut [Self]);
}

impl Attends for f32 {
    fn pack_wide(isa: Isa, threads: &Threads, depth: usize, columns: usize, matrix: &Strided<f32>) -> Option<PackedB> {
        let &Strided { data, row, column } = matrix;
        Some(PackedB::new(isa, threads, depth, columns, &Matrix { data, row, column }))
    }

    fn exponentiate(isa: Isa, factor: f32, rows: &mut [f32], sums: &mut [f32]) {
        softmax::exponentiate_rows(isa, factor, rows, sums);
    }

    fn multiply(isa: Isa, sizes: ProductSizes, a: &[f32], row: usize, b: &PackedB, out: &mut [f32]) {
        let a = Matrix { data: a, row, column: 1 };
        multiply(isa, &Threads::serial(), sizes, &a, &Right::Packed(b), Bias::None, out, None);
    }
}

impl Attends for f64 {
    fn pack_wide(_: Isa, _: &Threads, _: usize, _: usize, _: &Strided<f64>) -> Option<PackedB> {
        None
    }

    fn exponentiate(isa: Isa, factor: f64, rows: &mut [f64], sums: &mut [f64]) {
        softmax::exponentiate_any(isa, factor, rows, sums);
    }

    fn multiply(_: Isa, _: ProductSizes, _: &[f64], _: usize, _: &PackedB, _: &mut [f64]) {
        unreachable!("nothing is packed in f64")
    }
}

/// An element type of keys and values, which attention converts to `R` without rounding.
pub trait Stored<R>: Copy + Send + Sync {
    /// Calls `work` with the vectors in order, one block at a time, and with the number of the block's first vector. A block
    /// that needs a conversion is in `scratch`, whose size does not depend on the number of vectors.
    fn for_each_block(isa: Isa, rows: Rows<Self>, scratch: &mut Scratch<R>, work: impl FnMut(usize, Rows<R>));

    /// Packs a `depth × columns` matrix for [`Attends::multiply`], whose rows or columns are contiguous; `None` if there is
    /// no matrix product for the type.
    fn pack(isa: Isa, threads: &Threads, depth: usize, columns: usize, matrix: &Strided<Self>) -> Option<PackedB>;
}

impl<R: Attends> Stored<R> for R {
    fn for_each_block(_: Isa, rows: Rows<R>, _: &mut Scratch<R>, mut work: impl FnMut(usize, Rows<R>)) {
        work(0, rows);
    }

    fn pack(isa: Isa, threads: &Threads, depth: usize, columns: usize, matrix: &Strided<R>) -> Option<PackedB> {
        R::pack_wide(isa, threads, depth, columns, matrix)
    }
}

macro_rules! half {
    ($($half:ident)*) => {
        $(impl Stored<f32> for $half {
            fn for_each_block(
                isa: Isa,
                rows: Rows<$half>,
                scratch: &mut Scratch<f32>,
                work: impl FnMut(usize, Rows<f32>),
            ) {
                widen_blocks(isa, rows, scratch, work);
            }

            fn pack(
                isa: Isa,
                threads: &Threads,
                depth: usize,
                columns: usize,
                matrix: &Strided<$half>,
            ) -> Option<PackedB> {
                Some(pack_half(isa, threads, [depth, columns], matrix))
            }
        })*
    };
}

half! { f16 bf16 }

/// See [`Stored::for_each_block`].
fn widen_blocks<H: Half>(isa: Isa, rows: Rows<H>, scratch: &mut Scratch<f32>, mut work: impl FnMut(usize, Rows<f32>)) {
    let Rows { data, stride, size, count } = rows;
    let most = (BLOCK / size.max(1)).max(1);
    for first in (0..count).step_by(most) {
        let count = most.min(count - first);
        let from = &data[first * stride..];
        let data = scratch.overwrite(count * size, |wide| widen_rows(isa, from, stride, size, wide));
        work(first, Rows { data, stride: size, size, count });
    }
}

/// Converts vectors of `size` elements until `wide` is full.
fn widen_rows<H: Half>(isa: Isa, from: &[H], stride: usize, size: usize, wide: &mut [f32]) {
    if stride == size {
        return H::widen(isa, &from[..wide.len()], wide);
    }
    for (i, wide) in wide.chunks_exact_mut(size.max(1)).enumerate() {
        H::widen(isa, &from[i * stride..][..size], wide);
    }
}

/// See [`Stored::pack`]. Each panel converts its elements.
fn pack_half<H: Half + Sync>(isa: Isa, threads: &Threads, sizes: [usize; 2], matrix: &Strided<H>) -> PackedB {
    let &Strided { data, row, column } = matrix;
    let depth = sizes[0];
    PackedB::of_panels(Format::Float32, isa, threads, sizes, &|columns, width, out| {
        let count = columns[1] - columns[0];
        if column == 1 {
            for (i, out) in out.chunks_exact_mut(width).enumerate() {
                let (own, padding) = out.split_at_mut(count);
                H::widen(isa, &data[i * row + columns[0]..][..count], own);
                padding.fill(0.0);
            }
            return;
        }
        let from = &data[columns[0] * column..];
        let wide = Scratch::overwritten(count * depth, |wide| widen_rows(isa, from, column, depth, wide));
        pack(isa, out, width, &Matrix { data: &wide, row: 1, column: depth }, [0, depth], [0, count]);
    })
}

#[cfg(test)]
mod tests {
    use super::super::problem::{Dims, Guard, Mask, Problem, Stage, Vectors};
    use super::super::{attention, tests::values};
    use super::*;

    /// The operands of an attention. Vectors of a head touch, or vectors of the other heads are between them.
    struct Operands<'a, S> {
        dims: Dims,
        q: &'a [f32],
        k: &'a [S],
        v: &'a [S],
        is_folded: bool,
    }

    impl<S: Stored<f32>> Operands<'_, S> {
        fn vectors<'v>(&self, data: &'v [S], size: usize) -> Vectors<'v, S> {
            let Dims { kv_heads, keys, .. } = self.dims;
            let (head, row) = if self.is_folded { (size, kv_heads * size) } else { (keys * size, size) };
            Vectors { data, batch: kv_heads * keys * size, head, row }
        }

        /// The output and the weights.
        fn computed(&self, isa: Isa, threads: &Threads, is_watched: bool) -> [Vec<f32>; 2] {
            let Dims { batch, heads, queries, keys, depth, width, .. } = self.dims;
            let problem = Problem {
                dims: self.dims,
                q: Vectors { data: self.q, batch: heads * queries * depth, head: queries * depth, row: depth },
                k: self.vectors(self.k, depth),
                v: self.vectors(self.v, width),
                scale: 0.3,
                softcap: None,
                mask: Mask::None,
                visible: &|_, i| 0..keys.min(keys / 2 + i + 1),
                guard: Guard::Unseeing,
            };
            let mut y = vec![f32::NAN; batch * heads * queries * width];
            let mut scores = vec![0.0; batch * heads * queries * keys];
            attention(isa, threads, &problem, &mut y, is_watched.then_some((Stage::Softmax, &mut scores)));
            [y, scores]
        }
    }

    /// Whether blocks are whole or partial, and keys and values packed or not, halves give the bits of the same numbers in
    /// `f32`.
    #[test]
    fn halves_give_the_bits_of_the_same_numbers_in_f32() {
        fn check<H: Half + Stored<f32>>() {
            for [batch, heads, kv_heads, queries, keys, depth, width] in [
                [1, 2, 2, 1, 300, 64, 64],
                [2, 4, 2, 2, 129, 20, 70],
                [1, 1, 1, 3, 2, BLOCK + 3, 5],
                [1, 3, 3, 4, 65, 64, 1],
                [1, 6, 2, 131, 140, 33, 8],
                [2, 8, 1, 1, 90, 1, 40],
                [1, 1, 1, 5, 0, 4, 4],
            ] {
                let dims = Dims { batch, heads, kv_heads, queries, keys, depth, width };
                let q = values(batch * heads * queries * depth, 0);
                let [k, v] = [(depth, 3), (width, 5)].map(|(size, seed)| {
                    let mut narrow = vec![H::zeroed(); batch * kv_heads * keys * size];
                    H::narrow(Isa::get(), &values(narrow.len(), seed), &mut narrow);
                    narrow
                });
                for is_folded in [false, true] {
                    compare(&Operands { dims, q: &q, k: &k, v: &v, is_folded });
                }
            }
        }
        check::<f16>();
        check::<bf16>();
    }

    fn compare<H: Half + Stored<f32>>(narrow: &Operands<H>) {
        let two = Threads::new(2).expect("a pool of two threads");
        for isa in Isa::available() {
            let [k, v] = [narrow.k, narrow.v].map(|narrow| {
                let mut wide = vec![0.0; narrow.len()];
                H::widen(isa, narrow, &mut wide);
                wide
            });
            let wide = Operands { dims: narrow.dims, q: narrow.q, k: &k[..], v: &v[..], is_folded: narrow.is_folded };
            for (threads, is_watched) in [(&two, false), (&two, true), (&Threads::serial(), false)] {
                let found = narrow.computed(isa, threads, is_watched);
                let expected = wide.computed(isa, threads, is_watched);
                assert!(found.iter().flatten().all(|x| x.is_finite()));
                assert_eq!(found, expected, "{:?} {isa:?}, {} threads", narrow.dims, threads.count());
            }
        }
    }

    #[test]
    fn the_size_of_a_block_does_not_depend_on_the_number_of_vectors() {
        for (size, stride, count, expected) in [(64, 64, 1000, BLOCK), (64, 128, 40, 40 * 64), (5000, 5000, 3, 5000)] {
            let data = vec![f16::ONE; count * stride];
            let (mut scratch, mut next) = (Scratch::new(), 0);
            let rows = Rows { data: &data[..], stride, size, count };
            <f16 as Stored<f32>>::for_each_block(Isa::get(), rows, &mut scratch, |first, block| {
                assert_eq!((first, block.size), (next, size));
                assert!(block.data.iter().all(|x| *x == 1.0));
                next += block.count;
            });
            assert_eq!((next, scratch.len()), (count, expected));
        }
    }
}
