//! Measures the processor's peak rates, to which the speed of a kernel is compared.

use std::hint::black_box;
use std::time::Instant;

use crate::isa::Isa;
use crate::threads::Threads;
use crate::vector::{dispatch_isa, Vector};

/// Operations and bytes per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Peaks {
    /// Multiplications and additions of `f32` per second; a fused multiply-add counts as two.
    pub operations: f64,
    /// Bytes read and written per second by a copy that is larger than any cache.
    pub bytes: f64,
}

/// Independent accumulators: enough to hide the latency of two FMA units.
const CHAINS: usize = 10;
const ROUNDS: usize = 100_000;
/// Elements of the copy.
const ELEMENTS: usize = 1 << 25;
/// Number of measurements; the best one counts.
const TRIES: usize = 10;

/// Measures both rates, in less than a second on an idle machine.
pub fn measure(isa: Isa, threads: &Threads) -> Peaks {
    Peaks { operations: operations(isa, threads), bytes: bytes(threads) }
}

fn operations(isa: Isa, threads: &Threads) -> f64 {
    let each = (2 * CHAINS * ROUNDS * lanes(isa)) as f64;
    let seconds = best(|| threads.for_each(threads.count(), |_| run_chains(isa)));
    each * threads.count() as f64 / seconds
}

fn bytes(threads: &Threads) -> f64 {
    let from = vec![1f32; ELEMENTS];
    let mut to = vec![0f32; ELEMENTS];
    let part = ELEMENTS.div_ceil(threads.count());
    let seconds = best(|| {
        threads.for_each_chunk(&mut to, part, |i, chunk| chunk.copy_from_slice(&from[i * part..][..chunk.len()]));
        black_box(&mut to);
    });
    (2 * size_of::<f32>() * ELEMENTS) as f64 / seconds
}

/// Returns the shortest of [`TRIES`] times, in seconds.
fn best(mut run: impl FnMut()) -> f64 {
    let time = |_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    };
    (0..TRIES).map(time).fold(f64::INFINITY, f64::min)
}

fn lanes(isa: Isa) -> usize {
    let mut lanes = 1;
    dispatch_isa!(isa, (lanes: &mut usize = &mut lanes), V => *lanes = V::LANES);
    lanes
}

fn run_chains(isa: Isa) {
    dispatch_isa!(isa, (), V => { black_box(chains::<V>()); });
}

#[inline(always)]
fn chains<V: Vector>() -> f32 {
    let (factor, addend) = (V::splat(black_box(0.5)), V::splat(black_box(1.0)));
    let mut sums = [addend; CHAINS];
    for _ in 0..ROUNDS {
        for sum in &mut sums {
            *sum = sum.mul_add(factor, addend);
        }
    }
    sums.into_iter().reduce(|a, b| a + b).map_or(0.0, V::sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_are_measured_at_every_level() {
        for isa in Isa::available() {
            let peaks = measure(isa, &Threads::serial());
            assert!(peaks.operations.is_normal() && peaks.operations > 0.0, "{isa:?} {peaks:?}");
            assert!(peaks.bytes.is_normal() && peaks.bytes > 0.0, "{isa:?} {peaks:?}");
        }
    }
}
