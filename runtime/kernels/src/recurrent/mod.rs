//! Recurrent layers: LSTM, GRU and the simple RNN. One product multiplies the inputs of all steps with their weights.
//! Each step then multiplies the state with its weights, and applies the gates.

mod fused;
mod general;
mod layer;
mod scalar;
mod task;
#[cfg(test)]
mod tests;

pub use candle_plan_descriptors::recurrent::{Activation, Cell};
pub use layer::{Layer, LayerDefinition, Weights};
pub use scalar::Scalar;

use crate::threads::Threads;
use task::{Sequences, Task, Y};

/// One pass over a batch of sequences, in D independent directions.
pub struct Pass<'a, R: Scalar> {
    /// The directions; they have the same cell and size.
    pub layers: &'a [Layer<R>],
    /// The number of sequences.
    pub batch: usize,
    /// The steps of a sequence, including padding.
    pub steps: usize,
    /// The steps of each sequence, without padding.
    pub lengths: Option<&'a [usize]>,
    /// Whether the layout is `[batch, steps, …]` instead of `[steps, batch, …]`.
    pub batch_first: bool,
}

/// The multiplications from which steps are split among threads.
const SPLIT: usize = 1 << 20;
/// The cost of the activations of a gate, in multiplications.
const FINISH: usize = 16;

impl<R: Scalar> Pass<'_, R> {
    /// The elements of workspace that [`Pass::run`] needs. They hold, for the directions that run at the same time, the
    /// gates of all steps and the scratch memory of each sequence. `None` if the number overflows.
    pub fn workspace(&self, threads: &Threads) -> Option<usize> {
        let one = |layer: &Layer<R>| self.steps.checked_mul(layer.row())?.checked_add(layer.scratch());
        let most = self.layers.iter().map(one).try_fold(0, |most, one| Some(one?.max(most)))?;
        most.checked_mul(self.batch)?.checked_mul(self.layers.len().min(self.threads(threads)))
    }

    /// The number of threads for the steps.
    fn threads(&self, threads: &Threads) -> usize {
        let one = |layer: &Layer<R>| layer.row().saturating_mul(layer.definition.hidden + FINISH);
        let turn = self.layers.iter().map(one).fold(0, usize::saturating_add);
        let worth = turn.saturating_mul(self.steps).saturating_mul(self.batch) / SPLIT;
        threads.count().min(worth.max(1))
    }

    /// Reads `x` `[steps, batch, inputs]` or `[batch, steps, inputs]`. Updates the states `h` and (LSTM) `c`, both
    /// `[D, batch, hidden]`. Writes the state after every step within the length of its sequence to `y`
    /// `[steps, D, batch, hidden]` or `[batch, steps, D, hidden]`. Overwrites `workspace`, which has
    /// [`Pass::workspace`] elements.
    ///
    /// # Panics
    /// The lengths of the slices do not fit, or the directions differ in shape.
    pub fn run(&self, threads: &Threads, x: &[R], [h, c]: [&mut [R]; 2], workspace: &mut [R], y: &mut [R]) {
        let Some(first) = self.layers.first() else { return };
        let states = self.layers.len() * self.batch * first.definition.hidden;
        assert!(self.layers.iter().all(|layer| layer.has_shape_of(first)), "directions of one shape");
        assert_eq!((x.len(), h.len()), (self.steps * self.batch * first.inputs, states));
        assert_eq!((y.len(), workspace.len()), (self.steps * states, self.workspace(threads).unwrap_or(usize::MAX)));
        assert!(self.lengths.is_none_or(|lengths| lengths.len() == self.batch));
        assert!(first.definition.cell.gates() < 4 || c.len() == states);
        if states == 0 {
            return;
        }
        let y = Y::new(y, [self.layers.len(), self.batch, first.definition.hidden], self.batch_first);
        self.directions(threads, x, [h, c], workspace, y);
    }

    /// Runs as many directions at a time as there are threads.
    fn directions(&self, threads: &Threads, x: &[R], states: [&mut [R]; 2], workspace: &mut [R], y: Y<R>) {
        let count = self.threads(threads);
        let together = self.layers.len().min(count);
        let parts = (count / together).clamp(1, self.batch);
        let [mut h, mut c] = states;
        for (i, layers) in self.layers.chunks(together).enumerate() {
            let (mut unused, mut tasks) = (&mut *workspace, Vec::with_capacity(layers.len() * parts));
            for (d, layer) in layers.iter().enumerate() {
                let gates = take(&mut unused, self.steps * self.batch * layer.row());
                layer.project(threads, x, gates);
                for part in 0..parts {
                    let sequences = self.sequences(layer.definition.reversed, part, parts);
                    let states = sequences.count * layer.definition.hidden;
                    let states = [take(&mut h, states), take(&mut c, states)];
                    let scratch = take(&mut unused, sequences.count * layer.scratch());
                    tasks.push(Task { layer, sequences, gates, states, scratch, y: y.direction(i * together + d) });
                }
            }
            // The units of one sequence form one task, so that their weights stay in one core's cache.
            threads.for_each_chunk(&mut tasks, 1, |_, tasks| tasks.iter_mut().for_each(Task::run));
        }
    }

    /// Returns a part of the sequences.
    fn sequences(&self, reversed: bool, part: usize, parts: usize) -> Sequences<'_> {
        let Pass { batch, steps, lengths, batch_first, .. } = *self;
        let first = batch * part / parts;
        Sequences { batch, steps, lengths, batch_first, reversed, first, count: batch * (part + 1) / parts - first }
    }
}

/// Splits off the first `count` elements, or all if there are fewer.
fn take<'a, R>(rest: &mut &'a mut [R], count: usize) -> &'a mut [R] {
    rest.split_off_mut(..count.min(rest.len())).unwrap_or_default()
}
