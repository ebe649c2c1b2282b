//! Rotary position embedding.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bail;
use crate::dtype::DType;
use crate::error::Result;
use crate::float::require_dtype;
use crate::kernel::Call;
use crate::operator::{Arity, Operator};
use crate::types::Type;
use crate::types::Types;
use crate::value::Array;

/// Turns pairs of elements of each head's vector by the angle of its position: `y₁ = cos · x₁ − sin · x₂`,
/// `y₂ = sin · x₁ + cos · x₂`.
///
/// X `[N, heads, L, D]` or `[N, L, heads · D]`; cos, sin `[P, R / 2]` with position_ids int64 `[N, L]`, or
/// `[N, L, R / 2]` or `[1, L, R / 2]` without; Y as X. The first R elements of a vector are turned. Source:
/// [ONNX RotaryEmbedding](https://onnx.ai/onnx/operators/onnx__RotaryEmbedding.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RotaryEmbedding {
    /// The heads; null where X has a dimension for them.
    pub heads: Option<usize>,
    /// Whether a pair is two neighbours, and not elements i and i + R / 2.
    pub interleaved: bool,
    /// R; null for all of a vector.
    pub rotary_dim: Option<usize>,
}

impl Operator for RotaryEmbedding {
    fn arity(&self) -> Arity {
        Arity::inputs(3..=4)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        require_dtype("X", x.dtype, &crate::float::FLOATS)?;
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
        Ok(vec![Type::Tensor(x.clone())])
    }
}

/// The sizes of one run.
pub(crate) struct Sizes {
    pub batch: usize,
    pub positions: usize,
    pub heads: usize,
    /// The elements of a vector, and how many of them turn.
    pub size: usize,
    pub rotary: usize,
    /// The rows of the caches.
    pub rows: usize,
}

impl RotaryEmbedding {
    /// The sizes of a run.
    ///
    /// # Errors
    /// The inputs do not fit one another.
    pub(crate) fn sizes(&self, call: &Call) -> Result<Sizes> {
        let x = call.tensor(0)?.dims();
        let (batch, positions, heads, size) = match (x, self.heads) {
            (&[batch, heads, positions, size], None) => (batch, positions, heads, size),
            (&[batch, positions, hidden], Some(heads)) if hidden.checked_rem(heads) == Some(0) => {
                (batch, positions, heads, hidden / heads)
            }
            (_, Some(heads)) => bail!("X {x:?} does not hold {heads} heads"),
            _ => bail!("X {x:?} is not [batch, heads, positions, size]"),
        };
        let rotary = self.rotary_dim.unwrap_or(size);
        if rotary > size || !rotary.is_multiple_of(2) {
            bail!("{rotary} elements of vectors of {size} cannot be turned in pairs");
        }
        let (cos, sin) = (call.tensor(1)?.dims(), call.tensor(2)?.dims());
        let ids = call.optional_tensor(3)?.map(Array::dims);
        let rows = match (ids, cos) {
            (Some(ids), &[count, half]) if half == rotary / 2 && cos == sin && ids == [batch, positions] => count,
            (None, &[n, l, half]) if half == rotary / 2 && cos == sin && l == positions && [1, batch].contains(&n) => {
                n.saturating_mul(l)
            }
            _ => bail!("caches of {cos:?} and {sin:?} do not fit X {x:?} and {ids:?} positions"),
        };
        Ok(Sizes { batch, positions, heads, size, rotary, rows })
    }
}
