//! CPU kernels: the recurrent layers LSTM, GRU and simple RNN.

use candle_plan_descriptors::number::Arithmetic;
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::recurrent::{self, Activation, Cell, Layer, Pass, Scalar, Weights};
use candle_plan_kernels::reduce::Number;
use candle_plan_memory::buffer::collected_up_to;
use half::{bf16, f16};

use super::convert::{owned, read_widened, Float};
use super::packed::{HasKernel, Packed};
use super::planned::CpuOperands;
use crate::dispatch;
use crate::error::Result;
use crate::form::KernelForm;
use crate::kernel::{Call, Constants, Kernel};
use crate::ops::recurrent::{Direction, Gru, Lstm, Recurrence, Rnn, BIAS, C, H, LENGTHS, P, R, W, X};
use crate::ops::recurrent_inputs::lengths_within;
use crate::types::TensorType;
use crate::value::{alloc_uninit, Array, Value};

/// The packed weights of a layer, one entry per direction, in the type of the computation.
pub(super) enum Layers {
    Single(Vec<Layer<f32>>),
    Double(Vec<Layer<f64>>),
}

/// A type in which a layer can be computed.
trait Packable: Scalar {
    fn packed(layers: Vec<Layer<Self>>) -> Layers;
    fn layers(packed: &Layers) -> Option<&Vec<Layer<Self>>>;
}

macro_rules! packable {
    ($T:ident $Variant:ident) => {
        impl Packable for $T {
            fn packed(layers: Vec<Layer<$T>>) -> Layers {
                Layers::$Variant(layers)
            }

            fn layers(packed: &Layers) -> Option<&Vec<Layer<$T>>> {
                match packed {
                    Layers::$Variant(layers) => Some(layers),
                    _ => None,
                }
            }
        }
    };
}

packable! { f32 Single }

packable! { f64 Double }

impl Layers {
    fn form(&self) -> KernelForm {
        fn form<T: Scalar>(layers: &[Layer<T>]) -> KernelForm {
            let name = layers.first().map_or("", Layer::kernel);
            KernelForm::named(name).packed(layers.iter().map(Layer::bytes).sum())
        }
        match self {
            Layers::Single(layers) => form(layers),
            Layers::Double(layers) => form(layers),
        }
    }
}

macro_rules! kernel {
    ($Op:ident) => {
        impl HasKernel for $Op {
            fn kernel(&self, operands: &CpuOperands) -> Result<Box<dyn Kernel>> {
                let packed = self.recurrence().pack(&operands.constants)?;
                Ok(Packed::boxed(self, packed))
            }
        }

        impl Kernel for Packed<$Op, Option<Layers>> {
            fn is_replaced(&self, input: usize) -> bool {
                self.packed.is_some() && matches!(input, W | R | BIAS | P)
            }

            fn form(&self) -> KernelForm {
                self.packed.as_ref().map(Layers::form).unwrap_or_default()
            }

            fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
                let (op, packed) = (&self.op, self.packed.as_ref());
                let dtype = call.tensor(X)?.dtype();
                dispatch!(stringify!($Op), dtype, [f32, f64, f16, bf16], T => op.recurrence().run::<T>(packed, call))
            }
        }
    };
}

kernel! { Lstm }

kernel! { Gru }

kernel! { Rnn }

