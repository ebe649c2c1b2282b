//! Recurrent layers: LSTM, GRU and the simple RNN.

use candle_plan_descriptors::recurrent::{Activation, Cell};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::recurrent_inputs::{lengths_within, Expected};
use crate::bail;
use crate::dtype::{require_dtype, DType, FLOATS};
use crate::error::Result;
use crate::extent::Extent;
use crate::operator::{Arity, Operator};
use crate::types::{Dim, TensorType, Type, Types};
use crate::work::{self, Work};

/// A direction of a layer, and its activations. The layer reads its sequences in this direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Direction {
    /// Whether the layer reads each sequence from its end.
    pub reversed: bool,
    /// The functions f, g and h, as many as the cell has.
    pub activations: Vec<Activation>,
}

/// `i, f = f(X·Wᵀ + H·Rᵀ + b + P ∘ C)`, `C = f ∘ C + i ∘ g(X·Wᵀ + H·Rᵀ + b)`, `o = f(X·Wᵀ + H·Rᵀ + b + P ∘ C)`,
/// `H = o ∘ h(C)`, step by step, in D directions.
///
/// Inputs: `X [S, B, I]`, `W [D, 4H, I]` and `R [D, 4H, H]` of gates i, o, f, c; then, each optional: `bias [D, 8H]`
/// (of W, then of R), `lengths [B]` in int32, `H [D, B, H]`, `C [D, B, H]`, `P [D, 3H]` of gates i, o, f. Outputs:
/// `Y [S, D, B, H]`, which is 0 beyond the length of a sequence, and the last states `H`, `C [D, B, H]`, which are 0
/// for an empty sequence. With `batch_first`: `X [B, S, I]`, `Y [B, S, D, H]`, states `[B, D, H]`. `float16` and
/// `bfloat16` are computed in `float32`.
///
/// Source: [ONNX LSTM](https://onnx.ai/onnx/operators/onnx__LSTM.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lstm {
    /// H, the size of the state.
    pub hidden: usize,
    /// One or two directions, each of three functions.
    pub directions: Vec<Direction>,
    /// The bound of the gates' sums: they are clipped to it on both sides.
    pub clip: Option<f32>,
    /// Whether `f = 1 − i`.
    pub input_forget: bool,
    /// Whether the batch is the first axis.
    pub batch_first: bool,
}

/// `z, r = f(X·Wᵀ + H·Rᵀ + b)`, `n = g(X·Wᵀ + (r ∘ H)·Rᵀ + b)`, `H = (1 − z) ∘ n + z ∘ H`, step by step, in D directions.
///
/// Inputs: `X [S, B, I]`, `W [D, 3H, I]` and `R [D, 3H, H]` of gates z, r, n; then, each optional: `bias [D, 6H]` (of
/// W, then of R), `lengths [B]` in int32, `H [D, B, H]`. Outputs, `batch_first` and dtypes are as in `Lstm`, without C.
///
/// Source: [ONNX GRU](https://onnx.ai/onnx/operators/onnx__GRU.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gru {
    /// H, the size of the state.
    pub hidden: usize,
    /// One or two directions, each of two functions.
    pub directions: Vec<Direction>,
    /// The bound of the gates' sums: they are clipped to it on both sides.
    pub clip: Option<f32>,
    /// Whether `n = g(X·Wᵀ + r ∘ (H·Rᵀ + b) + b)`.
    pub linear_before_reset: bool,
    /// Whether the batch is the first axis.
    pub batch_first: bool,
}

/// `H = f(X·Wᵀ + H·Rᵀ + b)`, step by step, in D directions.
///
/// Inputs: `X [S, B, I]`, `W [D, H, I]`, `R [D, H, H]`; then, each optional: `bias [D, 2H]` (of W, then of R),
/// `lengths [B]` in int32, `H [D, B, H]`. Outputs, `batch_first` and dtypes are as in `Lstm`, without C.
///
/// Source: [ONNX RNN](https://onnx.ai/onnx/operators/onnx__RNN.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rnn {
    /// H, the size of the state.
    pub hidden: usize,
    /// One or two directions, each of one function.
    pub directions: Vec<Direction>,
    /// The bound of the sum: it is clipped to it on both sides.
    pub clip: Option<f32>,
    /// Whether the batch is the first axis.
    pub batch_first: bool,
}

/// The common attributes of the three ops.
pub(crate) struct Recurrence<'a> {
    pub cell: Cell,
    pub hidden: usize,
    pub directions: &'a [Direction],
    pub clip: Option<f32>,
    pub batch_first: bool,
}

