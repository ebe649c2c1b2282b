//! Reductions: sums, means, extrema and norms over axes.

use candle_plan_descriptors::reduce::Extremum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smallvec::smallvec;

use crate::axes::{self, Mask};
use crate::bail;
use crate::dtype::{require_dtype, DType, SUMMED};
use crate::error::Result;
use crate::extent::count;
use crate::operator::{Arity, Needs, Operator};
use crate::types::{Dim, TensorType, Type, Types};
use crate::value::Array;

/// The function of the elements `x` along the reduced axes that [`Reduce`] computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Reduction {
    /// `Σ x`; 0 for no elements.
    Sum,
    /// `Σ x / n`; 0 for no elements. Integers truncate.
    Mean,
    /// The largest element, or NaN if one is NaN; −∞, the least integer or false for no elements.
    Max,
    /// The smallest element, or NaN if one is NaN; ∞, the greatest integer or true for no elements.
    Min,
    /// `Π x`; 1 for no elements.
    Prod,
    /// `Σ |x|`
    L1,
    /// `√(Σ x²)`
    L2,
    /// `ln Σ x`
    LogSum,
    /// `ln Σ eˣ`, without overflow; −∞ for no elements.
    LogSumExp,
    /// `Σ x²`
    SumSquare,
}

/// `Y = function of X along axes`. X `[D0, …]`, axes (optional) `[A]`; Y has size 1 in the reduced dimensions, or lacks
/// them.
///
/// The input `axes` replaces the attribute if the axes are computed at run time. If no axis is reduced, the function is
/// applied to each element. Sums of floating-point numbers are kept in `f64`, sums of integers in 64 bits, which wrap
/// around. Functions with real results (L2, LogSum, LogSumExp) are truncated and saturate for integers. Source:
/// [ONNX ReduceSum](https://onnx.ai/onnx/operators/onnx__ReduceSum.html) and its siblings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reduce {
    /// The function.
    pub function: Reduction,
    /// The reduced axes; a negative axis counts from the end. Null means all axes, or those of the input.
    pub axes: Option<Vec<i64>>,
    /// Whether the result keeps the reduced dimensions, with size 1.
    pub keepdims: bool,
    /// Whether an empty input `axes` reduces no axis instead of all.
    pub noop_with_empty_axes: bool,
}

impl Operator for Reduce {
    fn arity(&self) -> Arity {
        Arity::inputs(1..=2)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        let has_order = self.function.extremum().is_some();
        if !(has_order && matches!(x.dtype, DType::Bool | DType::Int8 | DType::Uint8)) {
            require_dtype("X", x.dtype, &SUMMED)?;
        }
        let axes = inputs.optional_tensor(1)?;
        if let Some(axes) = axes {
            require_dtype("axes", axes.dtype, &[DType::Int64, DType::Int32])?;
        }
        if let (Some(named), Some(rank)) = (inputs.shape(1)?.and_then(|axes| count(axes)), x.rank()) {
            if named > rank {
                bail!("{named} axes are named, and X has {rank}");
            }
        }
        let shape = match (&x.shape, axes) {
            (Some(shape), _) if inputs.is_fixed(1) => {
                let axes = inputs.constant(1).map(Array::to_i64).transpose()?;
                let mask = self.mask(axes.as_deref(), shape.len())?;
                let kept = shape.iter().zip(mask).filter_map(|(dim, reduced)| match (reduced, self.keepdims) {
                    (false, _) => Some(dim.clone()),
                    (true, true) => Some(Some(Dim::Size(1))),
                    (true, false) => None,
                });
                Some(kept.collect())
            }
            (Some(shape), Some(_)) if self.keepdims => Some(vec![None; shape.len()]),
            _ => None,
        };
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape })])
    }

    fn needs(&self, input: usize) -> Needs {
        Needs::numbers_after_first(input)
    }

    fn is_foldable(&self) -> bool {
        true
    }
}

impl Reduction {
    pub(crate) fn extremum(self) -> Option<Extremum> {
        match self {
            Reduction::Max => Some(Extremum::Max),
            Reduction::Min => Some(Extremum::Min),
            _ => None,
        }
    }
}

impl Reduce {
    /// The mask of the reduced axes of a tensor of rank `rank`; `input` is the input `axes`, if it is there.
    pub(crate) fn mask(&self, input: Option<&[i64]>, rank: usize) -> Result<Mask> {
        match (input, &self.axes) {
            (Some([]), _) => Ok(smallvec![!self.noop_with_empty_axes; rank]),
            (Some(axes), _) => axes::mask(axes, rank),
            (None, Some(axes)) => axes::mask(axes, rank),
            (None, None) => Ok(smallvec![true; rank]),
        }
    }
}
