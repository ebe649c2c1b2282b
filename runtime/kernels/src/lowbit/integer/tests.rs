//! Compares products with plain loops that round the left operand in the same way: with the same bits. And with the exact
//! results, within the error of the rounding.

use super::forms::{in_advance, in_registers};
use super::kernels::Kernels;
use super::*;
use crate::gemm::tests::noise;
use crate::int8::Dots;
use crate::isa::Isa;
#[cfg(target_arch = "x86_64")]
use crate::lowbit::form::LowBitForm;
use crate::lowbit::tests::{check_partial, check_rows, check_sizes, doubled, Case, Points, POINTS};
use crate::lowbit::{PackedCodes, Product};
use crate::products::multiply_low_bit;
use crate::threads::Threads;

/// The parts of a row.
fn parts(case: &Case) -> impl Iterator<Item = [usize; 2]> {
    let (k, block) = (case.k, case.block);
    (0..k).step_by(block).flat_map(move |first| {
        let end = k.min(first + block);
        (first..end).step_by(PART).map(move |from| [from, end.min(from + PART)])
    })
}

/// The scale of a part of a row, and its integers.
fn rounded(row: &[f32]) -> (f32, Vec<i32>) {
    let most = row.iter().fold(0f32, |most, x| most.max(x.abs()));
    let scale = most / 127.0;
    if scale < f32::MIN_POSITIVE {
        return (0.0, vec![0; row.len()]);
    }
    (scale, row.iter().map(|x| (x * (127.0 / most)).round_ties_even() as i32).collect())
}

/// An element of the product, and the most that it differs from the exact one: half a step of each number of the row.
fn expected(case: &Case, a: &[f32], row: usize) -> [f32; 2] {
    parts(case).fold([0.0; 2], |[total, error], [from, to]| {
        let (scale, integers) = rounded(&a[from..to]);
        let [_, zero, weight] = case.element(row, from);
        let terms = integers.iter().enumerate().map(|(i, integer)| case.element(row, from + i)[0] as i32 * integer);
        let number = (-zero).mul_add(integers.iter().sum::<i32>() as f32, terms.sum::<i32>() as f32);
        let size = (from..to).map(|k| (case.element(row, k)[0] - zero).abs()).sum::<f32>() * weight.abs();
        [number.mul_add(weight * scale, total), error + size * scale * 0.5001]
    })
}

type Run = fn(&Kernels, &Product, &Threads);

/// The forms with some instructions that fit a product.
fn forms(dots: Dots, m: usize, case: &Case) -> Vec<Run> {
    let forms: Vec<Run> = vec![in_registers, in_advance];
    #[cfg(target_arch = "x86_64")]
    if dots.has_tiles() && m >= 16 && (case.block <= PART || case.block.is_multiple_of(PART)) {
        return [forms, vec![|_, product, threads| DotsInTiles.run(product, threads)]].concat();
    }
    let _ = (dots, m, case);
    forms
}

fn check(m: usize, case: &Case) {
    let a = noise(m * case.k, 4);
    let elements = || (0..m).flat_map(|i| (0..case.n).map(move |j| [i, j]));
    let left = |i: usize| &a[i * case.k..][..case.k];
    let place = format!("{m} x {} x {}, {} bits in blocks of {}", case.n, case.k, case.bits, case.block);
    let found: Vec<[f32; 2]> = elements().map(|[i, j]| expected(case, left(i), j)).collect();
    let precise: Vec<f32> = elements().map(|[i, j]| case.single(left(i), j)).collect();
    for ([y, most], x) in found.iter().zip(&precise) {
        assert!((y - x).abs() <= most + 1e-4 * x.abs() + 1e-5, "{place}: {y} {x}");
    }
    let wanted: Vec<f32> = found.iter().map(|y| 2.0 * y[0]).collect();
    let precise: Vec<f32> = precise.iter().map(|x| 2.0 * x).collect();
    for ((isa, dots), threads) in Dots::available().into_iter().flat_map(|dots| [1, 3].map(|count| (dots, count))) {
        let threads = Threads::new(threads).unwrap();
        let packed = PackedCodes::new(isa, &threads, &case.codes());
        let kernels = Kernels::with(dots);
        for run in forms(dots, m, case) {
            let found = doubled(m, case, &|finish, out| {
                run(kernels, &Product::new(m, &a, &packed, out, Some(finish)), &threads);
            });
            assert_eq!(found, wanted, "{place}: {isa:?}, {dots:?}, {threads:?}");
        }
        let chosen =
            doubled(m, case, &|finish, out| multiply_low_bit(&threads, true, m, &a, &packed, out, Some(finish)));
        assert!(chosen == wanted || chosen == precise, "{place}: {isa:?}, {threads:?}");
    }
}

