//! The sizes of the operands of rotary position embedding.

use crate::error::Result;
use crate::kernel::Call;
use crate::ops::rotary::RotaryEmbedding;
use crate::value::Array;

/// The sizes of one run.
pub(crate) struct RotarySizes {
    pub batch: usize,
    pub positions: usize,
    pub heads: usize,
    /// The number of elements of a vector, and of those that are rotated.
    pub size: usize,
    pub rotary: usize,
    /// The rows of the caches.
    pub rows: usize,
}

impl RotaryEmbedding {
    /// The sizes of a run.
    ///
    /// # Errors
    /// The inputs do not fit each other.
    pub(crate) fn sizes(&self, call: &Call) -> Result<RotarySizes> {
        let x = call.tensor(0)?.dims();
        let (cos, sin) = (call.tensor(1)?.dims(), call.tensor(2)?.dims());
        let ids = call.optional_tensor(3)?.map(Array::dims);
        self.check(x, [cos, sin], ids)?;
        let [batch, positions, heads, size] = self.vectors(x)?.map(Option::unwrap_or_default);
        let rotary = self.rotary_dim.unwrap_or(size);
        let rows = if ids.is_some() { cos[0] } else { cos[0].saturating_mul(cos[1]) };
        Ok(RotarySizes { batch, positions, heads, size, rotary, rows })
    }
}
