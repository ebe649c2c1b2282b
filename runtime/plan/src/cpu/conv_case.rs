//! The sizes and the memory for which the weights of a convolution are packed.

use candle_plan_kernels::conv::Shape;
use candle_plan_kernels::convolution::ConvCase;

use crate::error::Result;
use crate::kernel::{Constants, Memory};
use crate::ops::conv::Conv;
use crate::types::Type;

/// The assumed size of an image axis whose size is unknown.
const TYPICAL: usize = 32;
/// The strides of a window, from its first position on, for which there is room on an image axis whose size is unknown:
/// weights that are packed for few positions are slower for many. This does not hold for a window larger than
/// [`TYPICAL`]. For such a window, one position is assumed.
const STEPS: usize = 8;

impl Conv {
    /// Returns the case of some operands and weights of dimensions `w`, for which the planner chooses a form.
    ///
    /// # Errors
    /// As for [`Conv::typical_shape`].
    pub(super) fn case(&self, operands: &Constants, w: &[usize]) -> Result<ConvCase> {
        let shape = self.typical_shape(operands.types.first().copied().flatten(), w)?;
        Ok(ConvCase::new(operands.blocking, &shape, operands.memory == Memory::Full))
    }

    /// Returns the sizes of a convolution for an input type. For unknown sizes, it assumes typical ones from the middle
    /// of a network, at least as large as the window.
    ///
    /// # Errors
    /// The weights or the attributes do not fit the input.
    pub(super) fn typical_shape(&self, x: Option<&Type>, w: &[usize]) -> Result<Shape> {
        let known = |axis: usize| x.and_then(|x| x.tensor().ok()?.size(axis));
        let extent = |axis: usize| {
            let dilation = self.dilations.get(axis).copied().unwrap_or(1);
            w[axis + 2].saturating_sub(1).saturating_mul(dilation).saturating_add(1)
        };
        let unknown = |axis: usize| match (extent(axis), self.strides.get(axis)) {
            (extent, Some(&stride)) if extent < TYPICAL => {
                TYPICAL.max(extent.saturating_add(STEPS.saturating_mul(stride)))
            }
            (extent, _) => extent.max(TYPICAL),
        };
        let channels = w.get(1).map_or(0, |channels| channels.saturating_mul(self.groups));
        let axes = (0..w.len().saturating_sub(2)).map(|axis| known(axis + 2).unwrap_or_else(|| unknown(axis)));
        let dims: Vec<usize> = [known(0).unwrap_or(1), known(1).unwrap_or(channels)].into_iter().chain(axes).collect();
        self.window().shape(&dims, w)
    }
}
