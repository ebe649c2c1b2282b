//! Compares attention on the emulator with the CPU.

use half::{bf16, f16};

use super::*;
use crate::dtype::{Bool, Element};
use crate::ops::attention::{AttentionGuard, AttentionScores};
use crate::testing::{run, run_outputs, tensor};

fn data<T: Element>(dims: &[usize], from: &impl Fn(f32) -> T) -> Option<Value> {
    let numbers = (0..dims.iter().product()).map(|i: usize| from((i * 7919 % 101) as f32 / 50.0 - 1.0));
    Some(tensor(&numbers.collect::<Vec<T>>(), dims))
}

fn chosen(dims: &[usize]) -> Option<Value> {
    let numbers = (0..dims.iter().product()).map(|i: usize| Bool::from(i * 7919 % 3 != 1));
    Some(tensor(&numbers.collect::<Vec<Bool>>(), dims))
}

/// Tests two batches and four heads that share two heads of keys, folded or not, with or without a past.
fn check<T: Element>(from: impl Fn(f32) -> T, queries: usize, new: usize) {
    let stages = [AttentionScores::Product, AttentionScores::Capped, AttentionScores::Masked, AttentionScores::Softmax];
    for (i, (folded, past)) in [(false, 0), (true, 0), (false, 2), (true, 3)].into_iter().enumerate() {
        let dims = |heads: usize, rows: usize, size: usize| match folded {
            true => vec![2, rows, heads * size],
            false => vec![2, heads, rows, size],
        };
        let [heads, kv_heads] = [4, 2].map(|heads| folded.then_some(heads));
        let all = new + past;
        let op = Attention {
            heads,
            kv_heads,
            softcap: (i % 2 == 0).then_some(0.7),
            is_causal: i == 2,
            left_window: (i == 1).then_some(2),
            scale: (i == 3).then_some(0.3),
            scores: stages[i],
            ..Attention::PLAIN
        };
        let mask = match i {
            0 => chosen(&[4, 1, all - 1]),
            1 => data(&[queries, all], &from),
            2 => None,
            _ => chosen(&[2, 1, queries, all]),
        };
        let before = |size| data(&[2, 2, past, size], &from).filter(|_| past > 0);
        let (q, k, v) = (dims(4, queries, 6), dims(2, new, 6), dims(2, new, 5));
        let [q, k, v] = [q, k, v].map(|dims| data(&dims, &from));
        let inputs = [q, k, v, mask, before(6), before(5)];
        run_outputs(&op, &inputs, if i == 0 { 1 } else { 4 }).expect("it runs");
    }
}

#[test]
fn attention_matches_the_cpu_in_every_type() {
    check::<f32>(|x| x, 3, 5);
    check::<f32>(|x| x, 1, 4);
    check::<f64>(f64::from, 2, 5);
    check::<f16>(f16::from_f32, 2, 5);
    check::<bf16>(bf16::from_f32, 1, 5);
}

/// Two of four heads of keys at a time, and some queries of one head.
#[test]
fn parts_match_the_whole() {
    check::<f32>(|x| x, 2, 300);
    check::<f32>(|x| x, 12, 300);
}

#[test]
fn guards_and_numbers_of_keys_match_the_cpu() {
    let float = |x: f32| x;
    for guard in [AttentionGuard::Unseeing, AttentionGuard::Nothing, AttentionGuard::Undefined] {
        let op = Attention { guard, is_causal: true, scores: AttentionScores::Softmax, ..Attention::PLAIN };
        let inf = f32::NEG_INFINITY;
        let blind = Some(tensor(&[0.0, inf, inf, inf, inf, inf, inf, f32::NAN], &[2, 4]));
        for (mask, nonpad) in [(blind, [4i64, 3]), (None, [1, 0]), (None, [-5, i64::MAX]), (None, [i64::MIN, 2])] {
            let [q, k] = [2, 4].map(|rows| data(&[2, 2, rows, 3], &float));
            let nonpad = Some(tensor(&nonpad, &[2]));
            run_outputs(&op, &[q, k.clone(), k, mask, None, None, nonpad], 4).expect("it runs");
        }
    }
}

