//! Recurrent layers: LSTM, GRU and the simple one.

use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::lanes::Real;
use candle_plan_kernels::recurrent::{Activation, Cell, Layer, Pass, Scalar};
use candle_plan_kernels::reduce::Number;
use half::{bf16, f16};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::float::{require_dtype, Float, FLOATS};
use crate::kernel::{Arity, Call, Constants, Kernel, Packed, Types};
use crate::types::{Dim, Shape, TensorType, Type};
use crate::value::{room, Array, Value};
use crate::work::{self, Work};
use crate::{bail, dispatch};

/// A direction in which a layer reads its sequences.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Direction {
    /// Whether each sequence is read from its end.
    pub reversed: bool,
    /// The functions f, g and h, as many as the cell has.
    pub activations: Vec<Activation>,
}

/// `i, f = f(X·Wᵀ + H·Rᵀ + b + P ∘ C)`, `C = f ∘ C + i ∘ g(X·Wᵀ + H·Rᵀ + b)`, `o = f(X·Wᵀ + H·Rᵀ + b + P ∘ C)`,
/// `H = o ∘ h(C)`, step by step, in D directions.
///
/// Inputs: `X [S, B, I]`, `W [D, 4H, I]` and `R [D, 4H, H]` of gates i, o, f, c, then, each of which may be absent:
/// `bias [D, 8H]` (of W, then of R), `lengths [B]` in int32, `H [D, B, H]`, `C [D, B, H]`, `P [D, 3H]` of gates i, o, f.
/// Outputs: `Y [S, D, B, H]`, 0 beyond the length of a sequence, and the last states `H`, `C [D, B, H]`, 0 for an empty
/// sequence. With `batch_first`: `X [B, S, I]`, `Y [B, S, D, H]`, states `[B, D, H]`. `float16` and `bfloat16` are computed
/// in `float32`.
///
/// Source: [ONNX LSTM](https://onnx.ai/onnx/operators/onnx__LSTM.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lstm {
    /// H, the size of the state.
    pub hidden: usize,
    /// One or two directions, each of three functions.
    pub directions: Vec<Direction>,
    /// What the sums of the gates are clipped to, on both sides.
    pub clip: Option<f32>,
    /// Whether `f = 1 − i`.
    pub input_forget: bool,
    /// Whether the batch is the first axis.
    pub batch_first: bool,
}

/// `z, r = f(X·Wᵀ + H·Rᵀ + b)`, `n = g(X·Wᵀ + (r ∘ H)·Rᵀ + b)`, `H = (1 − z) ∘ n + z ∘ H`, step by step, in D directions.
///
/// Inputs: `X [S, B, I]`, `W [D, 3H, I]` and `R [D, 3H, H]` of gates z, r, n, then, each of which may be absent:
/// `bias [D, 6H]` (of W, then of R), `lengths [B]` in int32, `H [D, B, H]`. Outputs, `batch_first` and dtypes as those of
/// `Lstm`, without C.
///
/// Source: [ONNX GRU](https://onnx.ai/onnx/operators/onnx__GRU.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gru {
    /// H, the size of the state.
    pub hidden: usize,
    /// One or two directions, each of two functions.
    pub directions: Vec<Direction>,
    /// What the sums of the gates are clipped to, on both sides.
    pub clip: Option<f32>,
    /// Whether `n = g(X·Wᵀ + r ∘ (H·Rᵀ + b) + b)`.
    pub linear_before_reset: bool,
    /// Whether the batch is the first axis.
    pub batch_first: bool,
}

/// `H = f(X·Wᵀ + H·Rᵀ + b)`, step by step, in D directions.
///
/// Inputs: `X [S, B, I]`, `W [D, H, I]`, `R [D, H, H]`, then, each of which may be absent: `bias [D, 2H]` (of W, then of R),
/// `lengths [B]` in int32, `H [D, B, H]`. Outputs, `batch_first` and dtypes as those of `Lstm`, without C.
///
/// Source: [ONNX RNN](https://onnx.ai/onnx/operators/onnx__RNN.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rnn {
    /// H, the size of the state.
    pub hidden: usize,
    /// One or two directions, each of one function.
    pub directions: Vec<Direction>,
    /// What the sum is clipped to, on both sides.
    pub clip: Option<f32>,
    /// Whether the batch is the first axis.
    pub batch_first: bool,
}

