//! Products of two matrices, scaled and added to a third matrix.

use candle_plan_descriptors::gemm::ProductSizes;
use candle_plan_descriptors::program::Program;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::matmul::{check_operands, infer_product, products};
use super::matrices::ordered;
use crate::bail;
use crate::epilogue;
use crate::error::{Error, Result};
use crate::operator::{Arity, Operator};
use crate::types::{Dim, TensorType, Type, Types};
use crate::value::Array;
use crate::work::Work;

/// `Y = alpha · A' · B' + beta · C`, then the epilogue. `A'` and `B'` are `A` and `B`, transposed with `trans_a` and
/// `trans_b`.
///
/// Inputs: `A [M, K]` (transposed: `[K, M]`), `B [K, N]` (transposed: `[N, K]`), `C`, which broadcasts to `[M, N]`, or
/// absent, then the epilogue's operands. `float16` and `bfloat16` are computed in `float32` and rounded once. Integers
/// wrap around, and need whole numbers as `alpha` and `beta`.
///
/// Source: [ONNX Gemm](https://onnx.ai/onnx/operators/onnx__Gemm.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gemm {
    /// The factor of the product.
    pub alpha: f32,
    /// The factor of `C`.
    pub beta: f32,
    /// Whether `A` is stored transposed.
    pub trans_a: bool,
    /// Whether `B` is stored transposed.
    pub trans_b: bool,
    /// The program that finishes the result.
    pub epilogue: Option<Program>,
}

impl Operator for Gemm {
    fn arity(&self) -> Arity {
        Arity::inputs(2..=usize::MAX)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let dtype = check_operands(inputs, 3)?;
        epilogue::check(self.epilogue.as_ref(), inputs, dtype)?;
        let whole = |x: f32| x.fract() == 0.0 && x.abs() < 2e9;
        if dtype.is_int() && !(whole(self.alpha) && whole(self.beta)) {
            bail!("alpha {} and beta {} must be whole numbers for {dtype}", self.alpha, self.beta);
        }
        let (a, b) = (inputs.tensor(0)?, inputs.tensor(1)?);
        for (name, operand) in [("A", a), ("B", b)] {
            if operand.rank().is_some_and(|rank| rank != 2) {
                bail!("{name} must be a matrix, found {}", Type::Tensor(operand.clone()));
            }
        }
        let order =
            |tensor: &TensorType, transposed| ordered(tensor.shape.as_ref().unwrap_or(&vec![None; 2]), transposed);
        let shape = infer_product(&order(a, self.trans_a)?, &order(b, self.trans_b)?)?;
        if let Some(c) = inputs.optional_tensor(2)? {
            check_addend(c, &shape)?;
        }
        Ok(vec![Type::Tensor(TensorType { dtype, shape: Some(shape) })])
    }

    fn work(&self, inputs: &Types, outputs: &[Type]) -> Option<Work> {
        Work::multiplying(inputs, outputs, products(inputs, outputs, self.trans_a))
    }
}

impl Gemm {
    /// The dimensions of an operand after the transposition.
    pub(crate) fn order(&self, operand: &Array, transposed: bool) -> [usize; 2] {
        let dims = operand.dims();
        if transposed {
            [dims[1], dims[0]]
        } else {
            [dims[0], dims[1]]
        }
    }

    /// The sizes of the product.
    ///
    /// # Errors
    /// The operands do not fit each other.
    pub(crate) fn sizes(&self, a: &Array, b: &Array, c: Option<&Array>) -> Result<ProductSizes> {
        if a.rank() != 2 || b.rank() != 2 {
            bail!("A and B must be matrices, found {:?} and {:?}", a.dims(), b.dims());
        }
        let ([m, k], [rows, n]) = (self.order(a, self.trans_a), self.order(b, self.trans_b));
        if k != rows {
            bail!("a {m} x {k} matrix does not multiply a {rows} x {n} one");
        }
        if let Some(c) = c {
            let fits = |(&c, y): (&usize, usize)| c == 1 || c == y;
            if c.rank() > 2 || !c.dims().iter().rev().zip([n, m]).all(fits) {
                return Err(not_broadcast(&TensorType::sized(c.dtype(), c.dims())));
            }
        }
        Ok(ProductSizes { m, n, k })
    }
}

/// The strides of the row and the column in an addend that broadcasts to a matrix.
pub(crate) fn steps(dims: &[usize]) -> [usize; 2] {
    let size = |from_end: usize| dims.len().checked_sub(from_end).map_or(1, |i| dims[i]);
    [if size(2) == 1 { 0 } else { size(1) }, usize::from(size(1) != 1)]
}

/// Checks that `C` broadcasts to the result.
fn check_addend(c: &TensorType, result: &[Option<Dim>]) -> Result<()> {
    let Some(shape) = &c.shape else { return Ok(()) };
    let fits = |(c, y): (&Option<Dim>, &Option<Dim>)| match (c, y) {
        (Some(Dim::Size(c)), Some(Dim::Size(y))) => *c == 1 || c == y,
        _ => true,
    };
    if shape.len() > 2 || !shape.iter().rev().zip(result.iter().rev()).all(fits) {
        return Err(not_broadcast(c));
    }
    Ok(())
}

fn not_broadcast(c: &TensorType) -> Error {
    Error::op(format!("C {} does not broadcast to the product", Type::Tensor(c.clone())))
}
