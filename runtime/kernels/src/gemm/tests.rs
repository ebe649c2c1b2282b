use half::{bf16, f16};

use super::*;
use crate::isa::Isa;
use crate::products::multiply;
use crate::products::planner::FLOAT;
use crate::threads::Threads;

/// Pseudo-random numbers in -1 .. 1.
pub(crate) fn noise(len: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..len).map(|_| next()).collect()
}

fn expected(ProductSizes { m, n, k }: ProductSizes, a: &Matrix, b: &Matrix, bias: Bias) -> Vec<f64> {
    let mut out = Vec::new();
    for i in 0..m {
        for j in 0..n {
            let bias = match bias {
                Bias::None => 0.0,
                Bias::Rows(bias) => bias[i],
                Bias::Columns(bias) => bias[j],
            };
            let term =
                |k: usize| f64::from(a.data[i * a.row + k * a.column]) * f64::from(b.data[k * b.row + j * b.column]);
            out.push(f64::from(bias) + (0..k).map(term).sum::<f64>());
        }
    }
    out
}

/// A right operand. All its numbers fit the format, but some fit no smaller format.
fn right_side(len: usize, format: Format) -> Vec<f32> {
    let mut data = noise(len, 2);
    match format {
        Format::Float32 => {}
        Format::Float16 => data.iter_mut().for_each(|x| *x = f16::from_f32(*x).to_f32()),
        Format::Bfloat16 => {
            data.iter_mut().for_each(|x| *x = bf16::from_f32(*x).to_f32());
            // Too small for f16.
            data.iter_mut().take(1).for_each(|x| *x = 2f32.powi(-60));
        }
    }
    data
}

fn check(sizes: ProductSizes, transposed: [bool; 2], format: Format) {
    let ProductSizes { m, n, k } = sizes;
    let (a, b, bias) = (noise(m * k, 1), right_side(k * n, format), noise(m.max(n), 3));
    let strides = |t: bool, rows, columns| if t { (1, rows) } else { (columns, 1) };
    let ((ar, ac), (br, bc)) = (strides(transposed[0], m, k), strides(transposed[1], k, n));
    let (a, b) = (Matrix { data: &a, row: ar, column: ac }, Matrix { data: &b, row: br, column: bc });
    for bias in [Bias::None, Bias::Rows(&bias[..m]), Bias::Columns(&bias[..n])] {
        let expected = expected(sizes, &a, &b, bias);
        check_plain(sizes, &a, &b, bias, &expected);
        let mut results: Vec<Vec<f32>> = Vec::new();
        for isa in Isa::available() {
            for threads in [Threads::serial(), Threads::new(3).unwrap()] {
                let packed = PackedB::new(isa, &threads, k, n, &b);
                let narrow = PackedB::narrowest(isa, &threads, k, n, &b);
                assert!(narrow.format() == format || k == 0 || n <= 1, "{sizes:?}: {:?}", narrow.format());
                let narrow = Some(&narrow).filter(|narrow| narrow.format() != packed.format());
                let rights = [Some(Right::Plain(b)), Some(Right::Packed(&packed)), narrow.map(Right::Packed)];
                for right in rights.into_iter().flatten() {
                    let problem = Problem { isa, sizes, a, b: right, bias, finish: None };
                    results.extend(results_of_all_forms(&problem, &threads));
                }
            }
        }
        for (i, expected) in expected.iter().enumerate() {
            let found = f64::from(results[0][i]) / 2.0;
            assert!((found - expected).abs() <= 1e-6 * (k as f64 + 1.0), "{sizes:?} {i}: {found} {expected}");
        }
        assert!(results.iter().all(|other| *other == results[0]), "{sizes:?}: not the same bits everywhere");
    }
}

/// Returns the result of [`multiply`], and that of each form that fits. Each doubles its elements in `finish`, once.
fn results_of_all_forms(problem: &Problem, threads: &Threads) -> Vec<Vec<f32>> {
    let Problem { isa, sizes, a, b, bias, .. } = *problem;
    let result = |run: &dyn Fn(Finish, &mut [f32])| {
        let mut out = vec![f32::NAN; sizes.m * sizes.n];
        let seen = std::sync::Mutex::new(vec![0; out.len()]);
        let finish = |run: &mut [f32], offset: usize| {
            run.iter_mut().for_each(|x| *x *= 2.0);
            seen.lock().unwrap()[offset..offset + run.len()].iter_mut().for_each(|count| *count += 1);
        };
        run(&finish, &mut out);
        assert!(seen.into_inner().unwrap().iter().all(|&count| count == 1), "{sizes:?}");
        out
    };
    let mut results = vec![result(&|finish, out| multiply(isa, threads, sizes, &a, &b, bias, out, Some(finish)))];
    let fits = |form: &&&dyn ProductForm| sizes.m * sizes.n > 0 && form.fits(&problem.case());
    results.extend(FLOAT.iter().filter(fits).map(|form| {
        let run = |finish: Finish, out: &mut [f32]| {
            form.run(&Problem { finish: Some(finish), ..*problem }, threads, Shared::new(out));
        };
        result(&run)
    }));
    results
}

