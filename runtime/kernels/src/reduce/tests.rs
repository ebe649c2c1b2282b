use super::*;
use crate::uninit::Uninit;

const SHAPES: [[usize; 3]; 18] = [
    [1, 1, 1],
    [2, 0, 3],
    [0, 4, 2],
    [3, 5, 1],
    [2, 31, 1],
    [2, 64, 1],
    [3, 1000, 1],
    [1, 70_001, 1],
    [2, 3, 2],
    [1, 5000, 3],
    [4, 129, 5],
    [2, 7, 16],
    [3, 65, 31],
    [2, 2, 64],
    [2, 130, 65],
    [1, 200, 1000],
    [5, 3, 200],
    [1, 2, 70_000],
];

fn noise(len: usize) -> Vec<f32> {
    let mut state = 12_345u32;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 0.9
    };
    std::iter::repeat_with(next).take(len).collect()
}

fn plain<T: Copy>(x: &[T], [outer, n, inner]: [usize; 3], start: f64, step: impl Fn(f64, T) -> f64) -> Vec<f64> {
    let column = |o: usize, i: usize| (0..n).fold(start, |a, k| step(a, x[(o * n + k) * inner + i]));
    (0..outer).flat_map(|o| (0..inner).map(move |i| (o, i))).map(|(o, i)| column(o, i)).collect()
}

#[test]
fn f32_sums_are_exact_to_1e_6_of_the_sum_of_magnitudes() {
    for dims in SHAPES {
        let x = noise(dims.iter().product());
        let scale = plain(&x, dims, 0.0, |a, v: f32| a + f64::from(v).abs());
        let cases: [(Fold, Vec<f64>); 3] = [
            (Fold::Sum, plain(&x, dims, 0.0, |a, v: f32| a + f64::from(v))),
            (Fold::SumAbs, scale.clone()),
            (Fold::SumSquare, plain(&x, dims, 0.0, |a, v: f32| a + f64::from(v) * f64::from(v))),
        ];
        for (fold, expected) in cases {
            for isa in Isa::available() {
                let run = |out: &mut [_]| f32::fold(fold, isa, &Threads::serial(), &x, dims, out);
                let out = Uninit::new(expected.len()).overwrite(run);
                for ((found, expected), scale) in out.iter().zip(&expected).zip(&scale) {
                    assert!((found - expected).abs() <= 1e-6 * scale, "{fold:?} {dims:?} {isa:?}: {found} {expected}");
                }
            }
        }
    }
}

#[test]
fn threads_and_instruction_sets_do_not_change_a_bit() {
    let two = Threads::new(2).expect("a pool of two threads");
    for dims in SHAPES {
        let x = noise(dims.iter().product());
        let run = |isa, threads: &Threads| {
            Uninit::new(dims[0] * dims[2]).overwrite(|out| f32::fold(Fold::Sum, isa, threads, &x, dims, out))
        };
        let scalar = run(Isa::SCALAR, &Threads::serial());
        for isa in Isa::available() {
            assert_eq!(run(isa, &two), scalar, "{dims:?} {isa:?}");
        }
    }
}

#[test]
fn extrema_agree_with_a_plain_loop() {
    for dims in SHAPES {
        let x = noise(dims.iter().product());
        let integers: Vec<i32> = x.iter().map(|v| (v * 1e6) as i32).collect();
        let expected = plain(&x, dims, f64::INFINITY, |a, v: f32| a.min(f64::from(v)));
        let expected_max = plain(&integers, dims, f64::from(i32::MIN), |a, v: i32| a.max(f64::from(v)));
        for isa in Isa::available() {
            let min = |out: &mut [_]| f32::extremum(Extremum::Min, isa, &Threads::serial(), &x, dims, out);
            let out = Uninit::new(expected.len()).overwrite(min);
            assert_eq!(out.iter().map(|&v| f64::from(v)).collect::<Vec<_>>(), expected, "min {dims:?} {isa:?}");
            let max = |out: &mut [_]| i32::extremum(Extremum::Max, isa, &Threads::serial(), &integers, dims, out);
            let out = Uninit::new(expected.len()).overwrite(max);
            assert_eq!(out.iter().map(|&v| f64::from(v)).collect::<Vec<_>>(), expected_max, "max {dims:?} {isa:?}");
        }
    }
}

#[test]
fn a_nan_is_the_extremum_wherever_it_stands() {
    for position in 0..200 {
        let mut x = noise(200);
        x[position] = f32::NAN;
        for isa in Isa::available() {
            let mut out = [0.0];
            f32::extremum(Extremum::Max, isa, &Threads::serial(), &x, [1, 200, 1], &mut out);
            assert!(out[0].is_nan(), "position {position} {isa:?}");
        }
    }
}

#[test]
fn integers_are_folded_exactly() {
    let (one, two) = (Threads::serial(), Threads::new(2).expect("a pool of two threads"));
    let folds = [Fold::Sum, Fold::SumAbs, Fold::SumSquare, Fold::Product];
    let step = |fold: Fold, total: u64, v: u64, magnitude: u64| match fold {
        Fold::Sum => total.wrapping_add(v),
        Fold::SumAbs => total.wrapping_add(magnitude),
        Fold::SumSquare => total.wrapping_add(v.wrapping_mul(v)),
        Fold::Product => total.wrapping_mul(v),
    };
    for ([outer, n, inner], fold) in SHAPES.iter().flat_map(|&dims| folds.map(|fold| (dims, fold))) {
        let x: Vec<i32> = noise(outer * n * inner).iter().map(|v| (v * 1e9) as i32 | 1).collect();
        let unsigned: Vec<u32> = x.iter().map(|&v| v as u32).collect();
        let (mut signed, mut plain) = (Vec::new(), Vec::new());
        for (o, i) in (0..outer).flat_map(|o| (0..inner).map(move |i| (o, i))) {
            let column = (0..n).map(|k| x[(o * n + k) * inner + i]);
            let start = u64::from(fold == Fold::Product);
            let of = |total, v: i32| step(fold, total, i64::from(v) as u64, i64::from(v).unsigned_abs());
            signed.push(column.clone().fold(start, of) as i64);
            plain.push(column.fold(start, |total, v| step(fold, total, u64::from(v as u32), u64::from(v as u32))));
        }
        for (isa, threads) in Isa::available().flat_map(|isa| [(isa, &two), (isa, &one)]) {
            let mut out = vec![9; signed.len()];
            i32::fold(fold, isa, threads, &x, [outer, n, inner], &mut out);
            assert_eq!(out, signed, "{fold:?} {outer} {n} {inner} {isa:?}");
            let mut out = vec![9; plain.len()];
            u32::fold(fold, isa, threads, &unsigned, [outer, n, inner], &mut out);
            assert_eq!(out, plain, "{fold:?} {outer} {n} {inner} {isa:?}");
        }
    }
}

#[test]
fn integers_wrap_and_means_truncate() {
    let mut out = [0];
    i32::fold(Fold::Sum, Isa::get(), &Threads::serial(), &[i32::MAX, 1], [1, 2, 1], &mut out);
    assert_eq!(i32::from_total(out[0]), i32::MIN);
    i32::fold(Fold::Product, Isa::get(), &Threads::serial(), &[3, -5, 7], [1, 3, 1], &mut out);
    assert_eq!(i32::from_total(out[0]), -105);
    assert_eq!(i32::mean(-7, 2), -3);
    assert_eq!(i32::mean(0, 0), 0);
}
