//! Converts between NumPy arrays and values. Small arrays are copied. A large input is lent to the run, and a large output
//! takes over the storage of the value.
//!
//! A tensor is an array of its logical dtype (`ml_dtypes` provides the dtypes that NumPy lacks). Strings are an object
//! array, sequences are lists, and an empty optional is `None`.

use std::sync::Arc;

use bytemuck::allocation::cast_vec;
use bytemuck::cast_slice;
use candle_plan::internal::{self, check_bits, lend_on_host, Array, Strings};
use candle_plan::{DType, Element, Error, Value};
use half::{bf16, f16};
use numpy::ndarray::{ArrayD, ArrayViewD, IxDyn};
use numpy::npyffi::NPY_TYPES;
use numpy::{
    IntoPyArray, PyArray1, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods,
    ToPyArray,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use crate::errors::to_python;

/// The largest rank that the crate `numpy` accepts. NumPy itself accepts more.
const MAX_RANK: usize = 32;

/// The most bytes of an array that is copied. For larger arrays, it takes less time to share the memory.
const COPIED: usize = 1 << 12;

/// Whether the value of a large input shares its memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Passing {
    /// The value shares the memory. Nobody may write to it while the value lives.
    Lend,
    /// The value has a copy.
    Copy,
}

/// Converts a Python object to a value: an array, a list, `None`, or anything that NumPy converts to an array.
///
/// # Errors
/// `TypeError`: the array's element type is unsupported.
pub fn from_python(object: &Bound<'_, PyAny>, passing: Passing) -> PyResult<Value> {
    if let Ok(array) = object.cast::<PyUntypedArray>() {
        return from_array(array, passing);
    }
    if object.is_none() {
        return Ok(Value::None);
    }
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        return object
            .try_iter()?
            .map(|item| from_python(&item?, passing))
            .collect::<PyResult<Vec<_>>>()
            .map(|items| Value::Sequence(items.into()));
    }
    let array = object.py().import("numpy")?.call_method1("asarray", (object,))?;
    from_array(array.cast()?, passing)
}

fn from_array(array: &Bound<'_, PyUntypedArray>, passing: Passing) -> PyResult<Value> {
    let number = array.dtype();
    if b"OUST".contains(&number.kind()) {
        return strings_from(array);
    }
    let dtype = dtype_of(array)?;
    if array.is_aligned() && number.is_native_byteorder() != Some(false) {
        return tensor_from(array, dtype, passing);
    }
    let native = number.call_method1("newbyteorder", ("=",))?;
    tensor_from(array.call_method1("astype", (native,))?.cast()?, dtype, Passing::Lend)
}

/// Returns the logical type of an array's elements.
pub fn dtype_of(array: &Bound<'_, PyUntypedArray>) -> PyResult<DType> {
    let number = array.dtype();
    let is_numpy = number.num() < NPY_TYPES::NPY_USERDEF as i32;
    Ok(match (number.kind(), number.itemsize()) {
        (b'b', 1) if is_numpy => DType::Bool,
        (b'i', 1) if is_numpy => DType::Int8,
        (b'i', 2) if is_numpy => DType::Int16,
        (b'i', 4) if is_numpy => DType::Int32,
        (b'i', 8) if is_numpy => DType::Int64,
        (b'u', 1) if is_numpy => DType::Uint8,
        (b'u', 2) if is_numpy => DType::Uint16,
        (b'u', 4) if is_numpy => DType::Uint32,
        (b'u', 8) if is_numpy => DType::Uint64,
        (b'f', 2) if is_numpy => DType::Float16,
        (b'f', 4) if is_numpy => DType::Float32,
        (b'f', 8) if is_numpy => DType::Float64,
        _ => {
            let name: String = number.getattr("name")?.extract()?;
            match serde_json::from_value(serde_json::Value::String(name.clone())) {
                Ok(dtype) if dtype != DType::String => dtype,
                _ => return Err(PyTypeError::new_err(format!("{name} is not a supported element type"))),
            }
        }
    })
}