impl Recurrence<'_> {
    fn pack(&self, operands: &Constants) -> Result<Option<Layers>> {
        let present = |i: usize| operands.types.get(i).copied().flatten().is_some();
        let weights = [W, R, BIAS, P].map(|i| operands.tensor(i));
        let ready = [W, R, BIAS, P].into_iter().zip(&weights).all(|(i, found)| found.is_some() || !present(i));
        let (Some(w), Some(r), true) = (weights[0], weights[1], ready) else { return Ok(None) };
        self.check_attributes()?;
        let inputs = w.dims().last().copied();
        for (i, found) in [W, R, BIAS, P].into_iter().zip(weights) {
            let Some(found) = found else { continue };
            let kind = TensorType::sized(found.dtype(), found.dims());
            self.expected(i, w.dtype(), [None, None, inputs]).check(i, &kind)?;
        }
        dispatch!("a recurrent layer", w.dtype(), [f32, f64, f16, bf16], T => {
            let layers = self.layers::<T>(w, r, weights[2], weights[3])?;
            Ok(Some(<T as Float>::Wide::packed(layers)))
        })
    }

    /// Packs the weights of each direction, whose shapes are already checked.
    fn layers<T: Float<Wide: Scalar>>(
        &self,
        w: &Array,
        r: &Array,
        bias: Option<&Array>,
        peepholes: Option<&Array>,
    ) -> Result<Vec<Layer<T::Wide>>> {
        let (w, r) = (read_widened::<T>(w)?, read_widened::<T>(r)?);
        let (bias, peepholes) =
            (bias.map(read_widened::<T>).transpose()?, peepholes.map(read_widened::<T>).transpose()?);
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

    fn cell_of<V: Number>(&self, direction: &Direction) -> recurrent::LayerDefinition<V> {
        let clip = self.clip.map(|limit| V::from_f64(f64::from(limit)));
        let activations = &direction.activations;
        let activations = std::array::from_fn(|i| activations.get(i).copied().unwrap_or(Activation::Tanh));
        recurrent::LayerDefinition {
            cell: self.cell,
            hidden: self.hidden,
            activations,
            clip,
            reversed: direction.reversed,
        }
    }

    fn run<T: Float<Wide: Packable>>(&self, packed: Option<&Layers>, call: &Call) -> Result<Vec<Value>> {
        let sizes = self.sizes(call)?;
        let lengths = self.lengths(call, sizes[0])?;
        let packed_here;
        let layers = match packed.and_then(T::Wide::layers) {
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

    /// Runs every direction: updates the states `[D, B, H]` and returns `Y`.
    fn pass<T: Float<Wide: Scalar>>(
        &self,
        call: &Call,
        layers: &[Layer<T::Wide>],
        [steps, batch]: [usize; 2],
        lengths: Option<&[usize]>,
        [h, c]: [&mut [T::Wide]; 2],
    ) -> Result<Vec<T::Wide>> {
        let x = call.read::<T>(X)?;
        let y = alloc_uninit::<T::Wide>(&[steps, layers.len(), batch, self.hidden])?;
        let pass = Pass { layers, batch, steps, lengths, batch_first: self.batch_first };
        let workspace = alloc_uninit(&[pass.workspace(call.threads).unwrap_or(usize::MAX)])?;
        let y = y.overwrite(|y| {
            if lengths.is_some() {
                y.fill(T::Wide::ZERO);
            }
            workspace.overwrite(|workspace| pass.run(call.threads, &T::widen(x), [&mut *h, &mut *c], workspace, y));
        });
        for state in [h, c] {
            for (i, state) in state.chunks_exact_mut(self.hidden).enumerate() {
                if lengths.map_or(steps, |lengths| lengths[i % batch]) == 0 {
                    state.fill(T::Wide::ZERO);
                }
            }
        }
        Ok(y)
    }

    fn lengths(&self, call: &Call, steps: usize) -> Result<Option<Vec<usize>>> {
        let Some(lengths) = call.optional_tensor(LENGTHS)? else { return Ok(None) };
        lengths_within(lengths.read::<i32>()?, steps).map(Some)
    }

    /// Returns a state `[D, B, H]`: input `i`, or zeros.
    fn state<T: Float>(&self, call: &Call, i: usize, batch: usize) -> Result<Vec<T::Wide>> {
        if let Some(state) = call.optional_tensor(i)? {
            let state = owned(read_widened::<T>(state)?);
            return Ok(self.swapped(state, batch, self.directions.len()));
        }
        Ok(alloc_uninit(&[self.directions.len(), batch, self.hidden])?.fill(T::Wide::ZERO))
    }

    /// If the batch comes first, transposes a state `[outer, inner, H]` to `[inner, outer, H]`.
    fn swapped<V: Copy>(&self, state: Vec<V>, outer: usize, inner: usize) -> Vec<V> {
        if !self.batch_first || outer == 1 || inner == 1 {
            return state;
        }
        let rows = (0..inner).flat_map(|i| (0..outer).map(move |o| (o * inner + i) * self.hidden));
        collected_up_to(state.len(), rows.flat_map(|row| &state[row..row + self.hidden]).copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::Op;
    use crate::testing::{run_outputs, tensor};

    fn data(dims: &[usize], seed: usize) -> Vec<f64> {
        (0..dims.iter().product()).map(|i: usize| ((i + seed) * 7919 % 101) as f64 / 64.0 - 0.75).collect()
    }

    fn floats<T: Float>(dims: &[usize], seed: usize) -> Option<Value> {
        let wide = data(dims, seed).into_iter().map(T::Wide::from_f64).collect::<Vec<_>>();
        Some(tensor(&T::narrow(wide), dims))
    }

    fn directions(count: usize, functions: usize) -> Vec<Direction> {
        let activations = [Activation::Sigmoid, Activation::Tanh, Activation::Tanh][3 - functions..].to_vec();
        (0..count).map(|d| Direction { reversed: d == 1, activations: activations.clone() }).collect()
    }

    /// The three ops in two directions, with a hidden size of 5.
    fn ops(batch_first: bool) -> [Op; 3] {
        let (hidden, clip) = (5, Some(1.5));
        [
            Lstm { hidden, directions: directions(2, 3), clip, input_forget: false, batch_first }.into(),
            Gru { hidden, directions: directions(2, 2), clip, linear_before_reset: false, batch_first }.into(),
            Rnn { hidden, directions: directions(2, 1), clip, batch_first }.into(),
        ]
    }

    /// Returns all outputs of op `op` for four steps of three sequences with lengths 4, 0 and 2.
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
        run_outputs(&ops(batch_first)[op], &inputs, if op == 0 { 3 } else { 2 })
    }

    fn wide(values: &[Value]) -> Result<Vec<f64>> {
        let parts = values.iter().map(|value| value.tensor()?.to_f64());
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
    fn an_empty_sequence_has_zero_states() -> Result<()> {
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
    fn mismatched_inputs_are_refused() {
        let run = |op: &Op, rows: usize, inputs: usize| {
            let shapes: [&[usize]; 3] = [&[4, 3, 6], &[2, rows, inputs], &[2, rows, 5]];
            let inputs: Vec<_> = shapes.iter().map(|dims| floats::<f32>(dims, 0)).collect();
            run_outputs(op, &inputs, 1)
        };
        let [lstm, ..] = ops(false);
        assert!(run(&lstm, 20, 6).is_ok());
        assert!(run(&lstm, 20, 7).is_err_and(|error| error.to_string().contains("W is float32 [2, 20, 7]")));
        assert!(run(&lstm, 15, 6).is_err());
        let rnn = |hidden, directions, clip| Rnn { hidden, directions, clip, batch_first: false };
        assert!(run(&rnn(5, directions(2, 1), None).into(), 5, 6).is_ok());
        for op in [
            rnn(0, directions(2, 1), None),
            rnn(usize::MAX, directions(2, 1), None),
            rnn(5, directions(2, 2), None),
            rnn(5, directions(0, 1), None),
            rnn(5, directions(2, 1), Some(0.0)),
        ] {
            assert!(run(&op.clone().into(), 5, 6).is_err(), "{op:?}");
        }
    }
}
