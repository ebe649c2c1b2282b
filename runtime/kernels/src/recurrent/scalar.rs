//! The element types of recurrent layers: how each multiplies and applies activation functions.

use std::convert::Infallible;

use super::fused::{Fused, Turn};
use super::{Activation, Cell};
use crate::buffer::copied;
use crate::float_types::Real;
use crate::gemm::{Bias, Matrix, PackedB, ProductSizes, Right};
use crate::isa::Isa;
use crate::products::multiply;
use crate::reduce::Number;
use crate::threads::Threads;
use crate::vector::{sigmoid_in_place, tanh_in_place};

/// An element type of recurrent layers.
pub trait Scalar: Real {
    /// Packed weights `[n, k]`.
    type Weights: Send + Sync + 'static;
    /// A layer with the standard activation functions.
    type Fused: Steps<Self>;

    /// Packs weights `[n, k]`.
    fn pack(isa: Isa, weights: &[Self], n: usize, k: usize) -> Self::Weights;

    /// The size of packed weights in bytes.
    fn bytes(weights: &Self::Weights) -> usize;

    /// `out [m, n] = x [m, k] · weightsᵀ + bias [n]`
    fn product(
        isa: Isa,
        threads: &Threads,
        x: &[Self],
        weights: &Self::Weights,
        bias: Option<&[Self]>,
        out: &mut [Self],
    );

    /// Applies the function to every element.
    fn activate(isa: Isa, function: Activation, x: &mut [Self]);
}

/// A layer with the standard activation functions, sigmoid and tanh.
pub trait Steps<R>: Sized + Send + Sync + 'static {
    /// Packs the weights of the input and of the state, `[gates · hidden, …]`; `None` if the type has no such layers.
    /// `bias` `[gates · hidden]` is added before the step, and `reset_bias` `[hidden]` to the state's product in GRU's
    /// gate h.
    fn new(isa: Isa, cell: Cell, weights: [&[R]; 2], bias: &[R], reset_bias: &[R]) -> Option<Self>;

    /// The size of the weights in bytes.
    fn bytes(&self) -> usize;

    /// The elements of a step's gates.
    fn row(&self) -> usize;

    /// Computes the gates of steps with the inputs `x` `[steps, inputs]`.
    ///
    /// # Panics
    /// The lengths do not fit.
    fn project(&self, threads: &Threads, x: &[R], gates: &mut [R]);

    /// Runs a step.
    ///
    /// # Panics
    /// The lengths do not fit.
    fn turn(&self, turn: Turn<R>);
}

impl Steps<f32> for Fused {
    fn new(isa: Isa, cell: Cell, weights: [&[f32]; 2], bias: &[f32], reset_bias: &[f32]) -> Option<Fused> {
        Some(Fused::new(isa, cell, weights, bias, reset_bias))
    }

    fn bytes(&self) -> usize {
        self.bytes()
    }

    fn row(&self) -> usize {
        self.row()
    }

    fn project(&self, threads: &Threads, x: &[f32], gates: &mut [f32]) {
        self.project(threads, x, gates);
    }

    fn turn(&self, turn: Turn<f32>) {
        self.turn(turn);
    }
}

/// `f64` has general steps only.
impl Steps<f64> for Infallible {
    fn new(_: Isa, _: Cell, _: [&[f64]; 2], _: &[f64], _: &[f64]) -> Option<Infallible> {
        None
    }

    fn bytes(&self) -> usize {
        match *self {}
    }

    fn row(&self) -> usize {
        match *self {}
    }

    fn project(&self, _: &Threads, _: &[f64], _: &mut [f64]) {
        match *self {}
    }

    fn turn(&self, _: Turn<f64>) {
        match *self {}
    }
}

impl Scalar for f32 {
    type Weights = PackedB;
    type Fused = Fused;

    fn pack(isa: Isa, weights: &[f32], n: usize, k: usize) -> PackedB {
        PackedB::new(isa, &Threads::serial(), k, n, &Matrix { data: weights, row: 1, column: k })
    }

    fn bytes(weights: &PackedB) -> usize {
        weights.bytes()
    }

    fn product(isa: Isa, threads: &Threads, x: &[f32], weights: &PackedB, bias: Option<&[f32]>, out: &mut [f32]) {
        let (n, k) = (weights.columns(), weights.rows());
        let sizes = ProductSizes { m: out.len() / n.max(1), n, k };
        let bias = bias.map_or(Bias::None, Bias::Columns);
        multiply(isa, threads, sizes, &Matrix::contiguous(x, k), &Right::Packed(weights), bias, out, None);
    }

    fn activate(isa: Isa, function: Activation, x: &mut [f32]) {
        match function {
            Activation::Sigmoid => sigmoid_in_place(isa, x),
            Activation::Tanh => tanh_in_place(isa, x),
            Activation::Relu => x.iter_mut().for_each(|x| *x = if *x < 0.0 { 0.0 } else { *x }),
            other => x.iter_mut().for_each(|x| *x = f32::from_f64(other.of(x.to_f64()))),
        }
    }
}

impl Scalar for f64 {
    /// The unchanged weights and their sizes.
    type Weights = (Vec<f64>, [usize; 2]);
    type Fused = Infallible;

    fn pack(_: Isa, weights: &[f64], n: usize, k: usize) -> Self::Weights {
        (copied(weights), [n, k])
    }

    fn bytes((weights, _): &Self::Weights) -> usize {
        size_of_val(&weights[..])
    }

    fn product(
        _: Isa,
        _: &Threads,
        x: &[f64],
        (weights, sizes): &Self::Weights,
        bias: Option<&[f64]>,
        out: &mut [f64],
    ) {
        let [n, k] = *sizes;
        for (i, out) in out.iter_mut().enumerate() {
            let (x, weights) = (&x[i / n * k..][..k], &weights[i % n * k..][..k]);
            *out = bias.map_or(0.0, |bias| bias[i % n]) + x.iter().zip(weights).map(|(x, w)| x * w).sum::<f64>();
        }
    }

    fn activate(_: Isa, function: Activation, x: &mut [f64]) {
        x.iter_mut().for_each(|x| *x = function.of(*x));
    }
}
