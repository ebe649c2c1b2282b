//! CPU kernels: random numbers, equal on every machine.
//!
//! Each step has a ChaCha8 generator with its own seed. Each execution of the step uses the next stream of the
//! generator. The first run of every session draws the same numbers; later runs and loop iterations draw others.

use std::sync::atomic::{AtomicU64, Ordering};

use candle_plan_kernels::scratch::Scratch;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

use super::convert::converted;
use super::packed::{HasKernel, Packed};
use super::planned::CpuOperands;
use crate::axes;
use crate::bail;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::{Call, Kernel};
use crate::ops::random::{Multinomial, RandomNormal, RandomUniform};
use crate::value::{self, Array, Value};

impl HasKernel for RandomNormal {
    fn kernel(&self, _: &CpuOperands) -> Result<Box<dyn Kernel>> {
        Ok(Packed::boxed(self, Streams::default()))
    }
}

impl Kernel for Packed<RandomNormal, Streams> {
    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (op, packed) = (&self.op, &self.packed);
        let (mean, scale) = (f64::from(op.mean), f64::from(op.scale));
        drawn(op.dtype, generator(op.seed, packed), call, |generator| {
            mean + scale * generator.sample::<f64, _>(StandardNormal)
        })
    }
}

impl HasKernel for RandomUniform {
    fn kernel(&self, _: &CpuOperands) -> Result<Box<dyn Kernel>> {
        Ok(Packed::boxed(self, Streams::default()))
    }
}

impl Kernel for Packed<RandomUniform, Streams> {
    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (op, packed) = (&self.op, &self.packed);
        let (low, high) = (f64::from(op.low), f64::from(op.high));
        drawn(op.dtype, generator(op.seed, packed), call, |generator| low + (high - low) * generator.random::<f64>())
    }
}

impl HasKernel for Multinomial {
    fn kernel(&self, _: &CpuOperands) -> Result<Box<dyn Kernel>> {
        Ok(Packed::boxed(self, Streams::default()))
    }
}

impl Kernel for Packed<Multinomial, Streams> {
    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (op, packed) = (&self.op, &self.packed);
        let x = call.tensor(0)?;
        let &[rows, classes] = x.dims() else { bail!("expected [B, C], found {:?}", x.dims()) };
        let logits = converted(x, DType::Float64, call.threads)?;
        let logits = logits.read::<f64>()?;
        let dims = [rows, op.samples];
        let mut generator = generator(op.seed, packed);
        let drawn = value::alloc_uninit::<i64>(&dims)?.try_overwrite(|drawn| -> Result<()> {
            for (row, drawn) in drawn.chunks_exact_mut(op.samples.max(1)).enumerate() {
                let cumulative = cumulative(&logits[row * classes..][..classes])?;
                let total = cumulative[classes - 1];
                for class in drawn {
                    let at = total * generator.random::<f64>();
                    *class = cumulative.partition_point(|&sum| sum <= at).min(classes - 1) as i64;
                }
            }
            Ok(())
        })?;
        Ok(vec![converted(&Array::new(drawn, &dims)?, op.dtype, call.threads)?.into()])
    }
}

/// Returns the cumulative sums of the class probabilities, up to a constant factor.
fn cumulative(logits: &[f64]) -> Result<Scratch<f64>> {
    let most = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut sum = 0.0;
    let sums = Scratch::of(logits.iter().map(|logit| {
        sum += (logit - most).exp();
        sum
    }));
    match sum.is_finite() && sum > 0.0 {
        true => Ok(sums),
        false => Err(Error::op("a row has no class that can be drawn")),
    }
}

/// The number of streams of its generator that a step has used.
#[derive(Default)]
pub(super) struct Streams(AtomicU64);

/// Returns the generator of one execution of a step.
fn generator(seed: u64, Streams(used): &Streams) -> ChaCha8Rng {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    generator.set_stream(used.fetch_add(1, Ordering::Relaxed));
    generator
}

/// Draws a tensor, whose shape is input 0, element by element.
fn drawn(
    dtype: DType,
    mut generator: ChaCha8Rng,
    call: &Call,
    mut draw: impl FnMut(&mut ChaCha8Rng) -> f64,
) -> Result<Vec<Value>> {
    let dims = axes::dims(&axes::numbers(call.tensor(0)?)?)?;
    let numbers = value::alloc_uninit::<f64>(&dims)?;
    let numbers = numbers.overwrite(|out| out.iter_mut().for_each(|number| *number = draw(&mut generator)));
    Ok(vec![converted(&Array::new(numbers, &dims)?, dtype, call.threads)?.into()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, tensor, Tested};

    fn floats(kernel: &dyn Tested, dims: &[i64]) -> Vec<f64> {
        let y = run(kernel, &[Some(tensor(dims, &[dims.len()]))]).expect("a shape");
        y.tensor().and_then(|y| Ok(y.read::<f64>()?.to_vec())).expect("float64")
    }

    fn moments(data: &[f64]) -> (f64, f64) {
        let mean = data.iter().sum::<f64>() / data.len() as f64;
        (mean, (data.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / data.len() as f64).sqrt())
    }

    #[test]
    fn distributions() {
        let dtype = DType::Float64;
        let normal = floats(&RandomNormal { dtype, mean: 3.0, scale: 2.0, seed: 1 }, &[100, 400]);
        let (mean, deviation) = moments(&normal);
        assert!((mean - 3.0).abs() < 0.05 && (deviation - 2.0).abs() < 0.05, "{mean} {deviation}");

        let uniform = floats(&RandomUniform { dtype, low: -1.0, high: 5.0, seed: 1 }, &[40_000]);
        let (mean, deviation) = moments(&uniform);
        assert!((mean - 2.0).abs() < 0.05 && (deviation - 6.0 / 12f64.sqrt()).abs() < 0.05, "{mean} {deviation}");
        assert!(uniform.iter().all(|x| (-1.0..5.0).contains(x)));
    }

    #[test]
    fn seeds_determine_the_numbers() {
        let draw = |seed| floats(&RandomUniform { dtype: DType::Float64, low: 0.0, high: 1.0, seed }, &[3]);
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        assert!(run(
            &RandomUniform { dtype: DType::Int32, low: 0.0, high: 1.0, seed: 0 },
            &[Some(tensor(&[1i64], &[1]))]
        )
        .is_err());
    }

    #[test]
    fn classes_are_drawn_with_their_probabilities() {
        let logits = [0.2f32.ln(), 0.5f32.ln(), f32::NEG_INFINITY, 0.3f32.ln()];
        let kernel = Multinomial { dtype: DType::Int32, samples: 20_000, seed: 3 };
        let y = run(&kernel, &[Some(tensor(&logits, &[1, 4]))]).expect("one row");
        let drawn = y.tensor().expect("a tensor").to_i64().expect("int32");
        for (class, probability) in [0.2, 0.5, 0.0, 0.3].into_iter().enumerate() {
            let share = drawn.iter().filter(|&&drawn| drawn == class as i64).count() as f64 / drawn.len() as f64;
            assert!((share - probability).abs() < 0.02, "{class}: {share}");
        }
        for invalid in [[f32::NEG_INFINITY; 2], [f32::NAN; 2]] {
            assert!(run(&kernel, &[Some(tensor(&invalid, &[1, 2]))]).is_err());
        }
        assert!(run(&kernel, &[Some(tensor::<f32>(&[], &[1, 0]))]).is_err());
    }
}