macro_rules! operator {
    ($Op:ident, $inputs:expr, $outputs:expr, $op:ident => $cell:expr) => {
        impl $Op {
            pub(crate) fn recurrence(&self) -> Recurrence<'_> {
                let $op = self;
                let Self { hidden, clip, batch_first, .. } = *self;
                Recurrence { cell: $cell, hidden, directions: &self.directions, clip, batch_first }
            }
        }

        impl Operator for $Op {
            fn arity(&self) -> Arity {
                Arity { inputs: 3..=$inputs, outputs: 1..=$outputs }
            }

            fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
                self.recurrence().infer(inputs)
            }

            fn checks(&self, input: usize) -> bool {
                input == LENGTHS
            }

            fn work(&self, inputs: &Types, outputs: &[Type]) -> Option<Work> {
                Work::multiplying(inputs, outputs, work::recurrent([X, W, R].map(|i| inputs.tensor(i).ok())))
            }
        }
    };
}

operator! { Lstm, 8, 3, op => Cell::Lstm { input_forget: op.input_forget } }

operator! { Gru, 6, 2, op => Cell::Gru { linear_before_reset: op.linear_before_reset } }

operator! { Rnn, 6, 2, _op => Cell::Rnn }

// The indices of the inputs.
pub(crate) const X: usize = 0;

pub(crate) const W: usize = 1;

pub(crate) const R: usize = 2;

pub(crate) const BIAS: usize = 3;

pub(crate) const LENGTHS: usize = 4;

pub(crate) const H: usize = 5;

pub(crate) const C: usize = 6;

pub(crate) const P: usize = 7;

impl Recurrence<'_> {
    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(X)?;
        require_dtype("X", x.dtype, &FLOATS)?;
        self.check_attributes()?;
        let outer = self.outer(x);
        let sizes = [usize::from(self.batch_first), usize::from(!self.batch_first), 2].map(|axis| x.size(axis));
        for i in 0..inputs.len() {
            let Some(found) = inputs.optional_tensor(i)? else { continue };
            self.expected(i, x.dtype, sizes).check(i, found)?;
        }
        if let Some((lengths, steps)) = inputs.checked(LENGTHS).zip(outer[0].known()) {
            lengths_within(lengths.read::<i32>()?, steps)?;
        }
        let inner = [self.directions.len(), self.hidden].map(|size| Some(Dim::Size(size)));
        let (y, state) = self.shapes(outer, inner);
        let of = |shape: &[Option<Dim>]| Type::Tensor(TensorType { dtype: x.dtype, shape: Some(shape.to_vec()) });
        Ok([of(&y), of(&state), of(&state)].into_iter().take(inputs.outputs).collect())
    }

    pub(crate) fn check_attributes(&self) -> Result<()> {
        if self.hidden == 0 || self.hidden > usize::MAX / 64 {
            bail!("the hidden size {} is out of range", self.hidden);
        }
        if !(1..=2).contains(&self.directions.len()) {
            bail!("a recurrent layer must have one or two directions, not {}", self.directions.len());
        }
        let functions = self.cell.functions();
        if let Some(other) = self.directions.iter().find(|direction| direction.activations.len() != functions) {
            bail!("a direction needs {functions} activations, found {}", other.activations.len());
        }
        if let Some(limit) = self.clip.filter(|limit| limit.is_nan() || *limit <= 0.0) {
            bail!("the limit of a clip must be positive, found {limit}");
        }
        Ok(())
    }

    /// The shapes of `Y` and of the states.
    pub(crate) fn shapes<S: Clone>(&self, [s, b]: [S; 2], [d, h]: [S; 2]) -> ([S; 4], [S; 3]) {
        match self.batch_first {
            true => ([b.clone(), s, d.clone(), h.clone()], [b, d, h]),
            false => ([s, d.clone(), b.clone(), h.clone()], [d, b, h]),
        }
    }

    /// The numbers of steps and of sequences in `X`, if they are known.
    pub(crate) fn outer(&self, x: &TensorType) -> [Option<Dim>; 2] {
        let at = |axis: usize| x.shape.as_ref().and_then(|shape| shape.get(axis).cloned().flatten());
        [at(usize::from(self.batch_first)), at(usize::from(!self.batch_first))]
    }

    /// The expected type of input `i`, if `X` is `[steps, batch, inputs]`.
    pub(crate) fn expected(&self, i: usize, dtype: DType, [steps, batch, inputs]: [Option<usize>; 3]) -> Expected {
        let (directions, hidden) = (Some(self.directions.len()), Some(self.hidden));
        let rows = self.cell.gates() * self.hidden;
        let batch_second = |[outer, batch, last]: [Option<usize>; 3]| match self.batch_first {
            true => [batch, outer, last],
            false => [outer, batch, last],
        };
        let (sizes, rank) = match i {
            X => (batch_second([steps, batch, inputs]), 3),
            W => ([directions, Some(rows), inputs], 3),
            R => ([directions, Some(rows), hidden], 3),
            BIAS => ([directions, Some(2 * rows), None], 2),
            LENGTHS => ([batch, None, None], 1),
            P => ([directions, Some(3 * self.hidden), None], 2),
            _ => (batch_second([directions, batch, hidden]), 3),
        };
        Expected { dtype: if i == LENGTHS { DType::Int32 } else { dtype }, sizes, rank }
    }
}
