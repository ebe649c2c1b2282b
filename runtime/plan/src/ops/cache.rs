//! Caches whose rows are written one after another.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bail;
use crate::dtype::{require_dtype, DType};
use crate::error::Result;
use crate::extent::{fits, text, Extent};
use crate::operator::{Arity, Needs, Operator};
use crate::types::{TensorType, Type, Types};

/// The first rows of a cache, then new rows, then zeros: `Y[b, …, i, :]` is `cache[b, …, i, :]` for `i < n[b]`,
/// `new[b, …, i − n[b], :]` for the next `S`, and zero for the others. Rows between the end of the cache and `n[b]` are zero too.
///
/// Inputs: `cache [B, …, P, D]`; `new [B, …, S, D]`; `n: int64 [B]`; `total: int64 [1]`. Y has `max(P, total)` rows.
///
/// Source: [the cache of onnxruntime's
/// GroupQueryAttention](https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.GroupQueryAttention).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AppendRows {}

impl Operator for AppendRows {
    fn arity(&self) -> Arity {
        Arity::exact(4, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let (cache, new, lengths, total) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?, inputs.tensor(3)?);
        if cache.dtype == DType::String {
            bail!("a cache of strings is not supported");
        }
        require_dtype("new", new.dtype, &[cache.dtype])?;
        for (name, list) in [("n", lengths), ("total", total)] {
            require_dtype(name, list.dtype, &[DType::Int64])?;
            if list.rank().is_some_and(|rank| rank != 1) {
                bail!("{name} must have 1 dimension, found {}", Type::Tensor(list.clone()));
            }
        }
        let mut shape = cache.shape.clone();
        if let Some(shape) = &mut shape {
            let axis = match &new.shape {
                Some(new) => AppendRows::check(shape, new)?,
                None => AppendRows::row_axis(shape)?,
            };
            if let Some(lengths) = lengths.shape.as_ref().filter(|lengths| !fits(&lengths[0], &shape[0])) {
                bail!("n has shape {}, which does not fit a cache of shape {}", text(lengths), text(shape));
            }
            shape[axis] = None;
        }
        Ok(vec![Type::Tensor(TensorType { dtype: cache.dtype, shape })])
    }

    fn needs(&self, input: usize) -> Needs {
        if input < 2 {
            Needs::Elements
        } else {
            Needs::Numbers
        }
    }
}

impl AppendRows {
    /// The axis of the rows of a cache.
    fn row_axis(cache: &[impl Extent]) -> Result<usize> {
        match cache.len() {
            rank if rank >= 3 => Ok(rank - 2),
            _ => bail!("a cache has at least 3 dimensions, found one of shape {}", text(cache)),
        }
    }

    /// The axis of the rows of a cache, if new rows of shape `new` fit it.
    pub(crate) fn check<D: Extent>(cache: &[D], new: &[D]) -> Result<usize> {
        let axis = AppendRows::row_axis(cache)?;
        let fits = |(i, (old, new)): (usize, (&D, &D))| i == axis || fits(new, old);
        if cache.len() != new.len() || !cache.iter().zip(new).enumerate().all(fits) {
            bail!("rows of shape {} do not fit a cache of shape {}", text(new), text(cache));
        }
        Ok(axis)
    }
}
