//! The steps of some sequences in one direction.

use crate::scratch::Scratch;
use std::marker::PhantomData;

use super::fused::Turn;
use super::general::Step;
use super::layer::Packed;
use super::scalar::Steps;
use super::{Layer, Scalar};

/// Sequences of a batch, and the order in which their steps are read.
#[derive(Clone, Copy)]
pub(super) struct Sequences<'a> {
    /// The number of sequences in the whole batch.
    pub batch: usize,
    pub steps: usize,
    pub lengths: Option<&'a [usize]>,
    pub batch_first: bool,
    pub reversed: bool,
    /// The range of sequences: `first .. first + count`.
    pub first: usize,
    pub count: usize,
}

impl Sequences<'_> {
    /// The row that a sequence reads at a turn; `None` if the sequence has ended.
    fn row(&self, turn: usize, sequence: usize) -> Option<usize> {
        let b = self.first + sequence;
        let length = self.lengths.map_or(self.steps, |lengths| lengths[b].min(self.steps));
        let step = if self.reversed { length.checked_sub(turn + 1) } else { Some(turn).filter(|&turn| turn < length) }?;
        Some(if self.batch_first { b * self.steps + step } else { step * self.batch + b })
    }
}

/// The work of a thread: some sequences in one direction.
pub(super) struct Task<'a, R: Scalar> {
    pub layer: &'a Layer<R>,
    pub sequences: Sequences<'a>,
    /// The input's contribution to the gates, `[batch · steps, row]`.
    pub gates: &'a [R],
    /// The states h and c of the sequences.
    pub states: [&'a mut [R]; 2],
    pub scratch: &'a mut [R],
    pub y: Direction<'a, R>,
}

impl<R: Scalar> Task<'_, R> {
    pub fn run(&mut self) {
        let (Sequences { steps, count, .. }, hidden) = (self.sequences, self.layer.definition.hidden);
        let mut rows = Scratch::filled(None, count);
        for turn in 0..steps {
            rows.iter_mut().enumerate().for_each(|(i, row)| *row = self.sequences.row(turn, i));
            self.step(&rows, turn % 2 == 1);
            for (row, h) in rows.iter().zip(self.states[0].chunks_exact(hidden)) {
                let Some(row) = *row else { continue };
                // SAFETY: the rows of this direction's sequences belong to this task.
                unsafe { self.y.write(row, h) };
            }
        }
        if matches!(self.layer.weights, Packed::Fused(_)) && steps % 2 == 1 {
            self.scratch.copy_from_slice(self.states[0]);
        }
    }

    /// Runs one step of every sequence that has a row.
    fn step(&mut self, rows: &[Option<usize>], backwards: bool) {
        let [h, c] = &mut self.states;
        match &self.layer.weights {
            Packed::Fused(fused) => {
                fused.turn(Turn { gates: self.gates, rows, h, next: self.scratch, c, backwards });
                std::mem::swap(h, &mut self.scratch);
            }
            Packed::General { state: weights, .. } => {
                Step { layer: self.layer, weights, gates: self.gates, rows }.run([h, c], self.scratch);
            }
        }
    }
}

/// `Y`, shared by tasks that write disjoint rows.
#[derive(Clone, Copy)]
pub(super) struct Y<'a, R> {
    first: *mut R,
    /// The number of directions, the number of sequences, and the length of a row.
    sizes: [usize; 3],
    rows: usize,
    batch_first: bool,
    elements: PhantomData<&'a mut [R]>,
}

/// The rows of `Y` for one direction.
#[derive(Clone, Copy)]
pub(super) struct Direction<'a, R> {
    y: Y<'a, R>,
    number: usize,
}

// SAFETY: tasks that share it write disjoint elements, of a type that is `Send`.
unsafe impl<R: Send> Send for Y<'_, R> {}

impl<'a, R: Copy> Y<'a, R> {
    /// `y` is `[steps, D, batch, hidden]` or `[batch, steps, D, hidden]`; `sizes` is `[D, batch, hidden]`.
    pub fn new(y: &'a mut [R], sizes: [usize; 3], batch_first: bool) -> Self {
        let rows = y.len() / sizes[2].max(1);
        Y { first: y.as_mut_ptr(), sizes, rows, batch_first, elements: PhantomData }
    }

    pub fn direction(self, number: usize) -> Direction<'a, R> {
        Direction { y: self, number }
    }
}

impl<R: Copy> Direction<'_, R> {
    /// Writes the output for a `row` of [`Sequences`].
    ///
    /// # Safety
    /// No other task writes this row.
    unsafe fn write(self, row: usize, from: &[R]) {
        let [directions, batch, hidden] = self.y.sizes;
        let row = match self.y.batch_first {
            true => row * directions + self.number,
            false => (row / batch * directions + self.number) * batch + row % batch,
        };
        assert!(row < self.y.rows && from.len() == hidden, "Y has no such row");
        // SAFETY: asserted above; the caller guarantees that no other task writes the row.
        unsafe { self.y.first.add(row * hidden).copy_from_nonoverlapping(from.as_ptr(), hidden) };
    }
}