fn check_plain(ProductSizes { m, n, k }: ProductSizes, a: &Matrix, b: &Matrix, bias: Bias, expected: &[f64]) {
    let wide = |x: &[f32]| x.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
    let (left, right) = (wide(a.data), wide(b.data));
    let mut out = vec![f64::NAN; m * n];
    let left = Plain { data: &left, row: a.row, column: a.column };
    let right = Plain { data: &right, row: b.row, column: b.column };
    product(&Threads::new(2).unwrap(), n, k, &left, &right, &mut out);
    if matches!(bias, Bias::None) {
        assert!(out.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 1e-11), "{m} {n} {k}");
    }
}

/// `(m, n, k)`
const SIZES: &[(usize, usize, usize)] = &[
    (1, 1, 1),
    (1, 50, 7),
    (2, 97, 33),
    (3, 5, 2),
    (7, 48, 16),
    (9, 49, 64),
    (17, 130, 5),
    (70, 64, 30),
    (65, 400, 11),
    (5, 3, 0),
    (0, 4, 3),
    (4, 0, 3),
    (130, 20, 70),
    (2, 16, 4100),
    (9, 16, 2050),
    // One and two rows: more columns than a stretch, more panels than a block packs, and deeper than one pass.
    (1, 2100, 130),
    (2, 1100, 70),
    (20, 500, 150),
    (520, 100, 90),
    // More rows than a block, too deep for the cache; and few rows that are as deep.
    (264, 50, 1100),
    (3, 200, 600),
    // One column.
    (40, 1, 130),
    // One more and one less than: the rows of a tile, the columns of a panel, the terms of a piece and of a pass.
    (1, 47, 256),
    (4, 143, 63),
    (8, 47, 65),
    (16, 96, 257),
    (17, 95, 255),
];

#[test]
fn products_of_all_shapes() {
    for &(m, n, k) in SIZES {
        for transposed in [[false, false], [true, false], [false, true], [true, true]] {
            check(ProductSizes { m, n, k }, transposed, Format::Float32);
        }
        for format in [Format::Float16, Format::Bfloat16] {
            check(ProductSizes { m, n, k }, [false, true], format);
        }
    }
}

#[test]
fn a_part_of_a_packed_matrix() {
    let (n, k) = (100, 300);
    for format in [Format::Float32, Format::Float16, Format::Bfloat16] {
        let (a, b) = (noise(40 * k, 1), right_side(k * n, format));
        for isa in Isa::available() {
            let packed = PackedB::narrowest(isa, &Threads::serial(), k, n, &Matrix::contiguous(&b, n));
            for (m, n, k) in [(1, 1, 9), (3, 50, 299), (40, 1, 270), (40, 99, 260)] {
                let a = Matrix { data: &a, row: 1, column: m };
                let out = [Right::Plain(Matrix::contiguous(&b, 100)), Right::Packed(&packed)].map(|right| {
                    let mut out = vec![f32::NAN; m * n];
                    multiply(isa, &Threads::serial(), ProductSizes { m, n, k }, &a, &right, Bias::None, &mut out, None);
                    out
                });
                assert_eq!(out[0], out[1], "{isa:?} {format:?} {m} {n} {k}");
            }
        }
    }
}

#[test]
fn the_narrowest_format_holds_every_bit() {
    let last = f32::from_bits(0x3f80_0001);
    for (data, expected) in [
        (vec![], Format::Float16),
        (vec![0.0, -0.0, 1.0, -65504.0, f32::INFINITY, f32::NAN], Format::Float16),
        (vec![2f32.powi(-24), 2047.0 * 2f32.powi(-24), 1.0 + 2f32.powi(-10)], Format::Float16),
        (vec![65536.0], Format::Bfloat16),
        (vec![f32::MAX, 1.0], Format::Float32),
        (vec![2f32.powi(-25), f32::from_bits(0x10000)], Format::Bfloat16),
        (vec![1.0 + 2f32.powi(-10), 65536.0], Format::Float32),
        (vec![1.0 + 2f32.powi(-11)], Format::Float32),
        (vec![last], Format::Float32),
        (vec![f32::from_bits(0x7f80_0001)], Format::Float32),
        ([vec![1.0; 5000], vec![last], vec![1.0; 5000]].concat(), Format::Float32),
    ] {
        for isa in Isa::available() {
            assert_eq!(Format::holding(isa, &data), expected, "{data:?}");
        }
    }
}
