//! Dimensions and strides in the form that kernels take.

use bytemuck::{Pod, Zeroable};
use candle_plan_descriptors::broadcast::Broadcast;
use candle_plan_descriptors::strided::View;
use candle_plan_device::Mirror;

use super::launch::count;
use crate::bail;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::Constants;
use crate::types::{TensorType, Type};

/// The largest rank of a kernel's tensors, as `RANK` in `device.cuh`.
pub(crate) const MAX_RANK: usize = 8;

/// Whether no operand is known to have a rank above [`MAX_RANK`].
pub(crate) fn has_few_dimensions(operands: &Constants) -> bool {
    let rank = |kind: &Type| kind.tensor().ok().and_then(TensorType::rank);
    operands.types.iter().flatten().all(|kind| rank(kind).is_none_or(|rank| rank <= MAX_RANK))
}

/// Whether kernels can read input `i` as indices.
pub(crate) fn takes_indices(operands: &Constants, i: usize) -> bool {
    operands.dtype(i).is_some_and(|dtype| matches!(dtype, DType::Int32 | DType::Int64))
}

/// The dimensions of a tensor, the outermost first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable, Mirror)]
#[repr(C)]
#[kernel(Dims in "device.cuh")]
pub(super) struct Dims {
    rank: u32,
    size: [u32; MAX_RANK],
}

/// The strides of a tensor, the outermost first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable, Mirror)]
#[repr(C)]
#[kernel(Strides in "device.cuh")]
pub(super) struct Strides {
    step: [i32; MAX_RANK],
}

impl Dims {
    /// Converts dimensions, the outermost first.
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
    /// Converts strides, the outermost first.
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

    /// Returns the strides of operand `i` of a broadcast.
    ///
    /// # Errors
    /// See [`Strides::new`].
    pub fn of_operand(broadcast: &Broadcast, i: usize) -> Result<Strides> {
        Strides::new(broadcast.strides(i).iter().map(|&stride| stride as isize))
    }
}

/// Converts one stride.
///
/// # Errors
/// The stride is too large.
pub(super) fn step(stride: isize) -> Result<i32> {
    i32::try_from(stride).map_err(|_| Error::op(format!("a stride of {stride} elements is too large")))
}

/// Returns the dimensions and strides of a view, with as few dimensions as possible.
///
/// # Errors
/// See [`Dims::new`].
pub(super) fn of_view(view: &View) -> Result<(Dims, Strides)> {
    let merged = view.merged();
    Ok((Dims::new(&merged.dims)?, Strides::new(merged.strides)?))
}

fn too_many(dims: &[usize]) -> Error {
    Error::op(format!("kernels of the device take at most {MAX_RANK} dimensions, found {dims:?}"))
}
