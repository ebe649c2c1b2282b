//! Scaled dot-product attention: `softmax(Q · Kᵀ · scale + mask) · V` for each batch and head.
//!
//! Rows of queries go through in tiles, so that no more than a tile of scores is in memory at once.

use std::ops::Range;

use crate::gemm::{gemm, Bias, Matrix, PackedB, Right, Sizes};
use crate::isa::Isa;
use crate::lanes::{per_isa, Real};
use crate::rewrite::Rewrite;
use crate::softmax::{softmax, Form};
use crate::threads::Threads;

/// The sizes of an attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dims {
    /// Batches.
    pub batch: usize,
    /// Heads of queries; a multiple of `kv_heads`.
    pub heads: usize,
    /// Heads of keys and values, each shared by `heads / kv_heads` neighbouring heads of queries.
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
    fn pack(isa: Isa, depth: usize, columns: usize, matrix: &Strided<Self>) -> Option<PackedB>;

    /// `out [rows, columns] = a · b`, where row `i` of `a` begins at `i · row`.
    fn multiply(isa: Isa, sizes: Sizes, a: &[Self], row: usize, b: &PackedB, out: &mut [Self]);
}

/// A matrix inside a slice: element `(i, j)` is `data[i · row + j · column]`.
pub struct Strided<'a, R> {
    data: &'a [R],
    row: usize,
    column: usize,
}

impl Attends for f32 {
    fn pack(isa: Isa, depth: usize, columns: usize, matrix: &Strided<f32>) -> Option<PackedB> {
        let &Strided { data, row, column } = matrix;
        Some(PackedB::new(isa, &Threads::serial(), depth, columns, &Matrix { data, row, column }))
    }

    fn multiply(isa: Isa, sizes: Sizes, a: &[f32], row: usize, b: &PackedB, out: &mut [f32]) {
        let a = Matrix { data: a, row, column: 1 };
        gemm(isa, &Threads::serial(), sizes, &a, &Right::Packed(b), Bias::None, out, None);
    }
}

impl Attends for f64 {
    fn pack(_: Isa, _: usize, _: usize, _: &Strided<f64>) -> Option<PackedB> {
        None
    }

    fn multiply(_: Isa, _: Sizes, _: &[f64], _: usize, _: &PackedB, _: &mut [f64]) {
        unreachable!("nothing is packed in f64")
    }
}

/// Queries for which packing keys and values costs more than it saves.
const FEW: usize = 4;
/// Scores in a tile.
const TILE: usize = 1 << 15;

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
    assert_eq!(out.len(), dims.batch * dims.heads * dims.queries * dims.width, "the output fills its shape");
    if dims.batch * dims.heads * dims.queries == 0 {
        return;
    }
    let (group, rows) = (dims.heads / dims.kv_heads, [dims.queries * dims.width, dims.queries * dims.keys]);
    let run = |head: usize, packed: Option<&Packed>, out: &mut [R], scores: Option<(Stage, &mut [R])>| {
        Head { problem, isa, batch: head / dims.heads, head: head % dims.heads, packed }.run(out, scores);
    };
    match scores {
        None => {
            // Heads that share keys go together, which packs them once, unless that leaves a thread without work.
            let together = if dims.batch * dims.kv_heads >= threads.count() { group } else { 1 };
            threads.for_each_chunk(out, together * rows[0], |i, out| {
                let packed = problem.pack(isa, i * together / group);
                for (j, out) in out.chunks_mut(rows[0].max(1)).enumerate() {
                    run(i * together + j, packed.as_ref(), out, None);
                }
            });
        }
        Some((stage, scores)) => {
            assert_eq!(scores.len(), dims.batch * dims.heads * rows[1], "the scores fill their shape");
            for head in 0..dims.batch * dims.heads {
                let [out, scores] =
                    [(&mut *out, rows[0]), (&mut *scores, rows[1])].map(|(all, size)| &mut all[head * size..][..size]);
                run(head, problem.pack(isa, head / group).as_ref(), out, Some((stage, scores)));
            }
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
    fn pack(&self, isa: Isa, kv: usize) -> Option<Packed> {
        let Dims { kv_heads, heads, queries, keys, depth, width, .. } = self.dims;
        if queries * heads / kv_heads <= FEW || keys == 0 {
            return None;
        }
        let [k, v] = [self.k, self.v].map(|vectors| vectors.of(kv / kv_heads, kv % kv_heads));
        let keys_t = Strided { data: k, row: 1, column: self.k.row };
        let values = Strided { data: v, row: self.v.row, column: 1 };
        let (keys, values) = R::pack(isa, depth, keys, &keys_t).zip(R::pack(isa, keys, width, &values))?;
        Some(Packed { keys, values })
    }
}

impl<'a, R: Copy> Vectors<'a, R> {
    /// The vectors of one batch and head.
    fn of(&self, batch: usize, head: usize) -> &'a [R] {
        &self.data[batch * self.batch + head * self.head..]
    }
}