fn strings_from(array: &Bound<'_, PyUntypedArray>) -> PyResult<Value> {
    let texts = array.call_method1("astype", ("object",))?.call_method0("ravel")?.call_method0("tolist")?;
    let text = |object: PyResult<Bound<'_, PyAny>>| match object?.cast_into::<PyString>() {
        Ok(text) => text.extract::<String>(),
        Err(error) => {
            let found = error.into_inner().get_type().name()?;
            Err(PyTypeError::new_err(format!("an array of objects that are not all texts, one is {found}")))
        }
    };
    let data = texts.try_iter()?.map(text).collect::<PyResult<_>>()?;
    Ok(Value::Strings(Strings { dims: array.shape().to_vec(), data }))
}

fn tensor_from(array: &Bound<'_, PyUntypedArray>, dtype: DType, passing: Passing) -> PyResult<Value> {
    match dtype {
        DType::Float32 => pass::<f32, f32>(array, dtype, passing),
        DType::Float64 => pass::<f64, f64>(array, dtype, passing),
        DType::Float16 => pass::<u16, f16>(array, dtype, passing),
        DType::Bfloat16 => pass::<u16, bf16>(array, dtype, passing),
        DType::Int64 => pass::<i64, i64>(array, dtype, passing),
        DType::Int32 => pass::<i32, i32>(array, dtype, passing),
        DType::Int16 => pass::<i16, i16>(array, dtype, passing),
        DType::Int8 => pass::<i8, i8>(array, dtype, passing),
        DType::Uint64 => pass::<u64, u64>(array, dtype, passing),
        DType::Uint32 => pass::<u32, u32>(array, dtype, passing),
        DType::Uint16 => pass::<u16, u16>(array, dtype, passing),
        DType::Int4 | DType::Int2 => {
            let bytes = array.call_method1("astype", (numpy::dtype::<i8>(array.py()),))?;
            pass::<i8, i8>(bytes.cast()?, dtype, Passing::Lend)
        }
        _ => {
            let value = pass::<u8, u8>(array, dtype, passing)?;
            let bits = value.tensor().and_then(|array| check_bits(dtype, array.bits::<u8>()?));
            bits.map_err(|error| PyTypeError::new_err(error.to_string()))?;
            Ok(value)
        }
    }
}

/// Converts an array to a tensor of `dtype`. The array's elements have the bits of `N`, and `T` has the storage dtype of
/// `dtype`.
fn pass<N, T>(array: &Bound<'_, PyUntypedArray>, dtype: DType, passing: Passing) -> PyResult<Value>
where
    N: numpy::Element + bytemuck::Pod,
    T: Element,
{
    let array: Bound<'_, PyArrayDyn<N>> = match array.cast() {
        Ok(array) => array.clone(),
        Err(_) => array.call_method1("view", (numpy::dtype::<N>(array.py()),))?.cast_into()?,
    };
    let (array, passing) = match array.is_c_contiguous() {
        true => (array, passing),
        false => (array.call_method1("copy", ("C",))?.cast_into()?, Passing::Lend),
    };
    // SAFETY: this thread holds the interpreter's lock, and code that writes to arrays without it must not write to an
    // input.
    let elements = unsafe { array.as_slice() }?;
    if passing == Passing::Lend && size_of_val(elements) > COPIED {
        let owner = Box::new(array.clone().unbind());
        // SAFETY: the owner keeps the array, and NumPy does not move or resize the elements of an array with other
        // references. The caller of a run promises not to write to them.
        let lent = unsafe { lend_on_host(cast_slice(elements), array.shape(), dtype, owner) };
        return lent.map_err(to_python);
    }
    let copied = Array::new::<T>(cast_vec(internal::copied(elements).map_err(to_python)?), array.shape());
    let carried = copied.and_then(|copied| if dtype == T::DTYPE { Ok(copied) } else { copied.reinterpret(dtype) });
    carried.map(Value::Tensor).map_err(to_python)
}

