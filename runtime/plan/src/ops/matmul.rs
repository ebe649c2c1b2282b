//! Matrix products.

use candle_plan_descriptors::gemm::ProductSizes;
use candle_plan_descriptors::program::Program;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::matrices::{ordered, Factors};
use crate::bail;
use crate::dtype::DType;
use crate::epilogue;
use crate::error::Result;
use crate::operator::{Arity, Operator};
use crate::types::{Dim, Shape, TensorType, Type, Types};
use crate::value::{element_count, list, with_capacity};
use crate::work::{self, Work};

/// `Y = A · B`, then the epilogue. The last two dimensions are matrices, and the dimensions before them broadcast. A
/// vector is a row on the left and a column on the right; the result lacks its dimension.
///
/// Inputs: `A [batch…, M, K]` (with `trans_a`, `[batch…, K, M]`), `B [batch…, K, N]` (with `trans_b`,
/// `[batch…, N, K]`), then the epilogue's operands. A transposed operand must not be a vector. `float16` and `bfloat16`
/// are computed in `float32` and rounded once; integers wrap around.
///
/// Source: [ONNX MatMul](https://onnx.ai/onnx/operators/onnx__MatMul.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MatMul {
    /// Whether the matrices of `A` are stored transposed.
    #[serde(default)]
    pub trans_a: bool,
    /// Whether the matrices of `B` are stored transposed.
    #[serde(default)]
    pub trans_b: bool,
    /// The program that finishes the result.
    pub epilogue: Option<Program>,
}

impl Operator for MatMul {
    fn arity(&self) -> Arity {
        Arity::inputs(2..=usize::MAX)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let dtype = check_operands(inputs, 2)?;
        epilogue::check(self.epilogue.as_ref(), inputs, dtype)?;
        let shape = match (&inputs.tensor(0)?.shape, &inputs.tensor(1)?.shape) {
            (Some(a), Some(b)) => Some(infer_product(&ordered(a, self.trans_a)?, &ordered(b, self.trans_b)?)?),
            _ => None,
        };
        Ok(vec![Type::Tensor(TensorType { dtype, shape })])
    }

    fn work(&self, inputs: &Types, outputs: &[Type]) -> Option<Work> {
        Work::multiplying(inputs, outputs, products(inputs, outputs, self.trans_a))
    }
}

/// A product of two stacks of matrices.
pub(crate) struct Product {
    pub(crate) sizes: ProductSizes,
    /// Whether the left and the right matrices are stored transposed.
    pub(crate) transposed: [bool; 2],
    /// For each matrix of the result, the indices of its left and its right matrix.
    pub(crate) pairs: Vec<[usize; 2]>,
    /// The dimensions of the result.
    pub dims: Vec<usize>,
}

impl Product {
    /// The product of stacks of these dimensions.
    pub fn new(a: &[usize], b: &[usize]) -> Result<Product> {
        Product::transposed(a, b, [false; 2])
    }

    /// The product of stacks whose matrices may be stored transposed.
    pub fn transposed(a: &[usize], b: &[usize], transposed: [bool; 2]) -> Result<Product> {
        let factors = Factors::new(a, b, transposed)?;
        let [a_stack, b_stack] = &factors.stacks;
        let (stack, mut pairs) = pair_up(a_stack, b_stack)?;
        let mut sizes = ProductSizes { m: factors.m, n: factors.n, k: factors.k };
        let shared = if transposed[0] { 1 } else { consecutive(&stack, b_stack) };
        if shared > 1 {
            // Consecutive left matrices with the same right matrix are one tall matrix.
            sizes.m *= shared;
            pairs = list(pairs.into_iter().step_by(shared).map(|[left, right]| [left / shared, right]))?;
        }
        Ok(Product { sizes, transposed, pairs, dims: factors.result(stack)? })
    }
}

