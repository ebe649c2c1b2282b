//! Types of values before a run: kind, dtype and dimensions, as far as they are known.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::extent::{self, Extent};
use crate::size::element_count;

/// A dimension: a number, or a symbol or expression of symbols (`"batch"`, `"2*batch"`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Dim {
    /// A known size.
    Size(usize),
    /// A size named by a symbol or an expression of symbols.
    Symbol(String),
}

impl Extent for Option<Dim> {
    fn known(&self) -> Option<usize> {
        match self {
            Some(Dim::Size(size)) => Some(*size),
            _ => None,
        }
    }
}

/// The dimensions of a tensor; `null` for an unknown one.
pub type Shape = Vec<Option<Dim>>;

/// A tensor's dtype and shape.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TensorType {
    /// The logical element type.
    pub dtype: DType,
    /// The dimensions; `null` if even the rank is unknown.
    pub shape: Option<Shape>,
}

/// The type of a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Type {
    /// A tensor, of numbers or strings.
    #[doc(hidden)]
    Tensor(TensorType),
    /// A sequence of items of one type.
    #[doc(hidden)]
    Sequence(Box<Type>),
    /// A value of the type, or nothing.
    #[doc(hidden)]
    Optional(Box<Type>),
}

impl TensorType {
    /// The size of the elements in memory, in bytes; 0 if a dimension is unknown.
    pub(crate) fn bytes(&self) -> usize {
        let count = self.sizes().map_or(0, |sizes| element_count(&sizes).unwrap_or(usize::MAX));
        count.saturating_mul(self.dtype.storage_dtype().map_or(0, |stored| stored.size_in_bytes()))
    }

    /// The type of a tensor of known dtype and unknown rank.
    pub fn any(dtype: DType) -> TensorType {
        TensorType { dtype, shape: None }
    }

    /// The type of a tensor of known rank and unknown dimensions.
    pub fn ranked(dtype: DType, rank: usize) -> TensorType {
        TensorType { dtype, shape: Some(vec![None; rank]) }
    }

    /// The type of a tensor of known dimensions.
    pub fn sized(dtype: DType, dims: &[usize]) -> TensorType {
        TensorType { dtype, shape: Some(dims.iter().map(|&d| Some(Dim::Size(d))).collect()) }
    }

    /// The number of dimensions, if it is known.
    pub fn rank(&self) -> Option<usize> {
        self.shape.as_ref().map(Vec::len)
    }

    /// The size of dimension `axis`, if it is a known number.
    pub fn size(&self, axis: usize) -> Option<usize> {
        self.shape.as_ref()?.get(axis)?.known()
    }

    /// The sizes of all dimensions, if each is a known number.
    pub fn sizes(&self) -> Option<Vec<usize>> {
        (0..self.rank()?).map(|axis| self.size(axis)).collect()
    }

    /// Rejects a type that no tensor can have: too many dimensions, or known ones whose product is too large.
    ///
    /// # Errors
    /// As [`element_count`].
    pub fn check(&self) -> Result<()> {
        let dims = self.shape.iter().flatten().map(|dim| match dim {
            Some(Dim::Size(size)) => *size,
            _ => 1,
        });
        element_count(&dims.collect::<Vec<_>>()).map(drop)
    }

    /// Whether a tensor of this dtype and these dimensions has this type. A dimension that is not a known number fits
    /// every size.
    pub(crate) fn admits(&self, dtype: DType, dims: &[usize]) -> bool {
        let fits = |(dim, size): (&Option<Dim>, &usize)| !matches!(dim, Some(Dim::Size(known)) if known != size);
        let has_dims = |shape: &Shape| shape.len() == dims.len() && shape.iter().zip(dims).all(fits);
        self.dtype == dtype && self.shape.as_ref().is_none_or(has_dims)
    }

    /// Whether a tensor can have both types: the same dtype, and no rank or size that differs.
    pub fn agrees_with(&self, other: &TensorType) -> bool {
        let sizes_agree = |(a, b): (&Option<Dim>, &Option<Dim>)| match (a, b) {
            (Some(Dim::Size(a)), Some(Dim::Size(b))) => a == b,
            _ => true,
        };
        self.dtype == other.dtype
            && match (&self.shape, &other.shape) {
                (Some(a), Some(b)) => a.len() == b.len() && a.iter().zip(b).all(sizes_agree),
                _ => true,
            }
    }
}

impl Type {
    /// The element type of a tensor, present or optional; `None` for a sequence.
    pub fn dtype(&self) -> Option<DType> {
        self.of_tensor().map(|tensor| tensor.dtype)
    }

    /// The number of dimensions of a tensor, if it is known.
    pub fn rank(&self) -> Option<usize> {
        self.of_tensor()?.rank()
    }

    /// The size of dimension `axis` of a tensor, if it is a known number.
    pub fn size(&self, axis: usize) -> Option<usize> {
        self.of_tensor()?.size(axis)
    }

    /// The symbol that names the size of dimension `axis` of a tensor, such as `batch`, or an expression of symbols.
    pub fn symbol(&self, axis: usize) -> Option<&str> {
        match self.of_tensor()?.shape.as_ref()?.get(axis)? {
            Some(Dim::Symbol(symbol)) => Some(symbol),
            _ => None,
        }
    }

    /// The type of the items of a sequence.
    pub fn item(&self) -> Option<&Type> {
        match self {
            Type::Sequence(item) => Some(item),
            Type::Optional(kind) => kind.item(),
            Type::Tensor(_) => None,
        }
    }

    /// Whether a value may be absent.
    pub fn is_optional(&self) -> bool {
        matches!(self, Type::Optional(_))
    }

