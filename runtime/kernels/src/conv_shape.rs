//! The sizes of a convolution.

/// The sizes of a convolution `[N, C, H, W] → [N, O, H', W']`: output `(y, x)` reads rows
/// `y · stride + i · dilation − before`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// N
    pub batch: usize,
    /// C, of all groups
    pub channels: usize,
    /// O, of all groups
    pub outputs: usize,
    /// Group `g` of the outputs reads group `g` of the channels.
    pub groups: usize,
    /// `[H, W]`
    pub input: [usize; 2],
    /// `[H', W']`
    pub output: [usize; 2],
    /// The window's rows and columns.
    pub kernel: [usize; 2],
    /// The step of the window.
    pub strides: [usize; 2],
    /// The step inside the window.
    pub dilations: [usize; 2],
    /// The zeros before the first row and column; negative: the rows and columns left out.
    pub before: [isize; 2],
}

impl Shape {
    /// Whether the convolution's input, with its padding, can be laid out with offsets of 32 bits: dilations of
    /// billions cannot.
    pub fn fits(&self) -> bool {
        // As large as the padded input, and more than the planes of any block.
        let extent = |a: usize| {
            let reach = self.kernel[a].saturating_sub(1).checked_mul(self.dilations[a])?;
            self.output[a].checked_mul(self.strides[a])?.checked_add(reach)?.checked_add(self.strides[a])
        };
        let all = |h: usize, w: usize| h.checked_mul(w)?.checked_mul(self.channels);
        let fits = |size: Option<usize>| size.is_some_and(|size| size < u32::MAX as usize);
        fits(extent(0).zip(extent(1)).and_then(|(h, w)| all(h, w))) && fits(all(self.input[0], self.input[1]))
    }

    /// The same convolution along rows, where all that stands is one column: rows are what is fast.
    pub(crate) fn lying(&self) -> Shape {
        let one = [self.input[1], self.output[1], self.kernel[1]] == [1; 3] && self.before[1] == 0;
        if !one {
            return self.clone();
        }
        fn turned<T: Copy>([rows, columns]: [T; 2]) -> [T; 2] {
            [columns, rows]
        }
        Shape {
            input: turned(self.input),
            output: turned(self.output),
            kernel: turned(self.kernel),
            strides: turned(self.strides),
            dilations: turned(self.dilations),
            before: turned(self.before),
            ..*self
        }
    }

    /// Whether weights packed for a window of these sizes fit this one: also of the same taps, standing or lying.
    pub(crate) fn has_window(&self, kernel: [usize; 2]) -> bool {
        self.kernel == kernel || (self.kernel == [kernel[1], kernel[0]] && kernel.contains(&1))
    }

    /// H' · W'
    pub(crate) fn pixels(&self) -> usize {
        self.output[0] * self.output[1]
    }

    /// The terms of an output's sum.
    pub(crate) fn taps(&self) -> usize {
        self.channels / self.groups * self.kernel[0] * self.kernel[1]
    }
}
