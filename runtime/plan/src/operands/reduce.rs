//! The axes and sizes of reductions.

use crate::axes::Mask;
use crate::error::Result;
use crate::kernel::Call;
use crate::ops::reduce::Reduce;
use crate::value::{element_count, Array};

impl Reduce {
    /// The mask of the reduced axes of X, and the dimensions of Y.
    pub(crate) fn mask_and_dims(&self, call: &Call) -> Result<(Mask, Vec<usize>)> {
        let x = call.tensor(0)?;
        let axes = call.optional_tensor(1)?.map(Array::to_i64).transpose()?;
        let mask = self.mask(axes.as_deref(), x.rank())?;
        let dims: Vec<usize> = match self.keepdims {
            true => x.dims().iter().zip(&mask).map(|(&dim, &reduced)| if reduced { 1 } else { dim }).collect(),
            false => x.dims().iter().zip(&mask).filter(|(_, &reduced)| !reduced).map(|(&dim, _)| dim).collect(),
        };
        element_count(&dims)?;
        Ok((mask, dims))
    }
}

/// Dimensions, with adjacent ones of the same kind merged: `[(size, reduced), …]`. A kernel makes one pass for each
/// reduced group, the innermost first.
pub(crate) struct Groups(pub(crate) Vec<(usize, bool)>);

impl Groups {
    pub(crate) fn new(dims: &[usize], mask: &[bool]) -> Groups {
        let mut groups: Vec<(usize, bool)> = Vec::new();
        for (&dim, &reduced) in dims.iter().zip(mask) {
            match groups.last_mut() {
                _ if dim == 1 => {}
                Some((size, kind)) if *kind == reduced => *size *= dim,
                _ => groups.push((dim, reduced)),
            }
        }
        Groups(groups)
    }

    /// The sizes, the outermost first, and whether each is reduced.
    pub(crate) fn sizes(&self) -> &[(usize, bool)] {
        &self.0
    }
}
