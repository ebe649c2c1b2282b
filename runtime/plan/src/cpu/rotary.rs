//! CPU kernels: rotary position embedding.

use candle_plan_kernels::float_types::Real;
use half::{bf16, f16};

use super::bounds::counted;
use super::convert::{owned, widened_bytes, Float};
use crate::dispatch;
use crate::error::Result;
use crate::kernel::{Call, Kernel};
use crate::operands::rotary::RotarySizes;
use crate::ops::rotary::{rows_of, RotaryEmbedding};
use crate::types::Types;
use crate::value::{list, Array, Value};

impl Kernel for RotaryEmbedding {
    fn scratch(&self, inputs: &Types) -> Option<usize> {
        let [batch, positions, ..] = self.vectors(inputs.shape(0).ok()??).ok()?;
        let rows = counted::<[usize; 2]>(batch?.saturating_mul(positions?));
        Some(widened_bytes(self, inputs, |_| false)?.saturating_add(rows))
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let rotation = self.rotation(call)?;
        let y = dispatch!("RotaryEmbedding", x.dtype(), [f32, f64, f16, bf16], T => {
            let (x, cos, sin) = (call.read::<T>(0)?, call.read::<T>(1)?, call.read::<T>(2)?);
            let mut y = owned(T::widen(x));
            rotation.run(&mut y, &T::widen(cos), &T::widen(sin));
            Array::new(T::narrow(y), call.tensor(0)?.dims())
        })?;
        Ok(vec![y.into()])
    }
}

/// The parameters of one run: the row of the caches that rotates each vector, and the sizes.
struct Rotation {
    /// The row of the caches for each batch and position.
    rows: Vec<usize>,
    positions: usize,
    heads: usize,
    /// Whether heads come before positions.
    heads_first: bool,
    size: usize,
    rotary: usize,
    interleaved: bool,
}

impl RotaryEmbedding {
    fn rotation(&self, call: &Call) -> Result<Rotation> {
        let RotarySizes { batch, positions, heads, size, rotary, rows: count } = self.sizes(call)?;
        let rows = match call.optional_tensor(3)? {
            Some(ids) => rows_of(&ids.to_i64()?, count)?,
            None => list((0..batch.saturating_mul(positions)).map(|i| i % count))?,
        };
        let heads_first = self.heads.is_none();
        Ok(Rotation { rows, positions, heads, heads_first, size, rotary, interleaved: self.interleaved })
    }
}

impl Rotation {
    fn run<R: Real>(&self, x: &mut [R], cos: &[R], sin: &[R]) {
        let half = self.rotary / 2;
        for (i, vector) in x.chunks_exact_mut(self.size.max(1)).enumerate() {
            let (batch, rest) = (i / (self.heads * self.positions), i % (self.heads * self.positions));
            let position = if self.heads_first { rest % self.positions } else { rest / self.heads };
            let row = self.rows[batch * self.positions + position] * half;
            let angles = cos[row..row + half].iter().zip(&sin[row..row + half]);
            if self.interleaved {
                for (pair, (&cos, &sin)) in vector.chunks_exact_mut(2).zip(angles) {
                    (pair[0], pair[1]) = (cos * pair[0] - sin * pair[1], sin * pair[0] + cos * pair[1]);
                }
            } else {
                let (first, second) = vector[..self.rotary].split_at_mut(half);
                for ((a, b), (&cos, &sin)) in first.iter_mut().zip(second).zip(angles) {
                    (*a, *b) = (cos * *a - sin * *b, sin * *a + cos * *b);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, tensor};

    #[test]
    fn pairs_rotate_by_the_angle_of_their_position() {
        let angles = [0.0f32, 0.5, 1.0, 1.5, 2.0, 2.5];
        let (cos, sin) = (angles.map(f32::cos), angles.map(f32::sin));
        let x: Vec<f32> = (0..20).map(|i| i as f32 / 4.0).collect();
        // One batch, two positions, and two heads of five elements; the first four elements rotate.
        for (interleaved, with_ids) in [(false, false), (true, false), (false, true), (true, true)] {
            let rows = if with_ids { [2, 0] } else { [0, 1] };
            let mut expected = x.clone();
            for (i, row) in [(0, rows[0]), (5, rows[0]), (10, rows[1]), (15, rows[1])] {
                for pair in 0..2 {
                    let (a, b) = if interleaved { (2 * pair, 2 * pair + 1) } else { (pair, pair + 2) };
                    let (c, s) = (cos[row * 2 + pair], sin[row * 2 + pair]);
                    expected[i + a] = c * x[i + a] - s * x[i + b];
                    expected[i + b] = s * x[i + a] + c * x[i + b];
                }
            }
            let caches = |cache: &[f32]| match with_ids {
                true => tensor(cache, &[3, 2]),
                false => tensor(&cache[..4], &[1, 2, 2]),
            };
            let ids = with_ids.then(|| tensor(&[2i64, 0], &[1, 2]));
            let inputs = [Some(tensor(&x, &[1, 2, 10])), Some(caches(&cos)), Some(caches(&sin)), ids];
            let op = RotaryEmbedding { heads: Some(2), interleaved, rotary_dim: Some(4) };
            let y = run(&op, &inputs).expect("runs");
            assert_eq!(*y.tensor().unwrap().read::<f32>().unwrap(), expected[..], "{op:?} {with_ids}");
        }
    }

    #[test]
    fn one_cache_rotates_every_batch() {
        let op = RotaryEmbedding { heads: None, interleaved: false, rotary_dim: None };
        let x = tensor(&[1f32, 2.0, 3.0, 4.0], &[2, 1, 1, 2]);
        let cache = |number: f32, batch: usize| Some(tensor(&vec![number; batch], &[batch, 1, 1]));
        let y = run(&op, &[Some(x.clone()), cache(0.0, 1), cache(1.0, 1), None]).expect("runs");
        assert_eq!(*y.tensor().unwrap().read::<f32>().unwrap(), [-2f32, 1.0, -4.0, 3.0]);
        assert!(run(&op, &[Some(x), cache(0.0, 3), cache(1.0, 3), None]).is_err());
    }

    #[test]
    fn positions_outside_of_the_caches_are_refused() {
        let op = RotaryEmbedding { heads: None, interleaved: false, rotary_dim: None };
        let x = || Some(tensor(&[1f32, 2.0], &[1, 1, 1, 2]));
        let cache = || Some(tensor(&[1f32, 0.0], &[2, 1]));
        for (id, fits) in [(1i64, true), (2, false), (-3, false)] {
            let y = run(&op, &[x(), cache(), cache(), Some(tensor(&[id], &[1, 1]))]);
            assert_eq!(y.is_ok(), fits, "position {id}");
        }
        assert!(run(&RotaryEmbedding { rotary_dim: Some(4), ..op }, &[x(), cache(), cache(), None]).is_err());
    }
}
