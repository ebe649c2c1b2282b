use super::*;
use crate::isa::Isa;

type Slices = fn(Isa, &[f32], &mut [f32]);
type Case = (&'static str, Slices, fn(f64) -> f64, f64);
type Composite<'a> = (&'static str, Slices, &'a dyn Fn(f64) -> f64);

/// The distance of `got` from `want` rounded to `f32`, in units in the last place.
fn ulps(got: f32, want: f64) -> f64 {
    let nearest = want as f32;
    if nearest.is_nan() || nearest.is_infinite() {
        return if got == nearest || got.is_nan() && nearest.is_nan() { 0.0 } else { f64::INFINITY };
    }
    let magnitude = nearest.abs().max(f32::MIN_POSITIVE);
    let unit = f64::from(f32::from_bits(magnitude.to_bits() + 1)) - f64::from(magnitude);
    (f64::from(got) - f64::from(nearest)).abs() / unit
}

/// Every 997th number, which covers all magnitudes and both signs, and the numbers that are hard for the functions.
fn sample() -> Vec<f32> {
    let mut sample: Vec<f32> = (0..=u32::MAX / 997).map(|i| f32::from_bits(i * 997)).collect();
    let edges = [0.0, 1.0, 2.0, 0.625, 0.9375, 3.95, 20_000.0, 87.3, 88.72, 88.73, 103.9, 104.1, f32::MAX];
    let special = [f32::NAN, f32::INFINITY, f32::MIN_POSITIVE, f32::from_bits(1), f32::from_bits(0x7f_ffff)];
    for value in edges.into_iter().chain(special) {
        sample.extend([value, -value, f32::from_bits(value.to_bits() + 1), f32::from_bits(value.to_bits().max(1) - 1)]);
    }
    sample
}

fn sigmoid_f64(x: f64) -> f64 {
    if x < 0.0 {
        x.exp() / (1.0 + x.exp())
    } else {
        1.0 / (1.0 + (-x).exp())
    }
}

fn softplus_f64(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// A function of a vector on slices of the same length.
macro_rules! on_slices {
    ($function:path) => {
        |isa, x, out| {
            dispatch_isa!(isa, (x: &[f32] = x, out: &mut [f32] = out), V =>
                // SAFETY: the slices have the same length.
                unsafe { map::<V>(x.len(), x.as_ptr(), out.as_mut_ptr(), |x| $function(x)) })
        }
    };
}

/// The functions, their exact versions and the largest allowed errors in ULP.
fn table() -> Vec<Case> {
    vec![
        ("exp", exp, f64::exp, 1.0),
        ("log", log, f64::ln, 1.0),
        ("sin", sin, f64::sin, 2.0),
        ("cos", cos, f64::cos, 2.0),
        ("asin", on_slices!(arc::asin), f64::asin, 1.0),
        ("acos", on_slices!(arc::acos), f64::acos, 1.0),
        ("atan", on_slices!(arc::atan), f64::atan, 2.0),
        ("sinh", on_slices!(arc::sinh), f64::sinh, 2.0),
        ("cosh", on_slices!(arc::cosh), f64::cosh, 2.0),
        ("tanh", tanh, f64::tanh, 1.0),
        ("sigmoid", sigmoid, sigmoid_f64, 2.0),
        ("erf", erf, libm::erf, 1.0),
        ("softplus", softplus, |x| if x.is_nan() { x } else { softplus_f64(x) }, 2.0),
    ]
}

#[test]
fn functions_are_within_two_ulps() {
    let x = sample();
    let mut out = vec![0.0; x.len()];
    for (name, function, exact, bound) in table() {
        function(Isa::get(), &x, &mut out);
        let worst = x.iter().zip(&out).map(|(&x, &y)| (ulps(y, exact(f64::from(x))), x, y));
        let worst = worst.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
        assert!(worst.0 <= bound, "{name}: {} ULP at {:e}: {:e}", worst.0, worst.1, worst.2);
    }
}

#[test]
fn instruction_sets_agree_to_the_bit() {
    let x: Vec<f32> = sample().into_iter().step_by(7).collect();
    let functions = table().into_iter().map(|(name, function, ..)| (name, function));
    let more: [(&str, Slices); 3] = [("gelu", gelu), ("gelu_tanh", gelu_tanh), ("mish", mish)];
    for (name, function) in functions.chain(more) {
        let mut expected = vec![0.0; x.len()];
        function(Isa::SCALAR, &x, &mut expected);
        for isa in Isa::available() {
            let mut out = vec![0.0; x.len()];
            function(isa, &x, &mut out);
            for ((x, y), expected) in x.iter().zip(&out).zip(&expected) {
                assert!(y.to_bits() == expected.to_bits() || y.is_nan() && expected.is_nan(), "{name}({x:e}) {isa:?}");
            }
        }
    }
}

/// Bases and exponents: every pair of special numbers, random bit patterns, and pairs whose power is in range.
fn pairs() -> (Vec<f32>, Vec<f32>) {
    let special = [0.0, 1.0, 2.0, 3.0, 0.5, 2.5, 4.0, 1e-45, 1e-41, 1e-30, 1e30, 6.98e12, 16_777_215.0, 8_388_607.5];
    let special = special.into_iter().chain([f32::MIN_POSITIVE, f32::MAX, f32::INFINITY, f32::NAN]);
    let special = special.chain([1f32.next_down(), 1f32.next_up()]).flat_map(|value| [value, -value]);
    let mut pairs: Vec<(f32, f32)> = special.clone().flat_map(|x| special.clone().map(move |y| (x, y))).collect();
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut bits = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u32
    };
    for _ in 0..20_000 {
        let x = f32::from_bits(bits());
        let near_one = f32::from_bits(0x3f00_0000 + bits() % (1 << 24));
        let logarithm = f64::from(bits() % 310_000) / 1000.0 - 155.0;
        let exponent = |x: f32| (logarithm / f64::from(x.abs()).log2()) as f32;
        let integer = (bits() % 41) as f32 - 20.0;
        let root = [2.0, 3.0, 0.5, -1.0, 1.0, -0.5, 0.25, -2.0][bits() as usize % 8];
        pairs.extend([(x, f32::from_bits(bits())), (x, integer), (x, root)]);
        pairs.extend([(near_one, exponent(near_one)), (x.abs(), exponent(x))]);
    }
    pairs.extend((0..4000).map(|i| (f32::from_bits(6.9814e12f32.to_bits() - 2000 + i), 3.0)));
    pairs.into_iter().unzip()
}

#[test]
fn powers_are_within_one_ulp_at_every_instruction_set() {
    let (x, y) = pairs();
    let mut scalar = x.clone();
    pow_in_place(Isa::SCALAR, &mut scalar, &y);
    for ((&x, &y), &power) in x.iter().zip(&y).zip(&scalar) {
        let exact = f64::from(x).powf(f64::from(y));
        assert!(ulps(power, exact) <= 1.0, "{x:e} ^ {y:e} = {power:e}, not {exact:e}");
        let signs = [power.is_sign_negative(), exact.is_sign_negative()];
        assert!(signs[0] == signs[1] || power.is_nan(), "{x:e} ^ {y:e} = {power:e}, not {exact:e}");
        assert!(![2.0, 0.5, -1.0, 1.0, 0.0].contains(&y) || ulps(power, exact) == 0.0, "{x:e} ^ {y:e} = {power:e}");
    }
    for isa in Isa::available() {
        let mut out = x.clone();
        pow_in_place(isa, &mut out, &y);
        let differ = |(a, b): (&f32, &f32)| a.to_bits() != b.to_bits() && !(a.is_nan() && b.is_nan());
        let differing = out.iter().zip(&scalar).position(differ);
        assert!(differing.is_none_or(|i| panic!("{isa:?}: {:e} ^ {:e} = {:e}", x[i], y[i], out[i])));
    }
}

#[test]
fn functions_that_level_off_do_so_exactly() {
    for isa in Isa::available() {
        let x = [9.1, 30.0, f32::MAX, f32::INFINITY];
        let mut out = [0.0; 4];
        tanh(isa, &x, &mut out);
        assert_eq!(out, [1.0; 4], "{isa:?}");
        let x = [5.6, 30.0, -5.6, -30.0];
        for function in [gelu, gelu_tanh] {
            function(isa, &x, &mut out);
            assert_eq!(out, [5.6, 30.0, 0.0, 0.0], "{isa:?}");
        }
    }
}

#[test]
fn composite_functions_follow_their_formula() {
    let x: Vec<f32> = sample().into_iter().filter(|x| x.abs() < 1e4).step_by(31).collect();
    let gelu_exact = |x: f64| 0.5 * x * (1.0 + libm::erf(x / std::f64::consts::SQRT_2));
    let tanh_exact =
        |x: f64| 0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh());
    let mish_exact = |x: f64| x * softplus_f64(x).tanh();
    let functions: [Composite; 3] =
        [("gelu", gelu, &gelu_exact), ("gelu_tanh", gelu_tanh, &tanh_exact), ("mish", mish, &mish_exact)];
    for (name, function, exact) in functions {
        let mut out = vec![0.0; x.len()];
        function(Isa::get(), &x, &mut out);
        for (&x, &y) in x.iter().zip(&out) {
            let error = (f64::from(y) - exact(f64::from(x))).abs();
            assert!(error <= 3e-7 * f64::from(x.abs()) + 1e-44, "{name}({x:e}) = {y:e}, {error:e} off");
        }
    }
}

#[test]
fn every_length_and_in_place() {
    for isa in Isa::available() {
        for len in 0..140 {
            let x: Vec<f32> = (0..len).map(|i| i as f32 * 0.37 - 20.0).collect();
            let mut out = vec![7.0; len + 1];
            tanh(isa, &x, &mut out[..len]);
            let mut values = x.clone();
            tanh_in_place(isa, &mut values);
            assert_eq!(values, out[..len], "{isa:?} {len}");
            assert!(x.iter().zip(&out).all(|(x, y)| (x.tanh() - y).abs() < 1e-6));
            assert_eq!(out[len], 7.0);
        }
    }
}
