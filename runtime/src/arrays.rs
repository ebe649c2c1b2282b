//! NumPy arrays ↔ values. An input is copied once; an output that owns its storage is handed over without a copy.
//!
//! A tensor is a pair of its logical dtype's name and an array of the carrier's type (16-bit floats as `uint16`); strings
//! are `("string", object array)`, sequences lists, an empty optional `None`.

use std::sync::Arc;

use bytemuck::allocation::cast_vec;
use candle_core::DType as Carrier;
use candle_plan::dtype::{DType, Element};
use candle_plan::error::{Error, Result};
use candle_plan::value::{Array, Strings, Value};
use half::{bf16, f16};
use numpy::{IntoPyArray, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::errors::to_python;

/// A Python value as a value.
pub fn from_python(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    if object.is_none() {
        return Ok(Value::None);
    }
    if let Ok(items) = object.cast::<PyList>() {
        return items.iter().map(|item| from_python(&item)).collect::<PyResult<_>>().map(Value::Sequence);
    }
    let (name, array): (String, Bound<'_, PyAny>) = object.extract()?;
    let dtype: DType = serde_json::from_value(serde_json::Value::String(name.clone()))
        .map_err(|_| to_python(Error::op(format!("there is no dtype {name:?}"))))?;
    match dtype {
        DType::String => strings_from_python(&array),
        _ => tensor_from_python(dtype, &array),
    }
}

fn strings_from_python(array: &Bound<'_, PyAny>) -> PyResult<Value> {
    let dims: Vec<usize> = array.getattr("shape")?.extract()?;
    let data: Vec<String> = array.call_method0("ravel")?.call_method0("tolist")?.extract()?;
    Ok(Value::Strings(Strings { dims, data: data.into() }))
}

fn tensor_from_python(dtype: DType, array: &Bound<'_, PyAny>) -> PyResult<Value> {
    fn copy<'py, N, T>(array: &Bound<'py, PyAny>, dtype: DType) -> PyResult<Value>
    where
        N: numpy::Element + bytemuck::Pod,
        T: Element,
    {
        let array: PyReadonlyArrayDyn<'py, N> = array.extract()?;
        let view = array.as_array();
        let dims = view.shape().to_vec();
        let data: Vec<N> = view.as_slice().map_or_else(|| view.iter().copied().collect(), <[N]>::to_vec);
        let carried = Array::new::<T>(cast_vec(data), &dims).and_then(|array| array.reinterpret(dtype));
        carried.map(Value::Tensor).map_err(to_python)
    }
    match dtype.carrier().map_err(to_python)? {
        Carrier::U8 => {
            let value = copy::<u8, u8>(array, dtype)?;
            check_bytes(dtype, &value).map_err(to_python)?;
            Ok(value)
        }
        Carrier::I16 => copy::<i16, i16>(array, dtype),
        Carrier::I32 => copy::<i32, i32>(array, dtype),
        Carrier::U32 => copy::<u32, u32>(array, dtype),
        Carrier::I64 => copy::<i64, i64>(array, dtype),
        Carrier::F16 => copy::<u16, f16>(array, dtype),
        Carrier::BF16 => copy::<u16, bf16>(array, dtype),
        Carrier::F64 => copy::<f64, f64>(array, dtype),
        _ => copy::<f32, f32>(array, dtype),
    }
}

fn check_bytes(dtype: DType, value: &Value) -> Result<()> {
    match value {
        Value::Tensor(array) => candle_plan::read::check_bits(dtype, &array.bits::<u8>()?),
        _ => Ok(()),
    }
}

/// A value as a Python value; `exclusive` says that nobody else reads its storage.
pub fn to_python_value<'py>(py: Python<'py>, value: Value, exclusive: bool) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::None => Ok(py.None().into_bound(py)),
        Value::Sequence(items) => {
            let items: Vec<_> =
                items.into_iter().map(|item| to_python_value(py, item, false)).collect::<PyResult<_>>()?;
            Ok(PyList::new(py, items)?.into_any())
        }
        Value::Strings(strings) => strings_to_python(py, &strings),
        Value::Tensor(array) => tensor_to_python(py, array, exclusive),
    }
}

fn strings_to_python<'py>(py: Python<'py>, strings: &Strings) -> PyResult<Bound<'py, PyAny>> {
    let numpy = py.import("numpy")?;
    let array = numpy.call_method1("empty", (strings.data.len(), "object"))?;
    for (index, text) in Arc::clone(&strings.data).iter().enumerate() {
        array.set_item(index, text)?;
    }
    let array = array.call_method1("reshape", (PyTuple::new(py, &strings.dims)?,))?;
    Ok(("string", array).into_pyobject(py)?.into_any())
}

fn tensor_to_python<'py>(py: Python<'py>, array: Array, exclusive: bool) -> PyResult<Bound<'py, PyAny>> {
    let name = array.dtype().to_string();
    let dims = array.dims().to_vec();
    let carrier = array.dtype().carrier().map_err(to_python)?;
    fn give<'py, T, N>(py: Python<'py>, array: Array, exclusive: bool) -> PyResult<Bound<'py, PyArrayDyn<N>>>
    where
        T: Element,
        N: numpy::Element + bytemuck::Pod,
    {
        let dims = array.dims().to_vec();
        let data: Vec<T> = if exclusive { array.into_elements() } else { array.bits::<T>().map(|data| data.to_vec()) }
            .map_err(to_python)?;
        cast_vec::<T, N>(data).into_pyarray(py).reshape(dims)
    }
    let array = match carrier {
        Carrier::I16 => give::<i16, i16>(py, array, exclusive)?.into_any(),
        Carrier::I32 => give::<i32, i32>(py, array, exclusive)?.into_any(),
        Carrier::U32 => give::<u32, u32>(py, array, exclusive)?.into_any(),
        Carrier::I64 => give::<i64, i64>(py, array, exclusive)?.into_any(),
        Carrier::F16 => give::<f16, u16>(py, array, exclusive)?.into_any(),
        Carrier::BF16 => give::<bf16, u16>(py, array, exclusive)?.into_any(),
        Carrier::F32 => give::<f32, f32>(py, array, exclusive)?.into_any(),
        Carrier::F64 => give::<f64, f64>(py, array, exclusive)?.into_any(),
        _ => give::<u8, u8>(py, array, exclusive)?.into_any(),
    };
    debug_assert_eq!(array.getattr("shape")?.extract::<Vec<usize>>()?, dims);
    Ok((name, array).into_pyobject(py)?.into_any())
}
