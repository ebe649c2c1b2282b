//! Sequences: lists of tensors of one type.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::join::check_sum;
use crate::axes;
use crate::bail;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::extent::Extent;
use crate::operator::{Arity, Needs, Operator, OperatorKind};
use crate::types::{Dim, TensorType, Type, Types};
use crate::value::Array;

/// A sequence of the inputs, in order.
///
/// Source: [ONNX SequenceConstruct](https://onnx.ai/onnx/operators/onnx__SequenceConstruct.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SequenceConstruct {}

impl Operator for SequenceConstruct {
    fn arity(&self) -> Arity {
        Arity::inputs(1..=usize::MAX)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let mut item = inputs.tensor(0)?.clone();
        for i in 1..inputs.len() {
            item = common(&item, inputs.tensor(i)?)?;
        }
        Ok(vec![Type::Sequence(Box::new(Type::Tensor(item)))])
    }

    fn shares(&self, _: usize) -> bool {
        true
    }

    fn kind() -> OperatorKind {
        OperatorKind::Structure
    }
}

/// A sequence without items.
///
/// Source: [ONNX SequenceEmpty](https://onnx.ai/onnx/operators/onnx__SequenceEmpty.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SequenceEmpty {
    /// The element type of the items that it can hold.
    pub dtype: DType,
}

impl Operator for SequenceEmpty {
    fn arity(&self) -> Arity {
        Arity::exact(0, 1)
    }

    fn infer(&self, _: &Types) -> Result<Vec<Type>> {
        Ok(vec![Type::Sequence(Box::new(Type::any(self.dtype)))])
    }

    fn kind() -> OperatorKind {
        OperatorKind::Structure
    }
}

/// Item `position` of a sequence; a negative one counts from the end. Inputs: the sequence, `position: []`.
///
/// Source: [ONNX SequenceAt](https://onnx.ai/onnx/operators/onnx__SequenceAt.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SequenceAt {}

impl Operator for SequenceAt {
    fn arity(&self) -> Arity {
        Arity::exact(2, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        inputs.tensor(1)?;
        inputs.one_element(1, "the position")?;
        Ok(vec![item_type(inputs, 0)?.clone()])
    }

    fn shares(&self, input: usize) -> bool {
        input == 0
    }

    fn kind() -> OperatorKind {
        OperatorKind::Structure
    }
}

/// Inserts a tensor into a sequence before item `position`. Inputs: the sequence, the tensor, `position: []` (absent:
/// at the end), from `-n` to `n` for `n` items.
///
/// Source: [ONNX SequenceInsert](https://onnx.ai/onnx/operators/onnx__SequenceInsert.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SequenceInsert {}

impl Operator for SequenceInsert {
    fn arity(&self) -> Arity {
        Arity::inputs(2..=3)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        inputs.one_element(2, "the position")?;
        let item = common(item_type(inputs, 0)?.tensor()?, inputs.tensor(1)?)?;
        Ok(vec![Type::Sequence(Box::new(Type::Tensor(item)))])
    }

    fn shares(&self, input: usize) -> bool {
        input < 2
    }

    fn kind() -> OperatorKind {
        OperatorKind::Structure
    }
}

/// Removes item `position` from a sequence. Inputs: the sequence, `position: []` (absent: the last item), from `-n` to
/// `n - 1` for `n` items.
///
/// Source: [ONNX SequenceErase](https://onnx.ai/onnx/operators/onnx__SequenceErase.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SequenceErase {}

impl Operator for SequenceErase {
    fn arity(&self) -> Arity {
        Arity::inputs(1..=2)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        item_type(inputs, 0)?;
        inputs.one_element(1, "the position")?;
        Ok(vec![inputs.get(0)?.clone()])
    }

    fn shares(&self, input: usize) -> bool {
        input == 0
    }

