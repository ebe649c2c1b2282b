//! What flows between steps.

pub(crate) mod held;
pub(crate) mod items;

use std::sync::Arc;

pub use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};
pub use crate::size::{alloc_uninit, element_count, list, scratch, with_capacity, MAX_RANK};
pub(crate) use crate::size::{catch_out_of_memory, out_of_memory};
use crate::types::Type;
pub use items::Items;

/// One value: what an input, an output or a step's result holds.
#[derive(Debug, Clone)]
pub enum Value {
    /// A numeric tensor.
    Tensor(Array),
    /// A tensor of strings.
    Strings(Strings),
    /// A sequence of values of one type.
    Sequence(Items),
    /// An optional that holds nothing.
    None,
}

/// A tensor of strings, in row-major order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strings {
    /// The dimensions.
    pub dims: Vec<usize>,
    /// The elements; as many as the product of the dimensions.
    pub data: Arc<[String]>,
}

impl Value {
    /// `float32 [1, 3, 224, 224]`, `sequence of 3`, `none`: how errors name a value.
    pub fn describe(&self) -> String {
        match self {
            Value::Tensor(array) => format!("{} {:?}", array.dtype(), array.dims()),
            Value::Strings(strings) => format!("string {:?}", strings.dims),
            Value::Sequence(items) => format!("sequence of {}", items.len()),
            Value::None => "none".to_string(),
        }
    }

    /// The dimensions of a tensor, of numbers or strings.
    ///
    /// # Errors
    /// The value is not a tensor.
    pub fn dims(&self) -> Result<&[usize]> {
        match self {
            Value::Strings(strings) => Ok(&strings.dims),
            value => Ok(value.tensor()?.dims()),
        }
    }

    /// The tensor, or an error that says what this is instead.
    pub fn tensor(&self) -> Result<&Array> {
        match self {
            Value::Tensor(array) => Ok(array),
            other => Err(Error::op(format!("expected a tensor, found {}", other.describe()))),
        }
    }
}

impl From<Array> for Value {
    fn from(array: Array) -> Value {
        Value::Tensor(array)
    }
}

impl Type {
    /// Whether a run's value is of this type; sizes are compared where both sides are numbers.
    pub fn admits(&self, value: &Value) -> bool {
        match (self, value) {
            (Type::Tensor(tensor), Value::Tensor(array)) => tensor.admits(array.dtype(), array.dims()),
            (Type::Tensor(tensor), Value::Strings(strings)) => tensor.admits(DType::String, &strings.dims),
            (Type::Sequence(item), Value::Sequence(items)) => items.are_all(item),
            (Type::Optional(_), Value::None) => true,
            (Type::Optional(item), value) => item.admits(value),
            _ => false,
        }
    }
}
