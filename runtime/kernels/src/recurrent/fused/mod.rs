//! Layers with the standard activation functions, sigmoid and tanh. The weights are read from front to back, one block
//! of units at a time. A unit's activations are applied while its sums are in registers.
//!
//! The operations and their order are the same as in the general steps, so both give the same bits. A product is a sum of
//! partial sums over [`PIECE`] terms, which are added to the bias one after the other. The state's product is added to
//! the input's.

mod cells;
mod sums;

use std::marker::PhantomData;

use super::Cell;
use crate::buffer::copied;
use crate::gemm::tile::PIECE;
use crate::gemm::{Lines, Shared};
use crate::isa::Isa;
use crate::threads::Threads;
use crate::vector::{dispatch_isa, Vector};
use cells::{Finish, Gru, Lstm, Units};
use sums::Sink;

/// The packed weights of a layer. A block is one vector of units; the last one is padded with zeros.
pub struct Fused {
    isa: Isa,
    gates: usize,
    inputs: usize,
    hidden: usize,
    lanes: usize,
    /// `[blocks][inputs][gates][lanes]`
    input: Lines,
    /// `[blocks][hidden][gates][lanes]`
    state: Lines,
    /// `[blocks][gates][lanes]`
    bias: Lines,
    /// `[hidden]`: the bias of the state's product in GRU's gate h.
    reset_bias: Vec<f32>,
}

/// The operands of one step of every sequence of a batch.
pub struct Turn<'a, R> {
    /// The input's contribution to the gates: rows from [`Fused::project`].
    pub gates: &'a [R],
    /// The row of each sequence; `None` if the sequence has ended.
    pub rows: &'a [Option<usize>],
    /// `[batch, hidden]`: the states before the step.
    pub h: &'a [R],
    /// `[batch, hidden]`: the states after the step.
    pub next: &'a mut [R],
    /// `[batch, hidden]`: LSTM's cell states.
    pub c: &'a mut [R],
    /// Whether the weights are read backwards, because the ones read last are still in the cache.
    pub backwards: bool,
}

/// Multiplications that are worth another thread.
const SPLIT: usize = 1 << 18;

impl Fused {
    /// Packs the weights of a cell's input and state, `[gates · hidden, …]`.
    pub(super) fn new(isa: Isa, cell: Cell, [input, state]: [&[f32]; 2], bias: &[f32], reset_bias: &[f32]) -> Fused {
        let (gates, hidden) = (cell.gates(), reset_bias.len());
        let mut lanes = 0;
        dispatch_isa!(isa, (lanes: &mut usize = &mut lanes), V => *lanes = V::LANES);
        let inputs = input.len() / (gates * hidden).max(1);
        let [input, state, bias] = [(input, inputs), (state, hidden), (bias, 1)].map(|(weights, length)| {
            let mut packed = Lines::zeroed(hidden.div_ceil(lanes) * lanes * gates * length);
            for (row, from) in weights.chunks_exact(length.max(1)).enumerate() {
                let (gate, unit) = (row / hidden, row % hidden);
                let first = (unit / lanes * length * gates + gate) * lanes + unit % lanes;
                packed[first..].iter_mut().step_by(gates * lanes).zip(from).for_each(|(to, &from)| *to = from);
            }
            packed
        });
        Fused { isa, gates, inputs, hidden, lanes, input, state, bias, reset_bias: copied(reset_bias) }
    }

    /// The size of the packed weights in bytes.
    pub(super) fn bytes(&self) -> usize {
        let lines = [&self.input, &self.state, &self.bias].map(|lines| size_of_val(&lines[..]));
        lines.iter().sum::<usize>() + size_of_val(&self.reset_bias[..])
    }

    fn blocks(&self) -> usize {
        self.hidden.div_ceil(self.lanes)
    }

    /// The elements of a step's gates, `[blocks][gates][lanes]`.
    pub(super) fn row(&self) -> usize {
        self.blocks() * self.gates * self.lanes
    }