    fn kind() -> OperatorKind {
        OperatorKind::Structure
    }
}

/// The number of items of a sequence, as `int64 []`.
///
/// Source: [ONNX SequenceLength](https://onnx.ai/onnx/operators/onnx__SequenceLength.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SequenceLength {}

impl Operator for SequenceLength {
    fn arity(&self) -> Arity {
        Arity::exact(1, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        item_type(inputs, 0)?;
        Ok(vec![Type::ranked(DType::Int64, 0)])
    }

    fn kind() -> OperatorKind {
        OperatorKind::Structure
    }
}

/// Splits `X` along `axis` into a sequence. Input 1, `split`, is a list of sizes, or one size for all parts, of which
/// the last may be smaller. If it is absent, the parts have size 1.
///
/// Source: [ONNX SplitToSequence](https://onnx.ai/onnx/operators/onnx__SplitToSequence.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SplitToSequence {
    /// The axis; a negative one counts from the end.
    pub axis: i64,
    /// Whether parts keep the axis if `split` is absent.
    pub keep_axis: bool,
}

impl Operator for SplitToSequence {
    fn arity(&self) -> Arity {
        Arity::inputs(1..=2)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let mut item = inputs.tensor(0)?.clone();
        if let Some(shape) = &mut item.shape {
            let axis = axes::resolve(self.axis, shape.len())?;
            shape[axis] = match inputs.is_fixed(1) {
                true => Parts::of(inputs.constant(1), &shape[axis])?.common_size(&shape[axis]).map(Dim::Size),
                false => None,
            };
            if inputs.optional(1).is_none() && !self.keep_axis {
                shape.remove(axis);
            }
        }
        Ok(vec![Type::Sequence(Box::new(Type::Tensor(item)))])
    }

    fn needs(&self, input: usize) -> Needs {
        Needs::numbers_after_first(input)
    }

    fn shares(&self, input: usize) -> bool {
        input == 0
    }

    fn kind() -> OperatorKind {
        OperatorKind::Structure
    }
}

/// The parts that an axis is cut into.
pub(crate) enum Parts {
    /// Parts of this size; the last one holds the remaining elements.
    Each(usize),
    /// Parts of these sizes.
    Sizes(Vec<usize>),
}

impl Parts {
    /// Returns the parts into which `split` divides an axis of size `size`. Without `split`, the parts have size 1.
    ///
    /// # Errors
    /// The sizes do not add up to the axis, or `split` is one size of 0.
    pub(crate) fn of(split: Option<&Array>, size: &impl Extent) -> Result<Parts> {
        let Some(split) = split else { return Ok(Parts::Each(1)) };
        let sizes = axes::dims(&split.to_i64()?)?;
        match (split.rank(), &sizes[..]) {
            (0, &[0]) => bail!("a sequence cannot be made of parts of size 0"),
            (0, &[part]) => Ok(Parts::Each(part)),
            _ => check_sum(&sizes, size).map(|()| Parts::Sizes(sizes)),
        }
    }

    /// Returns the common size of all parts of an axis of size `size`, if there is one.
    fn common_size(&self, size: &impl Extent) -> Option<usize> {
        match self {
            Parts::Each(1) => Some(1),
            Parts::Each(part) => size.known().filter(|size| size.is_multiple_of(*part)).map(|_| *part),
            Parts::Sizes(sizes) => sizes.first().copied().filter(|first| sizes.iter().all(|size| size == first)),
        }
    }
}

/// Joins the tensors of a sequence along `axis`. With `new_axis`, it stacks them along a new axis at this position.
///
/// Source: [ONNX ConcatFromSequence](https://onnx.ai/onnx/operators/onnx__ConcatFromSequence.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConcatFromSequence {
    /// The axis of the result; a negative one counts from the end.
    pub axis: i64,
    /// Whether the axis is new.
    pub new_axis: bool,
}

impl Operator for ConcatFromSequence {
    fn arity(&self) -> Arity {
        Arity::exact(1, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let item = item_type(inputs, 0)?.tensor()?;
        let shape = item.shape.as_ref().map(|shape| vec![None; shape.len() + usize::from(self.new_axis)]);
        shape.as_ref().map(|shape| axes::resolve(self.axis, shape.len())).transpose()?;
        Ok(vec![Type::Tensor(TensorType { dtype: item.dtype, shape })])
    }

    fn kind() -> OperatorKind {
        OperatorKind::Structure
    }
}

/// The type of the items of input `i`, a sequence.
fn item_type<'a>(inputs: &'a Types, i: usize) -> Result<&'a Type> {
    match inputs.get(i)? {
        Type::Sequence(item) => Ok(item),
        other => Err(Error::op(format!("expected a sequence, found {other}"))),
    }
}

/// The common type of two items.
fn common(a: &TensorType, b: &TensorType) -> Result<TensorType> {
    if a.dtype != b.dtype {
        bail!("a sequence cannot hold {} and {}", a.dtype, b.dtype);
    }
    let shape = a
        .shape
        .as_ref()
        .zip(b.shape.as_ref())
        .filter(|(a, b)| a.len() == b.len())
        .map(|(a, b)| a.iter().zip(b).map(|(a, b)| a.clone().filter(|_| a == b)).collect());
    Ok(TensorType { dtype: a.dtype, shape })
}
