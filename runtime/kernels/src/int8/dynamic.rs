//! Products of rows in `f32` and a matrix of codes. Each row is converted to codes when the product runs.

use bytemuck::Pod;

use super::each_row::EachRow;
use super::finish::Out;
use super::product::{Product, Rows};
use super::weights::Weights;
use crate::gemm::{Finish, Lines};
use crate::isa::Isa;
use crate::lane_loops::{fold, per_isa};
use crate::quantize::Code;
use crate::scratch::Scratch;
use crate::threads::Threads;

/// A packed `[k, n]` matrix of codes with the zero point 0 and a scale for each column.
#[derive(Debug, Clone)]
pub struct Scaled {
    weights: Weights,
    scales: Scratch<f32>,
    /// See [`Scaled::again`].
    again: usize,
}

impl Scaled {
    /// Adds scales to packed codes. `again` is the percentage of quads that bytes would multiply twice.
    ///
    /// # Panics
    /// The number of scales is not the number of columns, or the zero point is not 0.
    pub(crate) fn new(weights: Weights, scales: &[f32], again: usize) -> Scaled {
        assert!(scales.len() == weights.n && weights.zeros.is_empty(), "{} scales", scales.len());
        Scaled { weights, scales: Scratch::of(scales.iter().copied()), again }
    }

    /// The percentage of four codes of a column that instructions that saturate multiply twice, also if others are chosen.
    pub fn again(&self) -> usize {
        self.again
    }

    /// The instructions that its products are summed with, in words.
    pub fn form(&self) -> &'static str {
        self.weights.form()
    }

    /// The size of the packed matrix in bytes.
    pub fn bytes(&self) -> usize {
        self.weights.bytes() + size_of_val(&self.scales[..])
    }
}

/// Numbers that one task converts, and that are worth several threads.
const TASK: usize = 1 << 14;
const SPLIT: usize = 1 << 17;

/// `out[i, j] = sum[i, j] · b.scale[j] · scale[i]`, where `sum[i, j] = Σₖ (code[i, k] − zero[i]) · b[k, j]`. Each row of `a`
/// gets codes from 0 to 255, a zero point and a scale: the largest difference of two of its numbers and 0, divided by 255.
/// Calls `finish` on every row of every block.
///
/// A row with an infinite number or NaN gives NaN. A row whose scale is below `2⁻¹²⁶` counts as zero.
///
/// # Panics
/// The slices do not fit the sizes.
pub fn multiply_rows(isa: Isa, threads: &Threads, a: &[f32], b: &Scaled, out: &mut [f32], finish: Option<Finish>) {
    let Scaled { weights, scales, .. } = b;
    if out.is_empty() {
        return;
    }
    let m = out.len() / weights.n;
    assert!(out.len() == m * weights.n && a.len() == m * weights.k, "a and out do not fit");
    let serial = Threads::serial();
    let few = if a.len() > SPLIT { threads } else { &serial };
    let found = ranges(isa, few, a, m);
    let (depth, per_quad) = (weights.depth(), weights.dots.codes());
    let codes = match per_quad {
        4 => converted::<u8>(isa, few, a, &found, depth),
        _ => converted::<i16>(isa, few, a, &found, depth),
    };
    let each = EachRow {
        isa,
        zeros: Scratch::of(found.iter().map(|[_, zero]| *zero as i32)),
        scales: Scratch::of(found.iter().map(|[scale, _]| *scale)),
        finish,
    };
    let rows = Rows::Lying(&bytemuck::cast_slice(&codes)[..m * depth]);
    let product = Product { m, b: weights, rows, out_row: weights.n, each: Some(&each) };
    product.run(threads, 0, None, &mut Out::Floats(out, scales), 0);
}

/// The scale and the zero point of each of `m` rows.
fn ranges(isa: Isa, threads: &Threads, a: &[f32], m: usize) -> Scratch<[f32; 2]> {
    let k = a.len() / m;
    let count = (TASK / k.max(1)).max(1);
    Scratch::overwritten(m, |found| {
        threads.for_each_chunk(found, count, |i, found| {
            for (j, found) in found.iter_mut().enumerate() {
                *found = range_of(isa, &a[(i * count + j) * k..][..k]);
            }
        });
    })
}