    /// Computes the gates of steps with the inputs `x` `[steps, inputs]`.
    ///
    /// # Panics
    /// The lengths do not fit.
    pub(super) fn project(&self, threads: &Threads, x: &[f32], gates: &mut [f32]) {
        let (rows, blocks) = (gates.len() / self.row(), self.blocks());
        assert!(gates.len() == rows * self.row() && x.len() == rows * self.inputs, "inputs of {rows} steps");
        let worth = (gates.len() * self.inputs / SPLIT).clamp(1, threads.count());
        let parts = [worth.min(blocks), (worth / worth.min(blocks)).min(rows.max(1))];
        let gates = Shared::new(gates);
        threads.for_each(parts[0] * parts[1], |i| {
            let part = |whole: usize, i: usize, parts: usize| [whole * i / parts, whole * (i + 1) / parts];
            let (blocks, rows) = (part(blocks, i % parts[0], parts[0]), part(rows, i / parts[0], parts[1]));
            dispatch_isa!(self.isa, (this: &Fused = self, x: &[f32] = x, gates: Shared = gates, blocks: [usize; 2] = blocks,
                rows: [usize; 2] = rows), V => {
                // SAFETY: asserted above; the parts are disjoint rows of blocks.
                unsafe {
                    match this.gates {
                        4 => this.project_blocks::<V, 4>(x, gates, blocks, rows),
                        _ => this.project_blocks::<V, 3>(x, gates, blocks, rows),
                    }
                }
            });
        });
    }

    /// Computes the gates of blocks `blocks[0] .. blocks[1]` in rows `rows[0] .. rows[1]`.
    ///
    /// # Safety
    /// The blocks and rows exist, and no other task writes them.
    #[inline(always)]
    unsafe fn project_blocks<V: Vector, const G: usize>(
        &self,
        x: &[f32],
        gates: Shared,
        blocks: [usize; 2],
        rows: [usize; 2],
    ) {
        for block in blocks[0]..blocks[1] {
            let first = block * G * V::LANES;
            let weights = self.input.as_ptr().wrapping_add(first * self.inputs);
            let to = Gates { gates: gates.at(first), row: self.row() };
            // SAFETY: guaranteed by the caller.
            unsafe {
                let bias = std::array::from_fn(|g| V::load(self.bias.as_ptr().add(first + g * V::LANES)));
                sums::of_rows::<V, G>(bias, weights, (x.as_ptr(), self.inputs), rows, &to);
            }
        }
    }

    /// Runs a step.
    ///
    /// # Panics
    /// The lengths do not fit.
    pub(super) fn turn(&self, turn: Turn<f32>) {
        let Turn { gates, rows, h, next, c, backwards } = turn;
        let states = rows.len() * self.hidden;
        assert!(h.len() == states && next.len() == states && (self.gates == 3 || c.len() == states), "states");
        assert!(rows.iter().flatten().all(|&i| i < gates.len() / self.row()), "rows of gates");
        let step = Step { fused: self, gates, rows, h, next: next.as_mut_ptr(), c: c.as_mut_ptr(), backwards };
        dispatch_isa!(self.isa, (step: &Step = &step), V => {
            // SAFETY: the assertions above.
            unsafe {
                match step.fused.gates {
                    4 => step.all_blocks::<V, Lstm, 4>(),
                    _ => step.all_blocks::<V, Gru, 3>(),
                }
            }
        });
    }
}

/// A block of the gates of all rows. The row stride is `row`, and the gates can be written.
struct Gates {
    gates: *mut f32,
    row: usize,
}

impl<V: Vector, const G: usize> Sink<V, G> for Gates {
    #[inline(always)]
    unsafe fn accept(&self, row: usize, sums: [V; G]) {
        let to = self.gates.wrapping_add(row * self.row);
        for (g, sum) in sums.into_iter().enumerate() {
            // SAFETY: guaranteed by the caller.
            unsafe { sum.store(to.wrapping_add(g * V::LANES)) };
        }
    }
}

/// A [`Turn`] with checked lengths.
struct Step<'a> {
    fused: &'a Fused,
    gates: &'a [f32],
    rows: &'a [Option<usize>],
    h: &'a [f32],
    next: *mut f32,
    c: *mut f32,
    backwards: bool,
}

