//! The layouts in which operators run on images in blocks of channels.

use super::planned::CpuOperands;
use crate::dtype::DType;
use crate::kernel::Constants;
use crate::layout::{Image, Layout};
use crate::types::Type;

/// The layouts in which an operator runs on images in blocks of channels, and the times in rows and in blocks.
pub(crate) struct Blocked {
    /// The rank of the operator's images in rows.
    pub rank: usize,
    /// The layout of each input.
    pub inputs: Vec<Layout>,
    /// The layout of each output.
    pub outputs: Vec<Layout>,
    /// The times of the operator on images in rows and on images in blocks, in multiply-adds of a vector. Both may lack
    /// the time that does not depend on the layout.
    pub times: [f64; 2],
}

impl Blocked {
    /// The time that blocks save; negative if the step takes longer on blocks.
    pub fn gain(&self) -> i64 {
        let [rows, blocks] = self.times;
        (rows - blocks) as i64
    }
}

/// Returns how an elementwise operator runs on blocks: with its own kernel. Each element of the only output depends on
/// the input elements at the same place.
pub(super) fn elementwise(operands: &CpuOperands, outputs: &[Option<&Type>]) -> Option<Blocked> {
    let image = Image::of(outputs.first().copied().flatten()?)?;
    let inputs = (0..operands.constants.types.len())
        .map(|i| operand(&image, &operands.constants, i))
        .collect::<Option<Vec<_>>>()?;
    if !inputs.contains(&Layout::Blocks) {
        return None;
    }
    Some(Blocked {
        rank: image.rank,
        inputs,
        outputs: vec![Layout::Blocks],
        times: [0.0, image.wasted(operands.blocking) as f64],
    })
}

/// Returns the layout in which input `i` broadcasts to an image in blocks (rows for a single number), or `None` if it
/// cannot.
pub(super) fn operand(image: &Image, constants: &Constants, i: usize) -> Option<Layout> {
    let Some(kind) = constants.types.get(i).copied().flatten() else { return Some(Layout::Rows) };
    let tensor = kind.tensor().ok().filter(|tensor| tensor.dtype == DType::Float32)?;
    let rank = tensor.rank().filter(|&rank| rank <= image.rank)?;
    if (0..rank).all(|axis| tensor.size(axis) == Some(1)) {
        return Some(Layout::Rows);
    }
    // A value that is not a constant may already be in blocks, as an image of its own.
    let is_image = rank == image.rank || rank + 1 == image.rank && constants.tensor(i).is_some();
    (is_image && tensor.size((rank + 1).checked_sub(image.rank)?) == Some(image.channels)).then_some(Layout::Blocks)
}
