//! The layouts in which operators run on images in blocks of channels.

use crate::dtype::DType;
use crate::kernel::Constants;
use crate::layout::{Image, Layout};
use crate::types::Type;

/// The layouts in which an operator runs on images in blocks of channels, and what that saves.
pub(crate) struct Blocked {
    /// The number of dimensions that its images have in rows.
    pub rank: usize,
    /// The layout in which it takes each input.
    pub inputs: Vec<Layout>,
    /// The layout in which it gives each output.
    pub outputs: Vec<Layout>,
    /// The time that it saves, in multiply-adds of a vector; negative where it takes longer.
    pub gain: i64,
}

/// How an operator runs in blocks that computes each element of its one output from the elements of its inputs at the same
/// place: by its own kernel.
pub(super) fn elementwise(operands: &Constants, outputs: &[Option<&Type>]) -> Option<Blocked> {
    let image = Image::of(outputs.first().copied().flatten()?)?;
    let inputs = (0..operands.types.len()).map(|i| operand(&image, operands, i)).collect::<Option<Vec<_>>>()?;
    if !inputs.contains(&Layout::Blocks) {
        return None;
    }
    Some(Blocked { rank: image.rank, inputs, outputs: vec![Layout::Blocks], gain: -image.wasted() })
}

/// The layout in which input `i` broadcasts to an image in blocks: that of the plan for a single number. `None`: in none.
pub(super) fn operand(image: &Image, operands: &Constants, i: usize) -> Option<Layout> {
    let Some(kind) = operands.types.get(i).copied().flatten() else { return Some(Layout::Rows) };
    let tensor = kind.tensor().ok().filter(|tensor| tensor.dtype == DType::Float32)?;
    let rank = tensor.rank().filter(|&rank| rank <= image.rank)?;
    if (0..rank).all(|axis| tensor.size(axis) == Some(1)) {
        return Some(Layout::Rows);
    }
    // A value that is no constant may be in blocks already, as the image that it is.
    let is_image = rank == image.rank || rank + 1 == image.rank && operands.tensor(i).is_some();
    (is_image && tensor.size((rank + 1).checked_sub(image.rank)?) == Some(image.channels)).then_some(Layout::Blocks)
}
