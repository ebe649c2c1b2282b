//! The positions of pooling windows.

pub use candle_plan_descriptors::pool::Window;

use crate::scratch::Scratch;

/// Windows that are reduced in parallel: a 512-bit vector of `f32`.
pub const BLOCK: usize = 16;

/// The divisor of an average.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Divisor {
    /// The number of elements of the window inside the input.
    Inside,
    /// The number of elements inside the input or its padding.
    Padded,
}

/// The elements of an axis that a window covers.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    /// The input index of its first element.
    pub from: usize,
    /// The number of its elements inside the input.
    pub taps: usize,
    /// The number of its elements for an average.
    pub count: f32,
}

impl Span {
    /// Whether its elements, with distance `dilation`, are inside an axis of `input` elements.
    pub fn lies_in(&self, input: usize, dilation: usize) -> bool {
        self.taps == 0 || self.from + (self.taps - 1) * dilation < input
    }
}

/// Returns the span of each window.
pub(crate) fn spans(window: &Window, by: Divisor) -> Scratch<Span> {
    let span = |at: usize| {
        let (taps, from) = window.inside(at);
        let count = if by == Divisor::Inside { taps } else { window.inside_padded(at) };
        Span { from, taps, count: count as f32 }
    };
    Scratch::of((0..window.output).map(span))
}
