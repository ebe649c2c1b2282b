//! Matrix products of rounded numbers.

use candle_plan_descriptors::gemm::ProductSizes;
use candle_plan_descriptors::program::Program;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::matmul::products;
use super::matrices::ordered;
use crate::bail;
use crate::dtype::{require_dtype, DType};
use crate::epilogue;
use crate::error::Result;
use crate::extent::{fits, size_text, text, Extent};
use crate::operator::{Arity, Operator};
use crate::types::{TensorType, Type, Types};
use crate::work::Work;

/// `Y = round(A) · W`, then the epilogue. `round` rounds each number to the type of `W`: to nearest, ties to even. Numbers below
/// `2⁻¹²⁶` in magnitude may count as zero. The sums are `float32`.
///
/// Inputs: `A: float32 [batch…, K]`; `W: bfloat16 [K, N]` (with `trans_w`, `[N, K]`); then the epilogue's operands. The last bits
/// of a sum depend on the processor, but not on the number of threads or of the rows of `A`.
///
/// Source: [VDPBF16PS](https://www.intel.com/content/www/us/en/docs/intrinsics-guide/index.html), which computes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoundedMatMul {
    /// Whether `W` is stored transposed.
    pub trans_w: bool,
    /// The program that finishes the result.
    pub epilogue: Option<Program>,
}

impl Operator for RoundedMatMul {
    fn arity(&self) -> Arity {
        Arity::inputs(2..=usize::MAX)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let (a, w) = (inputs.tensor(0)?, inputs.tensor(1)?);
        require_dtype("A", a.dtype, &[DType::Float32])?;
        require_dtype("W", w.dtype, &[DType::Bfloat16])?;
        epilogue::check(self.epilogue.as_ref(), inputs, a.dtype)?;
        if let Some(w) = w.shape.as_ref().filter(|w| w.len() != 2) {
            bail!("W has shape {}; it must be a matrix", text(w));
        }
        let shape = match (&a.shape, &w.shape) {
            (Some(a), Some(w)) => Some(self.result(a, w)?),
            _ => None,
        };
        Ok(vec![Type::Tensor(TensorType { dtype: a.dtype, shape })])
    }

    fn work(&self, inputs: &Types, outputs: &[Type]) -> Option<Work> {
        Work::multiplying(inputs, outputs, products(inputs, outputs, false))
    }
}

impl RoundedMatMul {
    /// The shape of the product of operands of these shapes.
    ///
    /// # Errors
    /// `W` is no matrix, or `A` has no rows of K elements.
    pub(crate) fn result<D: Extent + Clone>(&self, a: &[D], w: &[D]) -> Result<Vec<D>> {
        match (a.split_last(), &ordered(w, self.trans_w)?[..]) {
            (Some((last, rows)), [k, n]) if fits(last, k) => Ok([rows, std::slice::from_ref(n)].concat()),
            (_, [k, _]) => bail!("A has shape {}; its last size must be {}", text(a), size_text(k)),
            _ => bail!("W has shape {}; it must be a matrix", text(w)),
        }
    }

    /// The sizes of the product of operands of these dimensions, and its dimensions.
    ///
    /// # Errors
    /// As [`RoundedMatMul::result`].
    pub(crate) fn sizes(&self, a: &[usize], w: &[usize]) -> Result<(ProductSizes, Vec<usize>)> {
        let dims = self.result(a, w)?;
        let (k, n) = (a[a.len() - 1], dims[dims.len() - 1]);
        let m = a[..a.len() - 1].iter().fold(1usize, |m, size| m.saturating_mul(*size));
        Ok((ProductSizes { m, n, k }, dims))
    }
}
