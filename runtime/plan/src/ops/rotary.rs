//! Rotary position embedding.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::places::from_start;
use crate::bail;
use crate::dtype::{require_dtype, DType};
use crate::error::{Error, Result};
use crate::extent::{all_fit, at_most, text, Extent};
use crate::operator::{Arity, Operator};
use crate::types::{Type, Types};
use crate::value::try_list;

/// Rotates pairs of elements of each head's vector by the angle of its position: `y₁ = cos · x₁ − sin · x₂`,
/// `y₂ = sin · x₁ + cos · x₂`.
///
/// X `[N, heads, L, D]` or `[N, L, heads · D]`; cos, sin `[P, R / 2]` with position_ids int64 `[N, L]`, or
/// `[N, L, R / 2]` or `[1, L, R / 2]` without; Y as X. Only the first R elements of a vector are rotated. Source:
/// [ONNX RotaryEmbedding](https://onnx.ai/onnx/operators/onnx__RotaryEmbedding.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RotaryEmbedding {
    /// The number of heads; null if X has a dimension for them.
    pub heads: Option<usize>,
    /// Whether a pair is two adjacent elements instead of elements i and i + R / 2.
    pub interleaved: bool,
    /// R, the number of rotated elements; null means all elements of a vector.
    pub rotary_dim: Option<usize>,
}

impl Operator for RotaryEmbedding {
    fn arity(&self) -> Arity {
        Arity::inputs(3..=4)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        require_dtype("X", x.dtype, &crate::dtype::FLOATS)?;
        require_dtype("cos_cache", inputs.tensor(1)?.dtype, &[x.dtype])?;
        require_dtype("sin_cache", inputs.tensor(2)?.dtype, &[x.dtype])?;
        if let Some(positions) = inputs.optional_tensor(3)? {
            require_dtype("position_ids", positions.dtype, &[DType::Int64])?;
        }
        let expected = if self.heads.is_some() { 3 } else { 4 };
        if let Some(rank) = x.rank().filter(|rank| *rank != expected) {
            bail!("X has {rank} dimensions; {expected} are expected");
        }
        if self.heads == Some(0) {
            bail!("there are 0 heads; at least 1 is needed");
        }
        if let (Some(x), Some(cos), Some(sin)) = (inputs.shape(0)?, inputs.shape(1)?, inputs.shape(2)?) {
            let unknown = vec![None; 2];
            let ids = inputs.optional_tensor(3)?.map(|ids| ids.shape.as_ref().unwrap_or(&unknown).as_slice());
            self.check(x, [cos, sin], ids)?;
            if let Some((ids, rows)) = inputs.checked(3).zip(cos[0].known()) {
                rows_of(&ids.to_i64()?, rows)?;
            }
        }
        Ok(vec![Type::Tensor(x.clone())])
    }

    fn checks(&self, input: usize) -> bool {
        input == 3
    }
}

/// The rows of the positions in caches of `count` rows. A negative position counts from the end.
///
/// # Errors
/// A position has no row.
pub(crate) fn rows_of(positions: &[i64], count: usize) -> Result<Vec<usize>> {
    let row = |(place, &position): (usize, &i64)| match from_start(position, count) {
        row if row < count => Ok(row),
        _ => Err(Error::Op(position_out_of_range(position, place, count))),
    };
    try_list(positions.iter().enumerate().map(row))
}

/// Returns the error for a position, element `place` of the positions, that has no row in the caches.
pub(crate) fn position_out_of_range(position: i64, place: usize, rows: usize) -> String {
    format!("position {position} is out of range for caches of {rows} rows (element {place} of position_ids)")
}

impl RotaryEmbedding {
    /// The batches, positions, heads and vector size of an X of this shape.
    pub(crate) fn vectors<D: Extent>(&self, x: &[D]) -> Result<[Option<usize>; 4]> {
        match (x, self.heads) {
            ([batch, heads, positions, size], None) => {
                Ok([batch.known(), positions.known(), heads.known(), size.known()])
            }
            ([batch, positions, hidden], Some(heads))
                if hidden.known().is_none_or(|hidden| hidden.checked_rem(heads) == Some(0)) =>
            {
                let size = hidden.known().map(|hidden| hidden / heads);
                Ok([batch.known(), positions.known(), Some(heads), size])
            }
            (_, Some(heads)) => bail!("X of shape {} does not hold {heads} heads", text(x)),
            _ => bail!("X has shape {}; it must be [batch, heads, positions, size]", text(x)),
        }
    }

    /// Checks that X, the caches and the positions, of these shapes, fit each other.
    pub(crate) fn check<D: Extent>(&self, x: &[D], [cos, sin]: [&[D]; 2], ids: Option<&[D]>) -> Result<()> {
        let [batch, positions, _, size] = self.vectors(x)?;
        let rotary = self.rotary_dim.or(size);
        if !at_most(&rotary, &size) || rotary.is_some_and(|rotary| !rotary.is_multiple_of(2)) {
            bail!("{} elements of vectors of {} cannot be rotated in pairs", text(&[rotary]), text(&[size]));
        }
        let half = rotary.map(|rotary| rotary / 2);
        let caches_fit = match ids {
            Some(ids) => all_fit(cos, &[None, half]) && all_fit(ids, &[batch, positions]),
            None => [Some(1), batch].iter().any(|&rows| all_fit(cos, &[rows, positions, half])),
        };
        if !caches_fit || !all_fit(cos, sin) {
            let ids = ids.map_or_else(String::new, |ids| format!(" and positions of shape {}", text(ids)));
            bail!("caches of shapes {} and {} do not fit X of shape {}{ids}", text(cos), text(sin), text(x));
        }
        Ok(())
    }
}