/// The codes of each row, and padding up to `depth` bytes.
fn converted<C: Code + Pod>(isa: Isa, threads: &Threads, a: &[f32], found: &[[f32; 2]], depth: usize) -> Lines {
    let (m, row) = (found.len(), depth / size_of::<C>());
    let k = a.len() / m;
    let count = (TASK / row.max(1)).max(1);
    Lines::overwritten((m * depth).div_ceil(size_of::<f32>()), |codes| {
        let codes = &mut bytemuck::cast_slice_mut::<f32, C>(codes)[..m * row];
        threads.for_each_chunk(codes, count * row, |i, codes| {
            for (j, codes) in codes.chunks_exact_mut(row.max(1)).enumerate() {
                let at = i * count + j;
                convert(isa, &a[at * k..][..k], found[at], &mut codes[..k]);
            }
        });
    })
}

/// The bits of infinity.
const INFINITY: u32 = f32::INFINITY.to_bits();
/// The largest code.
const MOST: f32 = 255.0;
/// Adding it to a number below 2²² rounds that to the nearest integer, ties to even.
const ROUND: f32 = 12_582_912.0; // 1.5 · 2²³

per_isa! {
    /// The scale of a row, and the code of 0. The scale is NaN if the row has a number that is not finite, and 0 if the row
    /// counts as zero.
    fn range_of(row: &[f32]) -> [f32; 2] where FMA {
        let least = |a: f32, b: f32| if b < a { b } else { a };
        let most = |a: f32, b: f32| if b > a { b } else { a };
        let (low, high) = (fold(row, 0.0, least, least), fold(row, 0.0, most, most));
        let magnitude = fold(row, 0, |most: u32, x| most.max(x.to_bits() & !(1 << 31)), u32::max);
        let scale = high / MOST - low / MOST;
        if magnitude >= INFINITY {
            [f32::NAN, 0.0]
        } else if scale < f32::MIN_POSITIVE {
            [0.0, 0.0]
        } else {
            [scale, least((-low / scale + ROUND) - ROUND, MOST)]
        }
    }
}