/// What the three ops have in common.
struct Recurrence<'a> {
    cell: Cell,
    hidden: usize,
    directions: &'a [Direction],
    clip: Option<f32>,
    batch_first: bool,
}

macro_rules! kernel {
    ($Op:ident, $inputs:expr, $outputs:expr, $op:ident => $cell:expr) => {
        impl $Op {
            fn recurrence(&self) -> Recurrence<'_> {
                let $op = self;
                let Self { hidden, clip, batch_first, .. } = *self;
                Recurrence { cell: $cell, hidden, directions: &self.directions, clip, batch_first }
            }
        }

        impl Kernel for $Op {
            fn arity(&self) -> Arity {
                Arity { inputs: 3..=$inputs, outputs: 1..=$outputs }
            }

            fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
                self.recurrence().infer(inputs)
            }

            fn prepack(&self, constants: &Constants) -> Result<Option<Packed>> {
                self.recurrence().prepack(constants)
            }

            fn work(&self, inputs: &Types, outputs: &[Type]) -> Option<Work> {
                Work::multiplying(inputs, outputs, work::recurrent([X, W, R].map(|i| inputs.tensor(i).ok())))
            }

            fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
                let dtype = call.tensor(X)?.dtype();
                dispatch!(stringify!($Op), dtype, [f32, f64, f16, bf16], T => self.recurrence().run::<T>(call))
            }
        }
    };
}

kernel! { Lstm, 8, 3, op => Cell::Lstm { input_forget: op.input_forget } }
kernel! { Gru, 6, 2, op => Cell::Gru { linear_before_reset: op.linear_before_reset } }
kernel! { Rnn, 6, 2, _op => Cell::Rnn }

// The places of the inputs.
const X: usize = 0;
const W: usize = 1;
const R: usize = 2;
const BIAS: usize = 3;
const LENGTHS: usize = 4;
const H: usize = 5;
const C: usize = 6;
const P: usize = 7;
const NAMES: [&str; 8] = ["X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P"];

/// The sizes of a run.
struct Sizes {
    steps: usize,
    batch: usize,
}

