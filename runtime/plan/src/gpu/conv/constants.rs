//! The constants by which the planner of convolutions chooses: the limits of forms, and the speed of an H100.
//!
//! `make cuda-check CALL=tune` compares the chosen forms with the fastest ones. The speeds are a least-squares fit to
//! measurements of `float32` on an H100, and for `direct` on an H200. The times of products and of tiles without groups
//! on an H200, in `benchmarks/results/cuda-tune.md`, are within 15 % of it; those of transposed convolutions, within 40 %.

/// The number of blocks that keeps a GPU busy.
pub(super) const ENOUGH: usize = 256;

/// The fewest terms of a sum per part, and the largest number of parts.
pub(super) const PART: usize = 128;

pub(super) const MOST_PARTS: usize = 32;

/// Fewer than `FEW` outputs per group leave most of a tile unused. Then one thread computes each output if sums have at
/// most `SHORT` terms or there are at least `MANY` sums.
pub(super) const FEW: usize = 16;

pub(super) const SHORT: usize = 64;

pub(super) const MANY: usize = 1 << 18;

/// The number of multiprocessors.
pub(super) const MULTIPROCESSORS: usize = 132;

/// The microseconds of a kernel that does nothing, as a profiler counts them: of a form's own kernel, and of the kernel
/// that adds parts.
pub(super) const LAUNCH: f64 = 3.4;

pub(super) const FINISH: f64 = 1.5;

/// The bytes that the memory moves in a microsecond: NVIDIA's number.
pub(super) const BYTES: f64 = 3.35e6;

/// The time of a kernel in microseconds. Each multiprocessor computes `products` multiply-adds, `rate` in a nanosecond.
pub(super) fn kernel(products: f64, rate: f64) -> f64 {
    LAUNCH + products / rate / 1e3
}