per_isa! {
    /// The codes of a row with this scale and zero point.
    fn convert<C: Code>(row: &[f32], range: [f32; 2], codes: &mut [C]) where FMA {
        let [scale, zero] = range;
        if scale > 0.0 {
            let steps = 1.0 / scale;
            for (code, &x) in codes.iter_mut().zip(row) {
                let nearest = (x * steps + ROUND) - ROUND + zero;
                let nearest = if nearest > 0.0 { nearest } else { 0.0 };
                let nearest = if nearest < MOST { nearest } else { MOST };
                // SAFETY: the number is between two `i32`.
                *code = C::from_i32(unsafe { nearest.to_int_unchecked::<i32>() });
            }
        } else {
            codes.fill(C::from_i32(0));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::gemm::tests::noise;
    use crate::int8::{Dots, Matrix};

    /// The codes of a row in double precision, where they do not depend on its rounding, and its scale and zero point.
    fn expected(row: &[f32]) -> (Vec<i32>, f32, i32) {
        let [low, high] = row.iter().fold([0f32; 2], |[low, high], &x| [low.min(x), high.max(x)]);
        let scale = high / 255.0 - low / 255.0;
        if scale < f32::MIN_POSITIVE {
            return (vec![0; row.len()], 0.0, 0);
        }
        let zero = (-low / scale).round_ties_even().min(255.0);
        let code = |x: f32| ((x * (1.0 / scale)).round_ties_even() + zero).clamp(0.0, 255.0) as i32;
        (row.iter().map(|&x| code(x)).collect(), scale, zero as i32)
    }

    fn weights(k: usize, n: usize) -> Vec<i8> {
        noise(k * n, 2).into_iter().map(|x| (x * 127.0) as i32 as i8).collect()
    }

    fn packed(dots: Dots, k: usize, n: usize) -> Scaled {
        let bits = weights(k, n);
        let matrix = Matrix { bits: bytemuck::cast_slice(&bits), signed: true, zeros: &[0], row: n, column: 1 };
        Scaled::new(Weights::new(dots, k, n, &matrix), &scales(n), 0)
    }

    fn scales(n: usize) -> Vec<f32> {
        (0..n).map(|j| 1e-3 + j as f32 * 1e-5).collect()
    }

    /// All instructions, also those on 16-bit numbers.
    fn every() -> Vec<(Isa, Dots)> {
        let all = Dots::available().into_iter();
        all.flat_map(|(isa, dots)| [Some((isa, dots)), dots.in_words().map(|words| (isa, words))]).flatten().collect()
    }

    /// Checks a product bit by bit, with one thread and with three.
    fn check(m: usize, k: usize, n: usize) {
        let (a, b) = (noise(m * k, 1).iter().map(|x| x * 3.0 + 1.0).collect::<Vec<_>>(), weights(k, n));
        let wanted: Vec<f32> = (0..m)
            .flat_map(|i| {
                let (codes, scale, zero) = expected(&a[i * k..][..k]);
                let b = &b;
                let sum = move |j: usize| -> i32 {
                    codes.iter().enumerate().map(|(k, code)| (code - zero) * i32::from(b[k * n + j])).sum()
                };
                (0..n).map(move |j| sum(j) as f32 * scales(n)[j] * scale + (i * n + j) as f32).collect::<Vec<_>>()
            })
            .collect();
        for (isa, dots) in every() {
            let b = packed(dots, k, n);
            for threads in [Threads::serial(), Threads::new(3).unwrap()] {
                let seen = Mutex::new(vec![0; m * n]);
                let finish = |run: &mut [f32], offset: usize| {
                    run.iter_mut().enumerate().for_each(|(i, x)| *x += (offset + i) as f32);
                    seen.lock().unwrap()[offset..offset + run.len()].iter_mut().for_each(|count| *count += 1);
                };
                let mut out = vec![f32::NAN; m * n];
                multiply_rows(isa, &threads, &a, &b, &mut out, Some(&finish));
                assert_eq!(out, wanted, "{m}x{n}x{k} by {dots:?}, {threads:?}");
                assert!(seen.into_inner().unwrap().iter().all(|&count| count == 1), "{m}x{n}x{k} by {dots:?}");
            }
        }
    }

    #[test]
    fn products_are_exact_for_all_sizes() {
        for (m, k, n) in [(1, 1, 1), (2, 3, 5), (7, 4, 16), (13, 17, 33), (12, 64, 40), (0, 4, 4), (3, 0, 5), (2, 4, 0)]
        {
            check(m, k, n);
        }
        for (m, k, n) in [(6, 770, 200), (40, 100, 300), (130, 33, 17), (25, 3100, 40), (200, 129, 150)] {
            check(m, k, n);
        }
    }

    #[test]
    fn rows_use_all_codes() {
        for isa in Isa::available() {
            for row in
                [[-1.0, 0.0, 0.25, 3.0], [2.0, 1.0, 0.5, 0.0], [-2.0, -1.0, -0.5, -2.0], [f32::MAX, f32::MIN, 0.0, 1.0]]
            {
                let (codes, scale, zero) = expected(&row);
                let mut found = [9u8; 4];
                convert(isa, &row, range_of(isa, &row), &mut found);
                assert_eq!(
                    (range_of(isa, &row), found.map(i32::from).to_vec()),
                    ([scale, zero as f32], codes),
                    "{isa:?}"
                );
                let ends = [found.iter().min(), found.iter().max()];
                assert!(
                    row.contains(&0.0) == (ends == [Some(&0), Some(&255)]) && scale.is_finite(),
                    "{isa:?} {found:?}"
                );
            }
        }
    }

    #[test]
    fn rows_without_a_scale() {
        for (isa, dots) in every() {
            let b = packed(dots, 3, 2);
            let run = |row: [f32; 3]| {
                let mut out = [7.0; 2];
                multiply_rows(isa, &Threads::serial(), &row, &b, &mut out, None);
                out
            };
            for small in [0.0, -0.0, 1e-40] {
                assert_eq!(run([small; 3]), [0.0; 2], "{dots:?}");
            }
            for large in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                assert!(run([1.0, large, -1.0]).iter().all(|x| x.is_nan()), "{dots:?} {large}");
            }
        }
    }
}