impl Recurrence<'_> {
    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(X)?;
        require_dtype("X", x.dtype, &FLOATS)?;
        self.check_attributes()?;
        let types = (0..inputs.len()).map(|i| Ok(inputs.optional_tensor(i)?.cloned())).collect::<Result<Vec<_>>>()?;
        self.check(&types)?;
        let [steps, batch] = self.outer(x);
        let directions = Some(Dim::Size(self.directions.len()));
        let hidden = Some(Dim::Size(self.hidden));
        let (y, state): (Shape, Shape) = if self.batch_first {
            (vec![batch.clone(), steps, directions.clone(), hidden.clone()], vec![batch, directions, hidden])
        } else {
            (vec![steps, directions.clone(), batch.clone(), hidden.clone()], vec![directions, batch, hidden])
        };
        let of = |shape| Type::Tensor(TensorType { dtype: x.dtype, shape: Some(shape) });
        Ok([of(y), of(state.clone()), of(state)].into_iter().take(inputs.outputs).collect())
    }

    fn check_attributes(&self) -> Result<()> {
        let functions = match self.cell {
            Cell::Lstm { .. } => 3,
            Cell::Gru { .. } => 2,
            Cell::Rnn => 1,
        };
        if self.hidden == 0 || self.hidden > usize::MAX / 64 {
            bail!("the hidden size {} is out of range", self.hidden);
        }
        if !(1..=2).contains(&self.directions.len()) {
            bail!("a recurrent layer has one or two directions, not {}", self.directions.len());
        }
        if let Some(other) = self.directions.iter().find(|direction| direction.activations.len() != functions) {
            bail!("a direction needs {functions} activations, found {}", other.activations.len());
        }
        if let Some(limit) = self.clip.filter(|limit| limit.is_nan() || *limit <= 0.0) {
            bail!("the limit of a clip is positive, not {limit}");
        }
        Ok(())
    }

    /// The numbers of steps and of sequences in `X`, where they are known.
    fn outer(&self, x: &TensorType) -> [Option<Dim>; 2] {
        let at = |axis: usize| x.shape.as_ref().and_then(|shape| shape.get(axis).cloned().flatten());
        [at(usize::from(self.batch_first)), at(usize::from(!self.batch_first))]
    }

    /// Refuses inputs that do not fit one another.
    fn check(&self, inputs: &[Option<TensorType>]) -> Result<()> {
        let Some(Some(x)) = inputs.first() else { bail!("input X is missing") };
        let size = |size: usize| Some(Dim::Size(size));
        let (directions, hidden) = (size(self.directions.len()), size(self.hidden));
        let rows = self.cell.gates() * self.hidden;
        let [steps, batch] = self.outer(x);
        let batch_first = |shape: [Option<Dim>; 2]| if self.batch_first { [shape[1].clone(), shape[0].clone()] } else { shape };
        let [d, b] = batch_first([directions.clone(), batch.clone()]);
        let [outer, inner] = batch_first([steps, batch.clone()]);
        let state = vec![d, b, hidden.clone()];
        let expected: [Shape; 8] = [
            vec![outer, inner, x.size(2).map(Dim::Size)],
            vec![directions.clone(), size(rows), x.size(2).map(Dim::Size)],
            vec![directions.clone(), size(rows), hidden],
            vec![directions.clone(), size(2 * rows)],
            vec![batch],
            state.clone(),
            state,
            vec![directions, size(3 * self.hidden)],
        ];
        for (i, shape) in expected.into_iter().enumerate() {
            let Some(Some(found)) = inputs.get(i) else { continue };
            let dtype = if i == LENGTHS { DType::Int32 } else { x.dtype };
            let expected = TensorType { dtype, shape: Some(shape) };
            if !found.agrees_with(&expected) {
                let (found, expected) = (Type::Tensor(found.clone()), Type::Tensor(expected));
                bail!("{} is {found}, where {expected} is needed", NAMES[i]);
            }
        }
        Ok(())
    }

    fn prepack(&self, constants: &Constants) -> Result<Option<Packed>> {
        let present = |i: usize| constants.types.get(i).copied().flatten().is_some();
        let weights = [W, R, BIAS, P].map(|i| constants.tensor(i));
        let ready = [W, R, BIAS, P].into_iter().zip(&weights).all(|(i, found)| found.is_some() || !present(i));
        let (Some(w), Some(r), true) = (weights[0], weights[1], ready) else { return Ok(None) };
        let kind = |array: &Array| TensorType::sized(array.dtype(), array.dims());
        let inputs = w.dims().last().copied().unwrap_or(0);
        let mut types = vec![None; 8];
        types[X] = Some(TensorType { dtype: w.dtype(), shape: Some(vec![None, None, Some(Dim::Size(inputs))]) });
        for (i, found) in [W, R, BIAS, P].into_iter().zip(&weights) {
            types[i] = found.map(kind);
        }
        self.check_attributes()?;
        self.check(&types)?;
        let packed: Packed = dispatch!("a recurrent layer", w.dtype(), [f32, f64, f16, bf16], T => {
            Ok::<Packed, Error>(Box::new(self.layers::<T>(w, r, weights[2], weights[3])?))
        })?;
        Ok(Some(packed))
    }

    /// The weights of each direction, ready. The shapes have been checked.
    fn layers<T: Float<Wide: Scalar>>(
        &self,
        w: &Array,
        r: &Array,
        bias: Option<&Array>,
        peepholes: Option<&Array>,
    ) -> Result<Vec<Layer<T::Wide>>> {
        let read = |array: &Array| Ok::<_, Error>(T::widen(&array.read::<T>()?).into_owned());
        let (w, r) = (read(w)?, read(r)?);
        let (bias, peepholes) = (bias.map(read).transpose()?, peepholes.map(read).transpose()?);
        let layer = |d: usize| {
            let part = |all: &[T::Wide]| {
                let length = all.len() / self.directions.len();
                d * length..(d + 1) * length
            };
            let bias = bias.as_deref().map(|all| &all[part(all)]);
            let peepholes = peepholes.as_deref().map(|all| &all[part(all)]);
            Layer::new(Isa::get(), self.cell, &w[part(&w)], &r[part(&r)], bias, peepholes, self.hidden)
        };
        Ok((0..self.directions.len()).map(layer).collect())
    }

    fn run<T: Float<Wide: Scalar>>(&self, call: &Call) -> Result<Vec<Value>> {
        let sizes = self.sizes(call)?;
        let lengths = self.lengths(call, &sizes)?;
        let packed_here;
        let layers = match call.packed::<Vec<Layer<T::Wide>>>() {
            Some(packed) => packed,
            None => {
                let (bias, peepholes) = (call.optional_tensor(BIAS)?, call.optional_tensor(P)?);
                packed_here = self.layers::<T>(call.tensor(W)?, call.tensor(R)?, bias, peepholes)?;
                &packed_here
            }
        };
        let (mut h, mut c) = (self.state::<T>(call, H, &sizes)?, self.state::<T>(call, C, &sizes)?);
        let y = self.pass::<T>(call, layers, &sizes, lengths.as_deref(), &mut h, &mut c)?;
        let Sizes { steps, batch } = sizes;
        let directions = self.directions.len();
        let (dims, state) = if self.batch_first {
            ([batch, steps, directions, self.hidden], [batch, directions, self.hidden])
        } else {
            ([steps, directions, batch, self.hidden], [directions, batch, self.hidden])
        };
        let states = [h, c].map(|x| self.swapped(x, directions, batch));
        let mut outputs = vec![Array::new(T::narrow(y), &dims)?.into()];
        for x in states.into_iter().take(call.outputs - 1) {
            outputs.push(Array::new(T::narrow(x), &state)?.into());
        }
        Ok(outputs)
    }

    /// Runs every direction: updates the states `[D, B, H]` and gives `Y`.
    fn pass<T: Float<Wide: Scalar>>(
        &self,
        call: &Call,
        layers: &[Layer<T::Wide>],
        sizes: &Sizes,
        lengths: Option<&[usize]>,
        h: &mut [T::Wide],
        c: &mut [T::Wide],
    ) -> Result<Vec<T::Wide>> {
        let &Sizes { steps, batch } = sizes;
        let (hidden, directions) = (self.hidden, self.directions.len());
        let x = call.read::<T>(X)?;
        let x = T::widen(&x);
        let mut y = room::<T::Wide>(&[steps, directions, batch, hidden])?;
        if lengths.is_some() {
            y.fill(T::Wide::ZERO);
        }
        let mut workspace = Vec::new();
        for (d, (layer, direction)) in layers.iter().zip(self.directions).enumerate() {
            let activations = functions(&direction.activations);
            let clip = self.clip.map(|limit| T::Wide::from_f64(f64::from(limit)));
            let (reversed, batch_first) = (direction.reversed, self.batch_first);
            let pass = Pass { layer, activations, clip, reversed, batch, steps, lengths, batch_first };
            if d == 0 {
                workspace = room(&[pass.workspace().unwrap_or(usize::MAX)])?;
            }
            let part = d * batch * hidden..(d + 1) * batch * hidden;
            let (h, c) = (&mut h[part.clone()], &mut c[part]);
            pass.run(Isa::get(), call.threads, &x, [&mut *h, &mut *c], &mut workspace, |step, b, h| {
                let row = if batch_first { (b * steps + step) * directions + d } else { (step * directions + d) * batch + b };
                y[row * hidden..][..hidden].copy_from_slice(h);
            });
            for b in (0..batch).filter(|&b| lengths.map_or(steps, |lengths| lengths[b]) == 0) {
                h[b * hidden..][..hidden].fill(T::Wide::ZERO);
                c[b * hidden..][..hidden].fill(T::Wide::ZERO);
            }
        }
        Ok(y)
    }

    fn sizes(&self, call: &Call) -> Result<Sizes> {
        let kind = |i| Ok(call.optional_tensor(i)?.map(|array| TensorType::sized(array.dtype(), array.dims())));
        let types = (0..call.len()).map(kind).collect::<Result<Vec<_>>>()?;
        self.check_attributes()?;
        self.check(&types)?;
        match *call.tensor(X)?.dims() {
            [batch, steps, _] if self.batch_first => Ok(Sizes { steps, batch }),
            [steps, batch, _] => Ok(Sizes { steps, batch }),
            ref other => bail!("X must have three axes, found {other:?}"),
        }
    }

    fn lengths(&self, call: &Call, sizes: &Sizes) -> Result<Option<Vec<usize>>> {
        let Some(lengths) = call.optional_tensor(LENGTHS)? else { return Ok(None) };
        let fits = |&length: &i32| match usize::try_from(length) {
            Ok(length) if length <= sizes.steps => Ok(length),
            _ => Err(Error::op(format!("a sequence of length {length} among {} steps", sizes.steps))),
        };
        lengths.read::<i32>()?.iter().map(fits).collect::<Result<_>>().map(Some)
    }

    /// A state `[D, B, H]`: input `i`, or zeros.
    fn state<T: Float>(&self, call: &Call, i: usize, sizes: &Sizes) -> Result<Vec<T::Wide>> {
        if let Some(state) = call.optional_tensor(i)? {
            let state = T::widen(&state.read::<T>()?).into_owned();
            return Ok(self.swapped(state, sizes.batch, self.directions.len()));
        }
        let mut zeros = room::<T::Wide>(&[self.directions.len(), sizes.batch, self.hidden])?;
        zeros.fill(T::Wide::ZERO);
        Ok(zeros)
    }

    /// With the batch first: a state `[outer, inner, H]` as `[inner, outer, H]`.
    fn swapped<V: Copy>(&self, state: Vec<V>, outer: usize, inner: usize) -> Vec<V> {
        if !self.batch_first || outer == 1 || inner == 1 {
            return state;
        }
        let rows = (0..inner).flat_map(|i| (0..outer).map(move |o| (o * inner + i) * self.hidden));
        rows.flat_map(|row| &state[row..row + self.hidden]).copied().collect()
    }
}

