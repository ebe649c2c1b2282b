//! The sizes of a convolution.

/// The sizes of a convolution `[N, C, H, W] → [N, O, H', W']`: output `(y, x)` reads rows
/// `y · stride + i · dilation − before`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// N
    pub batch: usize,
    /// C, over all groups
    pub channels: usize,
    /// O, over all groups
    pub outputs: usize,
    /// Group `g` of the outputs reads group `g` of the channels.
    pub groups: usize,
    /// `[H, W]`
    pub input: [usize; 2],
    /// `[H', W']`
    pub output: [usize; 2],
    /// The window's rows and columns
    pub kernel: [usize; 2],
    /// The strides
    pub strides: [usize; 2],
    /// The dilations
    pub dilations: [usize; 2],
    /// The rows and columns of zeros before the first row and column. A negative number crops.
    pub before: [isize; 2],
}

impl Shape {
    /// Whether 32-bit offsets can address the input with its padding. They cannot for dilations of billions.
    pub fn fits(&self) -> bool {
        // An upper bound of the padded input, and of the planes of any blocked layout.
        let extent = |a: usize| {
            let reach = self.kernel[a].saturating_sub(1).checked_mul(self.dilations[a])?;
            self.output[a].checked_mul(self.strides[a])?.checked_add(reach)?.checked_add(self.strides[a])
        };
        let all = |h: usize, w: usize| h.checked_mul(w)?.checked_mul(self.channels);
        let fits = |size: Option<usize>| size.is_some_and(|size| size < u32::MAX as usize);
        fits(extent(0).zip(extent(1)).and_then(|(h, w)| all(h, w))) && fits(all(self.input[0], self.input[1]))
    }

    /// Returns the numbers of elements of the image and of the result in blocks of so many channels, which is 1 in rows;
    /// `None` if one does not fit 64 bits.
    pub fn lengths(&self, blocks: [usize; 2]) -> Option<[usize; 2]> {
        let sides = [(self.channels, self.input), (self.outputs, self.output)];
        let length = |side: usize| {
            let (channels, [height, width]) = sides[side];
            let sizes = [self.batch, channels.checked_next_multiple_of(blocks[side])?, height, width];
            if sizes.contains(&0) {
                return Some(0);
            }
            sizes.into_iter().try_fold(1, usize::checked_mul)
        };
        Some([length(0)?, length(1)?])
    }

    /// Returns the same convolution with rows and columns swapped if images and window have one column: kernels are
    /// fast along rows.
    #[must_use]
    pub fn row_oriented(&self) -> Shape {
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

    /// Whether weights packed for a `kernel` window fit this convolution. A one-row or one-column window also fits its
    /// transpose.
    pub fn has_window(&self, kernel: [usize; 2]) -> bool {
        self.kernel == kernel || (self.kernel == [kernel[1], kernel[0]] && kernel.contains(&1))
    }

    /// H' · W'; `usize::MAX` if it is larger.
    #[inline]
    pub fn pixels(&self) -> usize {
        self.output[0].saturating_mul(self.output[1])
    }

    /// The number of products in an output's sum; `usize::MAX` if it is larger.
    #[inline]
    pub fn taps(&self) -> usize {
        (self.channels / self.groups).saturating_mul(self.kernel[0]).saturating_mul(self.kernel[1])
    }
}
