//! Matrix products with weights of few bits.

use candle_plan_descriptors::program::Program;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::matmul::products;
use crate::bail;
use crate::dtype::{require_dtype, DType};
use crate::epilogue;
use crate::error::Result;
use crate::extent::{all_fit, fits, text, Extent};
use crate::operator::{Arity, Operator};
use crate::types::{Dim, TensorType, Type, Types};
use crate::work::Work;

/// `Y = A · Wᵀ`, then the epilogue. A code is an integer of `bits` bits. Each row of `W [N, K]` consists of blocks of codes,
/// and the last block may be partial. An element of `W` is `(code − zero) · scale`, with the zero point and the scale of its
/// block.
///
/// Inputs: `A [batch…, K]`; the codes `B: uint8 [N, blocks, block · bits / 8]`, the first code of a byte in its low bits;
/// `scales [N, blocks]`; the optional `zeros [N, blocks]`, of `uint8` or a floating-point type, by default `2^(bits − 1)`;
/// then the epilogue's operands. `A` and `scales` are `float16`, `bfloat16` or `float32`. The op computes the product in
/// `float32`, and rounds it once, to the type of `A`. With `rounds_a`, it may round `A` to 8 bits.
///
/// Source: [MatMulNBits of onnxruntime](https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MatMulNBits {
    /// The number of columns of `W`, at least 1.
    pub k: usize,
    /// The number of rows of `W`, at least 1.
    pub n: usize,
    /// The bits of a code: 2, 4 or 8.
    pub bits: usize,
    /// The codes of a block, a multiple of 16.
    pub block: usize,
    /// Whether a kernel may round `A` to 8 bits, where this is faster. Each block of a row, or at most 256 elements of a
    /// longer block, then gets a scale: the largest magnitude, divided by 127. An element becomes the nearest multiple of
    /// the scale.
    #[serde(default)]
    pub rounds_a: bool,
    /// The program that finishes the result.
    pub epilogue: Option<Program>,
}

const FLOATS: [DType; 3] = [DType::Float32, DType::Float16, DType::Bfloat16];

impl Operator for MatMulNBits {
    fn arity(&self) -> Arity {
        Arity::inputs(3..=usize::MAX)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let (a, b, scales, zeros) =
            (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?, inputs.optional_tensor(3)?);
        require_dtype("A", a.dtype, &FLOATS)?;
        require_dtype("B", b.dtype, &[DType::Uint8])?;
        require_dtype("the scale", scales.dtype, &FLOATS)?;
        if let Some(zeros) = zeros {
            require_dtype("the zero point", zeros.dtype, &[DType::Uint8, FLOATS[0], FLOATS[1], FLOATS[2]])?;
        }
        epilogue::check(self.epilogue.as_ref(), inputs, a.dtype)?;
        let shape = |i: usize| inputs.shape(i).map(|shape| shape.map(Vec::as_slice));
        self.check_weights(shape(1)?, shape(2)?, shape(3)?)?;
        let shape = shape(0)?.map(|a| self.result(a, Some(Dim::Size(self.n)))).transpose()?;
        Ok(vec![Type::Tensor(TensorType { dtype: a.dtype, shape })])
    }

    fn work(&self, inputs: &Types, outputs: &[Type]) -> Option<Work> {
        Work::multiplying(inputs, outputs, products(inputs, outputs, false))
    }
}

impl MatMulNBits {
    /// The blocks of a row.
    pub(crate) fn blocks(&self) -> usize {
        self.k.div_ceil(self.block.max(1))
    }

    /// Checks the sizes, and that weights of these shapes have them, as far as the shapes are known.
    ///
    /// # Errors
    /// A size is not supported, or a shape is another one.
    pub(crate) fn check_weights<D: Extent>(
        &self,
        b: Option<&[D]>,
        scales: Option<&[D]>,
        zeros: Option<&[D]>,
    ) -> Result<()> {
        let MatMulNBits { k, n, bits, block, .. } = *self;
        if k == 0 || n == 0 || !matches!(bits, 2 | 4 | 8) || block == 0 || block % 16 != 0 {
            bail!("{n} rows of {k} codes of {bits} bits in blocks of {block} are not supported");
        }
        let bytes = block.checked_mul(bits).map(|bits| bits / 8);
        let expected = [Some(n), Some(self.blocks()), bytes];
        for (name, shape, expected) in
            [("B", b, &expected[..]), ("the scale", scales, &expected[..2]), ("the zero point", zeros, &expected[..2])]
        {
            if let Some(shape) = shape.filter(|shape| !all_fit(shape, expected)) {
                bail!("{name} has shape {}; it must be {}", text(shape), text(expected));
            }
        }
        Ok(())
    }

    /// The shape of the product with an `A` of this shape; its last size is `n`.
    ///
    /// # Errors
    /// `A` has no rows of K elements.
    pub(crate) fn result<D: Extent + Clone>(&self, a: &[D], n: D) -> Result<Vec<D>> {
        match a.split_last() {
            Some((last, rows)) if fits(last, &self.k) => Ok([rows, &[n]].concat()),
            _ => bail!("A has shape {}; its last size must be {}", text(a), self.k),
        }
    }
}