/// Converts strings to an object array.
pub fn strings_to_python<'py>(py: Python<'py>, strings: &Strings) -> PyResult<Bound<'py, PyAny>> {
    let numpy = py.import("numpy")?;
    let array = numpy.call_method1("empty", (strings.data.len(), "object"))?;
    for (index, text) in Arc::clone(&strings.data).iter().enumerate() {
        array.set_item(index, text)?;
    }
    array.call_method1("reshape", (PyTuple::new(py, &strings.dims)?,))
}

/// Converts a tensor on the host to an array.
///
/// # Errors
/// The module of the element type cannot be imported.
pub fn tensor_to_python<'py>(py: Python<'py>, array: Array) -> PyResult<Bound<'py, PyAny>> {
    let dtype = array.dtype();
    match dtype {
        DType::Float32 => array_of::<f32, f32>(py, array),
        DType::Float64 => array_of::<f64, f64>(py, array),
        DType::Int64 => array_of::<i64, i64>(py, array),
        DType::Int32 => array_of::<i32, i32>(py, array),
        DType::Int16 => array_of::<i16, i16>(py, array),
        DType::Int8 => array_of::<i8, i8>(py, array),
        DType::Uint64 => array_of::<u64, u64>(py, array),
        DType::Uint32 => array_of::<u32, u32>(py, array),
        DType::Uint16 => array_of::<u16, u16>(py, array),
        DType::Uint8 => array_of::<u8, u8>(py, array),
        DType::Bool => array_of::<u8, u8>(py, array)?.call_method1("view", (numpy::dtype::<bool>(py),)),
        DType::Float16 => {
            array_of::<f16, u16>(py, array)?.call_method1("view", (py.import("numpy")?.getattr("float16")?,))
        }
        DType::Bfloat16 => array_of::<bf16, u16>(py, array)?.call_method1("view", (ml_dtype(py, dtype)?,)),
        DType::Int4 | DType::Int2 => array_of::<i8, i8>(py, array)?.call_method1("astype", (ml_dtype(py, dtype)?,)),
        _ => array_of::<u8, u8>(py, array)?.call_method1("view", (ml_dtype(py, dtype)?,)),
    }
}

/// Returns the dtype of a tensor's elements, from NumPy or `ml_dtypes`.
pub fn dtype_name<'py>(py: Python<'py>, dtype: DType) -> PyResult<Bound<'py, PyAny>> {
    let numpy = py.import("numpy")?;
    match numpy.call_method1("dtype", (dtype.to_string(),)) {
        Ok(found) => Ok(found),
        Err(_) => numpy.call_method1("dtype", (ml_dtype(py, dtype)?,)),
    }
}

/// Returns a dtype that NumPy lacks, from `ml_dtypes`.
fn ml_dtype<'py>(py: Python<'py>, dtype: DType) -> PyResult<Bound<'py, PyAny>> {
    py.import("ml_dtypes")?.getattr(dtype.to_string())
}

/// Converts a tensor with the storage dtype of `T` to an array of `N` with the same bits.
fn array_of<'py, T, N>(py: Python<'py>, array: Array) -> PyResult<Bound<'py, PyAny>>
where
    T: Element,
    N: numpy::Element + bytemuck::Pod,
{
    if array.len() * size_of::<N>() <= COPIED && array.rank() <= MAX_RANK {
        let data: &[N] = cast_slice(array.bits::<T>().map_err(to_python)?);
        let view = ArrayViewD::from_shape(IxDyn(array.dims()), data);
        return Ok(view.map_err(|error| to_python(Error::op(error.to_string())))?.to_pyarray(py).into_any());
    }
    let dims = array.dims().to_vec();
    let data = cast_vec::<T, N>(array.into_elements().map_err(to_python)?);
    if dims.len() > MAX_RANK {
        return PyArray1::from_vec(py, data).call_method1("reshape", (PyTuple::new(py, &dims)?,));
    }
    let array = ArrayD::from_shape_vec(IxDyn(&dims), data);
    Ok(array.map_err(|error| to_python(Error::op(error.to_string())))?.into_pyarray(py).into_any())
}
