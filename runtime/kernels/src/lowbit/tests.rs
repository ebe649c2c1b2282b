//! Compares products with plain loops: with the same bits in single precision, and closely in double precision.

use std::sync::Mutex;

use super::*;
use crate::gemm::tests::noise;
use crate::gemm::{Finish, ProductSizes};
use crate::isa::Isa;
use crate::products::multiply_low_bit;
use crate::products::planner::LOW_BIT;
use crate::threads::Threads;

/// The zero points of a case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Points {
    Absent,
    /// All are 3.
    Alike,
    /// All are 2.5.
    Fractions,
    /// A code for each block.
    Codes,
    /// Numbers that are no integers.
    Numbers,
}

pub(super) const POINTS: [Points; 5] =
    [Points::Absent, Points::Alike, Points::Fractions, Points::Codes, Points::Numbers];

/// A matrix of codes.
#[derive(Debug)]
pub(super) struct Case {
    pub n: usize,
    pub k: usize,
    pub bits: usize,
    pub block: usize,
    pub bytes: Vec<u8>,
    scales: Vec<f32>,
    zeros: Option<Vec<f32>>,
}

impl Case {
    /// Draws a matrix. The scales of even blocks have few bits.
    pub fn new([n, k]: [usize; 2], bits: usize, block: usize, points: Points) -> Case {
        let blocks = k.div_ceil(block);
        let len = n * blocks;
        let bytes = noise(len * block * bits / 8, 1).iter().map(|x| (x.abs() * 1e6) as u32 as u8).collect();
        let coarse = block.is_multiple_of(32);
        let scales = noise(len, 2).iter().map(|x| if coarse { (x * 64.0).round() / 256.0 } else { x / 4.0 }).collect();
        let zeros = match points {
            Points::Absent => None,
            Points::Alike => Some(vec![3.0; len]),
            Points::Fractions => Some(vec![2.5; len]),
            Points::Codes => Some((0..len).map(|i| ((i * 7 + i / 3) % (1 << bits)) as f32).collect()),
            Points::Numbers => Some(noise(len, 3).iter().map(|x| x * 4.0).collect()),
        };
        Case { n, k, bits, block, bytes, scales, zeros }
    }

    pub fn codes(&self) -> LowBitCodes<'_> {
        let Case { n, k, bits, block, .. } = *self;
        LowBitCodes { n, k, bits, block, bytes: &self.bytes, scales: &self.scales, zeros: self.zeros.as_deref() }
    }

    /// The code, the zero point and the scale of an element.
    pub fn element(&self, row: usize, column: usize) -> [f32; 3] {
        let blocks = self.k.div_ceil(self.block);
        let bit = (row * blocks * self.block + column) * self.bits;
        let code = (self.bytes[bit / 8] >> (bit % 8)) & (((1u32 << self.bits) - 1) as u8);
        let block = row * blocks + column / self.block;
        let zero = self.zeros.as_ref().map_or((1 << (self.bits - 1)) as f32, |zeros| zeros[block]);
        [f32::from(code), zero, self.scales[block]]
    }

    /// An element of the product in single precision, in the order that [`Product`] states.
    pub fn single(&self, a: &[f32], row: usize) -> f32 {
        let mut total = 0f32;
        for block in (0..self.k).step_by(self.block) {
            let end = self.k.min(block + self.block);
            for piece in (block..end).step_by(64) {
                let sum = (piece..end.min(piece + 64)).fold(0f32, |sum, k| {
                    let [code, zero, _] = self.element(row, k);
                    a[k].mul_add(code - zero, sum)
                });
                total = sum.mul_add(self.element(row, block)[2], total);
            }
        }
        total
    }

    /// An element of the product in double precision, and the sum of the terms' magnitudes.
    fn double(&self, a: &[f32], row: usize) -> [f64; 2] {
        (0..self.k).fold([0.0; 2], |[sum, size], k| {
            let [code, zero, scale] = self.element(row, k).map(f64::from);
            let term = f64::from(a[k]) * (code - zero) * scale;
            [sum + term, size + term.abs()]
        })
    }
}

/// The products of every exact form and of the chosen one, for one instruction set and some threads. Doubles each element
/// once, at the end.
fn found(case: &Case, m: usize, a: &[f32], isa: Isa, threads: &Threads) -> Vec<Vec<f32>> {
    let packed = PackedCodes::new(isa, threads, &case.codes());
    let chosen = doubled(m, case, &|finish, out| multiply_low_bit(threads, false, m, a, &packed, out, Some(finish)));
    let sizes = ProductSizes { m, n: case.n, k: case.k };
    let exact = LowBitCase { isa, sizes, bits: case.bits, block: case.block, rounds: false };
    let forms = LOW_BIT.iter().filter(|form| m > 0 && form.fits(&exact)).map(|form| {
        doubled(m, case, &|finish, out| form.run(&Product::new(m, a, &packed, out, Some(finish)), threads))
    });
    [chosen].into_iter().chain(forms).collect()
}

