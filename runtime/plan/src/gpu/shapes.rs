//! Dimensions and strides as kernels take them.

use bytemuck::{Pod, Zeroable};
use candle_plan_kernels::broadcast::Broadcast;
use candle_plan_kernels::strided::View;

use super::launch::count;
use crate::bail;
use crate::error::{Error, Result};
use crate::kernel::Constants;
use crate::types::{TensorType, Type};

/// The most dimensions, as `RANK` in `device.cuh`.
pub(crate) const MAX_RANK: usize = 8;

/// Whether no operand is known to have more dimensions than kernels take.
pub(crate) fn has_few_dimensions(operands: &Constants) -> bool {
    let rank = |kind: &Type| kind.tensor().ok().and_then(TensorType::rank);
    operands.types.iter().flatten().all(|kind| rank(kind).is_none_or(|rank| rank <= MAX_RANK))
}

/// The twin of `Dims`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Dims {
    rank: u32,
    size: [u32; MAX_RANK],
}

/// The twin of `Strides`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Strides {
    step: [i32; MAX_RANK],
}

impl Dims {
    /// Some dimensions, the outermost first.
    ///
    /// # Errors
    /// There are more than 8, or one is too large.
    pub fn new(dims: &[usize]) -> Result<Dims> {
        let mut size = [1; MAX_RANK];
        for (i, &dim) in dims.iter().enumerate() {
            *size.get_mut(i).ok_or_else(|| too_many(dims))? = count(dim)?;
        }
        Ok(Dims { rank: dims.len() as u32, size })
    }
}

impl Strides {
    /// Strides over as many dimensions.
    ///
    /// # Errors
    /// There are more than 8, or one is too large.
    pub fn new(strides: impl IntoIterator<Item = isize>) -> Result<Strides> {
        let mut step = [0; MAX_RANK];
        for (i, stride) in strides.into_iter().enumerate() {
            let Some(place) = step.get_mut(i) else {
                bail!("kernels of the device take at most {MAX_RANK} dimensions")
            };
            *place = self::step(stride)?;
        }
        Ok(Strides { step })
    }

    /// Those of operand `i` of a broadcast.
    ///
    /// # Errors
    /// As [`Strides::new`].
    pub fn of_operand(broadcast: &Broadcast, i: usize) -> Result<Strides> {
        Strides::new(broadcast.strides(i).iter().map(|&stride| stride as isize))
    }
}

/// A stride as kernels take it.
///
/// # Errors
/// It is too large.
pub(super) fn step(stride: isize) -> Result<i32> {
    i32::try_from(stride).map_err(|_| Error::op(format!("a stride of {stride} elements is too large")))
}

/// The dimensions of a view, as few as possible, and its strides over them.
///
/// # Errors
/// As [`Dims::new`].
pub(super) fn of_view(view: &View) -> Result<(Dims, Strides)> {
    let merged = view.merged();
    Ok((Dims::new(&merged.dims)?, Strides::new(merged.strides)?))
}

fn too_many(dims: &[usize]) -> Error {
    Error::op(format!("kernels of the device take at most {MAX_RANK} dimensions, found {dims:?}"))
}
