//! GPU kernels: recurrent layers. One product computes the inputs of all steps; each step multiplies the state and
//! evaluates the gates.

#[cfg(test)]
mod tests;

use bytemuck::{Pod, Zeroable};
use candle_plan_descriptors::recurrent::{Activation, Cell};
use candle_plan_device::{Fault, Gpu, Grid, Mirror, Report, Symbol};

use super::gemm::{Matrices, Product};
use super::launch::{alloc_uninit, count, kind, launch, Params};
use super::{gpu_kernel, OnGpu};
use crate::dtype::DType;
use crate::error::Result;
use crate::kernel::Call;
use crate::ops::recurrent::{Gru, Lstm, Recurrence, Rnn, BIAS, C, H, LENGTHS, P, R, W, X};
use crate::ops::recurrent_inputs::length_out_of_range;
use crate::value::{Array, Value};

macro_rules! on_gpu {
    ($Op:ident) => {
        gpu_kernel!($Op: "recurrent" if |self, operands| operands.dtype(X).is_some());

        impl OnGpu for $Op {
            fn fault(&self, report: &Report) -> String {
                length_out_of_range(report.value, report.place, report.bound(0))
            }

            fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
                Layer::new(&self.recurrence(), gpu, call)?.run()
            }
        }
    };
}

on_gpu! { Lstm }
on_gpu! { Gru }
on_gpu! { Rnn }

/// The function of a gate, with its parameters.
#[derive(Clone, Copy, Pod, Zeroable, Mirror)]
#[repr(C)]
#[kernel(GateFunction in "recurrent.cu")]
struct GateFunction {
    code: u32,
    a: f32,
    b: f32,
}

/// `Recurrence::sizes` checked that the inputs have the elements that its sizes require, and `Layer` allocates the rest
/// with these sizes.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(RecurrentStep in "recurrent.cu")]
struct StepParams {
    projected: u64,
    products: u64,
    kept: u64,
    waited: u64,
    bias: u64,
    peepholes: u64,
    lengths: u64,
    h: u64,
    c: u64,
    y: u64,
    count: u32,
    directions: u32,
    batch: u32,
    steps: u32,
    hidden: u32,
    gates: u32,
    ready: u32,
    turn: u32,
    batch_first: u32,
    reversed: [u32; 2],
    variant: u32,
    clips: u32,
    limit: f32,
    functions: [[GateFunction; 3]; 2],
}

/// The sizes are those of `StepParams`.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(RecurrentState in "recurrent.cu")]
struct StateParams {
    from: u64,
    to: u64,
    lengths: u64,
    fault: Fault,
    count: u32,
    directions: u32,
    batch: u32,
    hidden: u32,
    steps: u32,
    batch_first: u32,
}

/// Both tensors have `count` elements.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(Widened in "recurrent.cu")]
struct WidenParams {
    from: u64,
    to: u64,
    count: u32,
    padding: u32,
}

/// One run of a layer.
struct Layer<'a, 'v> {
    recurrence: &'a Recurrence<'a>,
    gpu: &'a Gpu,
    call: &'a Call<'a, 'v>,
    dtype: DType,
    /// The type of the computation.
    wide: DType,
    directions: usize,
    batch: usize,
    steps: usize,
    hidden: usize,
    /// The rows of the weights of one direction, and the number of rows whose products do not depend on a gate.
    rows: usize,
    ready: usize,
}

impl<'a, 'v> Layer<'a, 'v> {
    fn new(recurrence: &'a Recurrence<'a>, gpu: &'a Gpu, call: &'a Call<'a, 'v>) -> Result<Layer<'a, 'v>> {
        let [steps, batch] = recurrence.sizes(call)?;
        let dtype = call.tensor(X)?.dtype();
        let wide = if dtype == DType::Float64 { DType::Float64 } else { DType::Float32 };
        let (hidden, directions, gates) = (recurrence.hidden, recurrence.directions.len(), recurrence.cell.gates());
        let waiting = usize::from(recurrence.cell == Cell::Gru { linear_before_reset: false });
        let [rows, ready] = [gates * hidden, (gates - waiting) * hidden];
        Ok(Layer { recurrence, gpu, call, dtype, wide, directions, batch, steps, hidden, rows, ready })
    }