#[test]
fn empty_inputs_give_empty_outputs() {
    let float = |x: f32| x;
    for [batch, heads, queries, keys, depth, width] in
        [[0, 2, 2, 2, 2, 2], [1, 0, 2, 2, 2, 2], [1, 2, 0, 2, 2, 2], [1, 2, 2, 0, 2, 2], [1, 2, 2, 2, 2, 0]]
    {
        let [q, k, v] = [[queries, depth], [keys, depth], [keys, width]]
            .map(|[rows, size]| data(&[batch, heads, rows, size], &float));
        run_outputs(&Attention::PLAIN, &[q, k, v], 4).expect("it runs");
    }
}

/// More batches than heads, whose strides differ: products over the batches of each head.
#[test]
fn products_over_batches_match_the_cpu() {
    for (kv_heads, outputs) in [(2, 1), (2, 4), (1, 1), (4, 1)] {
        let op = Attention { heads: Some(4), kv_heads: Some(kv_heads), is_causal: true, ..Attention::PLAIN };
        run_outputs(&op, &operands([5, 4, kv_heads, 5, 6, 4, 3], 0, true), outputs).expect("it runs");
    }
}

/// `[batch, heads, kv_heads, queries, keys, depth, width]`, where the keys include those of the past.
type Sizes = [usize; 7];

/// Q, K, V, no mask, and the past if it is not 0, each with its own numbers.
fn operands(
    [batch, heads, kv_heads, queries, keys, depth, width]: Sizes,
    past: usize,
    folded: bool,
) -> Vec<Option<Value>> {
    let numbers = |heads: usize, rows: usize, size: usize, folded: bool, seed: usize| {
        let dims = if folded { vec![batch, rows, heads * size] } else { vec![batch, heads, rows, size] };
        let number = |i: usize| ((i + seed) * (i + 3 * seed) % 9973 % 101) as f32 / 50.0 - 1.0;
        let count = dims.iter().product();
        tensor(&(0..count).map(number).collect::<Vec<f32>>(), &dims)
    };
    let new = keys - past;
    let before = |size, seed| (past > 0).then(|| numbers(kv_heads, past, size, false, seed));
    vec![
        Some(numbers(heads, queries, depth, folded, 1)),
        Some(numbers(kv_heads, new, depth, folded, 2)),
        Some(numbers(kv_heads, new, width, folded, 5)),
        None,
        before(depth, 7),
        before(width, 11),
    ]
}

/// Tiles that are full and not, one and several, of aligned vectors and others.
#[test]
fn one_pass_matches_the_cpu() {
    let all: [(Sizes, usize); 10] = [
        ([1, 1, 1, 16, 1, 1, 1], 0),
        ([2, 2, 2, 64, 64, 16, 64], 0),
        ([1, 4, 2, 65, 130, 20, 33], 0),
        ([1, 1, 1, 100, 70, 7, 128], 0),
        ([1, 2, 1, 130, 129, 33, 100], 0),
        ([1, 2, 2, 17, 140, 0, 5], 0),
        ([2, 3, 1, 31, 63, 64, 66], 0),
        ([1, 4, 2, 20, 80, 12, 8], 50),
        ([2, 2, 1, 70, 65, 8, 72], 1),
        ([1, 1, 1, 16, 17, 65, 3], 3),
    ];
    for (i, (sizes, past)) in all.into_iter().enumerate() {
        for folded in [false, true] {
            let [_, heads, kv_heads, ..] = sizes;
            let [heads, kv_heads] = [heads, kv_heads].map(|heads| folded.then_some(heads));
            let op = Attention { heads, kv_heads, scale: (i == 5).then_some(1.0), ..Attention::PLAIN };
            run_outputs(&op, &operands(sizes, past, folded), 1 + 2 * (i % 2)).expect("it runs");
        }
    }
}

