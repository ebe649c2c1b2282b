//! The attention of one head, one tile of queries at a time.

use std::ops::Range;

use super::elements::{Attends, Stored};
use super::problem::{tile, Dims, Guard, Mask, Packed, Problem, Stage, MOST};
use super::rows::{add_bias, choose, dots, last_chosen, mix, multiply_rows, scale};
use crate::gemm::ProductSizes;
use crate::isa::Isa;
use crate::scratch::Scratch;

/// One head of one batch.
pub(super) struct Head<'a, R, S> {
    problem: &'a Problem<'a, R, S>,
    isa: Isa,
    batch: usize,
    head: usize,
    packed: Option<&'a Packed>,
}

impl<'a, R: Attends, S: Stored<R>> Head<'a, R, S> {
    /// Creates a head, counted over all batches, with its packed keys and values if they exist.
    pub fn new(problem: &'a Problem<'a, R, S>, isa: Isa, head: usize, packed: Option<&'a Packed>) -> Head<'a, R, S> {
        Head { problem, isa, batch: head / problem.dims.heads, head: head % problem.dims.heads, packed }
    }

    /// Computes the outputs of some queries, from the first query of a tile on, and their scores if requested.
    pub fn run(&self, queries: Range<usize>, out: &mut [R], mut kept: Option<(Stage, &mut [R])>) {
        let Dims { keys, width, .. } = self.problem.dims;
        let tile = tile(&self.problem.dims);
        let mut scores = Scratch::filled(R::ZERO, tile.saturating_mul(keys));
        let mut block = Scratch::new();
        for first in queries.clone().step_by(tile) {
            let (rows, at) = (tile.min(queries.end - first), first - queries.start);
            // Scores that are returned must be complete.
            let keys = if kept.is_some() { keys } else { self.reach(first..first + rows) };
            let scores = &mut scores[..rows * keys];
            self.multiply_keys(first, rows, scores, &mut block);
            let mut factors = [R::ONE; MOST];
            self.finish(first, keys, scores, &mut factors[..rows], kept.is_some(), |stage, scores| {
                if let Some((_, kept)) = kept.as_mut().filter(|(wanted, _)| *wanted == stage) {
                    kept[at * keys..][..rows * keys].copy_from_slice(scores);
                }
            });
            self.mix(scores, &factors[..rows], &mut out[at * width..][..rows * width], &mut block);
        }
    }

    /// `out = factors · scores · values`, with one factor per row of scores.
    fn mix(&self, scores: &mut [R], factors: &[R], out: &mut [R], block: &mut Scratch<R>) {
        self.multiply_values(factors.len(), scores, out, block);
        multiply_rows(self.isa, out, factors);
        // A sum that overflows may be finite with normalized weights, which are at most 1.
        if !out.iter().all(|x| x.abs() < -R::NEG_INFINITY) {
            multiply_rows(self.isa, scores, factors);
            self.multiply_values(factors.len(), scores, out, block);
        }
    }

    /// Returns the number of keys up to the last one that one of the queries attends to. It is at least 1 if there is a
    /// key, because a query without a visible key still gets its output from the weights.
    fn reach(&self, queries: Range<usize>) -> usize {
        let keys = self.problem.dims.keys;
        let reach = queries.rev().fold(0, |reach, i| {
            let end = self.seen(i, keys).end;
            match self.problem.mask {
                Mask::Chosen(mask) if reach < end => {
                    let row = &mask.of(self.batch, self.head)[i * mask.row..];
                    reach + last_chosen(self.isa, &row[reach..end])
                }
                _ => reach.max(end),
            }
        });
        reach.max(1).min(keys)
    }

    /// Computes the products of queries `first .. first + rows` with the first keys.
    fn multiply_keys(&self, first: usize, rows: usize, scores: &mut [R], block: &mut Scratch<R>) {
        let Dims { depth, kv_heads, heads, .. } = self.problem.dims;
        let (q, keys) = (self.problem.q, scores.len() / rows);
        let queries = &q.of(self.batch, self.head)[first * q.row..];
        if let Some(packed) = self.packed {
            return R::multiply(
                self.isa,
                ProductSizes { m: rows, n: keys, k: depth },
                queries,
                q.row,
                &packed.keys,
                scores,
            );
        }
        let vectors = self.problem.keys(self.batch, self.head * kv_heads / heads, keys);
        S::for_each_block(self.isa, vectors, block, |first, block| {
            for (i, scores) in scores.chunks_exact_mut(keys.max(1)).enumerate() {
                let scores = &mut scores[first..][..block.count];
                dots(self.isa, &queries[i * q.row..][..depth], block.data, block.stride, scores);
            }
        });
    }

    /// `out = scores · values`
    fn multiply_values(&self, rows: usize, scores: &[R], out: &mut [R], block: &mut Scratch<R>) {
        let Dims { width, kv_heads, heads, .. } = self.problem.dims;
        let keys = scores.len() / rows;
        if let Some(packed) = self.packed {
            return R::multiply(
                self.isa,
                ProductSizes { m: rows, n: width, k: keys },
                scores,
                keys,
                &packed.values,
                out,
            );
        }
        if keys == 0 {
            return out.fill(R::ZERO);
        }
        let vectors = self.problem.values(self.batch, self.head * kv_heads / heads, keys);
        S::for_each_block(self.isa, vectors, block, |first, block| {
            for (scores, out) in scores.chunks_exact(keys).zip(out.chunks_exact_mut(width.max(1))) {
                mix(self.isa, &scores[first..][..block.count], block.data, block.stride, out, first > 0);
            }
        });
    }

    /// Converts products to unnormalized weights, for the queries from `first` on. `factors` normalize them; these are
    /// 1 if the stages are watched. Calls `show` after each stage.
    fn finish(
        &self,
        first: usize,
        keys: usize,
        scores: &mut [R],
        factors: &mut [R],
        is_watched: bool,
        mut show: impl FnMut(Stage, &[R]),
    ) {
        let Problem { softcap, mask, scale: mut factor, .. } = *self.problem;
        // If nothing needs the scaled products, the exponentials apply the scale.
        let can_wait = !is_watched && softcap.is_none() && matches!(mask, Mask::None) && factor > R::ZERO;
        if !can_wait {
            scale(self.isa, scores, std::mem::replace(&mut factor, R::ONE));
        }
        show(Stage::Product, scores);
        if let Some(cap) = softcap {
            for score in scores.iter_mut() {
                *score = cap * (*score / cap).tanh();
            }
        }
        show(Stage::Capped, scores);
        let blind = self.mask_rows(first, keys, scores);
        show(Stage::Masked, scores);
        if keys > 0 {
            R::exponentiate(self.isa, factor, scores, factors);
            factors.iter_mut().for_each(|factor| *factor = R::ONE / *factor);
        }
        for (i, (weights, factor)) in scores.chunks_exact_mut(keys.max(1)).zip(factors.iter_mut()).enumerate() {
            self.guard(blind >> i & 1 == 1, weights, factor);
        }
        if is_watched {
            multiply_rows(self.isa, scores, factors);
            factors.fill(R::ONE);
        }
        show(Stage::Softmax, scores);
    }

    /// Applies the masks to the scores of the queries from `first` on. Returns one bit per query, which is set if no
    /// key is left.
    fn mask_rows(&self, first: usize, keys: usize, scores: &mut [R]) -> u64 {
        let mut blind = 0;
        for (i, row) in scores.chunks_exact_mut(keys.max(1)).enumerate() {
            let seen = self.seen(first + i, keys);
            row[..seen.start].fill(R::NEG_INFINITY);
            row[seen.end..].fill(R::NEG_INFINITY);
            blind |= u64::from(!self.mask_row(first + i, &seen, row)) << i;
        }
        blind
    }

    /// Applies the guard to the weights of a query. `is_blind` means that the masks leave no key.
    fn guard(&self, is_blind: bool, weights: &mut [R], factor: &mut R) {
        let value = match self.problem.guard {
            Guard::Nothing if is_blind => R::from_f64(f64::NAN),
            // A single NaN among the scores makes every weight NaN.
            Guard::Undefined if factor.to_f64().is_nan() => R::ZERO,
            Guard::Unseeing | Guard::Undefined if is_blind => R::ZERO,
            Guard::Nothing | Guard::Unseeing | Guard::Undefined => return,
        };
        weights.fill(value);
        *factor = R::ONE;
    }

    /// Returns the keys that query `i` attends to, within `0 .. keys`.
    fn seen(&self, i: usize, keys: usize) -> Range<usize> {
        let seen = (self.problem.visible)(self.batch, i);
        let end = seen.end.min(keys);
        seen.start.min(end)..end
    }

    /// Applies the mask to the visible scores. Returns whether any of them is left.
    fn mask_row(&self, i: usize, seen: &Range<usize>, row: &mut [R]) -> bool {
        let row = &mut row[seen.clone()];
        match self.problem.mask {
            Mask::None => !seen.is_empty(),
            Mask::Added(mask) => {
                let bias = &mask.of(self.batch, self.head)[i * mask.row..][seen.clone()];
                add_bias(self.isa, row, bias);
                bias.iter().any(|&bias| bias != R::NEG_INFINITY)
            }
            Mask::Chosen(mask) => {
                let chosen = &mask.of(self.batch, self.head)[i * mask.row..][seen.clone()];
                choose(self.isa, row, chosen);
                chosen.iter().any(|&chosen| chosen != 0)
            }
        }
    }
}
