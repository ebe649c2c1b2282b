//! Steps with the usual functions, sigmoid and tanh: the state's weights are read once, from front to back, and the gates
//! of a unit are finished while their sums are in registers.
//!
//! The operations and their order are those of the general steps, so that both give the same bits: the product with the
//! state is a sum of sums over [`PIECE`] of its elements, and is added to what the input gave.

mod cells;
mod sums;

use super::Cell;
use crate::gemm::tile::PIECE;
use crate::gemm::{Lines, Shared};
use crate::isa::Isa;
use crate::threads::Threads;
use crate::vector::{dispatch_isa, Vector};
use cells::{Finish, Gru, Lstm, Units};

/// The state's weights, `[blocks][hidden][gates][lanes]`: a block is a vector of units, the last one filled up with zeros.
pub struct Fused {
    isa: Isa,
    gates: usize,
    hidden: usize,
    lanes: usize,
    weights: Lines,
    /// `[hidden]`: what is added to the product of GRU's gate h.
    reset_bias: Vec<f32>,
}

/// One step of every sequence of a batch.
pub struct Turn<'a, R> {
    /// What the inputs give to the gates: rows of `gates · hidden`.
    pub gates: &'a [R],
    /// The row of each sequence; `None` where it has ended.
    pub rows: &'a [Option<usize>],
    /// `[batch, hidden]`: the states before the step.
    pub h: &'a [R],
    /// `[batch, hidden]`: the states after it.
    pub next: &'a mut [R],
    /// `[batch, hidden]`: LSTM's cells.
    pub c: &'a mut [R],
    /// Whether the weights are read from the back: those that were read last are still near.
    pub backwards: bool,
}

/// Products that are worth several threads.
const SPLIT: usize = 1 << 18;

impl Fused {
    /// Packs the weights of a cell's state, `[gates · hidden, hidden]`.
    pub(super) fn new(isa: Isa, cell: Cell, state: &[f32], reset_bias: &[f32]) -> Fused {
        let (gates, hidden) = (cell.gates(), reset_bias.len());
        let mut lanes = 0;
        dispatch_isa!(isa, (lanes: &mut usize = &mut lanes), V => *lanes = V::LANES);
        let mut weights = Lines::for_overwrite(hidden.div_ceil(lanes) * lanes * gates * hidden);
        weights.fill(0.0);
        for (row, from) in state.chunks_exact(hidden).enumerate() {
            let (gate, unit) = (row / hidden, row % hidden);
            let first = (unit / lanes * hidden * gates + gate) * lanes + unit % lanes;
            weights[first..].iter_mut().step_by(gates * lanes).zip(from).for_each(|(to, &from)| *to = from);
        }
        Fused { isa, gates, hidden, lanes, weights, reset_bias: reset_bias.to_vec() }
    }

    /// Takes a step.
    ///
    /// # Panics
    /// The lengths do not fit.
    pub(super) fn turn(&self, threads: &Threads, turn: Turn<f32>) {
        let Turn { gates, rows, h, next, c, backwards } = turn;
        let (hidden, states) = (self.hidden, rows.len() * self.hidden);
        let row = self.gates * hidden;
        assert!(h.len() == states && next.len() == states && (self.gates == 3 || c.len() == states), "states");
        assert!(rows.iter().flatten().all(|&i| (i + 1) * row <= gates.len()), "rows of gates");
        let blocks = hidden.div_ceil(self.lanes);
        let worth = rows.len() * row * hidden / SPLIT;
        let parts = threads.count().min(blocks).min(worth).max(1);
        let step = Step { fused: self, gates, rows, h, next: Shared::new(next), c: Shared::new(c), backwards };
        threads.for_each(parts, |part| {
            let blocks = [blocks * part / parts, blocks * (part + 1) / parts];
            dispatch_isa!(self.isa, (step: &Step = &step, blocks: [usize; 2] = blocks), V => {
                // SAFETY: the assertions above; the blocks of the parts are disjoint.
                unsafe {
                    match step.fused.gates {
                        4 => step.blocks::<V, Lstm, 4>(blocks),
                        _ => step.blocks::<V, Gru, 3>(blocks),
                    }
                }
            });
        });
    }
}

