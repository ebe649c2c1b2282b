//! The positions of pooling windows.

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
    pub fn inside(&self, at: usize) -> (usize, usize) {
        let begin = at * self.stride;
        let first = self.pads[0].saturating_sub(begin).div_ceil(self.dilation).min(self.kernel);
        let end = (self.pads[0] + self.input).saturating_sub(begin).div_ceil(self.dilation).min(self.kernel);
        let from = (begin + first * self.dilation).saturating_sub(self.pads[0]);
        (end.saturating_sub(first), from)
    }

    /// Returns the number of taps of window `at` that are inside the padded input.
    pub fn inside_padded(&self, at: usize) -> usize {
        let end = self.pads[0] + self.input + self.pads[1];
        end.saturating_sub(at * self.stride).div_ceil(self.dilation).min(self.kernel)
    }

    /// Whether there is no padding, and no window reads beyond the stride, so that rows can be concatenated.
    pub fn is_closed(&self) -> bool {
        self.input == self.output.saturating_mul(self.stride) && self.pads == [0, 0] && self.reach() < self.stride
    }

    /// The windows of `count` such axes, one after the other.
    #[must_use]
    pub fn repeated(&self, count: usize) -> Window {
        Window { input: self.input * count, output: self.output * count, ..*self }
    }

    /// The length of a line that contains every tap of whole blocks of `block` windows.
    pub fn line(&self, block: usize) -> usize {
        let taps = self.output.next_multiple_of(block).saturating_mul(self.stride).saturating_add(self.reach());
        taps.max(self.pads[0].saturating_add(self.input))
    }

    /// The distance between the first and the last tap of a window.
    fn reach(&self) -> usize {
        (self.kernel - 1).saturating_mul(self.dilation)
    }
}
