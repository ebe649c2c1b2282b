//! How programs make and read values.

use candle_core::Tensor;

use super::{Array, Strings, Value};
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::size::element_count;

impl Value {
    /// Makes a tensor of shape `dims` from elements in row-major order, without a copy.
    ///
    /// # Errors
    /// The number of elements is not the product of the dimensions.
    pub fn new<T: Element>(elements: Vec<T>, dims: &[usize]) -> Result<Value> {
        Array::new(elements, dims).map(Value::Tensor)
    }

    /// Makes a tensor of shape `dims` from texts in row-major order.
    ///
    /// # Errors
    /// The number of texts is not the product of the dimensions.
    pub fn of_texts(texts: Vec<String>, dims: &[usize]) -> Result<Value> {
        if element_count(dims)? != texts.len() {
            return Err(Error::op(format!("{} texts do not fill a tensor of shape {dims:?}", texts.len())));
        }
        Ok(Value::Strings(Strings { dims: dims.to_vec(), data: texts.into() }))
    }

    /// Makes a sequence.
    pub fn of_items(items: Vec<Value>) -> Value {
        Value::Sequence(items.into())
    }

    /// The value of an optional input that is absent.
    pub fn absent() -> Value {
        Value::None
    }

    /// Copies the elements of a Candle tensor on the CPU. If the tensor is a view, the rest of its storage is not copied.
    /// The tensor's type is the [storage dtype](DType::storage_dtype) of `dtype`.
    /// [`Session::run_tensors`](crate::Session::run_tensors) takes tensors without a copy.
    ///
    /// # Errors
    /// The tensor has another type, the tensor is not on the CPU, or the host lacks memory.
    pub fn from_candle(tensor: &Tensor, dtype: DType) -> Result<Value> {
        Array::from_candle(tensor, dtype).map(Value::Tensor)
    }

    /// Converts a tensor to a Candle tensor. Copies the elements if another value or a session shares them.
    ///
    /// # Errors
    /// The value is no tensor of numbers on the host, or the host lacks memory for a copy.
    pub fn into_candle(self) -> Result<Tensor> {
        self.into_array()?.into_candle()
    }

    /// The elements of a tensor in row-major order, without a copy.
    ///
    /// # Errors
    /// The value is no tensor on the host, or `T` is not its element type.
    pub fn read<T: Element>(&self) -> Result<&[T]> {
        self.tensor()?.read()
    }

    /// The elements of a tensor in row-major order, without a copy if nothing else shares them.
    ///
    /// # Errors
    /// As [`Value::read`]; also if the host lacks memory for a copy.
    pub fn into_elements<T: Element>(self) -> Result<Vec<T>> {
        self.read::<T>()?; // `Array::into_elements` also takes other types of the same storage.
        self.into_array()?.into_elements()
    }

    /// The elements of a tensor of strings, in row-major order.
    ///
    /// # Errors
    /// The value is no such tensor.
    pub fn texts(&self) -> Result<&[String]> {
        match self {
            Value::Strings(strings) => Ok(&strings.data),
            other => Err(Error::op(format!("expected a tensor of strings, found {}", other.describe()))),
        }
    }

    /// The items of a sequence.
    ///
    /// # Errors
    /// The value is no sequence, or the host lacks memory.
    pub fn items(&self) -> Result<Vec<Value>> {
        match self {
            Value::Sequence(items) => items.clone().into_values(),
            other => Err(Error::op(format!("expected a sequence, found {}", other.describe()))),
        }
    }

    /// Whether the value of an optional is absent.
    pub fn is_absent(&self) -> bool {
        matches!(self, Value::None)
    }

    /// The element type of a tensor of numbers or strings.
    pub fn dtype(&self) -> Option<DType> {
        match self {
            Value::Tensor(array) => Some(array.dtype()),
            Value::Strings(_) => Some(DType::String),
            Value::Grown(grown) => Some(grown.dtype()),
            Value::Sequence(_) | Value::None => None,
        }
    }

