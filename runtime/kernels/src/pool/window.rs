//! The positions of pooling windows.

use crate::scratch::Scratch;

/// Windows that are reduced in parallel: a 512-bit vector of `f32`.
pub(super) const BLOCK: usize = 16;

/// The positions of windows along one axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The input's size.
    pub input: usize,
    /// The number of windows.
    pub output: usize,
    /// The elements of a window.
    pub kernel: usize,
    /// The distance between windows.
    pub stride: usize,
    /// The distance between a window's elements.
    pub dilation: usize,
    /// The padding `[before, after]` the input.
    pub pads: [usize; 2],
}

impl Window {
    /// One window over an axis with one element.
    pub const POINT: Window = Window { input: 1, output: 1, kernel: 1, stride: 1, dilation: 1, pads: [0, 0] };

    /// Returns `(taps, input index of the first)` for the taps of window `at` that are inside the input.
    pub(super) fn inside(&self, at: usize) -> (usize, usize) {
        let begin = at * self.stride;
        let first = self.pads[0].saturating_sub(begin).div_ceil(self.dilation).min(self.kernel);
        let end = (self.pads[0] + self.input).saturating_sub(begin).div_ceil(self.dilation).min(self.kernel);
        let from = (begin + first * self.dilation).saturating_sub(self.pads[0]);
        (end.saturating_sub(first), from)
    }

    /// Returns the number of taps of window `at` that are inside the padded input.
    fn inside_padded(&self, at: usize) -> usize {
        let end = self.pads[0] + self.input + self.pads[1];
        end.saturating_sub(at * self.stride).div_ceil(self.dilation).min(self.kernel)
    }

    /// Whether there is no padding, and no window reads beyond the stride, so that rows can be concatenated.
    pub(super) fn is_closed(&self) -> bool {
        self.input == self.output * self.stride
            && self.pads == [0, 0]
            && (self.kernel - 1) * self.dilation < self.stride
    }

    /// The windows of `count` such axes, one after the other.
    pub(super) fn repeated(&self, count: usize) -> Window {
        Window { input: self.input * count, output: self.output * count, ..*self }
    }

    /// The length of a line that contains every tap of whole blocks of windows.
    pub fn line(&self) -> usize {
        let reach = (self.kernel - 1).saturating_mul(self.dilation);
        let taps = self.output.next_multiple_of(BLOCK).saturating_mul(self.stride).saturating_add(reach);
        taps.max(self.pads[0].saturating_add(self.input))
    }
}

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
