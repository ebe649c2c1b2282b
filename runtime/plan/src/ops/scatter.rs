//! Updates of elements and rows by index.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::gather::{index_type, vectors};
use super::places::{check_constant, element_axis, Places, VectorParts};
use crate::axes;
use crate::bail;
use crate::dtype::DType;
use crate::error::Result;
use crate::extent::{all_fit, at_most, count, fits, text, Extent};
use crate::operator::{Arity, Operator};
use crate::types::{Type, Types};
use crate::value::{element_count, with_capacity};

/// `X` with updates at the positions that the indices give: `Y[i₀, …, indices[i₀, …], …] ⟵ updates[i₀, …]` for each
/// position `i₀, …` of `indices`, with the index on `axis`. A negative index counts from the end. Updates of the same
/// position apply in order. Inputs: `X`, `indices`, `updates`.
///
/// Source: [ONNX ScatterElements](https://onnx.ai/onnx/operators/onnx__ScatterElements.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScatterElements {
    /// The axis; a negative one counts from the end.
    pub axis: i64,
    /// How an update combines with the present element.
    pub reduction: Combination,
}

/// How an update combines with the present element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Combination {
    /// The update replaces the element.
    None,
    /// The sum of both (booleans: or).
    Add,
    /// The product of both (booleans: and).
    Mul,
    /// The smaller of both; the update, if they do not compare.
    Min,
    /// The larger of both; the update, if they do not compare.
    Max,
}

impl Operator for ScatterElements {
    fn arity(&self) -> Arity {
        Arity::exact(3, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let (x, indices, updates) = (inputs.shape(0)?, &index_type(inputs, 1)?.shape, inputs.shape(2)?);
        if let (Some(x), Some(indices)) = (x, indices.as_ref().or(updates)) {
            let axis = element_axis(x, indices, self.axis)?;
            check_constant(inputs, &x[axis..=axis], axis)?;
        }
        if let (Some(indices), Some(updates)) = (indices, updates) {
            check_elements(updates, indices)?;
        }
        combined(inputs, self.reduction)
    }

    fn checks(&self, input: usize) -> bool {
        input == 1
    }
}

/// `X` with updates of the parts that the vectors of `indices [.., k]` select:
/// `Y[indices[i, 0], …, indices[i, k - 1]] ⟵ updates[i]`. Inputs: `X`, `indices`, `updates`. A negative index counts
/// from the end. Updates of the same part apply in order.
///
/// Source: [ONNX ScatterND](https://onnx.ai/onnx/operators/onnx__ScatterND.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScatterNd {
    /// How an update combines with the present element.
    pub reduction: Combination,
}

impl Operator for ScatterNd {
    fn arity(&self) -> Arity {
        Arity::exact(3, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let indices = index_type(inputs, 1)?;
        if let Some((x, (outer, depth))) = inputs.shape(0)?.zip(vectors(indices)?) {
            let parts = VectorParts::new(x, outer, depth, 0)?;
            check_constant(inputs, parts.picked, 0)?;
            inputs.shape(2)?.map_or(Ok(()), |updates| check_parts(updates, &parts))?;
        }
        combined(inputs, self.reduction)
    }

    fn checks(&self, input: usize) -> bool {
        input == 1
    }
}

/// A cache with new rows written into it: `Y[b, …, w[b] + s, …] = update[b, …, s, …]`, with the position on `axis`.
/// With `circular`, the position is taken modulo the size of the cache. Inputs: `cache [B, …, S, …]`,
/// `update [B, …, s, …]`, `w: [B]` (absent: zeros).
///
/// Source: [ONNX TensorScatter](https://onnx.ai/onnx/operators/onnx__TensorScatter.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TensorScatter {
    /// The axis of rows, not the first one; a negative axis counts from the end.
    pub axis: i64,
    /// Whether rows beyond the end continue at the start.
    pub circular: bool,
}

impl Operator for TensorScatter {
    fn arity(&self) -> Arity {
        Arity::inputs(2..=3)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let places = inputs.optional(2).map(|_| index_type(inputs, 2)).transpose()?;
        if let Some(dims) = inputs.shape(0)? {
            self.row_axis(dims.len())?;
            if let Some(new) = inputs.shape(1)? {
                let axis = self.fitting_axis(dims, new)?;
                if let (Some(first), Some(rows), Some(size)) =
                    (inputs.checked(2), new[axis].known(), dims[axis].known())
                {
                    self.check_first(&first.to_i64()?, [rows, size])?;
                }
            }
            let places = places.and_then(|places| count(places.shape.as_deref()?));
            places.map_or(Ok(()), |places| check_places(places, dims))?;
        }
        written(inputs, 1)
    }

    fn checks(&self, input: usize) -> bool {
        input == 2
    }
}

impl TensorScatter {
    fn row_axis(&self, rank: usize) -> Result<usize> {
        match axes::resolve(self.axis, rank)? {
            0 => bail!("axis 0 is the batch: the axis must be a later one"),
            axis => Ok(axis),
        }
    }

