//! The positions of the elements that indices select.
//!
//! For constant indices into a tensor of known shape, these are computed once, before any run, and merged into longer
//! runs. If an exporter writes a slice as the indices of all its elements, the slice is copied row by row.

use crate::axes;
use crate::bail;
use crate::error::Result;
use crate::extent::{all_fit, at_most, text, Extent};
use crate::types::Types;

/// Runs of elements of equal length, in a tensor or in a block of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Places {
    /// The start of each run.
    pub starts: Vec<usize>,
    /// The length of the runs.
    pub run: usize,
}

/// Returns the error for an index, element `place` of the indices, that is beyond its axis.
pub(crate) fn index_out_of_range(index: i64, place: usize, axis: usize, size: usize) -> String {
    format!("index {index} is out of range for axis {axis} of size {size} (element {place} of the indices)")
}

/// Counts an index into an axis of size `size` from the start. The result is too large if the index is invalid.
pub(crate) fn from_start(index: i64, size: usize) -> usize {
    (if index < 0 { index.wrapping_add(size as i64) } else { index }) as usize
}

/// Checks indices: vectors of an index for each of the axes of sizes `sizes`, which begin with axis `first`.
///
/// # Errors
/// An index leads beyond its axis.
pub(crate) fn check_indices(indices: &[i64], sizes: &[impl Extent], first: usize) -> Result<()> {
    for ((place, &index), (i, size)) in indices.iter().enumerate().zip(sizes.iter().enumerate().cycle()) {
        if let Some(size) = size.known().filter(|&size| from_start(index, size) >= size) {
            bail!("{}", index_out_of_range(index, place, first + i, size));
        }
    }
    Ok(())
}

/// [Checks](check_indices) input 1, if it is constant.
///
/// # Errors
/// An index leads beyond its axis.
pub(crate) fn check_constant(inputs: &Types, sizes: &[impl Extent], first: usize) -> Result<()> {
    inputs.checked(1).map_or(Ok(()), |indices| check_indices(&indices.to_i64()?, sizes, first))
}

/// The axis along which indices of shape `indices` pick elements of a tensor of shape `dims`.
///
/// # Errors
/// The axis is out of range, or the indices exceed the tensor on another axis.
pub(crate) fn element_axis<D: Extent>(dims: &[D], indices: &[D], axis: i64) -> Result<usize> {
    let axis = axes::resolve(axis, dims.len())?;
    let fits = |(i, (own, size)): (usize, (&D, &D))| i == axis || at_most(own, size);
    if indices.len() != dims.len() || !indices.iter().zip(dims).enumerate().all(fits) {
        bail!("indices of shape {} do not fit a tensor of shape {}", text(indices), text(dims));
    }
    Ok(axis)
}

/// The parts of a tensor that vectors of indices select.
pub(crate) struct VectorParts<'a, D = usize> {
    /// The dimensions of the vectors, starting with those of the batch.
    pub outer: &'a [D],
    /// The dimensions of the vectors of one batch member.
    pub per_batch: &'a [D],
    /// The sizes of the axes for which a vector has an index.
    pub picked: &'a [D],
    /// The dimensions of a part.
    pub rest: &'a [D],
}

impl<'a, D: Extent> VectorParts<'a, D> {
    /// The parts of a tensor of shape `dims` that vectors of `depth` indices select. `outer` holds the vectors'
    /// dimensions.
    ///
    /// # Errors
    /// The vectors do not fit the tensor.
    pub fn new(dims: &'a [D], outer: &'a [D], depth: usize, batch_dims: usize) -> Result<VectorParts<'a, D>> {
        let shared = dims.get(..batch_dims).zip(outer.get(..batch_dims));
        let rest = batch_dims.checked_add(depth).and_then(|skip| dims.get(skip..));
        match shared.filter(|(dims, outer)| all_fit(dims, outer)).zip(rest) {
            Some((_, rest)) => Ok(VectorParts {
                outer,
                per_batch: &outer[batch_dims..],
                picked: &dims[batch_dims..batch_dims + depth],
                rest,
            }),
            None => bail!(
                "{} vectors of {depth} indices do not fit a tensor of shape {} with {batch_dims} batch dimensions",
                text(outer),
                text(dims)
            ),
        }
    }
}

/// The parts of a tensor of shape `dims` that the vectors of indices of shape `indices`, `[.., k]`, select.
///
/// # Errors
/// The vectors do not fit the tensor.
pub(crate) fn vector_parts<'a>(dims: &'a [usize], indices: &'a [usize], batch_dims: usize) -> Result<VectorParts<'a>> {
    match indices.split_last() {
        Some((&depth, outer)) => VectorParts::new(dims, outer, depth, batch_dims),
        None => bail!("indices have no dimensions"),
    }
}