#[test]
fn one_pass_matches_the_cpu_with_masks() {
    let plain = Attention::PLAIN;
    let ops = [
        Attention { is_causal: true, ..plain },
        Attention { left_window: Some(3), right_window: Some(1), ..plain },
        Attention { left_window: Some(70), is_causal: true, softcap: Some(0.7), ..plain },
        Attention { right_window: Some(20), scale: Some(3.0), ..plain },
    ];
    let sizes = [1, 2, 1, 70, 150, 9, 20];
    for (i, op) in ops.iter().enumerate() {
        for (past, mask) in [
            (0, None),
            (80, chosen(&[1, 1, 70, 150])),
            (75, data(&[2, 1, 150], &|x| x)),
            (0, data(&[70, 140], &|x| if x > 0.5 { f32::NEG_INFINITY } else { 3.0 * x })),
        ] {
            let mut inputs = operands(sizes, past, i % 2 == 1);
            inputs[3] = mask;
            let [heads, kv_heads] = [2, 1].map(|heads| (i % 2 == 1).then_some(heads));
            run(&Attention { heads, kv_heads, ..op.clone() }, &inputs).expect("it runs");
        }
    }
}

/// Queries that see no key, tiles of queries that see none, and scores that are not finite.
#[test]
fn one_pass_matches_the_cpu_where_weights_are_undefined() {
    let [inf, nan] = [f32::INFINITY, f32::NAN];
    for guard in [AttentionGuard::Unseeing, AttentionGuard::Nothing, AttentionGuard::Undefined] {
        let causal = Attention { guard, is_causal: true, ..Attention::PLAIN };
        let sizes = [2, 1, 1, 130, 70, 5, 6];
        for nonpad in [[70i64, 3], [-5, i64::MAX], [i64::MIN, 0], [69, 65]] {
            let mut inputs = operands(sizes, 0, false);
            inputs.push(Some(tensor(&nonpad, &[2])));
            run(&causal, &inputs).expect("it runs");
        }
        // By row: nothing is kept, a NaN in the first and in the last tile, the first tile is hidden, all are kept.
        let row = |query: usize, key: usize| match query % 5 {
            0 => -inf,
            1 if key == 2 => nan,
            2 if key == 69 => nan,
            3 if key < 64 => -inf,
            _ => 0.5,
        };
        let mask: Vec<f32> = (0..20 * 70).map(|i| row(i / 70, i % 70)).collect();
        let mut inputs = operands([1, 2, 1, 20, 70, 5, 6], 0, false);
        inputs[3] = Some(tensor(&mask, &[20, 70]));
        run(&Attention { guard, ..Attention::PLAIN }, &inputs).expect("it runs");
        // Infinite and NaN products. A mask hides some of them.
        let q = [1.0, inf, -inf, nan].repeat(4);
        let k: Vec<f32> = (0..70).map(|key| if key == 66 { nan } else { 0.5 }).collect();
        let hidden: Vec<Bool> = (0..70).map(|key| Bool::from(key != 66)).collect();
        for (last, mask) in [(66, None), (70, None), (70, Some(tensor(&hidden, &[1, 70])))] {
            let mut inputs = operands([1, 1, 1, 16, last, 1, 4], 0, false);
            inputs[0] = Some(tensor(&q, &[1, 1, 16, 1]));
            inputs[1] = Some(tensor(&k[..last], &[1, 1, last, 1]));
            inputs[3] = mask.filter(|_| last == 70);
            run(&Attention { guard, ..Attention::PLAIN }, &inputs).expect("it runs");
        }
    }
}

/// A sum of weighted values is finite if the values are, even if the sum of values overflows.
#[test]
fn sums_of_large_values_do_not_overflow() {
    let mut inputs = operands([1, 1, 1, 16, 100, 4, 3], 0, false);
    inputs[2] = Some(tensor(&[3.0e38f32; 300], &[1, 1, 100, 3]));
    run(&Attention::PLAIN, &inputs).expect("it runs");
}
