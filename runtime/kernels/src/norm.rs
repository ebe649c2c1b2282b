//! Normalization of rows by their mean and variance, or by their mean square, and of channels by given statistics.
//!
//! The variance uses differences from the mean (two passes), so a large mean costs no accuracy.

use crate::float_types::Real;
use crate::isa::Isa;
use crate::lane_loops::{fold, per_isa};
use crate::rewrite::Rewrite;
use crate::scratch::Scratch;
use crate::threads::Threads;

/// Elements per task, at least.
const TASK: usize = 1 << 14;
/// Elements that are summed in their own type before they are added to the total, which is `f64`.
const BLOCK: usize = 4096;

/// The center and the denominator of a normalization.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Center {
    /// `(x − mean) / √(variance + ε)`: layer, instance and group normalization.
    Mean,
    /// `x / √(mean of x² + ε)`: RMS normalization.
    Zero,
}

/// The scale and the bias after a normalization.
#[derive(Debug, Clone, Copy)]
pub enum Affine<'a, R> {
    /// One scale and one bias per element of a row; repeated if there are more rows.
    Elements {
        /// Their number is a multiple of a row's length.
        scale: &'a [R],
        /// Same length as `scale`.
        bias: &'a [R],
    },
    /// One scale and one bias per channel of `spatial` consecutive elements; repeated if there are more channels.
    Channels {
        /// One element per channel; a row holds a whole number of channels.
        scale: &'a [R],
        /// Same length as `scale`.
        bias: &'a [R],
        /// The elements per channel.
        spatial: usize,
    },
}

/// Normalizes every row of `n` elements.
pub fn normalize_rows<R: Real>(
    isa: Isa,
    threads: &Threads,
    x: Rewrite<R>,
    n: usize,
    center: Center,
    epsilon: f64,
    affine: Affine<R>,
) {
    if x.is_empty() {
        return;
    }
    let rows = TASK.div_ceil(n);
    x.for_each_chunk(threads, rows * n, |i, chunk| {
        // A function of its own: inlined into `normalize`, its partial sums would be in memory.
        let statistics = |row: &[R]| statistics_of(isa, row, center, epsilon);
        normalize(isa, chunk, n, i * rows, &statistics, affine)
    });
}

/// Returns the mean of each row of `n` elements (0 for [`Center::Zero`]), and the factor `1 / √(… + ε)` of its
/// normalization.
pub fn row_statistics<R: Real>(
    isa: Isa,
    threads: &Threads,
    x: &[R],
    n: usize,
    center: Center,
    epsilon: f64,
) -> Scratch<(R, R)> {
    let mut out = Scratch::filled((R::ZERO, R::ZERO), x.len().checked_div(n).unwrap_or(0));
    let rows = TASK.div_ceil(n.max(1));
    threads.for_each_chunk(&mut out, rows, |i, out| {
        for (k, out) in out.iter_mut().enumerate() {
            let row = i * rows + k;
            *out = statistics_of(isa, &x[row * n..(row + 1) * n], center, epsilon);
        }
    });
    out
}

/// `(x − mean[c]) · factor[c] + bias[c]` for `x [N, C, spatial]`.
pub fn normalize_channels<R: Real>(
    isa: Isa,
    threads: &Threads,
    x: Rewrite<R>,
    spatial: usize,
    mean: &[R],
    factor: &[R],
    bias: &[R],
) {
    let channels = mean.len();
    assert!(factor.len() == channels && bias.len() == channels, "one value a channel");
    if x.is_empty() {
        return;
    }
    assert_eq!(x.len() % (channels * spatial), 0, "the input fills its channels");
    let length = if spatial == 1 { channels } else { spatial };
    let rows = TASK.div_ceil(length);
    x.for_each_chunk(threads, rows * length, |i, chunk| {
        channel_rows(isa, chunk, length, i * rows, spatial == 1, [mean, factor, bias]);
    });
}

per_isa! {
    fn normalize<R: Real>(
        chunk: Rewrite<'_, R>, n: usize, first: usize, statistics: &dyn Fn(&[R]) -> (R, R), affine: Affine<'_, R>,
    ) where FMA up to (R::WIDEST) {
        let mut chunk = chunk;
        for i in 0..chunk.len() / n {
            let mut row = chunk.part(i * n, n);
            let (mean, factor) = statistics(row.source());
            match affine {
                Affine::Elements { scale, bias } => {
                    let start = (first + i) * n % scale.len();
                    row.zip_map(&scale[start..start + n], &bias[start..start + n], |v, scale, bias| {
                        ((v - mean) * factor).mul_add::<FMA>(scale, bias)
                    });
                }
                Affine::Channels { scale, bias, spatial } => {
                    let channels = n / spatial;
                    for k in 0..channels {
                        let channel = ((first + i) * channels + k) % scale.len();
                        let (factor, bias) = (factor * scale[channel], bias[channel]);
                        row.part(k * spatial, spatial).map(|v| (v - mean).mul_add::<FMA>(factor, bias));
                    }
                }
            }
        }
    }
}

per_isa! {
    fn statistics_of<R: Real>(row: &[R], center: Center, epsilon: f64) -> (R, R) where FMA up to (R::WIDEST) {
        let n = row.len() as f64;
        let mut mean = 0.0;
        if center == Center::Mean {
            for block in row.chunks(BLOCK) {
                mean += fold(block, R::ZERO, |a, v| a + v, |a, b| a + b).to_f64();
            }
            mean /= n;
        }
        let (mean, mut square) = (R::from_f64(mean), 0.0);
        for block in row.chunks(BLOCK) {
            square += fold(block, R::ZERO, |a, v| (v - mean).mul_add::<FMA>(v - mean, a), |a, b| a + b).to_f64();
        }
        (mean, R::from_f64(1.0 / (square / n + epsilon).sqrt()))
    }
}

