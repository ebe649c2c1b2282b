//! The values that steps read and write.

use std::sync::Arc;

pub(crate) mod by_address;
pub(crate) mod grown;
pub(crate) mod held;
pub(crate) mod items;
pub(crate) mod rows;
pub(crate) mod storages;
pub(crate) mod strings;
mod user;

pub use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};
pub use crate::size::{alloc_uninit, copied, element_count, list, scratch, try_list, with_capacity, MAX_RANK};
pub(crate) use crate::size::{catch_out_of_memory, charge, out_of_memory};
use crate::types::Type;
pub use grown::Grown;
use items::Item;
use storages::Stored;
pub use strings::Strings;

/// The items of a sequence. Copies share them until one of the copies changes.
pub type Items = items::Items<Value>;

/// An input or an output of a run: a tensor of numbers or strings, a sequence of values, or an absent optional.
///
/// A clone shares the elements. A run may overwrite an input that nothing else shares.
///
/// ```
/// use candle_plan::{DType, Error, Value};
///
/// # fn main() -> Result<(), Error> {
/// let x = Value::new(vec![1f32, 2.0, 3.0, 4.0], &[2, 2])?;
/// assert_eq!((x.dtype(), x.dims()?), (Some(DType::Float32), &[2, 2][..]));
/// assert_eq!(x.rows(1, 1)?.read::<f32>()?, [3.0, 4.0]);
/// let tensor: candle_core::Tensor = x.into_candle()?;
/// assert_eq!(Value::from_candle(&tensor, DType::Float32)?.describe(), "float32 [2, 2]");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub enum Value {
    /// A numeric tensor.
    #[doc(hidden)]
    Tensor(Array),
    /// A tensor of strings.
    #[doc(hidden)]
    Strings(Strings),
    /// A numeric tensor of a state that changes in place. Only some kernels read it if its storage is longer; a run gives the
    /// others a copy.
    #[doc(hidden)]
    Grown(Box<Grown>),
    /// A sequence of values of one type.
    #[doc(hidden)]
    Sequence(Items),
    /// An empty optional.
    #[doc(hidden)]
    None,
}

impl Value {
    /// Describes the value for error messages, such as `float32 [1, 3, 224, 224]`, `sequence of 3` or `none`.
    pub fn describe(&self) -> String {
        match self {
            Value::Tensor(array) => format!("{} {:?}", array.dtype(), array.dims()),
            Value::Strings(strings) => format!("string {:?}", strings.dims),
            Value::Grown(grown) => format!("{} {:?}", grown.dtype(), grown.dims()),
            Value::Sequence(items) => format!("sequence of {}", items.len()),
            Value::None => "none".to_string(),
        }
    }

    /// Returns the dimensions of a tensor of numbers or strings.
    ///
    /// # Errors
    /// The value is not a tensor.
    pub fn dims(&self) -> Result<&[usize]> {
        match self {
            Value::Strings(strings) => Ok(&strings.dims),
            Value::Grown(grown) => Ok(grown.dims()),
            value => Ok(value.tensor()?.dims()),
        }
    }

    /// The address of the first element of a tensor on the host; 0 for other values, and for a tensor without elements.
    #[doc(hidden)]
    pub fn address(&self) -> usize {
        let bytes = self.tensor().ok().and_then(|array| array.bytes_on_host().ok());
        bytes.filter(|bytes| !bytes.is_empty()).map_or(0, |bytes| bytes.as_ptr().addr())
    }

    /// Returns the tensor, or an error that describes the value.
    #[doc(hidden)]
    pub fn tensor(&self) -> Result<&Array> {
        match self {
            Value::Tensor(array) => Ok(array),
            other => Err(other.is_no_tensor()),
        }
    }

    fn is_no_tensor(&self) -> Error {
        Error::op(format!("expected a tensor, found {}", self.describe()))
    }
}

impl Stored for Value {
    fn storage(&self) -> Option<(usize, usize)> {
        match self {
            Value::Tensor(array) => Some(array.storage()),
            Value::Grown(grown) => Some(grown.storage().0.storage()),
            Value::Strings(strings) => Some((Arc::as_ptr(&strings.data).addr(), strings.bytes())),
            Value::Sequence(items) => Some((items.address(), items.bytes())),
            Value::None => None,
        }
    }
}

impl Item for Value {
    fn dtype_and_dims(&self) -> Option<(DType, &[usize])> {
        match self {
            Value::Tensor(array) => Some((array.dtype(), array.dims())),
            Value::Strings(strings) => Some((DType::String, &strings.dims)),
            Value::Grown(grown) => Some((grown.dtype(), grown.dims())),
            Value::Sequence(_) | Value::None => None,
        }
    }

    fn is(&self, kind: &Type) -> bool {
        kind.admits(self)
    }
}

/// A value that shares the elements of the array.
#[doc(hidden)]
impl From<&Array> for Value {
    fn from(array: &Array) -> Value {
        Value::Tensor(array.clone())
    }
}

#[doc(hidden)]
impl From<Array> for Value {
    fn from(array: Array) -> Value {
        Value::Tensor(array)
    }
}

impl Type {
    /// Whether a value in a run has this type. Two sizes must be equal where both are known.
    pub fn admits(&self, value: &Value) -> bool {
        match (self, value) {
            (Type::Tensor(tensor), Value::Tensor(array)) => tensor.admits(array.dtype(), array.dims()),
            (Type::Tensor(tensor), Value::Grown(grown)) => tensor.admits(grown.dtype(), grown.dims()),
            (Type::Tensor(tensor), Value::Strings(strings)) => tensor.admits(DType::String, &strings.dims),
            (Type::Sequence(item), Value::Sequence(items)) => items.are_all(item),
            (Type::Optional(_), Value::None) => true,
            (Type::Optional(item), value) => item.admits(value),
            _ => false,
        }
    }
}