/// The broadcast batch dimensions, and the indices of the left and the right matrix of each pair.
fn pair_up(a: &[usize], b: &[usize]) -> Result<(Vec<usize>, Vec<[usize; 2]>)> {
    let rank = a.len().max(b.len());
    let size = |dims: &[usize], i: usize| (i + dims.len()).checked_sub(rank).map_or(1, |i| dims[i]);
    let mut dims = Vec::new();
    for i in 0..rank {
        dims.push(match (size(a, i), size(b, i)) {
            (1, y) => y,
            (x, y) if y == 1 || x == y => x,
            (x, y) => bail!("batches of {x} and {y} do not broadcast"),
        });
    }
    element_count(&dims)?;
    let mut pairs = vec![[0, 0]];
    for (i, &count) in dims.iter().enumerate().filter(|(_, &count)| count != 1) {
        let step = |index: usize, j: usize, size: usize| index * size + if size == 1 { 0 } else { j };
        let next = |[x, y]: [usize; 2]| (0..count).map(move |j| [step(x, j, size(a, i)), step(y, j, size(b, i))]);
        let mut longer = with_capacity(pairs.len() * count)?;
        longer.extend(pairs.into_iter().flat_map(next));
        pairs = longer;
    }
    Ok((dims, pairs))
}

/// The number of consecutive matrices of the result with the same right matrix.
fn consecutive(batch: &[usize], b: &[usize]) -> usize {
    let ones = b.iter().rev().chain(std::iter::repeat(&1)).take_while(|&&size| size == 1);
    batch.iter().rev().zip(ones).map(|(&count, _)| count).product()
}

/// The number of products of a matrix product: `K` for each element of the output.
pub(crate) fn products(inputs: &Types, outputs: &[Type], trans_a: bool) -> Option<u64> {
    let depth = work::size_from_end(inputs.tensor(0).ok()?, usize::from(trans_a))?;
    Some(work::count(outputs.first()?.tensor().ok()?)?.saturating_mul(depth))
}

/// Checks that the first `count` inputs have the same dtype, and that ONNX allows it for a product. Returns the dtype.
pub(crate) fn check_operands(inputs: &Types, count: usize) -> Result<DType> {
    let dtype = inputs.tensor(0)?.dtype;
    let integer = matches!(dtype, DType::Int32 | DType::Int64 | DType::Uint32 | DType::Uint64);
    if !integer && !crate::dtype::FLOATS.contains(&dtype) {
        bail!("A is {dtype}; allowed are float16, bfloat16, float32, float64, int32, int64, uint32, uint64");
    }
    inputs.tensor(1)?;
    for i in 1..count {
        if let Some(other) = inputs.optional_tensor(i)?.filter(|other| other.dtype != dtype) {
            bail!("input {i} is {}, and A is {dtype}", other.dtype);
        }
    }
    Ok(dtype)
}

/// The shape of `A · B`, as far as the operands' shapes are known.
pub(crate) fn infer_product(a: &Shape, b: &Shape) -> Result<Shape> {
    if a.is_empty() || b.is_empty() {
        bail!("a matrix product takes no scalars");
    }
    let (a_batch, a_matrix) = a.split_at(a.len().saturating_sub(2));
    let (b_batch, b_matrix) = b.split_at(b.len().saturating_sub(2));
    if let (Some(Some(Dim::Size(k))), Some(Dim::Size(rows))) = (a_matrix.last(), &b_matrix[0]) {
        if k != rows {
            bail!("a matrix of {k} columns does not multiply one of {rows} rows");
        }
    }
    let rank = a_batch.len().max(b_batch.len());
    let batch = |shape: &[Option<Dim>], i: usize| match (i + shape.len()).checked_sub(rank) {
        Some(i) => shape[i].clone(),
        None => Some(Dim::Size(1)),
    };
    let mut shape = Vec::new();
    for i in 0..rank {
        shape.push(match (batch(a_batch, i), batch(b_batch, i)) {
            (Some(Dim::Size(1)), other) | (other, Some(Dim::Size(1))) => other,
            (Some(Dim::Size(x)), Some(Dim::Size(y))) if x != y => bail!("batches of {x} and {y} do not broadcast"),
            (Some(Dim::Size(x)), _) | (_, Some(Dim::Size(x))) => Some(Dim::Size(x)),
            (x, y) => x.filter(|x| y.as_ref() == Some(x)),
        });
    }
    shape.extend(a_matrix.iter().take(a_matrix.len() - 1).cloned());
    shape.extend(b_matrix.iter().skip(1).cloned());
    Ok(shape)
}
