//! Where the elements stand that indices lead to.
//!
//! What constant indices lead to in a tensor of known shape is found once, before any run, and merged into longer runs: a
//! slice that an exporter wrote as the indices of all its elements is moved row by row.

use crate::axes;
use crate::bail;
use crate::error::Result;
use crate::extent::{all_fit, at_most, text, Extent};

/// Runs of elements, all of one length, in a tensor or in a block of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Places {
    /// Where each run begins.
    pub starts: Vec<usize>,
    /// How long each is.
    pub run: usize,
}

/// Says that an index, element `place` of the indices, leads beyond an axis.
pub(crate) fn index_out_of_range(index: i64, place: usize, axis: usize, size: usize) -> String {
    format!("index {index} is out of range for axis {axis} of size {size} (element {place} of the indices)")
}

/// The axis along which indices of shape `indices` pick elements of a tensor of shape `dims`.
///
/// # Errors
/// There is no such axis, or the indices go beyond the tensor on another one.
pub(crate) fn element_axis<D: Extent>(dims: &[D], indices: &[D], axis: i64) -> Result<usize> {
    let axis = axes::resolve(axis, dims.len())?;
    let fits = |(i, (own, size)): (usize, (&D, &D))| i == axis || at_most(own, size);
    if indices.len() != dims.len() || !indices.iter().zip(dims).enumerate().all(fits) {
        bail!("indices of shape {} do not fit a tensor of shape {}", text(indices), text(dims));
    }
    Ok(axis)
}

/// How vectors of indices lead to parts of a tensor.
pub(crate) struct VectorParts<'a, D = usize> {
    /// The dimensions of the vectors, the batch's first.
    pub outer: &'a [D],
    /// The dimensions of the vectors for one member of the batch.
    pub per_batch: &'a [D],
    /// The sizes of the axes that a vector has an index for.
    pub picked: &'a [D],
    /// The dimensions of a part.
    pub rest: &'a [D],
}

impl<'a, D: Extent> VectorParts<'a, D> {
    /// How vectors of `depth` indices lead to parts of a tensor of shape `dims`; `outer` are the vectors' dimensions.
    ///
    /// # Errors
    /// They do not fit the tensor.
    pub fn new(dims: &'a [D], outer: &'a [D], depth: usize, batch_dims: usize) -> Result<VectorParts<'a, D>> {
        let shared = dims.get(..batch_dims).zip(outer.get(..batch_dims));
        let rest = batch_dims.checked_add(depth).and_then(|skip| dims.get(skip..));
        match shared.filter(|(mine, theirs)| all_fit(mine, theirs)).zip(rest) {
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

/// How the vectors of indices of shape `indices`, `[.., k]`, lead to parts of a tensor of shape `dims`.
///
/// # Errors
/// They do not fit the tensor.
pub(crate) fn vector_parts<'a>(dims: &'a [usize], indices: &'a [usize], batch_dims: usize) -> Result<VectorParts<'a>> {
    match indices.split_last() {
        Some((&depth, outer)) => VectorParts::new(dims, outer, depth, batch_dims),
        None => bail!("indices have no dimensions"),
    }
}