    /// A tensor with other dimensions that shares the elements.
    ///
    /// # Errors
    /// The value is no tensor of numbers, or the dimensions hold another number of elements.
    pub fn reshape(&self, dims: &[usize]) -> Result<Value> {
        self.tensor()?.reshape(dims).map(Value::Tensor)
    }

    /// The rows `start .. start + count` of a tensor, which share its elements. A row is a part along the first dimension.
    ///
    /// # Errors
    /// The value is no tensor of numbers, or has no such rows.
    pub fn rows(&self, start: usize, count: usize) -> Result<Value> {
        self.tensor()?.narrow_outer(0, start, count).map(Value::Tensor)
    }

    /// A tensor of another element type with the same [storage dtype](DType::storage_dtype) that shares the bits: booleans
    /// as `uint8`, for example.
    ///
    /// # Errors
    /// The value is no tensor of numbers, or the storage dtypes differ.
    pub fn reinterpret(&self, dtype: DType) -> Result<Value> {
        self.tensor()?.reinterpret(dtype).map(Value::Tensor)
    }

    /// The name of the device that holds the elements: `cpu` if the value is no tensor of numbers.
    pub fn device(&self) -> &str {
        self.tensor().map_or("cpu", Array::device)
    }

    /// Copies a tensor from its device to the host. A value on the host is not copied.
    ///
    /// # Errors
    /// The host lacks memory, or the device fails.
    pub fn to_host(&self) -> Result<Value> {
        match self {
            Value::Tensor(array) if array.is_on_device() => array.to_host().map(Value::Tensor),
            value => Ok(value.clone()),
        }
    }

    /// The tensor of numbers.
    ///
    /// # Errors
    /// The value is none.
    pub(crate) fn into_array(self) -> Result<Array> {
        match self {
            Value::Tensor(array) => Ok(array),
            other => Err(other.is_no_tensor()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_are_made_and_read() {
        let x = Value::new(vec![1i64, 2, 3, 4], &[2, 2]).expect("four elements");
        assert_eq!((x.dims().unwrap(), x.dtype(), x.device()), (&[2, 2][..], Some(DType::Int64), "cpu"));
        assert_eq!(x.rows(1, 1).expect("a row").read::<i64>().unwrap(), [3, 4]);
        assert_eq!(x.reshape(&[4]).expect("as many").into_elements::<i64>().unwrap(), [1, 2, 3, 4]);
        let said = x.read::<f32>().expect_err("another type").to_string();
        assert_eq!(said, "expected float32, found int64");
        assert!(x.clone().into_elements::<u64>().is_err(), "the same storage dtype, but another type");
        assert_eq!(x.reinterpret(DType::Uint64).expect("as wide").read::<u64>().unwrap(), [1, 2, 3, 4]);
        assert!(x.rows(2, 1).is_err() && x.reshape(&[3]).is_err() && Value::new(vec![0u8], &[2]).is_err());
        assert_eq!(x.to_host().expect("it is there").into_candle().expect("a copy").dims(), [2, 2]);
    }

    #[test]
    fn texts_and_sequences_are_made_and_read() {
        let texts = Value::of_texts(vec!["a".to_string(), "b".to_string()], &[2, 1]).expect("two texts");
        assert_eq!((texts.texts().unwrap(), texts.dims().unwrap()), (&["a", "b"].map(String::from)[..], &[2, 1][..]));
        assert!(Value::of_texts(vec![], &[1]).is_err());
        let sequence = Value::of_items(vec![texts.clone(), Value::absent()]);
        let items = sequence.items().expect("a sequence");
        assert_eq!(items[0].dtype(), Some(DType::String));
        assert!(items[1].is_absent() && !items[0].is_absent() && sequence.dtype().is_none());
        let said = sequence.texts().expect_err("no tensor").to_string();
        assert_eq!(said, "expected a tensor of strings, found sequence of 2");
        let said = texts.into_candle().expect_err("no numbers").to_string();
        assert_eq!(said, "expected a tensor, found string [2, 1]");
        assert_eq!(items[1].items().expect_err("nothing").to_string(), "expected a sequence, found none");
    }
}