/// A direction's functions; a cell reads no more than it has.
fn functions(given: &[Activation]) -> [Activation; 3] {
    std::array::from_fn(|i| given.get(i).copied().unwrap_or(Activation::Tanh))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run_outputs, tensor};

    fn data(dims: &[usize], seed: usize) -> Vec<f64> {
        (0..dims.iter().product()).map(|i: usize| ((i + seed) * 7919 % 101) as f64 / 64.0 - 0.75).collect()
    }

    fn floats<T: Float>(dims: &[usize], seed: usize) -> Option<Value> {
        let wide = data(dims, seed).into_iter().map(T::Wide::from_f64).collect();
        Some(tensor(&T::narrow(wide), dims))
    }

    fn directions(count: usize, functions: usize) -> Vec<Direction> {
        let activations = [Activation::Sigmoid, Activation::Tanh, Activation::Tanh][3 - functions..].to_vec();
        (0..count).map(|d| Direction { reversed: d == 1, activations: activations.clone() }).collect()
    }

    /// The three ops in two directions, with a hidden size of 5.
    fn ops(batch_first: bool) -> [Box<dyn Kernel>; 3] {
        let (hidden, clip) = (5, Some(1.5));
        [
            Box::new(Lstm { hidden, directions: directions(2, 3), clip, input_forget: false, batch_first }),
            Box::new(Gru { hidden, directions: directions(2, 2), clip, linear_before_reset: false, batch_first }),
            Box::new(Rnn { hidden, directions: directions(2, 1), clip, batch_first }),
        ]
    }

    /// All outputs of op `op` for four steps of three sequences, of lengths 4, 0 and 2.
    fn outputs<T: Float>(op: usize, batch_first: bool) -> Result<Vec<Value>> {
        let rows = [20, 15, 5][op];
        let (x, state) = if batch_first { ([3, 4, 6], [3, 2, 5]) } else { ([4, 3, 6], [2, 3, 5]) };
        let mut inputs = vec![
            floats::<T>(&x, 0),
            floats::<T>(&[2, rows, 6], 1),
            floats::<T>(&[2, rows, 5], 2),
            floats::<T>(&[2, 2 * rows], 3),
            Some(tensor(&[4i32, 0, 2], &[3])),
            floats::<T>(&state, 4),
        ];
        if op == 0 {
            inputs.extend([floats::<T>(&state, 5), floats::<T>(&[2, 15], 6)]);
        }
        run_outputs(&*ops(batch_first)[op], &inputs, if op == 0 { 3 } else { 2 })
    }

    fn wide(values: &[Value]) -> Result<Vec<f64>> {
        let parts = values.iter().map(|value| crate::float::read_wide::<f64>(value.tensor()?));
        Ok(parts.collect::<Result<Vec<_>>>()?.concat())
    }

    #[test]
    fn every_dtype_follows_double_precision() -> Result<()> {
        for (op, batch_first) in (0..3).flat_map(|op| [(op, false), (op, true)]) {
            let expected = wide(&outputs::<f64>(op, batch_first)?)?;
            let cases = [
                (outputs::<f32>(op, batch_first)?, 1e-5),
                (outputs::<f16>(op, batch_first)?, 0.02),
                (outputs::<bf16>(op, batch_first)?, 0.1),
            ];
            for (found, tolerance) in cases {
                let dtype = found[0].describe();
                for (found, expected) in wide(&found)?.iter().zip(&expected) {
                    assert!((found - expected).abs() <= tolerance, "{op} {batch_first} {dtype}: {found} {expected}");
                }
            }
        }
        Ok(())
    }

    #[test]
    fn nothing_is_left_of_an_empty_sequence() -> Result<()> {
        for op in 0..3 {
            let outputs = outputs::<f32>(op, false)?;
            for state in &outputs[1..] {
                let state = wide(std::slice::from_ref(state))?;
                assert!(state.chunks(5).skip(1).step_by(3).all(|state| state == [0.0; 5]), "{op}: {state:?}");
                assert!(state[..5].iter().any(|&v| v != 0.0), "{op}: {state:?}");
            }
        }
        Ok(())
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let run = |op: &dyn Kernel, rows: usize, inputs: usize| {
            let shapes: [&[usize]; 3] = [&[4, 3, 6], &[2, rows, inputs], &[2, rows, 5]];
            let inputs: Vec<_> = shapes.iter().map(|dims| floats::<f32>(dims, 0)).collect();
            run_outputs(op, &inputs, 1)
        };
        let [lstm, ..] = ops(false);
        assert!(run(&*lstm, 20, 6).is_ok());
        assert!(run(&*lstm, 20, 7).is_err_and(|error| error.to_string().contains("W is float32 [2, 20, 7]")));
        assert!(run(&*lstm, 15, 6).is_err());
        let rnn = |hidden, directions, clip| Rnn { hidden, directions, clip, batch_first: false };
        assert!(run(&rnn(5, directions(2, 1), None), 5, 6).is_ok());
        for op in [
            rnn(0, directions(2, 1), None),
            rnn(usize::MAX, directions(2, 1), None),
            rnn(5, directions(2, 2), None),
            rnn(5, directions(0, 1), None),
            rnn(5, directions(2, 1), Some(0.0)),
        ] {
            assert!(run(&op, 5, 6).is_err(), "{op:?}");
        }
    }
}
