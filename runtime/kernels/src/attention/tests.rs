use super::*;

pub(super) fn values(len: usize, seed: usize) -> Vec<f32> {
    (0..len).map(|i| ((i + seed) * 7919 % 1009) as f32 / 400.0 - 1.2).collect()
}

fn along<R>(data: &[R], heads: usize, rows: usize, size: usize) -> Vectors<'_, R> {
    Vectors { data, batch: heads * rows * size, head: rows * size, row: size }
}

/// The reference in `f64`, one element at a time. If `offset` is set, it is causal with `offset` keys before the first
/// query.
fn plain(dims: Dims, [q, k, v, mask]: [&[f32]; 4], offset: Option<usize>) -> Vec<f64> {
    let Dims { batch, heads, kv_heads, queries, keys, depth, width } = dims;
    let wide = |x: f32| f64::from(x);
    let mut y = Vec::new();
    for row in 0..batch * heads * queries {
        let (head, i) = (row / queries, row % queries);
        let kv = head / heads * kv_heads + head % heads / (heads / kv_heads);
        let seen = offset.map_or(keys, |offset| keys.min(i + offset + 1));
        let weight = |j: usize| {
            let product = |d: usize| wide(q[row * depth + d]) * wide(k[(kv * keys + j) * depth + d]);
            ((0..depth).map(product).sum::<f64>() * 0.3 + wide(mask[i * keys + j])).exp()
        };
        let total: f64 = (0..seen).map(weight).sum();
        let value = |d: usize| (0..seen).map(|j| weight(j) * wide(v[(kv * keys + j) * width + d])).sum::<f64>();
        y.extend((0..width).map(|d| if seen == 0 { 0.0 } else { value(d) / total }));
    }
    y
}

#[test]
fn every_path_agrees_with_f64_on_every_instruction_set() {
    for [batch, heads, kv_heads, queries, keys, depth, width] in [
        [1, 1, 1, 1, 1, 1, 1],
        [2, 4, 2, 3, 7, 8, 5],
        [1, 2, 2, 1, 300, 20, 16],
        [1, 2, 1, 70, 70, 16, 16],
        [1, 1, 1, 203, 301, 16, 12],
        [1, 6, 2, 131, 140, 8, 8],
        [2, 3, 3, 9, 33, 64, 64],
        [1, 1, 1, 5, 0, 4, 4],
        [0, 1, 1, 5, 3, 4, 4],
    ] {
        let dims = Dims { batch, heads, kv_heads, queries, keys, depth, width };
        let q = values(batch * heads * queries * depth, 0);
        let k = values(batch * kv_heads * keys * depth, 3);
        let v = values(batch * kv_heads * keys * width, 5);
        let mask = values(queries * keys, 7);
        for offset in [None, Some(0), Some(2)] {
            let expected = plain(dims, [&q, &k, &v, &mask], offset);
            let problem = Problem {
                dims,
                q: along(&q, heads, queries, depth),
                k: along(&k, kv_heads, keys, depth),
                v: along(&v, kv_heads, keys, width),
                scale: 0.3,
                softcap: None,
                mask: Mask::Added(Vectors { data: &mask, batch: 0, head: 0, row: keys }),
                visible: &|_, i| 0..offset.map_or(keys, |offset| i + offset + 1),
                guard: Guard::Unseeing,
            };
            check(&problem, &expected);
        }
    }
}

/// Compares every instruction set with `expected`, with one and two threads, with and without returned scores.
fn check(problem: &Problem<f32>, expected: &[f64]) {
    let two = Threads::new(2).expect("a pool of two threads");
    for isa in Isa::available() {
        let mut y = vec![f32::NAN; expected.len()];
        attention(isa, &two, problem, &mut y, None);
        for (y, expected) in y.iter().zip(expected) {
            assert!((f64::from(*y) - expected).abs() < 5e-6, "{:?} {isa:?}: {y} {expected}", problem.dims);
        }
        let mut serial = vec![f32::NAN; expected.len()];
        attention(isa, &Threads::serial(), problem, &mut serial, None);
        assert_eq!(serial, y, "{:?} {isa:?}: threads change a bit", problem.dims);
        let Dims { batch, heads, queries, keys, .. } = problem.dims;
        let kept = [&two, &Threads::serial()].map(|threads| {
            let (mut y, mut scores) = (vec![f32::NAN; y.len()], vec![f32::NAN; batch * heads * queries * keys]);
            attention(isa, threads, problem, &mut y, Some((Stage::Softmax, &mut scores)));
            (y, scores)
        });
        assert_eq!(kept[0], kept[1], "{:?} {isa:?}: threads change a bit of scores", problem.dims);
    }
}

