//! Recurrent layers: LSTM, GRU and the simple one.

use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::lanes::Real;
use candle_plan_kernels::recurrent::{self, Activation, Cell, Layer, Pass, Scalar, Weights};
use candle_plan_kernels::reduce::Number;
use half::{bf16, f16};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::recurrent_inputs::Expected;
use crate::device::on_device;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::float::{require_dtype, Float, FLOATS};
use crate::form::Form;
use crate::kernel::{Arity, Call, Constants, Kernel, Packed, Types};
use crate::types::{Dim, TensorType, Type};
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
/// Inputs: `X [S, B, I]`, `W [D, H, I]`, `R [D, H, H]`, then, each of which may be absent: `bias [D, 2H]` (of W, then
/// of R), `lengths [B]` in int32, `H [D, B, H]`. Outputs, `batch_first` and dtypes as those of `Lstm`, without C.
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
pub(crate) struct Recurrence<'a> {
    pub cell: Cell,
    pub hidden: usize,
    pub directions: &'a [Direction],
    pub clip: Option<f32>,
    pub batch_first: bool,
}

macro_rules! kernel {
    ($Op:ident, $inputs:expr, $outputs:expr, $op:ident => $cell:expr) => {
        impl $Op {
            pub(crate) fn recurrence(&self) -> Recurrence<'_> {
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

            fn is_replaced(&self, input: usize) -> bool {
                matches!(input, W | R | BIAS | P)
            }

            fn form(&self, packed: Option<&Packed>) -> Form {
                layers_form::<f32>(packed).unwrap_or_else(|| layers_form::<f64>(packed).unwrap_or_default())
            }

            fn work(&self, inputs: &Types, outputs: &[Type]) -> Option<Work> {
                Work::multiplying(inputs, outputs, work::recurrent([X, W, R].map(|i| inputs.tensor(i).ok())))
            }

            on_device!("recurrent" if |self, operands| operands.dtype(X).is_some());

            fn fault(&self) -> &'static str {
                "a sequence is longer than X"
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

/// How packed layers, one a direction, run; `None` where they are of another type.
fn layers_form<T: Scalar>(packed: Option<&Packed>) -> Option<Form> {
    let layers = packed?.downcast_ref::<Vec<Layer<T>>>()?;
    Some(Form::named(layers.first()?.kernel()).packed(layers.iter().map(Layer::bytes).sum()))
}

// The places of the inputs.
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
        let inner = [self.directions.len(), self.hidden].map(|size| Some(Dim::Size(size)));
        let (y, state) = self.shapes(outer, inner);
        let of = |shape: &[Option<Dim>]| Type::Tensor(TensorType { dtype: x.dtype, shape: Some(shape.to_vec()) });
        Ok([of(&y), of(&state), of(&state)].into_iter().take(inputs.outputs).collect())
    }

    fn check_attributes(&self) -> Result<()> {
        if self.hidden == 0 || self.hidden > usize::MAX / 64 {
            bail!("the hidden size {} is out of range", self.hidden);
        }
        if !(1..=2).contains(&self.directions.len()) {
            bail!("a recurrent layer has one or two directions, not {}", self.directions.len());
        }
        let functions = self.cell.functions();
        if let Some(other) = self.directions.iter().find(|direction| direction.activations.len() != functions) {
            bail!("a direction needs {functions} activations, found {}", other.activations.len());
        }
        if let Some(limit) = self.clip.filter(|limit| limit.is_nan() || *limit <= 0.0) {
            bail!("the limit of a clip is positive, not {limit}");
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

    /// The numbers of steps and of sequences in `X`, where they are known.
    fn outer(&self, x: &TensorType) -> [Option<Dim>; 2] {
        let at = |axis: usize| x.shape.as_ref().and_then(|shape| shape.get(axis).cloned().flatten());
        [at(usize::from(self.batch_first)), at(usize::from(!self.batch_first))]
    }

    /// What input `i` has to be, where `X` is of `[steps, batch, inputs]`.
    fn expected(&self, i: usize, dtype: DType, [steps, batch, inputs]: [Option<usize>; 3]) -> Expected {
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

    fn prepack(&self, constants: &Constants) -> Result<Option<Packed>> {
        let present = |i: usize| constants.types.get(i).copied().flatten().is_some();
        let weights = [W, R, BIAS, P].map(|i| constants.tensor(i));
        let ready = [W, R, BIAS, P].into_iter().zip(&weights).all(|(i, found)| found.is_some() || !present(i));
        let (Some(w), Some(r), true) = (weights[0], weights[1], ready) else { return Ok(None) };
        self.check_attributes()?;
        let inputs = w.dims().last().copied();
        for (i, found) in [W, R, BIAS, P].into_iter().zip(weights) {
            let Some(found) = found else { continue };
            let kind = TensorType::sized(found.dtype(), found.dims());
            self.expected(i, w.dtype(), [None, None, inputs]).check(i, &kind)?;
        }
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
        let read = |array: &Array| Ok::<_, Error>(T::widen(array.read::<T>()?).into_owned());
        let (w, r) = (read(w)?, read(r)?);
        let (bias, peepholes) = (bias.map(read).transpose()?, peepholes.map(read).transpose()?);
        let layer = |d: usize| {
            let part = |all: &[T::Wide]| {
                let length = all.len() / self.directions.len();
                d * length..(d + 1) * length
            };
            let bias = bias.as_deref().map(|all| &all[part(all)]);
            let peepholes = peepholes.as_deref().map(|all| &all[part(all)]);
            let weights = Weights { input: &w[part(&w)], state: &r[part(&r)], bias, peepholes };
            Layer::new(Isa::get(), self.cell_of(&self.directions[d]), weights)
        };
        Ok((0..self.directions.len()).map(layer).collect())
    }

    fn cell_of<V: Number>(&self, direction: &Direction) -> recurrent::Form<V> {
        let clip = self.clip.map(|limit| V::from_f64(f64::from(limit)));
        let given = &direction.activations;
        let activations = std::array::from_fn(|i| given.get(i).copied().unwrap_or(Activation::Tanh));
        recurrent::Form { cell: self.cell, hidden: self.hidden, activations, clip, reversed: direction.reversed }
    }

    fn run<T: Float<Wide: Scalar>>(&self, call: &Call) -> Result<Vec<Value>> {
        let sizes = self.sizes(call)?;
        let lengths = self.lengths(call, sizes[0])?;
        let packed_here;
        let layers = match call.packed::<Vec<Layer<T::Wide>>>() {
            Some(packed) => packed,
            None => {
                let (bias, peepholes) = (call.optional_tensor(BIAS)?, call.optional_tensor(P)?);
                packed_here = self.layers::<T>(call.tensor(W)?, call.tensor(R)?, bias, peepholes)?;
                &packed_here
            }
        };
        let mut h = self.state::<T>(call, H, sizes[1])?;
        let mut c = match self.cell {
            Cell::Lstm { .. } => self.state::<T>(call, C, sizes[1])?,
            _ => Vec::new(),
        };
        let y = self.pass::<T>(call, layers, sizes, lengths.as_deref(), [&mut h, &mut c])?;
        let directions = self.directions.len();
        let (dims, state) = self.shapes(sizes, [directions, self.hidden]);
        let mut outputs = vec![Array::new(T::narrow(y), &dims)?.into()];
        for x in [h, c].into_iter().take(call.outputs - 1) {
            outputs.push(Array::new(T::narrow(self.swapped(x, directions, sizes[1])), &state)?.into());
        }
        Ok(outputs)
    }

    /// Runs every direction: updates the states `[D, B, H]` and gives `Y`.
    fn pass<T: Float<Wide: Scalar>>(
        &self,
        call: &Call,
        layers: &[Layer<T::Wide>],
        [steps, batch]: [usize; 2],
        lengths: Option<&[usize]>,
        [h, c]: [&mut [T::Wide]; 2],
    ) -> Result<Vec<T::Wide>> {
        let x = call.read::<T>(X)?;
        let mut y = room::<T::Wide>(&[steps, layers.len(), batch, self.hidden])?;
        if lengths.is_some() {
            y.fill(T::Wide::ZERO);
        }
        let pass = Pass { layers, batch, steps, lengths, batch_first: self.batch_first };
        let mut workspace = room(&[pass.workspace(call.threads).unwrap_or(usize::MAX)])?;
        pass.run(call.threads, &T::widen(x), [&mut *h, &mut *c], &mut workspace, &mut y);
        for state in [h, c] {
            for (i, state) in state.chunks_exact_mut(self.hidden).enumerate() {
                if lengths.map_or(steps, |lengths| lengths[i % batch]) == 0 {
                    state.fill(T::Wide::ZERO);
                }
            }
        }
        Ok(y)
    }

    /// The numbers of steps and of sequences in `X`, which the other inputs must fit.
    ///
    /// # Errors
    /// One does not fit.
    pub(crate) fn sizes(&self, call: &Call) -> Result<[usize; 2]> {
        self.check_attributes()?;
        let x = call.tensor(X)?;
        let (steps, batch, inputs) = match *x.dims() {
            [batch, steps, inputs] if self.batch_first => (steps, batch, inputs),
            [steps, batch, inputs] => (steps, batch, inputs),
            ref other => bail!("X must have three axes, found {other:?}"),
        };
        for i in 0..call.len() {
            let Some(found) = call.optional_tensor(i)? else { continue };
            let expected = self.expected(i, x.dtype(), [Some(steps), Some(batch), Some(inputs)]);
            if !expected.is_met(found) {
                expected.check(i, &TensorType::sized(found.dtype(), found.dims()))?;
            }
        }
        Ok([steps, batch])
    }

    fn lengths(&self, call: &Call, steps: usize) -> Result<Option<Vec<usize>>> {
        let Some(lengths) = call.optional_tensor(LENGTHS)? else { return Ok(None) };
        let fits = |&length: &i32| match usize::try_from(length) {
            Ok(length) if length <= steps => Ok(length),
            _ => Err(Error::op(format!("a sequence of length {length} among {steps} steps"))),
        };
        lengths.read::<i32>()?.iter().map(fits).collect::<Result<_>>().map(Some)
    }

    /// A state `[D, B, H]`: input `i`, or zeros.
    fn state<T: Float>(&self, call: &Call, i: usize, batch: usize) -> Result<Vec<T::Wide>> {
        if let Some(state) = call.optional_tensor(i)? {
            let state = T::widen(state.read::<T>()?).into_owned();
            return Ok(self.swapped(state, batch, self.directions.len()));
        }
        let mut zeros = room::<T::Wide>(&[self.directions.len(), batch, self.hidden])?;
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
