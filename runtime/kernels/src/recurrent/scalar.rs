//! The types that a layer computes in: how each multiplies and applies functions.

use super::activation::Activation;
use super::fused;
use crate::gemm::{gemm, Bias, Matrix, PackedB, Right, Sizes};
use crate::isa::Isa;
use crate::lanes::Real;
use crate::reduce::Number;
use crate::threads::Threads;
use crate::vector::{sigmoid_in_place, tanh_in_place};

/// The types that a layer computes in.
pub trait Scalar: Real {
    /// A matrix of weights `[n, k]`, ready to be multiplied.
    type Weights: Send + Sync + 'static;

    /// Makes weights `[n, k]` ready.
    fn pack(isa: Isa, weights: &[Self], n: usize, k: usize) -> Self::Weights;

    /// `out [m, n] = x [m, k] · weightsᵀ + bias [n]`
    fn product(
        isa: Isa,
        threads: &Threads,
        x: &[Self],
        weights: &Self::Weights,
        bias: Option<&[Self]>,
        out: &mut [Self],
    );

    /// Replaces every element by the function of it.
    fn activate(isa: Isa, function: Activation, x: &mut [Self]);

    /// [`super::fused::lstm`]; `false` where the type has none.
    fn lstm(_: Isa, _gates: &[Self], _product: &[Self], _h: &mut [Self], _c: &mut [Self]) -> bool {
        false
    }

    /// [`super::fused::gru`]; `false` where the type has none.
    fn gru(_: Isa, _gates: &[Self], _product: &[Self], _bias: &[Self], _h: &mut [Self]) -> bool {
        false
    }
}

impl Scalar for f32 {
    type Weights = PackedB;

    fn pack(isa: Isa, weights: &[f32], n: usize, k: usize) -> PackedB {
        PackedB::new(isa, &Threads::serial(), k, n, &Matrix { data: weights, row: 1, column: k })
    }

    fn product(isa: Isa, threads: &Threads, x: &[f32], weights: &PackedB, bias: Option<&[f32]>, out: &mut [f32]) {
        let (n, k) = (weights.columns(), weights.rows());
        let sizes = Sizes { m: out.len() / n.max(1), n, k };
        let bias = bias.map_or(Bias::None, Bias::Columns);
        gemm(isa, threads, sizes, &Matrix::contiguous(x, k), &Right::Packed(weights), bias, out, None);
    }

    fn activate(isa: Isa, function: Activation, x: &mut [f32]) {
        match function {
            Activation::Sigmoid => sigmoid_in_place(isa, x),
            Activation::Tanh => tanh_in_place(isa, x),
            Activation::Relu => x.iter_mut().for_each(|x| *x = if *x < 0.0 { 0.0 } else { *x }),
            other => x.iter_mut().for_each(|x| *x = f32::from_f64(other.of(x.to_f64()))),
        }
    }

    fn lstm(isa: Isa, gates: &[f32], product: &[f32], h: &mut [f32], c: &mut [f32]) -> bool {
        fused::lstm(isa, gates, product, h, c);
        true
    }

    fn gru(isa: Isa, gates: &[f32], product: &[f32], bias: &[f32], h: &mut [f32]) -> bool {
        fused::gru(isa, gates, product, bias, h);
        true
    }
}

impl Scalar for f64 {
    /// The weights as they are, and `k`.
    type Weights = (Vec<f64>, usize);

    fn pack(_: Isa, weights: &[f64], _: usize, k: usize) -> (Vec<f64>, usize) {
        (weights.to_vec(), k)
    }

    fn product(_: Isa, _: &Threads, x: &[f64], (weights, k): &Self::Weights, bias: Option<&[f64]>, out: &mut [f64]) {
        let n = weights.len() / (*k).max(1);
        for (i, out) in out.iter_mut().enumerate() {
            let (x, weights) = (&x[i / n * k..][..*k], &weights[i % n * k..][..*k]);
            *out = bias.map_or(0.0, |bias| bias[i % n]) + x.iter().zip(weights).map(|(x, w)| x * w).sum::<f64>();
        }
    }

    fn activate(_: Isa, function: Activation, x: &mut [f64]) {
        x.iter_mut().for_each(|x| *x = function.of(*x));
    }
}