#[test]
fn a_guard_says_what_becomes_of_a_query_that_sees_no_key() {
    let inf = f32::INFINITY;
    let dims = Dims { batch: 1, heads: 1, kv_heads: 1, queries: 2, keys: 2, depth: 1, width: 1 };
    // The first query is masked; a score of the second is infinite.
    let (mask, queries) = ([-inf, -inf, 0.0, 0.0], [1.0, inf]);
    for (guard, expected) in [
        (Guard::Unseeing, [Some(0.0), None]),
        (Guard::Nothing, [None, None]),
        (Guard::Undefined, [Some(0.0), Some(0.0)]),
    ] {
        let problem = Problem {
            dims,
            q: along(&queries, 1, 2, 1),
            k: along(&[1.0, 2.0], 1, 2, 1),
            v: along(&[3.0, 4.0], 1, 2, 1),
            scale: 1.0,
            softcap: None,
            mask: Mask::Added(Vectors { data: &mask, batch: 0, head: 0, row: 2 }),
            visible: &|_, _| 0..2,
            guard,
        };
        let mut y = [1.0; 2];
        attention(Isa::get(), &Threads::serial(), &problem, &mut y, None);
        assert_eq!(y.map(|y| Some(y).filter(|y| !y.is_nan())), expected, "{guard:?}");
    }
}

/// Applying the scale before the mask and in the exponentials gives the same result. Sums of large values may exceed
/// the largest number.
#[test]
fn no_mask_is_a_mask_of_zeros_and_large_values_stay_finite() {
    for ([queries, keys], scale, factor) in
        [([9, 37], 0.3, 1.0), ([70, 33], -0.3, 1.0), ([5, 16], 0.0, 2.5e38), ([3, 40], 0.3, 2.5e38)]
    {
        let dims = Dims { batch: 1, heads: 2, kv_heads: 2, queries, keys, depth: 8, width: 20 };
        let (q, k) = (values(2 * queries * 8, 0), values(2 * keys * 8, 3));
        let v: Vec<f32> = values(2 * keys * 20, 5).iter().map(|x| x * factor).collect();
        let zeros = vec![0.0; queries * keys];
        let visible = |_: usize, _: usize| 0..keys;
        let problem = |mask| Problem {
            dims,
            q: along(&q, 2, queries, 8),
            k: along(&k, 2, keys, 8),
            v: along(&v, 2, keys, 20),
            scale,
            softcap: None,
            mask,
            visible: &visible,
            guard: Guard::Nothing,
        };
        for isa in Isa::available() {
            let masks = [Mask::None, Mask::Added(Vectors { data: &zeros, batch: 0, head: 0, row: keys })];
            let [plain, masked] = masks.map(|mask| {
                let mut out = vec![f32::NAN; 2 * queries * 20];
                attention(isa, &Threads::new(2).unwrap(), &problem(mask), &mut out, None);
                out
            });
            assert_eq!(plain, masked);
            assert!(plain.iter().all(|x| x.is_finite()), "{queries} x {keys}: {plain:?}");
        }
    }
}

/// A boolean mask that hides the last keys, all keys, or none is the same as a mask of 0 and −∞.
#[test]
fn a_boolean_mask_may_hide_the_last_keys_of_a_tile() {
    for ([queries, keys], guard) in
        [([1, 300], Guard::Nothing), ([70, 200], Guard::Unseeing), ([9, 131], Guard::Unseeing)]
    {
        let dims = Dims { batch: 1, heads: 2, kv_heads: 2, queries, keys, depth: 8, width: 12 };
        for hidden in [1, 64, 65, keys - 1, keys] {
            let is_blind = |i: usize| guard != Guard::Nothing && i.is_multiple_of(3);
            let shown = |i: usize, j: usize| j + hidden < keys && !is_blind(i) && !(i + j).is_multiple_of(5);
            let chosen: Vec<u8> = (0..queries * keys).map(|at| u8::from(shown(at / keys, at % keys))).collect();
            let added: Vec<f32> =
                chosen.iter().map(|&chosen| if chosen == 0 { f32::NEG_INFINITY } else { 0.0 }).collect();
            let masks = [
                Mask::Chosen(Vectors { data: &chosen, batch: 0, head: 0, row: keys }),
                Mask::Added(Vectors { data: &added, batch: 0, head: 0, row: keys }),
            ];
            for isa in Isa::available() {
                let [found, expected] = masks.map(|mask| attended(isa, dims, mask, guard));
                let is_near = |(x, y): (&f32, &f32)| x == y || (x - y).abs() < 1e-6 || x.is_nan() && y.is_nan();
                assert!(found.0.iter().zip(&expected.0).all(is_near), "{dims:?}, {hidden} hidden, {isa:?}");
                assert_eq!(found.1, expected.1, "the scores of {dims:?}, {hidden} hidden, {isa:?}");
            }
        }
    }
}

/// The result with a mask, and the masked scores.
fn attended(isa: Isa, dims: Dims, mask: Mask<f32>, guard: Guard) -> (Vec<f32>, Vec<f32>) {
    let Dims { heads, queries, keys, depth, width, .. } = dims;
    let (q, k, v) =
        (values(heads * queries * depth, 0), values(heads * keys * depth, 3), values(heads * keys * width, 5));
    let problem = Problem {
        dims,
        q: along(&q, heads, queries, depth),
        k: along(&k, heads, keys, depth),
        v: along(&v, heads, keys, width),
        scale: 0.3,
        softcap: None,
        mask,
        visible: &|_, _| 0..keys,
        guard,
    };
    let (mut y, mut scores) = (vec![1.0; heads * queries * width], vec![1.0; heads * queries * keys]);
    attention(isa, &Threads::serial(), &problem, &mut y, None);
    attention(isa, &Threads::serial(), &problem, &mut y.clone(), Some((Stage::Masked, &mut scores)));
    (y, scores)
}
