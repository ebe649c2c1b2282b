//! The mask of attention: the keys that a query sees, or numbers added to the scores.

use candle_plan_kernels::attention::{Attends, Dims, Mask, Vectors};

use crate::dtype::{DType, Element};
use crate::error::Result;
use crate::operands::attention::{mask_strides, Strides};
use crate::value::Array;

/// The elements and strides of a mask.
pub(super) struct MaskInput<'a, R> {
    elements: MaskElements<'a, R>,
    strides: Strides,
    /// The number of keys that the mask covers.
    pub keys: usize,
}

enum MaskElements<'a, R> {
    None,
    Added(&'a [R]),
    Chosen(&'a [u8]),
}

impl<'a, R: Attends + Element> MaskInput<'a, R> {
    /// Reads a mask of booleans, or of the type of the computation.
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

pub(super) fn vectors<R>(data: &[R], [batch, head, row]: Strides) -> Vectors<'_, R> {
    Vectors { data, batch, head, row }
}
