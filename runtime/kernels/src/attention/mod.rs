//! Scaled dot-product attention: `softmax(Q · Kᵀ · scale + mask) · V` for each batch and head.
//!
//! Rows of queries go through in tiles, so that no more than a tile of scores is in memory at once.

mod head;
mod rows;
mod split;
#[cfg(test)]
mod tests;
mod tile;

use std::ops::Range;

use crate::gemm::{gemm, Bias, Matrix, PackedB, Right, Sizes};
use crate::isa::Isa;
use crate::real::Real;
use crate::softmax;
use crate::threads::Threads;
use split::{by_heads, by_queries, TASK};

/// The sizes of an attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dims {
    /// Batches.
    pub batch: usize,
    /// Heads of queries; a multiple of `kv_heads`.
    pub heads: usize,
    /// Heads of keys and values, each shared by `heads / kv_heads` neighboring heads of queries.
    pub kv_heads: usize,
    /// Queries.
    pub queries: usize,
    /// Keys, and values.
    pub keys: usize,
    /// Elements of a query and of a key.
    pub depth: usize,
    /// Elements of a value.
    pub width: usize,
}

/// Vectors of every batch, head and position: vector `(b, h, i)` begins at `b · batch + h · head + i · row`.
#[derive(Debug, Clone, Copy)]
pub struct Vectors<'a, R> {
    /// The elements.
    pub data: &'a [R],
    /// The distance from one batch to the next.
    pub batch: usize,
    /// The distance from one head to the next.
    pub head: usize,
    /// The distance from one position to the next.
    pub row: usize,
}

/// What is added to the scores, or which of them count: element `(b, h, i, j)` is at `b · batch + h · head + i · row + j`.
#[derive(Debug, Clone, Copy)]
pub enum Mask<'a, R> {
    /// Every score counts.
    None,
    /// Added to the scores.
    Added(Vectors<'a, R>),
    /// Scores count where this is not 0.
    Chosen(Vectors<'a, u8>),
}

/// Which scores are kept for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// `Q · Kᵀ · scale`
    Product,
    /// After the soft cap.
    Capped,
    /// After the mask.
    Masked,
    /// After softmax.
    Softmax,
}

/// Which weights are 0 though softmax does not say so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// Those of a query to which the masks leave no key.
    Unseeing,
    /// None: a query that sees no key gives NaN.
    Nothing,
    /// All that would be NaN.
    Undefined,
}

/// An attention.
pub struct Problem<'a, R> {
    /// The sizes.
    pub dims: Dims,
    /// Queries of `depth` elements.
    pub q: Vectors<'a, R>,
    /// Keys of `depth` elements.
    pub k: Vectors<'a, R>,
    /// Values of `width` elements.
    pub v: Vectors<'a, R>,
    /// The factor of the products.
    pub scale: R,
    /// `cap · tanh(score / cap)`, where there is a cap.
    pub softcap: Option<R>,
    /// The mask.
    pub mask: Mask<'a, R>,
    /// The keys that query `i` of batch `b` sees; the mask holds an element for each of them.
    pub visible: &'a (dyn Fn(usize, usize) -> Range<usize> + Sync),
    /// Which weights are 0 though softmax does not say so.
    pub guard: Guard,
}

/// Types that attention is computed in.
pub trait Attends: Real {
    /// Packs a `depth × columns` matrix for [`Attends::multiply`]; `None` where there is no such product of this type.
    fn pack(isa: Isa, threads: &Threads, depth: usize, columns: usize, matrix: &Strided<Self>) -> Option<PackedB>;

    /// `e^(factor · x − max)` in place of each `x` of `sums.len()` rows, where `max` is the row's largest `factor · x` and
    /// `factor > 0`; what they sum up to, in `sums`.
    fn exponentiate(isa: Isa, factor: Self, rows: &mut [Self], sums: &mut [Self]);

    /// `out [rows, columns] = a · b`, where row `i` of `a` begins at `i · row` and `b` may hold more rows and columns.
    fn multiply(isa: Isa, sizes: Sizes, a: &[Self], row: usize, b: &PackedB, out: &mut [Self]);
}