    fn run(&self) -> Result<Vec<Value>> {
        let state = [self.directions, self.batch, self.hidden];
        let (y_dims, state_dims) = self.recurrence.shapes([self.steps, self.batch], [self.directions, self.hidden]);
        let h = self.first_state(H)?;
        let c = match self.recurrence.cell {
            Cell::Lstm { .. } => Some(self.first_state(C)?),
            _ => None,
        };
        let y = self.alloc_uninit(&y_dims, self.dtype)?;
        let projected = self.project()?;
        let products = self.alloc_uninit(&[self.directions, self.batch, self.ready], self.wide)?;
        let waiting = match self.ready == self.rows {
            true => None,
            false => Some([self.alloc_uninit(&state, self.wide)?, self.alloc_uninit(&state, self.wide)?]),
        };
        let [kept, waited] = match &waiting {
            Some([kept, waited]) => [kept.address()?, waited.address()?],
            None => [0; 2],
        };
        let mut params = StepParams {
            projected: projected.address()?,
            products: products.address()?,
            kept,
            waited,
            h: h.address()?,
            c: c.as_ref().map_or(Ok(0), Array::address)?,
            y: y.address()?,
            ..self.params()?
        };
        let weights = self.state_weights()?;
        for turn in 0..self.steps {
            params.turn = count(turn)?;
            self.step(&params, &weights, [&h, &products], waiting.as_ref())?;
        }
        let mut outputs = vec![y.into()];
        for state in [Some(h), c].into_iter().flatten().take(self.call.outputs.saturating_sub(1)) {
            outputs.push(self.last_state(&state, &state_dims)?.into());
        }
        Ok(outputs)
    }

    /// Computes a step: products of the state, and gates.
    fn step(
        &self,
        params: &StepParams,
        weights: &Array,
        [h, products]: [&Array; 2],
        waiting: Option<&[Array; 2]>,
    ) -> Result<()> {
        self.multiply_state(h, weights, 0, products)?;
        let name = match self.recurrence.cell {
            Cell::Lstm { .. } => "lstm",
            Cell::Gru { .. } => "gru",
            Cell::Rnn => "rnn",
        };
        if let Some([kept, waited]) = waiting {
            self.launch("reset", params.count, params)?;
            self.multiply_state(kept, weights, self.ready, waited)?;
        }
        self.launch(name, params.count, params)
    }

    /// Computes `out [D, B, n] = state [D, B, H] · Rᵀ`, for the rows of R from `first` on.
    fn multiply_state(&self, state: &Array, weights: &Array, first: usize, out: &Array) -> Result<()> {
        let n = if first == 0 { self.ready } else { self.rows - first };
        let [start, next] = [first, self.rows].map(|rows| rows * self.hidden);
        let b = Matrices { tensor: weights, start, next, row: self.hidden, transposed: true };
        let product = Product { batch: self.directions, ..Product::of(self.batch, n, self.hidden) };
        let (a, c) = (Matrices::all(state, [self.batch, self.hidden]), Matrices::all(out, [self.batch, n]));
        product.run(self.gpu, a, b, c)
    }

    /// Returns the contribution of all steps' inputs to the gates, `[D, steps · B, rows]`.
    fn project(&self) -> Result<Array> {
        let (x, w) = (self.call.tensor(X)?, self.call.tensor(W)?);
        let (m, k) = (self.steps * self.batch, x.dims().last().copied().unwrap_or(0));
        let out = self.alloc_uninit(&[self.directions, m, self.rows], self.wide)?;
        let product = Product { batch: self.directions, ..Product::of(m, self.rows, k) };
        let a = Matrices { next: 0, ..Matrices::all(x, [m, k]) };
        product.run(self.gpu, a, Matrices::all(w, [self.rows, k]).columns(), Matrices::all(&out, [m, self.rows]))?;
        Ok(out)
    }

    /// Returns R in the type of the computation.
    fn state_weights(&self) -> Result<Array> {
        let weights = self.call.tensor(R)?;
        if self.dtype == self.wide {
            return Ok(weights.clone());
        }
        let wide = self.alloc_uninit(weights.dims(), self.wide)?;
        let params =
            WidenParams { from: weights.address()?, to: wide.address()?, count: count(wide.len())?, padding: 0 };
        self.launch("widen", params.count, &params)?;
        Ok(wide)
    }