/// The product of `m` rows that `run` computes, with a function that doubles each element once.
pub(super) fn doubled(m: usize, case: &Case, run: &dyn Fn(Finish, &mut [f32])) -> Vec<f32> {
    let mut out = vec![f32::NAN; m * case.n];
    let seen = Mutex::new(vec![0; out.len()]);
    let finish = |run: &mut [f32], offset: usize| {
        run.iter_mut().for_each(|x| *x *= 2.0);
        seen.lock().unwrap()[offset..offset + run.len()].iter_mut().for_each(|count| *count += 1);
    };
    run(&finish, &mut out);
    assert!(seen.into_inner().unwrap().iter().all(|&count| count == 1), "{m} rows of {case:?}");
    out
}

fn check(m: usize, case: &Case) {
    let a = noise(m * case.k, 4);
    let elements = (0..m).flat_map(|i| (0..case.n).map(move |j| [i, j]));
    let left = |i: usize| &a[i * case.k..][..case.k];
    let expected: Vec<f32> = elements.clone().map(|[i, j]| 2.0 * case.single(left(i), j)).collect();
    let place = format!("{m} x {} x {}, {} bits in blocks of {}", case.n, case.k, case.bits, case.block);
    for ([i, j], &y) in elements.zip(&expected) {
        let [wanted, size] = case.double(left(i), j);
        assert!((f64::from(y) / 2.0 - wanted).abs() <= 1e-6 * size, "{place}: {i} {j}");
    }
    for isa in Isa::available() {
        for threads in [Threads::serial(), Threads::new(3).unwrap()] {
            for found in found(case, m, &a, isa, &threads) {
                assert_eq!(found, expected, "{place}: {isa:?}, {threads:?}");
            }
        }
    }
}

/// Checks products of these numbers of rows, with and without zero points.
pub(super) fn check_rows(rows: impl Iterator<Item = usize>, check: impl Fn(usize, &Case)) {
    for m in rows {
        check(m, &Case::new([70, 83], 4, 32, Points::Absent));
        check(m, &Case::new([70, 83], 4, 32, Points::Codes));
    }
}

/// Checks products of codes of all sizes in blocks of many sizes.
pub(super) fn check_sizes(rows: &[usize], check: impl Fn(usize, &Case)) {
    for bits in [2, 4, 8] {
        for block in [16, 32, 64, 96, 128, 256, 1024] {
            for (points, &m) in POINTS.into_iter().flat_map(|points| rows.iter().map(move |m| (points, m))) {
                check(m, &Case::new([9, 300], bits, block, points));
            }
        }
    }
}

/// Checks one more and one less than: the columns of a panel, the codes of a word, of a block and of a piece, and the depth
/// of the numbers that are computed at a time.
pub(super) fn check_partial(rows: &[usize], check: impl Fn(usize, &Case)) {
    for n in [1, 3, 4, 5, 15, 16, 17, 31, 33, 63, 64, 65, 129] {
        for m in [1, 3, 5, 7] {
            check(m, &Case::new([n, 41], 4, 32, Points::Codes));
        }
    }
    for k in [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 65, 95, 97, 255, 256, 257, 515] {
        for (bits, block) in [(2, 16), (4, 32), (4, 96), (8, 256), (2, 528)] {
            for &m in rows {
                check(m, &Case::new([5, k], bits, block, Points::Codes));
            }
        }
    }
}

#[test]
fn products_of_all_rows() {
    check_rows((0..10).chain([33, 128, 300]), check);
}

#[test]
fn codes_of_all_sizes_in_all_blocks() {
    check_sizes(&[1, 2, 7, 14], check);
}

#[test]
fn partial_panels_and_blocks() {
    check_partial(&[1, 4, 6, 13], check);
}

/// More panels than a block has, with enough multiplications for several threads.
#[test]
fn large_products() {
    for m in [1, 4, 9, 40] {
        check(m, &Case::new([1100, 530], 4, 32, Points::Absent));
    }
}

#[test]
fn packed_codes_are_small() {
    let case = Case::new([128, 512], 4, 32, Points::Codes);
    for isa in Isa::available() {
        let bytes = PackedCodes::new(isa, &Threads::serial(), &case.codes()).bytes();
        // The scales and the zero points fit 16 bits.
        assert_eq!(bytes, 128 * 512 / 2 + 2 * 2 * 128 * 16, "{isa:?}");
    }
}
