//! Compares products and convolutions of 8-bit integers on the emulator with the CPU.

use super::*;
use crate::ops::padding::Padding;
use crate::testing::{run, tensor};

fn bytes(dims: &[usize], step: usize) -> Value {
    tensor(&(0..dims.iter().product()).map(|i: usize| (i * step + i / 253) as u8).collect::<Vec<_>>(), dims)
}

fn signed(dims: &[usize], step: usize) -> Value {
    let bytes = (0..dims.iter().product()).map(|i: usize| (i * step + i / 253) as u8);
    tensor(&bytes.map(u8::cast_signed).collect::<Vec<_>>(), dims)
}

#[test]
fn products_with_zero_points_of_any_shape() {
    // The shapes of A, B and both zero points; no dimensions mean one number.
    type Case<'a> = [&'a [usize]; 4];
    let cases: [Case; 11] = [
        [&[5, 7], &[7, 9], &[], &[]],
        [&[5, 7], &[7, 9], &[5, 1], &[9]],
        [&[66, 20], &[20, 65], &[66, 1], &[1, 65]],
        [&[3, 1, 5, 7], &[2, 7, 4], &[5, 1], &[2, 1, 4]],
        [&[2, 5, 7], &[2, 7, 4], &[2, 5, 7], &[7, 1]],
        [&[2, 5, 7], &[7, 4], &[2, 1, 1], &[4]],
        [&[7], &[7, 4], &[], &[4]],
        [&[2, 5, 7], &[7], &[], &[7]],
        [&[7], &[7], &[7], &[]],
        [&[0, 7], &[7, 2], &[], &[]],
        [&[2, 3, 0], &[2, 0, 2], &[], &[]],
    ];
    for [a, b, a_zero, b_zero] in cases {
        for zeros in [true, false] {
            let inputs = [Some(bytes(a, 77)), Some(signed(b, 41)), Some(bytes(a_zero, 7)), Some(signed(b_zero, 9))];
            run(&MatMulInteger {}, &inputs[..if zeros { 4 } else { 2 }]).expect("a product");
            let inputs = [Some(signed(a, 77)), Some(bytes(b, 41)), None, Some(bytes(b_zero, 200))];
            run(&MatMulInteger {}, &inputs[..if zeros { 4 } else { 2 }]).expect("a product");
        }
    }
}

#[test]
fn convolutions_have_their_channels_second() {
    // The shapes of X and W, and the groups.
    let cases: [(&[usize], &[usize], usize); 5] = [
        (&[2, 3, 9, 8], &[20, 3, 3, 3], 1),
        (&[1, 4, 9, 8], &[4, 1, 3, 3], 4),
        (&[1, 8, 6, 5], &[32, 4, 2, 3], 2),
        (&[3, 5, 40], &[66, 5, 3], 1),
        (&[1, 1, 4, 4], &[1, 1, 1, 1], 1),
    ];
    for (x, w, groups) in cases {
        let axes = x.len() - 2;
        let pads = Padding::Explicit(vec![[1, 0]; axes]);
        let op = ConvInteger { strides: vec![2; axes], dilations: vec![1; axes], pads, groups };
        let bias = tensor(&(0..w[0] as i32).map(|i| i - 3).collect::<Vec<_>>(), &w[..1]);
        for zeros in [[None, None], [Some(bytes(&[], 1)), Some(signed(&w[..1], 11))], [None, Some(signed(&[], 1))]] {
            let [x_zero, w_zero] = zeros;
            let inputs = [Some(bytes(x, 77)), Some(signed(w, 41)), x_zero, w_zero, Some(bias.clone())];
            run(&op, &inputs).expect("a convolution");
        }
        run(&op, &[Some(signed(x, 77)), Some(bytes(w, 41))]).expect("a convolution");
    }
}

#[test]
fn sums_become_codes() {
    let x: Vec<i32> = (0..600).map(|i| (i - 300) * 37 + i % 7).collect();
    let scales = |dims: &[usize]| {
        let count = dims.iter().product();
        Some(tensor(&(0..count).map(|i| 0.013 + i as f32 * 0.07).collect::<Vec<_>>(), dims))
    };
    let shapes: [[&[usize]; 2]; 5] =
        [[&[], &[1]], [&[5, 1], &[30]], [&[4, 1, 1], &[5, 1]], [&[4, 5, 30], &[]], [&[1, 1, 1], &[4, 1, 30]]];
    for [a, b] in shapes {
        for y_scale in [0.5f32, f32::NAN] {
            let y_scale = Some(tensor(&[y_scale], &[]));
            let inputs = [Some(tensor(&x, &[4, 5, 30])), scales(a), scales(b), y_scale.clone(), Some(bytes(&[1], 1))];
            run(&Requantize {}, &inputs).expect("codes");
            let inputs = [Some(tensor(&x, &[4, 5, 30])), scales(a), scales(b), y_scale, Some(signed(&[], 1))];
            run(&Requantize {}, &inputs).expect("codes");
        }
    }
}