/// One head of one batch.
struct Head<'a, R> {
    problem: &'a Problem<'a, R>,
    isa: Isa,
    batch: usize,
    head: usize,
    packed: Option<&'a Packed>,
}

impl<R: Attends> Head<'_, R> {
    fn run(&self, out: &mut [R], mut kept: Option<(Stage, &mut [R])>) {
        let Dims { queries, keys, width, .. } = self.problem.dims;
        let tile = (TILE / keys.max(1)).clamp(1, 64).min(queries);
        let mut scores = vec![R::ZERO; tile * keys];
        let mut first = 0;
        while first < queries {
            let rows = tile.min(queries - first);
            let scores = &mut scores[..rows * keys];
            self.multiply_keys(first, rows, scores);
            let mut keep = |at: Stage, i: usize, row: &[R]| {
                if let Some((_, kept)) = kept.as_mut().filter(|(stage, _)| *stage == at) {
                    kept[(first + i) * keys..][..keys].copy_from_slice(row);
                }
            };
            for (i, row) in scores.chunks_exact_mut(keys.max(1)).enumerate() {
                self.finish_row(first + i, row, |stage, row| keep(stage, i, row));
            }
            self.multiply_values(rows, scores, &mut out[first * width..][..rows * width]);
            first += rows;
        }
    }

    /// Products of queries `first .. first + rows` and all keys.
    fn multiply_keys(&self, first: usize, rows: usize, scores: &mut [R]) {
        let Dims { keys, depth, kv_heads, heads, .. } = self.problem.dims;
        let q = self.problem.q;
        let queries = &q.of(self.batch, self.head)[first * q.row..];
        if let Some(packed) = self.packed {
            return R::multiply(self.isa, Sizes { m: rows, n: keys, k: depth }, queries, q.row, &packed.keys, scores);
        }
        let k = self.problem.k;
        let vectors = k.of(self.batch, self.head * kv_heads / heads);
        for (i, scores) in scores.chunks_exact_mut(keys.max(1)).enumerate() {
            dots(self.isa, &queries[i * q.row..][..depth], vectors, k.row, scores);
        }
    }

    /// `out = scores · values`
    fn multiply_values(&self, rows: usize, scores: &[R], out: &mut [R]) {
        let Dims { keys, width, kv_heads, heads, .. } = self.problem.dims;
        if let Some(packed) = self.packed {
            return R::multiply(self.isa, Sizes { m: rows, n: width, k: keys }, scores, keys, &packed.values, out);
        }
        out.fill(R::ZERO);
        let v = self.problem.v;
        let vectors = v.of(self.batch, self.head * kv_heads / heads);
        for (scores, out) in scores.chunks_exact(keys.max(1)).zip(out.chunks_exact_mut(width.max(1))) {
            mix(self.isa, scores, vectors, v.row, out);
        }
    }

    /// Turns the products of query `i` into probabilities, and shows each stage.
    fn finish_row(&self, i: usize, row: &mut [R], mut show: impl FnMut(Stage, &[R])) {
        for score in row.iter_mut() {
            *score = *score * self.problem.scale;
        }
        show(Stage::Product, row);
        if let Some(cap) = self.problem.softcap {
            for score in row.iter_mut() {
                *score = cap * (*score / cap).tanh();
            }
        }
        show(Stage::Capped, row);
        let seen = self.seen(i, row.len());
        row[..seen.start].fill(R::NEG_INFINITY);
        row[seen.end..].fill(R::NEG_INFINITY);
        let counts = self.mask_row(i, &seen, row);
        show(Stage::Masked, row);
        self.weigh(counts, row, seen);
        show(Stage::Softmax, row);
    }

    /// Softmax of the scores that are seen, and what the guard makes of it.
    fn weigh(&self, counts: bool, scores: &mut [R], seen: Range<usize>) {
        let guard = self.problem.guard;
        if !counts {
            return scores.fill(if guard == Guard::Nothing { R::from_f64(f64::NAN) } else { R::ZERO });
        }
        scores[..seen.start].fill(R::ZERO);
        scores[seen.end..].fill(R::ZERO);
        let (scores, n) = (&mut scores[seen.clone()], seen.len());
        softmax(Form::Softmax, self.isa, &Threads::serial(), Rewrite::in_place(scores), [1, n, 1]);
        // One NaN among the scores makes every weight NaN.
        if guard == Guard::Undefined && scores.first().is_some_and(|weight| weight.to_f64().is_nan()) {
            scores.fill(R::ZERO);
        }
    }

    /// The keys that query `i` sees, inside `0 .. keys`.
    fn seen(&self, i: usize, keys: usize) -> Range<usize> {
        let seen = (self.problem.visible)(self.batch, i);
        let end = seen.end.min(keys);
        seen.start.min(end)..end
    }

    /// Applies the mask to the scores that are seen; whether any of them counts.
    fn mask_row(&self, i: usize, seen: &Range<usize>, row: &mut [R]) -> bool {
        match self.problem.mask {
            Mask::None => !seen.is_empty(),
            Mask::Added(mask) => {
                let bias = &mask.of(self.batch, self.head)[i * mask.row..][seen.clone()];
                let mut counts = false;
                for (score, &bias) in row[seen.clone()].iter_mut().zip(bias) {
                    *score += bias;
                    counts |= bias != R::NEG_INFINITY;
                }
                counts
            }
            Mask::Chosen(mask) => {
                let chosen = &mask.of(self.batch, self.head)[i * mask.row..][seen.clone()];
                for (score, _) in row[seen.clone()].iter_mut().zip(chosen).filter(|(_, &chosen)| chosen == 0) {
                    *score += R::NEG_INFINITY;
                }
                chosen.iter().any(|&chosen| chosen != 0)
            }
        }
    }
}

