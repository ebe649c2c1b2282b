//! The packed weights of a layer.

use super::scalar::{Scalar, Steps};
use super::{Activation, Cell};
use crate::buffer::{copied, filled};
use crate::isa::Isa;
use crate::threads::Threads;

/// The definition of one direction of a layer.
#[derive(Debug, Clone, Copy)]
pub struct LayerDefinition<R> {
    /// The kind of recurrence.
    pub cell: Cell,
    /// The size of the state.
    pub hidden: usize,
    /// The activation functions f, g and h.
    pub activations: [Activation; 3],
    /// The absolute value to which the gates' sums are clipped.
    pub clip: Option<R>,
    /// Whether each sequence is read from its end.
    pub reversed: bool,
}

/// The weights of one direction as stored in the plan.
#[derive(Debug, Clone, Copy)]
pub struct Weights<'a, R> {
    /// `[gates · hidden, inputs]`
    pub input: &'a [R],
    /// `[gates · hidden, hidden]`
    pub state: &'a [R],
    /// `[2 · gates · hidden]`: for the input's product, then for the state's.
    pub bias: Option<&'a [R]>,
    /// `[3 · hidden]`: for LSTM's gates i, o, f.
    pub peepholes: Option<&'a [R]>,
}

/// One direction of a layer.
pub struct Layer<R: Scalar> {
    pub(super) isa: Isa,
    pub(super) definition: LayerDefinition<R>,
    pub(super) inputs: usize,
    pub(super) weights: Packed<R>,
    /// `[gates · hidden]`: the bias of the input's product.
    pub(super) bias: Vec<R>,
    /// `[hidden]`: the bias of the state's product in GRU's gate h, added before r scales it.
    pub(super) reset_bias: Vec<R>,
    /// `[3, hidden]`: for LSTM's gates i, o, f.
    pub(super) peepholes: Option<Vec<R>>,
}

/// Packed weights.
pub(super) enum Packed<R: Scalar> {
    /// For the standard activation functions.
    Fused(R::Fused),
    /// For any activation functions.
    General {
        input: R::Weights,
        /// The weights of the gates that do not depend on another gate, and of those that do.
        state: [R::Weights; 2],
    },
}

impl<R: Scalar> Layer<R> {
    /// Packs the weights.
    ///
    /// # Panics
    /// The lengths do not fit.
    pub fn new(isa: Isa, definition: LayerDefinition<R>, weights: Weights<R>) -> Layer<R> {
        let LayerDefinition { cell, hidden, .. } = definition;
        let Weights { input, state, bias: b, peepholes } = weights;
        let rows = cell.gates() * hidden;
        let inputs = input.len() / rows.max(1);
        assert_eq!((input.len(), state.len()), (rows * inputs, rows * hidden), "weights fill their shapes");
        assert!(b.is_none_or(|b| b.len() == 2 * rows) && peepholes.is_none_or(|p| p.len() == 3 * hidden));
        let (mut bias, mut reset_bias) = (filled(R::ZERO, rows), filled(R::ZERO, hidden));
        if let Some(b) = b {
            let scaled = if cell == (Cell::Gru { linear_before_reset: true }) { rows - hidden } else { rows };
            for (i, bias) in bias.iter_mut().enumerate() {
                *bias = if i < scaled { b[i] + b[rows + i] } else { b[i] };
            }
            reset_bias.copy_from_slice(&b[2 * rows - hidden..]);
        }
        let fuse = || R::Fused::new(isa, cell, [input, state], &bias, &reset_bias);
        let fused = (definition.is_standard() && peepholes.is_none()).then(fuse).flatten();
        let weights = fused.map_or_else(|| Packed::general(isa, cell, hidden, [input, state]), Packed::Fused);
        Layer { isa, definition, inputs, weights, bias, reset_bias, peepholes: peepholes.map(copied) }
    }

    /// The name of the kernel for a step.
    pub fn kernel(&self) -> &'static str {
        match self.weights {
            Packed::Fused(_) => "gates finished in registers",
            Packed::General { .. } => "gates as matrix products",
        }
    }

    /// The size of the packed weights in bytes.
    pub fn bytes(&self) -> usize {
        let weights = match &self.weights {
            Packed::Fused(fused) => fused.bytes(),
            Packed::General { input, state } => [input, &state[0], &state[1]].into_iter().map(R::bytes).sum(),
        };
        let peepholes = self.peepholes.as_deref().map_or(0, size_of_val);
        weights + size_of_val(&self.bias[..]) + size_of_val(&self.reset_bias[..]) + peepholes
    }

    /// The elements of a step's gates.
    pub(super) fn row(&self) -> usize {
        match &self.weights {
            Packed::Fused(fused) => fused.row(),
            Packed::General { .. } => self.definition.cell.gates() * self.definition.hidden,
        }
    }

    /// Computes the input's contribution to the gates `[steps, row]` from `x` `[steps, inputs]`.
    pub(super) fn project(&self, threads: &Threads, x: &[R], gates: &mut [R]) {
        match &self.weights {
            Packed::Fused(fused) => fused.project(threads, x, gates),
            Packed::General { input, .. } => R::product(self.isa, threads, x, input, Some(&self.bias), gates),
        }
    }

    /// Whether both layers have the same inputs, cell and state.
    pub(super) fn has_shape_of(&self, other: &Layer<R>) -> bool {
        let shape = |layer: &Layer<R>| (layer.inputs, layer.definition.cell, layer.definition.hidden);
        shape(self) == shape(other)
    }

    /// The elements of workspace that a task needs per sequence.
    pub(super) fn scratch(&self) -> usize {
        let LayerDefinition { cell, hidden, .. } = self.definition;
        match self.weights {
            Packed::Fused(_) => hidden,
            Packed::General { .. } => 2 * (cell.gates() + 1) * hidden,
        }
    }
}

impl<R: Scalar> Packed<R> {
    fn general(isa: Isa, cell: Cell, hidden: usize, [input, state]: [&[R]; 2]) -> Packed<R> {
        let rows = cell.gates() * hidden;
        let ready = rows - cell.deferred() * hidden;
        let (now, later) = state.split_at(ready * hidden);
        let state = [R::pack(isa, now, ready, hidden), R::pack(isa, later, rows - ready, hidden)];
        Packed::General { input: R::pack(isa, input, rows, input.len() / rows.max(1)), state }
    }
}

impl<R: Scalar> LayerDefinition<R> {
    /// Whether the gates use sigmoid and the rest tanh, sums are not clipped, and no gate depends on another one.
    fn is_standard(&self) -> bool {
        let functions: &[Activation] = match self.cell {
            Cell::Lstm { input_forget: false } => &[Activation::Sigmoid, Activation::Tanh, Activation::Tanh],
            Cell::Gru { linear_before_reset: true } => &[Activation::Sigmoid, Activation::Tanh],
            _ => return false,
        };
        self.clip.is_none() && self.activations.starts_with(functions)
    }
}