#[test]
fn products_of_all_rows() {
    check_rows((1..14).chain([33, 128, 300]), check);
}

#[test]
fn codes_of_all_sizes_in_all_blocks() {
    check_sizes(&[1, 2, 7, 14, 35], check);
}

#[test]
fn partial_panels_and_blocks() {
    check_partial(&[1, 4, 13, 32], check);
}

/// More panels than a block has, and more rows than stay in a cache with the whole depth.
#[test]
fn large_products() {
    for (m, n, k) in [(1, 1100, 530), (9, 1100, 530), (260, 70, 4200)] {
        check(m, &Case::new([n, k], 4, 32, Points::Absent));
    }
}

/// The largest codes, and integers of the same sign: no sum saturates.
#[test]
fn largest_sums() {
    for (bits, points) in [2, 4, 8].into_iter().flat_map(|bits| POINTS.map(|points| (bits, points))) {
        let mut case = Case::new([33, 512], bits, 256, points);
        case.bytes.fill(u8::MAX);
        for sign in [1.0, -1.0] {
            let a = vec![sign; 17 * case.k];
            let row: Vec<f32> = (0..case.n).map(|j| expected(&case, &a[..512], j)[0]).collect();
            let wanted = row.repeat(17);
            for (isa, dots) in Dots::available() {
                let packed = PackedCodes::new(isa, &Threads::serial(), &case.codes());
                for run in forms(dots, 17, &case) {
                    let mut out = vec![f32::NAN; wanted.len()];
                    run(Kernels::with(dots), &Product::new(17, &a, &packed, &mut out, None), &Threads::serial());
                    assert_eq!(out, wanted, "{bits} bits, {points:?}, {dots:?}");
                }
            }
        }
    }
}

#[test]
fn parts_without_a_scale() {
    for (isa, dots) in Dots::available() {
        let case = Case::new([5, 64], 4, 32, Points::Absent);
        let packed = PackedCodes::new(isa, &Threads::serial(), &case.codes());
        let run = |x: f32| {
            let mut out = [f32::MAX; 5];
            let a: Vec<f32> = (0..64).map(|k| if k == 40 { x } else { 0.0 }).collect();
            in_registers(Kernels::with(dots), &Product::new(1, &a, &packed, &mut out, None), &Threads::serial());
            out
        };
        for small in [0.0, -0.0, 1e-40] {
            assert_eq!(run(small), [0.0; 5], "{dots:?}");
        }
        for large in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert!(run(large).iter().all(|x| x.is_nan()), "{dots:?} {large}");
        }
    }
}

/// Every level rounds in the same way, ties to even.
#[test]
fn rows_use_all_integers() {
    let row = [-1.0, 1.0 / 127.0 * 0.5, 0.5, -0.25, 1.0, 0.0, 1e-9, 3.0 / 254.0];
    for isa in Isa::available() {
        let case = Case::new([1, 8], 8, 16, Points::Absent);
        let left = Left::new(&Threads::serial(), 1, &row, &PackedCodes::new(isa, &Threads::serial(), &case.codes()));
        // SAFETY: the row has one part, and two quads.
        let (found, quads) = unsafe { (*left.found(0), [*left.quads(0, 0), *left.quads(0, 4)]) };
        let (scale, integers) = rounded(&row);
        let found_integers: Vec<i32> =
            quads.iter().flat_map(|quad| quad.to_le_bytes().map(|x| i32::from(x as i8))).collect();
        assert_eq!((found, found_integers), ([scale, integers.iter().sum::<i32>() as f32], integers), "{isa:?}");
    }
}