/// A [`Turn`] whose lengths have been found to fit, shared by tasks that finish disjoint units.
struct Step<'a> {
    fused: &'a Fused,
    gates: &'a [f32],
    rows: &'a [Option<usize>],
    h: &'a [f32],
    next: Shared,
    c: Shared,
    backwards: bool,
}

/// The methods are unsafe for one reason: the units they finish exist, and are no other task's.
impl Step<'_> {
    /// Blocks `blocks[0] .. blocks[1]` of all sequences. What is one piece is read two blocks at a time for one sequence, so
    /// that enough sums are under way.
    #[inline(always)]
    unsafe fn blocks<V: Vector, F: Finish<G>, const G: usize>(&self, blocks: [usize; 2]) {
        let in_pairs = self.rows.len() == 1 && self.fused.hidden <= PIECE;
        let length = if in_pairs { 2 } else { 1 };
        let count = (blocks[1] - blocks[0]).div_ceil(length);
        for i in 0..count {
            let block = blocks[0] + length * if self.backwards { count - 1 - i } else { i };
            // SAFETY: as for this function.
            unsafe {
                if in_pairs && block + 2 <= blocks[1] {
                    let weights = [block, block + 1].map(|block| self.weights(block));
                    let [first, second] = sums::chains::<V, G, 2>(weights, [self.h.as_ptr(); 2], self.fused.hidden);
                    self.finish::<V, F, G>(first, block, 0);
                    self.finish::<V, F, G>(second, block + 1, 0);
                } else {
                    self.sequences::<V, F, G>(block);
                }
            }
        }
    }

    /// A block of all sequences, of which several share a weight when it is loaded.
    #[inline(always)]
    unsafe fn sequences<V: Vector, F: Finish<G>, const G: usize>(&self, block: usize) {
        let mut sequence = 0;
        while sequence < self.rows.len() {
            // SAFETY: as for this function.
            unsafe {
                sequence += match self.rows.len() - sequence {
                    4.. if V::LANES == 16 => self.together::<V, F, G, 4>(block, sequence),
                    2.. => self.together::<V, F, G, 2>(block, sequence),
                    _ => self.alone::<V, F, G>(block, sequence),
                };
            }
        }
    }

    /// A block of `M` sequences from `first` on. Returns `M`.
    #[inline(always)]
    unsafe fn together<V: Vector, F: Finish<G>, const G: usize, const M: usize>(
        &self,
        block: usize,
        first: usize,
    ) -> usize {
        // SAFETY: as for this function.
        unsafe {
            let h = self.h.as_ptr().add(first * self.fused.hidden);
            let sums = sums::together::<V, G, M>(self.weights(block), h, self.fused.hidden);
            for (m, sums) in sums.into_iter().enumerate() {
                self.finish::<V, F, G>(sums, block, first + m);
            }
        }
        M
    }

    /// A block of one sequence. Returns 1.
    #[inline(always)]
    unsafe fn alone<V: Vector, F: Finish<G>, const G: usize>(&self, block: usize, sequence: usize) -> usize {
        // SAFETY: as for this function.
        unsafe {
            let h = self.h.as_ptr().add(sequence * self.fused.hidden);
            self.finish::<V, F, G>(sums::alone(self.weights(block), h, self.fused.hidden), block, sequence);
        }
        1
    }

    /// The weights of a block.
    fn weights(&self, block: usize) -> *const f32 {
        let Fused { gates, hidden, lanes, weights, .. } = self.fused;
        weights.as_ptr().wrapping_add(block * hidden * gates * lanes)
    }

    /// Finishes the units of a block of one sequence; where it has ended, its state stays as it is.
    #[inline(always)]
    unsafe fn finish<V: Vector, F: Finish<G>, const G: usize>(&self, products: [V; G], block: usize, sequence: usize) {
        let (hidden, unit) = (self.fused.hidden, block * V::LANES);
        let (state, count) = (sequence * hidden + unit, (hidden - unit).min(V::LANES));
        let (h, next) = (self.h[state..].as_ptr(), self.next.at(state));
        // SAFETY: as for this function.
        unsafe {
            let Some(row) = self.rows[sequence] else { return V::load_first(h, count).store_first(next, count) };
            let gates = self.gates[row * G * hidden + unit..].as_ptr();
            let bias = self.fused.reset_bias[unit..].as_ptr();
            F::finish(products, Units { gates, hidden, bias, h, next, c: self.c.at(state), count });
        }
    }
}
