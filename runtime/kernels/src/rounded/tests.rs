//! Compares products with sums in double precision, and the forms' results for different rows and threads with each other.

use std::sync::Mutex;

use half::bf16;

use super::*;
use crate::gemm::tests::noise;
use crate::gemm::{Finish, ProductSizes};
use crate::isa::Isa;
use crate::products::planner::ROUNDED;
use crate::products::{multiply_rounded, pack_rounded};
use crate::threads::Threads;

/// A `[k, n]` matrix of noise, `transposed` or not.
struct Right {
    k: usize,
    n: usize,
    transposed: bool,
    data: Vec<bf16>,
}

impl Right {
    fn new(k: usize, n: usize, transposed: bool) -> Right {
        Right { k, n, transposed, data: noise(k * n, 2).into_iter().map(bf16::from_f32).collect() }
    }

    fn halves(&self) -> Halves<'_> {
        Halves { k: self.k, n: self.n, data: &self.data, transposed: self.transposed }
    }

    fn at(&self, row: usize, column: usize) -> f64 {
        f64::from(self.data[if self.transposed { column * self.k + row } else { row * self.n + column }])
    }

    /// Each element of the product with rounded rows in double precision, and the sum of the terms' magnitudes.
    fn expected(&self, a: &[f32]) -> Vec<[f64; 2]> {
        let rows = (0..a.len() / self.k.max(1)).map(|row| &a[row * self.k..][..self.k]);
        let element = |row: &[f32], column: usize| {
            let terms = row.iter().enumerate().map(|(k, &a)| f64::from(bf16::from_f32(a)) * self.at(k, column));
            terms.fold([0.0, 0.0], |[sum, size], term: f64| [sum + term, size + term.abs()])
        };
        rows.flat_map(|row| (0..self.n).map(move |column| element(row, column))).collect()
    }
}

/// The product, whose elements `finish` doubles once.
fn product(isa: Isa, threads: &Threads, m: usize, a: &[f32], b: &PackedRounded, [k, n]: [usize; 2]) -> Vec<f32> {
    let mut out = vec![f32::NAN; m * n];
    let seen = Mutex::new(vec![0; out.len()]);
    let finish = |run: &mut [f32], offset: usize| {
        run.iter_mut().for_each(|x| *x *= 2.0);
        seen.lock().unwrap()[offset..offset + run.len()].iter_mut().for_each(|count| *count += 1);
    };
    let finish: Finish = &finish;
    multiply_rounded(isa, threads, ProductSizes { m, n, k }, a, b, &mut out, Some(finish));
    assert!(seen.into_inner().unwrap().iter().all(|&count| count == 1), "{m} x {n} x {k}");
    out
}

/// The packed matrix of each form that fits.
fn packed(isa: Isa, m: usize, b: &Right) -> Vec<PackedRounded> {
    let sizes = ProductSizes { m, n: b.n, k: b.k };
    let threads = Threads::new(2).unwrap();
    let cases = [false, true].map(|is_narrow| RoundedCase { isa, sizes, is_narrow });
    let forms = ROUNDED.iter().flat_map(|form| cases.iter().map(move |case| (form, case)));
    forms.filter(|(form, case)| form.fits(case)).map(|(form, case)| form.pack(case, &threads, &b.halves())).collect()
}

/// Compares with the exact result: a sum of `k` terms has at most `k + 1` roundings, each of at most `2⁻²³` of the terms'
/// magnitudes. Numbers that count as zero are smaller than the noise's.
fn check(m: usize, k: usize, n: usize, transposed: bool) {
    let (a, b) = (noise(m * k, 1), Right::new(k, n, transposed));
    let expected = if k == 0 { vec![[0.0; 2]; m * n] } else { b.expected(&a) };
    for isa in Isa::available() {
        for packed in packed(isa, m, &b) {
            let found = product(isa, &Threads::serial(), m, &a, &packed, [k, n]);
            for (i, (&found, [exact, size])) in found.iter().zip(&expected).enumerate() {
                let (error, bound) = ((f64::from(found) / 2.0 - exact).abs(), (k + 1) as f64 * size * 2f64.powi(-23));
                assert!(error <= bound, "{}, {m} x {n} x {k}: {i} {found} {exact}", packed.name());
            }
            let threaded = product(isa, &Threads::new(3).unwrap(), m, &a, &packed, [k, n]);
            assert_eq!(threaded, found, "{}, {m} x {n} x {k}, three threads", packed.name());
            if let Some(last) = m.checked_sub(1).filter(|_| k > 0) {
                let alone = product(isa, &Threads::serial(), 1, &a[last * k..], &packed, [k, n]);
                assert_eq!(alone, &found[last * n..], "{}, {m} x {n} x {k}, one row", packed.name());
            }
        }
    }
}

#[test]
fn products_of_all_rows() {
    for m in (0..20).chain([33, 130]) {
        check(m, 37, 70, m % 2 == 0);
    }
}

/// One more and one less than: the columns of a vector, of a panel and of two, a pair, and the pairs of a part.
#[test]
fn products_of_all_columns_and_depths() {
    for n in [1, 15, 16, 17, 31, 33, 47, 48, 49, 64, 65, 95, 97, 145] {
        for transposed in [false, true] {
            check(5, 33, n, transposed);
            check(9, 2, n, transposed);
        }
    }
    for k in [0, 1, 2, 3, 31, 32, 33, 511, 512, 513, 1030] {
        for transposed in [false, true] {
            check(1, k, 50, transposed);
            check(11, k, 20, transposed);
        }
    }
    check(3, 8, 0, false);
}

/// More rows and panels than a block has, and so many rows or so deep that a block reads a part of the depth at a time.
#[test]
fn large_products() {
    for (m, k, n) in [(1, 700, 1600), (4, 300, 900), (300, 90, 430), (280, 1100, 50), (40, 6200, 33)] {
        check(m, k, n, true);
    }
}

/// Infinity and NaN reach the result, and a number that no `bf16` can represent becomes infinity. The sums are exact: some
/// instructions round them to odd.
#[test]
fn numbers_that_are_not_finite() {
    let b = Right { k: 3, n: 2, transposed: false, data: vec![bf16::ONE; 6] };
    for isa in Isa::available() {
        for packed in packed(isa, 1, &b) {
            let large = 2.0 * bf16::from_f32(1e38).to_f32();
            for (x, expected) in [(f32::INFINITY, f32::INFINITY), (f32::MAX, f32::INFINITY), (1e38, large)] {
                let found = product(isa, &Threads::serial(), 1, &[0.0, x, 0.0], &packed, [3, 2]);
                assert_eq!(found, [expected; 2], "{} {x}", packed.name());
            }
            let found = product(isa, &Threads::serial(), 1, &[1.0, f32::NAN, 1.0], &packed, [3, 2]);
            assert!(found.iter().all(|x| x.is_nan()), "{}", packed.name());
        }
    }
}

#[test]
fn a_packed_matrix_has_half_the_bytes() {
    for isa in Isa::available() {
        let b = Right::new(128, 96, true);
        for rows in [1, 100] {
            let packed = pack_rounded(isa, &Threads::serial(), rows, true, &b.halves());
            assert_eq!(packed.bytes(), 2 * 128 * 96, "{isa:?}, {}", packed.name());
        }
    }
}