/// A matrix inside a slice: element `(i, j)` is `data[i · row + j · column]`.
pub struct Strided<'a, R> {
    data: &'a [R],
    row: usize,
    column: usize,
}

impl Attends for f32 {
    fn pack(isa: Isa, threads: &Threads, depth: usize, columns: usize, matrix: &Strided<f32>) -> Option<PackedB> {
        let &Strided { data, row, column } = matrix;
        Some(PackedB::new(isa, threads, depth, columns, &Matrix { data, row, column }))
    }

    fn exponentiate(isa: Isa, factor: f32, rows: &mut [f32], sums: &mut [f32]) {
        softmax::exponentiate_rows(isa, factor, rows, sums);
    }

    fn multiply(isa: Isa, sizes: Sizes, a: &[f32], row: usize, b: &PackedB, out: &mut [f32]) {
        let a = Matrix { data: a, row, column: 1 };
        gemm(isa, &Threads::serial(), sizes, &a, &Right::Packed(b), Bias::None, out, None);
    }
}

impl Attends for f64 {
    fn pack(_: Isa, _: &Threads, _: usize, _: usize, _: &Strided<f64>) -> Option<PackedB> {
        None
    }

    fn exponentiate(isa: Isa, factor: f64, rows: &mut [f64], sums: &mut [f64]) {
        softmax::exponentiate_any(isa, factor, rows, sums);
    }

    fn multiply(_: Isa, _: Sizes, _: &[f64], _: usize, _: &PackedB, _: &mut [f64]) {
        unreachable!("nothing is packed in f64")
    }
}

/// Queries for which packing keys and values costs more than it saves.
const FEW: usize = 4;

/// Computes the outputs `[batch, heads, queries, width]`, and the scores `[batch, heads, queries, keys]` where they are
/// wanted.
///
/// # Panics
/// The slices are too short for the sizes.
pub fn attention<R: Attends>(
    isa: Isa,
    threads: &Threads,
    problem: &Problem<R>,
    out: &mut [R],
    scores: Option<(Stage, &mut [R])>,
) {
    let dims = problem.dims;
    let queries = dims.batch * dims.heads * dims.queries;
    assert_eq!(out.len(), queries * dims.width, "the output fills its shape");
    if queries == 0 {
        return;
    }
    let serial = Threads::serial();
    let threads = if queries.saturating_mul(dims.query_work()) < 2 * TASK { &serial } else { threads };
    match (scores, dims.heads_together(threads.count())) {
        (None, Some(together)) => by_heads(isa, threads, problem, together, out),
        (None, None) => by_queries(isa, threads, problem, out, None),
        (Some((stage, scores)), _) => {
            assert_eq!(scores.len(), queries * dims.keys, "the scores fill their shape");
            by_queries(isa, threads, problem, out, Some((stage, scores)));
        }
    }
}

/// The keys, transposed, and the values of one batch and head.
struct Packed {
    keys: PackedB,
    values: PackedB,
}

impl<R: Attends> Problem<'_, R> {
    /// The keys and values of one batch and head, packed; nothing where that does not pay.
    fn pack(&self, isa: Isa, threads: &Threads, kv: usize) -> Option<Packed> {
        let Dims { kv_heads, heads, queries, keys, depth, width, .. } = self.dims;
        if queries * heads / kv_heads <= FEW || keys == 0 {
            return None;
        }
        let [k, v] = [self.k, self.v].map(|vectors| vectors.of(kv / kv_heads, kv % kv_heads));
        let keys_t = Strided { data: k, row: 1, column: self.k.row };
        let values = Strided { data: v, row: self.v.row, column: 1 };
        let (keys, values) =
            R::pack(isa, threads, depth, keys, &keys_t).zip(R::pack(isa, threads, keys, width, &values))?;
        Some(Packed { keys, values })
    }
}

impl<'a, R: Copy> Vectors<'a, R> {
    /// The vectors of one batch and head.
    fn of(&self, batch: usize, head: usize) -> &'a [R] {
        &self.data[batch * self.batch + head * self.head..]
    }
}