per_isa! {
    /// `out[j] = query · keys[j]`
    fn dots<R: Real>(query: &[R], keys: &[R], stride: usize, out: &mut [R]) where FMA {
        let mut start = 0;
        for out in out {
            let mut lanes = [R::ZERO; 16];
            let (blocks, key_blocks) = (query.chunks_exact(16), keys[start..start + query.len()].chunks_exact(16));
            let rest = blocks.remainder().iter().zip(key_blocks.remainder());
            for (q, k) in blocks.zip(key_blocks) {
                for ((lane, &q), &k) in lanes.iter_mut().zip(q).zip(k) {
                    *lane = q.mul_add::<FMA>(k, *lane);
                }
            }
            for (lane, (&q, &k)) in lanes.iter_mut().zip(rest) {
                *lane = q.mul_add::<FMA>(k, *lane);
            }
            let mut sum = R::ZERO;
            for lane in lanes {
                sum += lane;
            }
            *out = sum;
            start += stride;
        }
    }
}

per_isa! {
    /// `out += Σ weights[j] · values[j]`
    fn mix<R: Real>(weights: &[R], values: &[R], stride: usize, out: &mut [R]) where FMA {
        let mut start = 0;
        for &weight in weights {
            for (out, &value) in out.iter_mut().zip(&values[start..]) {
                *out = weight.mul_add::<FMA>(value, *out);
            }
            start += stride;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(len: usize, seed: usize) -> Vec<f32> {
        (0..len).map(|i| ((i + seed) * 7919 % 1009) as f32 / 400.0 - 1.2).collect()
    }

    fn along<R>(data: &[R], heads: usize, rows: usize, size: usize) -> Vectors<'_, R> {
        Vectors { data, batch: heads * rows * size, head: rows * size, row: size }
    }

    /// In `f64`, one element at a time; causal where `offset` says how many keys come before the first query.
    fn plain(dims: Dims, [q, k, v, mask]: [&[f32]; 4], offset: Option<usize>) -> Vec<f64> {
        let Dims { batch, heads, kv_heads, queries, keys, depth, width } = dims;
        let wide = |x: f32| f64::from(x);
        let mut y = Vec::new();
        for row in 0..batch * heads * queries {
            let (head, i) = (row / queries, row % queries);
            let kv = head / heads * kv_heads + head % heads / (heads / kv_heads);
            let seen = offset.map_or(keys, |offset| keys.min(i + offset + 1));
            let weight = |j: usize| {
                let product = |d: usize| wide(q[row * depth + d]) * wide(k[(kv * keys + j) * depth + d]);
                ((0..depth).map(product).sum::<f64>() * 0.3 + wide(mask[i * keys + j])).exp()
            };
            let total: f64 = (0..seen).map(weight).sum();
            let value = |d: usize| (0..seen).map(|j| weight(j) * wide(v[(kv * keys + j) * width + d])).sum::<f64>();
            y.extend((0..width).map(|d| if seen == 0 { 0.0 } else { value(d) / total }));
        }
        y
    }

    #[test]
    fn every_path_agrees_with_f64_on_every_instruction_set() {
        let two = Threads::new(2).expect("a pool of two threads");
        for [batch, heads, kv_heads, queries, keys, depth, width] in [
            [1, 1, 1, 1, 1, 1, 1],
            [2, 4, 2, 3, 7, 8, 5],
            [1, 2, 2, 1, 300, 20, 16],
            [1, 2, 1, 70, 70, 16, 16],
            [2, 3, 3, 9, 33, 64, 64],
            [1, 1, 1, 5, 0, 4, 4],
            [0, 1, 1, 5, 3, 4, 4],
        ] {
            let dims = Dims { batch, heads, kv_heads, queries, keys, depth, width };
            let q = values(batch * heads * queries * depth, 0);
            let k = values(batch * kv_heads * keys * depth, 3);
            let v = values(batch * kv_heads * keys * width, 5);
            let mask = values(queries * keys, 7);
            for offset in [None, Some(0), Some(2)] {
                let expected = plain(dims, [&q, &k, &v, &mask], offset);
                let problem = Problem {
                    dims,
                    q: along(&q, heads, queries, depth),
                    k: along(&k, kv_heads, keys, depth),
                    v: along(&v, kv_heads, keys, width),
                    scale: 0.3,
                    softcap: None,
                    mask: Mask::Added(Vectors { data: &mask, batch: 0, head: 0, row: keys }),
                    visible: &|_, i| 0..offset.map_or(keys, |offset| i + offset + 1),
                    guard: Guard::Unseeing,
                };
                for isa in Isa::available() {
                    let mut y = vec![f32::NAN; expected.len()];
                    attention(isa, &two, &problem, &mut y, None);
                    for (y, expected) in y.iter().zip(&expected) {
                        assert!((f64::from(*y) - expected).abs() < 5e-6, "{dims:?} {offset:?} {isa:?}: {y} {expected}");
                    }
                    let mut serial = vec![f32::NAN; expected.len()];
                    attention(isa, &Threads::serial(), &problem, &mut serial, None);
                    assert_eq!(serial, y, "{dims:?} {isa:?}: threads change a bit");
                }
            }
        }
    }

    #[test]
    fn a_guard_says_what_becomes_of_a_query_that_sees_no_key() {
        let inf = f32::INFINITY;
        let dims = Dims { batch: 1, heads: 1, kv_heads: 1, queries: 2, keys: 2, depth: 1, width: 1 };
        // The first query is masked; a score of the second is infinite.
        let (mask, queries) = ([-inf, -inf, 0.0, 0.0], [1.0, inf]);
        for (guard, expected) in [
            (Guard::Unseeing, [Some(0.0), None]),
            (Guard::Nothing, [None, None]),
            (Guard::Undefined, [Some(0.0), Some(0.0)]),
        ] {
            let problem = Problem {
                dims,
                q: along(&queries, 1, 2, 1),
                k: along(&[1.0, 2.0], 1, 2, 1),
                v: along(&[3.0, 4.0], 1, 2, 1),
                scale: 1.0,
                softcap: None,
                mask: Mask::Added(Vectors { data: &mask, batch: 0, head: 0, row: 2 }),
                visible: &|_, _| 0..2,
                guard,
            };
            let mut y = [1.0; 2];
            attention(Isa::get(), &Threads::serial(), &problem, &mut y, None);
            assert_eq!(y.map(|y| Some(y).filter(|y| !y.is_nan())), expected, "{guard:?}");
        }
    }
}
