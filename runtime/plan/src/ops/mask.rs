//! The mask of attention: which keys a query sees, or what is added to their scores.

use candle_plan_kernels::attention::{Attends, Dims, Mask};

use super::attention::{vectors, Strides};
use crate::bail;
use crate::dtype::{DType, Element};
use crate::error::Result;
use crate::value::Array;

/// The mask, read.
pub(super) struct MaskInput<'a, R> {
    elements: MaskElements<'a, R>,
    strides: Strides,
    /// The keys that the mask has an element for.
    pub keys: usize,
}

enum MaskElements<'a, R> {
    None,
    Added(&'a [R]),
    Chosen(&'a [u8]),
}

impl<'a, R: Attends + Element> MaskInput<'a, R> {
    /// A mask of booleans, or in the type to compute in.
    pub fn new(mask: Option<&'a Array>, dims: Dims) -> Result<MaskInput<'a, R>> {
        let Some(mask) = mask else {
            return Ok(MaskInput { elements: MaskElements::None, strides: [0; 3], keys: dims.keys });
        };
        let (strides, keys) = mask_strides(mask.dims(), dims)?;
        let elements = match mask.dtype() {
            DType::Bool => MaskElements::Chosen(mask.bits()?),
            _ => MaskElements::Added(mask.read()?),
        };
        Ok(MaskInput { elements, strides, keys })
    }

    pub fn as_kernel_mask(&self) -> Mask<'_, R> {
        match &self.elements {
            MaskElements::None => Mask::None,
            MaskElements::Added(added) => Mask::Added(vectors(added, self.strides)),
            MaskElements::Chosen(chosen) => Mask::Chosen(vectors(chosen, self.strides)),
        }
    }
}

/// The strides over batches, heads and queries of a mask of these dimensions, and the keys that it has an element for.
///
/// # Errors
/// It does not broadcast to the scores.
pub(crate) fn mask_strides(mask: &[usize], dims: Dims) -> Result<(Strides, usize)> {
    let to = [dims.batch, dims.heads, dims.queries];
    let refused = || format!("a mask of {mask:?} does not broadcast to {to:?} and {} keys", dims.keys);
    let Some((&keys, outer)) = mask.split_last().filter(|(&keys, rest)| keys <= dims.keys && rest.len() <= 3) else {
        bail!("{}", refused());
    };
    let (mut strides, mut stride) = ([0; 3], keys);
    for (i, &dim) in (3 - outer.len()..3).zip(outer).rev() {
        if dim != to[i] && dim != 1 {
            bail!("{}", refused());
        }
        strides[i] = if dim == 1 { 0 } else { stride };
        stride *= dim;
    }
    Ok((strides, keys))
}
