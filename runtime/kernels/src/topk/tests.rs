use super::*;

/// Every other number is a multiple of a small number, so many are equal.
fn numbers(len: usize) -> impl Iterator<Item = i64> {
    (0..len as i64).map(|i| if i % 2 == 0 { i * 7919 % 1009 - 500 } else { i * 31 % 7 })
}

/// Sorts each column completely.
fn plain<T: Copy + PartialOrd>(x: &[T], order: Order) -> (Vec<T>, Vec<i64>) {
    let Order { dims: [outer, n, inner], k, largest } = order;
    #[allow(clippy::eq_op)] // only a NaN differs from itself
    let nan = |v: T| v != v;
    let ascending = |a: T, b: T| a.partial_cmp(&b).unwrap_or_else(|| nan(a).cmp(&nan(b)));
    let by_value = |a: T, b: T| if largest { ascending(b, a) } else { ascending(a, b) };
    let sorted = |column: usize| {
        let mut all: Vec<(T, i64)> =
            (0..n).map(|i| (x[(column / inner * n + i) * inner + column % inner], i as i64)).collect();
        all.sort_by(|a, b| by_value(a.0, b.0)); // a stable sort
        all
    };
    let columns: Vec<_> = (0..outer * inner).map(sorted).collect();
    let places = (0..outer * k * inner).map(|at| (at / inner / k * inner + at % inner, at / inner % k));
    places.map(|(column, i)| columns[column][i]).unzip()
}

/// Compares every instruction set, with one and two threads, to complete sorts.
fn check<T: Ranked + PartialOrd + Default + std::fmt::Debug>(x: &[T], order: Order) {
    let (values, indices) = plain(x, order);
    let text = |values: &[T]| format!("{values:?}"); // tells 0 from −0, but not a NaN from itself
    for isa in Isa::available() {
        for threads in [Threads::serial(), Threads::new(2).expect("a pool of two threads")] {
            let (mut found, mut places) = (vec![T::default(); values.len()], vec![-1; values.len()]);
            T::top(isa, &threads, x, order, &mut found, &mut places);
            assert_eq!(places, indices, "{order:?} {isa:?} {threads:?}");
            assert_eq!(text(&found), text(&values), "{order:?} {isa:?} {threads:?}");
        }
    }
}

#[test]
fn the_first_are_those_of_a_sort() {
    for dims in [
        [1, 1, 1],
        [3, 5, 1],
        [2, 100, 3],
        [1, 333, 17],
        [2, 257, 33],
        [70, 1000, 1],
        [1, 4000, 1],
        [5, 0, 2],
        [0, 3, 2],
    ] {
        let [outer, n, inner] = dims;
        let x: Vec<f32> = numbers(outer * n * inner).map(|x| x as f32).collect();
        for k in [0, 1, 2, 10, n / 3, n.saturating_sub(1), n] {
            for largest in [true, false] {
                check(&x, Order { dims, k: k.min(n), largest });
            }
        }
    }
}

#[test]
fn orders_that_throw_nothing_away_or_everything_are_found() {
    for n in [47, 48, 49, 1000] {
        let rows: [Vec<i32>; 4] = [
            (0..n).collect(),
            (0..n).rev().collect(),
            vec![7; n as usize],
            (0..n).map(|i| if i == n - 1 { i32::MIN } else { i32::MAX }).collect(),
        ];
        for (row, largest) in rows.iter().flat_map(|row| [(row, true), (row, false)]) {
            for k in [1, 8, 15, 16, 17] {
                check(row, Order { dims: [1, row.len(), 1], k, largest });
            }
        }
    }
}

macro_rules! every_type {
    ($($name:ident: $element:ident, $from:expr, $special:expr;)*) => {
        $(#[test]
        fn $name() {
            let from: fn(i64) -> $element = $from;
            let mut x: Vec<$element> = numbers(2 * 90 * 3).map(from).collect();
            for (i, special) in $special.into_iter().enumerate() {
                x[i * 37 + 5] = special;
            }
            for (k, largest) in [(4, true), (4, false), (90, true), (90, false)] {
                check(&x, Order { dims: [2, 90, 3], k, largest });
                check(&x, Order { dims: [6, 90, 1], k, largest });
            }
        }
        )*
    };
}

every_type! {
    f32_is_ordered: f32, |x| x as f32, [f32::NAN, -f32::NAN, f32::INFINITY, -f32::INFINITY, -0.0, 0.0, 1e-45, -1e-45, f32::MAX];
    f64_is_ordered: f64, |x| x as f64, [f64::NAN, -f64::NAN, f64::INFINITY, -f64::INFINITY, -0.0, 0.0, 5e-324, f64::MAX];
    f16_is_ordered: f16, |x| f16::from_f64(x as f64), [f16::NAN, -f16::NAN, f16::INFINITY, f16::NEG_INFINITY, f16::NEG_ZERO];
    bf16_is_ordered: bf16, |x| bf16::from_f64(x as f64), [bf16::NAN, bf16::INFINITY, bf16::NEG_INFINITY, bf16::NEG_ZERO];
    i8_is_ordered: i8, |x| x as i8, [i8::MIN, i8::MAX, -1];
    i16_is_ordered: i16, |x| x as i16, [i16::MIN, i16::MAX, -1];
    i32_is_ordered: i32, |x| x as i32, [i32::MIN, i32::MAX, -1];
    i64_is_ordered: i64, |x| x, [i64::MIN, i64::MAX, 1 << 40];
    u8_is_ordered: u8, |x| x as u8, [u8::MIN, u8::MAX];
    u16_is_ordered: u16, |x| x as u16, [u16::MIN, u16::MAX];
    u32_is_ordered: u32, |x| x as u32, [u32::MIN, u32::MAX, 1 << 31];
    u64_is_ordered: u64, |x| x as u64, [u64::MIN, u64::MAX, 1 << 63];
}

#[test]
fn places_beyond_32_bits_fit_with_any_key() {
    for (key, place) in [(0u32, 1usize << 40), (u32::MAX, usize::MAX >> 1)] {
        let packed: u128 = Packed::pack(key, place);
        assert_eq!((Packed::<u32>::key(packed), Packed::<u32>::place(packed)), (key, place as i64));
    }
}