/// The methods are unsafe because they require that their units exist.
impl Step<'_> {
    /// Computes all blocks of all sequences. With one sequence, blocks are computed in pairs, unless its state is a
    /// whole number of pairs of pieces.
    #[inline(always)]
    unsafe fn all_blocks<V: Vector, F: Finish<G>, const G: usize>(&self) {
        let blocks = self.fused.blocks();
        let is_one = self.rows.len() == 1;
        let length = if is_one && !self.fused.hidden.is_multiple_of(2 * PIECE) { 2 } else { 1 };
        let count = blocks.div_ceil(length);
        for i in 0..count {
            let block = length * if self.backwards { count - 1 - i } else { i };
            // SAFETY: as for this function.
            unsafe {
                match (blocks - block).min(length) {
                    2 => self.pair::<V, F, G>(block),
                    _ if is_one => self.single::<V, F, G>(block),
                    _ => self.block::<V, F, G>(block),
                }
            }
        }
    }

    /// Computes a block for a single sequence.
    #[inline(always)]
    unsafe fn single<V: Vector, F: Finish<G>, const G: usize>(&self, block: usize) {
        let zero = [V::splat(0.0); G];
        // SAFETY: as for this function.
        unsafe {
            let sums = sums::alone(zero, self.weights(block), self.h.as_ptr(), self.fused.hidden);
            self.finish::<V, F, G>(sums, block, 0);
        }
    }

    /// Computes two blocks for a single sequence.
    #[inline(always)]
    unsafe fn pair<V: Vector, F: Finish<G>, const G: usize>(&self, block: usize) {
        let weights = [block, block + 1].map(|block| self.weights(block));
        let zero = [[V::splat(0.0); G]; 2];
        // SAFETY: as for this function.
        unsafe {
            let [first, second] = sums::of_blocks(zero, weights, self.h.as_ptr(), self.fused.hidden);
            self.finish::<V, F, G>(first, block, 0);
            self.finish::<V, F, G>(second, block + 1, 0);
        }
    }

    /// Computes a block for all sequences.
    #[inline(always)]
    unsafe fn block<V: Vector, F: Finish<G>, const G: usize>(&self, block: usize) {
        let (h, zero) = ((self.h.as_ptr(), self.fused.hidden), [V::splat(0.0); G]);
        let to = Block { step: self, block, cell: PhantomData::<F> };
        // SAFETY: as for this function.
        unsafe { sums::of_rows(zero, self.weights(block), h, [0, self.rows.len()], &to) }
    }

    /// Returns the weights of a block.
    fn weights(&self, block: usize) -> *const f32 {
        let Fused { gates, hidden, lanes, state, .. } = self.fused;
        state.as_ptr().wrapping_add(block * hidden * gates * lanes)
    }

    /// Applies the cell to the units of a block of one sequence. A sequence that has ended keeps its state.
    #[inline(always)]
    unsafe fn finish<V: Vector, F: Finish<G>, const G: usize>(&self, products: [V; G], block: usize, sequence: usize) {
        let (hidden, unit) = (self.fused.hidden, block * V::LANES);
        let (state, count) = (sequence * hidden + unit, (hidden - unit).min(V::LANES));
        let (h, next) = (self.h[state..].as_ptr(), self.next.wrapping_add(state));
        // SAFETY: as for this function; rows of gates consist of whole blocks.
        unsafe {
            let Some(row) = self.rows[sequence] else { return V::load_first(h, count).store_first(next, count) };
            let gates = self.gates.as_ptr().add(row * self.fused.row() + unit * G);
            let gates = std::array::from_fn(|g| V::load(gates.add(g * V::LANES)));
            let bias = self.fused.reset_bias[unit..].as_ptr();
            F::finish(gates, products, Units { bias, h, next, c: self.c.wrapping_add(state), count });
        }
    }
}

/// A block of a step; its rows are sequences.
struct Block<'a, F> {
    step: &'a Step<'a>,
    block: usize,
    cell: PhantomData<F>,
}

impl<V: Vector, F: Finish<G>, const G: usize> Sink<V, G> for Block<'_, F> {
    #[inline(always)]
    unsafe fn accept(&self, row: usize, sums: [V; G]) {
        // SAFETY: guaranteed by the caller.
        unsafe { self.step.finish::<V, F, G>(sums, self.block, row) }
    }
}
