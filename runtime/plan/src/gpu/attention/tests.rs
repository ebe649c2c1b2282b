//! Compares attention on the emulator with the CPU.

use half::{bf16, f16};

use super::*;
use crate::dtype::{Bool, Element};
use crate::testing::{run_outputs, tensor};

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