    fn of_tensor(&self) -> Option<&TensorType> {
        match self {
            Type::Tensor(tensor) => Some(tensor),
            Type::Optional(kind) => kind.of_tensor(),
            Type::Sequence(_) => None,
        }
    }
}

#[doc(hidden)]
impl Type {
    /// The type of a tensor of known dtype and unknown rank.
    pub fn any(dtype: DType) -> Type {
        Type::Tensor(TensorType::any(dtype))
    }

    /// The type of a tensor of known rank and unknown dimensions.
    pub fn ranked(dtype: DType, rank: usize) -> Type {
        Type::Tensor(TensorType::ranked(dtype, rank))
    }

    /// The tensor type, or an error that names the other kind.
    pub fn tensor(&self) -> Result<&TensorType> {
        match self {
            Type::Tensor(tensor) => Ok(tensor),
            other => Err(Error::op(format!("expected a tensor, found {other}"))),
        }
    }

    /// Rejects a type that no value can have.
    ///
    /// # Errors
    /// As [`TensorType::check`].
    pub fn check(&self) -> Result<()> {
        match self {
            Type::Tensor(tensor) => tensor.check(),
            Type::Sequence(item) | Type::Optional(item) => item.check(),
        }
    }

    /// Whether a value can have both types.
    pub fn agrees_with(&self, other: &Type) -> bool {
        match (self, other) {
            (Type::Tensor(a), Type::Tensor(b)) => a.agrees_with(b),
            (Type::Sequence(a), Type::Sequence(b)) | (Type::Optional(a), Type::Optional(b)) => a.agrees_with(b),
            (Type::Optional(a), b) | (b, Type::Optional(a)) => a.agrees_with(b),
            _ => false,
        }
    }
}

impl std::fmt::Display for Type {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Type::Tensor(TensorType { dtype, shape: None }) => write!(f, "{dtype} of any rank"),
            Type::Tensor(TensorType { dtype, shape: Some(shape) }) => {
                let dims: Vec<String> = shape
                    .iter()
                    .map(|dim| match dim {
                        Some(Dim::Size(size)) => size.to_string(),
                        Some(Dim::Symbol(symbol)) => symbol.clone(),
                        None => "?".to_string(),
                    })
                    .collect();
                write!(f, "{dtype} [{}]", dims.join(", "))
            }
            Type::Sequence(item) => write!(f, "sequence of {item}"),
            Type::Optional(item) => write!(f, "optional {item}"),
        }
    }
}

/// The most elements of a constant that [`Types::constant`] returns.
const MOST_ELEMENTS: usize = 1024;

/// The types and constants of a step's inputs, for [`Operator::infer`](crate::operator::Operator::infer).
pub struct Types<'a> {
    /// The types, one for each input; `None` for an absent input.
    pub inputs: &'a [Option<&'a Type>],
    /// The constants, one for each input; `None` for an input that is not constant. Empty if no input is constant.
    pub constants: &'a [Option<&'a Array>],
    /// The number of the step's outputs.
    pub outputs: usize,
}

impl<'a> Types<'a> {
    /// The types of inputs without known constants.
    pub fn of(inputs: &'a [Option<&'a Type>], outputs: usize) -> Types<'a> {
        Types { inputs, constants: &[], outputs }
    }

    /// Input `i`, if it is a small constant: a list of axes or sizes, or a scalar.
    pub(crate) fn constant(&self, i: usize) -> Option<&'a Array> {
        self.checked(i).filter(|constant| constant.len() <= MOST_ELEMENTS)
    }

    /// Input `i`, where it is a constant of any size, for an operator that [checks](crate::operator::Operator::checks) its
    /// elements.
    pub(crate) fn checked(&self, i: usize) -> Option<&'a Array> {
        self.constants.get(i).copied().flatten()
    }

    /// Whether input `i` is a small constant, or absent.
    pub(crate) fn is_fixed(&self, i: usize) -> bool {
        self.optional(i).is_none() || self.constant(i).is_some()
    }

    /// The number of inputs, including absent ones.
    pub fn len(&self) -> usize {
        self.inputs.len()
    }

    /// Whether there are no inputs.
    pub fn is_empty(&self) -> bool {
        self.inputs.is_empty()
    }

    /// Input `i`, which must be present.
    pub fn get(&self, i: usize) -> Result<&Type> {
        self.optional(i).ok_or_else(|| Error::op(format!("input {i} is missing")))
    }

    /// Input `i`, if it is present.
    pub fn optional(&self, i: usize) -> Option<&Type> {
        self.inputs.get(i).copied().flatten()
    }

    /// Input `i`, which must be a tensor.
    pub fn tensor(&self, i: usize) -> Result<&TensorType> {
        self.get(i)?.tensor().map_err(|error| Error::op(format!("input {i}: {error}")))
    }

    /// Input `i` as a tensor, if it is present.
    pub fn optional_tensor(&self, i: usize) -> Result<Option<&TensorType>> {
        self.optional(i).map(Type::tensor).transpose()
    }

    /// The dimensions of input `i`, if it is present and its rank is known.
    pub(crate) fn shape(&self, i: usize) -> Result<Option<&Shape>> {
        Ok(self.optional_tensor(i)?.and_then(|kind| kind.shape.as_ref()))
    }

    /// The sizes of input `i`, if it is present and all are known.
    pub(crate) fn sizes(&self, i: usize) -> Result<Option<Vec<usize>>> {
        Ok(self.optional_tensor(i)?.and_then(TensorType::sizes))
    }

    /// Checks that input `i`, called `name` in errors, has one element, if it is present.
    ///
    /// # Errors
    /// The input is not a tensor, or has another number of elements.
    pub(crate) fn one_element(&self, i: usize, name: &str) -> Result<()> {
        self.shape(i)?.map_or(Ok(()), |shape| extent::one_element(name, shape))
    }
}
