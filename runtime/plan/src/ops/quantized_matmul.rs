//! Matrix products whose operands are quantized to 8 bits.

use candle_plan_descriptors::program::Program;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::matmul::products;
use crate::bail;
use crate::dtype::{require_dtype, DType};
use crate::epilogue;
use crate::error::Result;
use crate::extent::{all_fit, fits, size_text, text, Extent};
use crate::operator::{Arity, Operator};
use crate::types::{TensorType, Type, Types};
use crate::work::Work;

/// `Y[i, j] = (Σₖ (code[i, k] − zero[i]) · W[j, k]) · scales[j] · scale[i]`, then the epilogue. Each row `i` of `A` gets
/// codes, a zero point and a scale in every run.
///
/// With `low` and `high` as the smallest and the largest number of the row and 0: `scale = high / 255 − low / 255`, `zero =
/// min(round(−low / scale), 255)`, and `code = clamp(round(a · (1 / scale)) + zero, 0, 255)`. `round` rounds ties to even.
/// The sum is an exact integer, which becomes `float32`. A row with an infinite number or NaN gives NaN. A row whose scale
/// is below `2⁻¹²⁶` counts as zero. Each operation on floats is rounded to `float32`, so a result has the same bits on every
/// processor.
///
/// Inputs: `A: float32 [batch…, K]`; the codes `W: int8 [N, K]`; `scales: float32 [N]`; then the epilogue's operands. `K` is
/// at most 65536, so that each sum fits 32 bits.
///
/// Source: [ONNX DynamicQuantizeLinear](https://onnx.ai/onnx/operators/onnx__DynamicQuantizeLinear.html), here for each row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuantizedMatMul {
    /// The program that finishes the result.
    pub epilogue: Option<Program>,
}

/// The largest depth whose sums fit 32 bits.
const DEEPEST: usize = 1 << 16;

impl Operator for QuantizedMatMul {
    fn arity(&self) -> Arity {
        Arity::inputs(3..=usize::MAX)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let (a, w, scales) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        require_dtype("A", a.dtype, &[DType::Float32])?;
        require_dtype("W", w.dtype, &[DType::Int8])?;
        require_dtype("the scale", scales.dtype, &[DType::Float32])?;
        epilogue::check(self.epilogue.as_ref(), inputs, a.dtype)?;
        if let Some(w) = &w.shape {
            check_weights(w, scales.shape.as_deref())?;
        }
        let shape = a.shape.as_deref().zip(w.shape.as_deref()).map(|(a, w)| result(a, w)).transpose()?;
        Ok(vec![Type::Tensor(TensorType { dtype: a.dtype, shape })])
    }

    fn work(&self, inputs: &Types, outputs: &[Type]) -> Option<Work> {
        Work::multiplying(inputs, outputs, products(inputs, outputs, false))
    }
}

/// Checks the shapes of the weights and of their scales, as far as they are known.
///
/// # Errors
/// `W` is no matrix, it is too deep, or the scales are not one for each row.
pub(crate) fn check_weights<D: Extent>(w: &[D], scales: Option<&[D]>) -> Result<()> {
    let [n, k] = w else { bail!("W has shape {}; it must be a matrix", text(w)) };
    if k.known().is_some_and(|k| k > DEEPEST) {
        bail!("W has shape {}; it must have at most {DEEPEST} columns", text(w));
    }
    match scales {
        Some(scales) if !all_fit(scales, &[n.known()]) => {
            bail!("the scale has shape {}; it must have {} elements", text(scales), size_text(n))
        }
        _ => Ok(()),
    }
}

/// The shape of the product of operands of these shapes.
///
/// # Errors
/// `W` is no matrix, or `A` has no rows of K elements.
pub(crate) fn result<D: Extent + Clone>(a: &[D], w: &[D]) -> Result<Vec<D>> {
    match (a.split_last(), w) {
        (Some((last, rows)), [n, k]) if fits(last, k) => Ok([rows, std::slice::from_ref(n)].concat()),
        (_, [_, k]) => bail!("A has shape {}; its last size must be {}", text(a), size_text(k)),
        _ => bail!("W has shape {}; it must be a matrix", text(w)),
    }
}