    /// Returns the initial state `[D, B, H]`: input `i`, or zeros.
    fn first_state(&self, i: usize) -> Result<Array> {
        let state = self.alloc_uninit(&[self.directions, self.batch, self.hidden], self.wide)?;
        let params = StateParams { from: self.optional(i)?, to: state.address()?, ..self.state_params()? };
        self.launch("first_state", params.count, &params)?;
        Ok(state)
    }

    /// Converts a state `[D, B, H]` to an output.
    fn last_state(&self, state: &Array, dims: &[usize]) -> Result<Array> {
        let is_as_given = !self.recurrence.batch_first || self.directions == 1 || self.batch == 1;
        if self.dtype == self.wide && is_as_given {
            return state.reshape(dims);
        }
        let out = self.alloc_uninit(dims, self.dtype)?;
        let params = StateParams { from: state.address()?, to: out.address()?, ..self.state_params()? };
        self.launch("last_state", params.count, &params)?;
        Ok(out)
    }

    fn state_params(&self) -> Result<StateParams> {
        Ok(StateParams {
            lengths: self.optional(LENGTHS)?,
            fault: self.gpu.fault(&[self.steps])?,
            count: count(self.directions * self.batch * self.hidden)?,
            directions: count(self.directions)?,
            batch: count(self.batch)?,
            hidden: count(self.hidden)?,
            steps: count(self.steps)?,
            batch_first: self.recurrence.batch_first.into(),
            ..StateParams::zeroed()
        })
    }

    /// Fills the parameters that all steps share, except the addresses of tensors allocated in `run`.
    fn params(&self) -> Result<StepParams> {
        let Recurrence { cell, clip, directions, batch_first, .. } = *self.recurrence;
        let variant = matches!(cell, Cell::Lstm { input_forget: true } | Cell::Gru { linear_before_reset: true });
        let StateParams { count: elements, batch, steps, hidden, .. } = self.state_params()?;
        let mut params = StepParams {
            bias: self.optional(BIAS)?,
            peepholes: self.optional(P)?,
            lengths: self.optional(LENGTHS)?,
            count: elements,
            directions: count(self.directions)?,
            batch,
            steps,
            hidden,
            gates: count(self.rows / self.hidden)?,
            ready: count(self.ready / self.hidden)?,
            batch_first: batch_first.into(),
            variant: variant.into(),
            clips: clip.is_some().into(),
            limit: clip.unwrap_or(0.0),
            ..StepParams::zeroed()
        };
        // Kernels count rows of X in 32 bits.
        count(self.steps * self.batch)?;
        for (d, direction) in directions.iter().enumerate() {
            params.reversed[d] = direction.reversed.into();
            for (place, &function) in params.functions[d].iter_mut().zip(&direction.activations) {
                *place = GateFunction::of(function);
            }
        }
        Ok(params)
    }

    /// Returns the address of input `i`, or 0 if it is absent.
    fn optional(&self, i: usize) -> Result<u64> {
        self.call.optional_tensor(i)?.map_or(Ok(0), Array::address)
    }

    fn alloc_uninit(&self, dims: &[usize], dtype: DType) -> Result<Array> {
        alloc_uninit(self.gpu, dims, dtype)
    }

    /// Launches a kernel with one thread per element.
    fn launch<Q: Params>(&self, name: &'static str, elements: u32, params: &Q) -> Result<()> {
        let symbol = Symbol { module: "recurrent", name, kind: kind(self.dtype)? };
        launch(self.gpu, symbol, Grid::over(elements), params)
    }
}

impl GateFunction {
    fn of(function: Activation) -> GateFunction {
        let (code, [a, b]) = match function {
            Activation::Affine(a, b) => (0, [a, b]),
            Activation::Elu(a) => (1, [a, 0.0]),
            Activation::HardSigmoid(a, b) => (2, [a, b]),
            Activation::LeakyRelu(a) => (3, [a, 0.0]),
            Activation::Relu => (4, [0.0; 2]),
            Activation::ScaledTanh(a, b) => (5, [a, b]),
            Activation::Sigmoid => (6, [0.0; 2]),
            Activation::Softplus => (7, [0.0; 2]),
            Activation::Softsign => (8, [0.0; 2]),
            Activation::Tanh => (9, [0.0; 2]),
            Activation::ThresholdedRelu(a) => (10, [a, 0.0]),
        };
        GateFunction { code, a, b }
    }
}
