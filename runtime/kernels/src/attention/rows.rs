//! Loops over scores, keys and values.

use crate::float_types::Real;
use crate::lane_loops::{load, per_isa};

per_isa! {
    /// `scores *= factor`
    pub(super) fn scale<R: Real>(scores: &mut [R], factor: R) where FMA up to (R::WIDEST) {
        for score in scores {
            *score = *score * factor;
        }
    }
}

per_isa! {
    /// Multiplies each row by its factor.
    pub(super) fn multiply_rows<R: Real>(rows: &mut [R], factors: &[R]) where FMA up to (R::WIDEST) {
        let length = (rows.len() / factors.len().max(1)).max(1);
        for (row, &factor) in rows.chunks_exact_mut(length).zip(factors) {
            for x in row {
                *x = *x * factor;
            }
        }
    }
}

per_isa! {
    /// `scores += bias`
    pub(super) fn add_bias<R: Real>(scores: &mut [R], bias: &[R]) where FMA up to (R::WIDEST) {
        for (score, &bias) in scores.iter_mut().zip(bias) {
            *score += bias;
        }
    }
}

per_isa! {
    /// Adds −∞ where `chosen` is 0.
    pub(super) fn choose<R: Real>(scores: &mut [R], chosen: &[u8]) where FMA up to (R::WIDEST) {
        for (score, &chosen) in scores.iter_mut().zip(chosen) {
            *score += if chosen == 0 { R::NEG_INFINITY } else { R::ZERO };
        }
    }
}

/// The elements of a mask that are compared together.
const TOGETHER: usize = 64;

per_isa! {
    /// Returns the number of elements up to the last one that is not 0.
    pub(super) fn last_chosen(chosen: &[u8]) -> usize where FMA {
        let mut end = chosen.len();
        while end > 0 {
            let part = &chosen[end.saturating_sub(TOGETHER)..end];
            if part.iter().fold(0, |any, &chosen| any | chosen) != 0 {
                break;
            }
            end -= part.len();
        }
        chosen[..end].iter().rposition(|&chosen| chosen != 0).map_or(0, |last| last + 1)
    }
}

/// Lanes of a dot product.
const LANES: usize = 16;

per_isa! {
    /// `out[j] = query · keys[j]`
    pub(super) fn dots<R: Real>(query: &[R], keys: &[R], stride: usize, out: &mut [R]) where FMA up to (R::WIDEST) {
        let mut start = 0;
        for out in out {
            let mut lanes = [R::ZERO; LANES];
            let key = &keys[start..start + query.len()];
            let (blocks, key_blocks) = (query.chunks_exact(LANES), key.chunks_exact(LANES));
            let rest = blocks.remainder().iter().zip(key_blocks.remainder());
            for (q, k) in blocks.zip(key_blocks) {
                for ((lane, &q), &k) in lanes.iter_mut().zip(q).zip(k) {
                    *lane = q.mul_add::<FMA>(k, *lane);
                }
            }
            for (lane, (&q, &k)) in lanes.iter_mut().zip(rest) {
                *lane = q.mul_add::<FMA>(k, *lane);
            }
            let mut width = LANES / 2;
            while width > 0 {
                for i in 0..width {
                    lanes[i] += lanes[i + width];
                }
                width /= 2;
            }
            *out = lanes[0];
            start += stride;
        }
    }
}

per_isa! {
    /// `out = Σ weights[j] · values[j]`. With `continues`, the sums begin with `out`.
    pub(super) fn mix<R: Real>(weights: &[R], values: &[R], stride: usize, out: &mut [R], continues: bool)
    where FMA up to (R::WIDEST) {
        let mut column = 0;
        for out in out.chunks_mut(4 * LANES) {
            if out.len() == 4 * LANES {
                mix_columns::<R, { 4 * LANES }, FMA>(weights, &values[column..], stride, out, continues);
            } else {
                for (i, out) in out.chunks_mut(LANES).enumerate() {
                    mix_columns::<R, LANES, FMA>(weights, &values[column + i * LANES..], stride, out, continues);
                }
            }
            column += 4 * LANES;
        }
    }
}

/// Computes at most `W` columns of [`mix`], whose sums stay in registers.
#[inline(always)]
fn mix_columns<R: Real, const W: usize, const FMA: bool>(
    weights: &[R],
    values: &[R],
    stride: usize,
    out: &mut [R],
    continues: bool,
) {
    let mut sums = if continues { load::<R, W>(out, R::ZERO) } else { [R::ZERO; W] };
    for (j, weight) in weights.iter().enumerate() {
        let row = &values[j * stride..];
        match row.first_chunk::<W>() {
            Some(row) if out.len() == W => {
                sums.iter_mut().zip(row).for_each(|(sum, &value)| *sum = weight.mul_add::<FMA>(value, *sum));
            }
            _ => {
                let row = &row[..out.len()];
                sums.iter_mut().zip(row).for_each(|(sum, &value)| *sum = weight.mul_add::<FMA>(value, *sum));
            }
        }
    }
    out.copy_from_slice(&sums[..out.len()]);
}