per_isa! {
    fn channel_rows<R: Real>(
        chunk: Rewrite<'_, R>, length: usize, first: usize, across: bool, values: [&[R]; 3],
    ) where FMA up to (R::WIDEST) {
        let mut chunk = chunk;
        let [mean, factor, bias] = values;
        for i in 0..chunk.len() / length {
            let mut row = chunk.part(i * length, length);
            if across {
                row.zip_map(mean, factor, |v, mean, factor| (v - mean) * factor);
                Rewrite::in_place(row.target()).zip_map(bias, bias, |v, bias, _| v + bias);
            } else {
                let channel = (first + i) % mean.len();
                let (mean, factor, bias) = (mean[channel], factor[channel], bias[channel]);
                row.map(|v| (v - mean).mul_add::<FMA>(factor, bias));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(len: usize, offset: f32) -> Vec<f32> {
        (0..len).map(|i| ((i * 7919) % 1013) as f32 * 0.004 - 2.0 + offset).collect()
    }

    fn plain_statistics(row: &[f32], center: Center, epsilon: f64) -> (f64, f64) {
        let n = row.len() as f64;
        let mean = if center == Center::Mean { row.iter().map(|&v| f64::from(v)).sum::<f64>() / n } else { 0.0 };
        let square = row.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / n;
        (mean, 1.0 / (square + epsilon).sqrt())
    }

    fn close(found: &[f32], expected: &[f64], tolerance: f64, case: &str) {
        assert_eq!(found.len(), expected.len(), "{case}");
        for (found, expected) in found.iter().zip(expected) {
            assert!((f64::from(*found) - expected).abs() <= tolerance, "{case}: {found} {expected}");
        }
    }

    #[test]
    fn rows_agree_with_f64_on_every_instruction_set() {
        let two = Threads::new(2).expect("a pool of two threads");
        for (rows, n) in [(0, 4), (1, 1), (3, 5), (2, 64), (7, 100), (128, 768), (2, 30_000)] {
            for (center, offset) in [(Center::Mean, 0.0), (Center::Mean, 1000.0), (Center::Zero, 0.0)] {
                let (x, scale, bias) = (values(rows * n, offset), values(n, 1.0), values(n, 0.5));
                let mut expected = Vec::new();
                for row in x.chunks(n) {
                    let (mean, factor) = plain_statistics(row, center, 1e-5);
                    expected.extend(
                        (0..n).map(|k| (f64::from(row[k]) - mean) * factor * f64::from(scale[k]) + f64::from(bias[k])),
                    );
                }
                // The rounding error of the mean grows with its magnitude.
                let tolerance = 1e-5 + f64::from(offset) * 1e-6;
                let affine = Affine::Elements { scale: &scale, bias: &bias };
                for isa in Isa::available() {
                    let mut y = x.clone();
                    let case = format!("{rows}x{n} {center:?} {isa:?}");
                    normalize_rows(isa, &two, Rewrite::in_place(&mut y), n, center, 1e-5, affine);
                    close(&y, &expected, tolerance, &case);
                    let mut other = vec![0.0; x.len()];
                    let from_to = Rewrite::from_to(&x, &mut other);
                    normalize_rows(isa, &Threads::serial(), from_to, n, center, 1e-5, affine);
                    assert_eq!(y, other, "{case}: in place or threads change a bit");
                }
            }
        }
    }

    #[test]
    fn channels_take_their_own_scale_and_bias() {
        let (channels, groups, batch) = (6, 2, 3);
        for spatial in [1, 5, 40] {
            let n = channels / groups * spatial;
            let (x, scale, bias) =
                (values(batch * channels * spatial, 0.0), values(channels, 1.0), values(channels, 0.0));
            let expected: Vec<f64> = (0..x.len())
                .map(|i| {
                    let (mean, factor) = plain_statistics(&x[i / n * n..i / n * n + n], Center::Mean, 1e-5);
                    let c = i / spatial % channels;
                    (f64::from(x[i]) - mean) * factor * f64::from(scale[c]) + f64::from(bias[c])
                })
                .collect();
            let affine = Affine::Channels { scale: &scale, bias: &bias, spatial };
            let mut y = x.clone();
            normalize_rows(Isa::get(), &Threads::serial(), Rewrite::in_place(&mut y), n, Center::Mean, 1e-5, affine);
            close(&y, &expected, 1e-5, &format!("spatial {spatial}"));
        }
    }

    #[test]
    fn given_statistics_normalize_channels() {
        for (batch, channels, spatial) in [(2, 3, 1), (1, 4, 4), (2, 5, 100), (3, 1, 1)] {
            let x = values(batch * channels * spatial, 0.0);
            let (mean, factor, bias) = (values(channels, 0.5), values(channels, 2.0), values(channels, 1.0));
            let expected: Vec<f64> = (0..x.len())
                .map(|i| {
                    let c = i / spatial % channels;
                    (f64::from(x[i]) - f64::from(mean[c])) * f64::from(factor[c]) + f64::from(bias[c])
                })
                .collect();
            for isa in Isa::available() {
                let mut y = x.clone();
                let rewrite = Rewrite::in_place(&mut y);
                normalize_channels(isa, &Threads::serial(), rewrite, spatial, &mean, &factor, &bias);
                close(&y, &expected, 1e-5, &format!("{batch}x{channels}x{spatial} {isa:?}"));
            }
        }
    }
}