    /// The axis of rows in a cache of shape `dims`, if an update of shape `new` fits the cache.
    pub(crate) fn fitting_axis<D: Extent>(&self, dims: &[D], new: &[D]) -> Result<usize> {
        let axis = self.row_axis(dims.len())?;
        let fits = |(i, (old, new)): (usize, (&D, &D))| if i == axis { at_most(new, old) } else { fits(new, old) };
        if dims.len() != new.len() || !dims.iter().zip(new).enumerate().all(fits) {
            bail!("an update of shape {} does not fit a cache of shape {}", text(new), text(dims));
        }
        Ok(axis)
    }

    /// Checks that `rows` new rows fit into a cache of `size` rows, from each place in `first` on.
    pub(crate) fn check_first(&self, first: &[i64], [rows, size]: [usize; 2]) -> Result<()> {
        let fits = |first: usize| rows == 0 || self.circular || first <= size - rows;
        match first.iter().enumerate().find(|(_, &first)| !usize::try_from(first).is_ok_and(fits)) {
            Some((batch, &first)) => bail!("{}", rows_out_of_range(first, batch, [rows, size])),
            None => Ok(()),
        }
    }

    /// Returns the place where each new row begins.
    ///
    /// # Errors
    /// A new row is outside of the cache.
    pub(crate) fn places(&self, dims: &[usize], axis: usize, rows: usize, first: &[i64]) -> Result<Places> {
        let (size, run) = (dims[axis], dims[axis + 1..].iter().product::<usize>());
        let per_batch: usize = dims[1..axis].iter().product();
        let mut starts = with_capacity(element_count(&[dims[0], per_batch, rows])?)?;
        self.check_first(first, [rows, size])?;
        for (batch, first) in first.iter().map(|&first| first as usize).enumerate() {
            let prefixes = if rows > 0 { per_batch } else { 0 };
            for prefix in batch * per_batch..batch * per_batch + prefixes {
                starts.extend((0..rows).map(|row| (prefix * size + (first % size + row) % size) * run));
            }
        }
        Ok(Places { starts, run })
    }
}

/// Returns the error for new rows that do not fit into a cache of `size` rows. They would begin at row `first`, element
/// `place` of the write positions.
pub(crate) fn rows_out_of_range(first: i64, place: usize, [rows, size]: [usize; 2]) -> String {
    format!("index {first} is out of range for {rows} rows in a cache of {size} (element {place} of write_indices)")
}

/// Checks that there is an update for each index.
pub(crate) fn check_elements(updates: &[impl Extent], indices: &[impl Extent]) -> Result<()> {
    if !all_fit(updates, indices) {
        bail!("updates of shape {} do not fit indices of shape {}", text(updates), text(indices));
    }
    Ok(())
}

/// Checks that the updates have the size of the parts that they update.
pub(crate) fn check_parts<D: Extent>(updates: &[D], parts: &VectorParts<D>) -> Result<()> {
    let (outer, rest) = updates.split_at(parts.outer.len().min(updates.len()));
    if !all_fit(outer, parts.outer) || !all_fit(rest, parts.rest) {
        let (outer, rest) = (text(parts.outer), text(parts.rest));
        bail!("updates of shape {} are not {outer} parts of shape {rest}", text(updates));
    }
    Ok(())
}

/// Checks that there is a write position for each batch member.
pub(crate) fn check_places(places: usize, dims: &[impl Extent]) -> Result<()> {
    if !fits(&places, &dims[0]) {
        bail!("{places} write_indices do not fit a cache of shape {}", text(dims));
    }
    Ok(())
}

/// The type of input 0, which must have the dtype of the updates in input `updates`.
fn written(inputs: &Types, updates: usize) -> Result<Vec<Type>> {
    let (x, updates) = (inputs.tensor(0)?, inputs.tensor(updates)?);
    if x.dtype != updates.dtype {
        bail!("{} updates cannot be written into a {} tensor", updates.dtype, x.dtype);
    }
    Ok(vec![Type::Tensor(x.clone())])
}

/// The type of input 0, with which updates of the same dtype in input 2 are combined.
fn combined(inputs: &Types, reduction: Combination) -> Result<Vec<Type>> {
    if inputs.tensor(0)?.dtype == DType::String && reduction != Combination::None {
        bail!("strings cannot be combined by the reduction {reduction:?}");
    }
    written(inputs, 2)
}

impl Combination {
    /// Whether this combination is defined for elements of a type.
    pub(crate) fn is_defined_for(self, dtype: Option<DType>) -> bool {
        use DType::*;
        let is_unpacked = |dtype: DType| matches!(dtype, Int2 | Int4 | Uint2 | Uint4) || dtype.is_small_float();
        self == Combination::None || dtype.is_some_and(|dtype| !is_unpacked(dtype) && dtype != String)
    }
}
