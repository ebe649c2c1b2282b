//! Exchanges tensors on a session's device with Python objects, without a copy, by `__cuda_array_interface__` and
//! DLPack.

use std::sync::atomic::{AtomicBool, Ordering};

use candle_plan::internal::{lend_tensor_on_host, Array, Lent};
use candle_plan::{DType, Error, Session, Value};
use pyo3::exceptions::{PyAttributeError, PyBufferError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::arrays::{dtype_name, from_python, tensor_to_python, Passing};
use crate::dlpack;
use crate::errors::to_python;

/// `CU_STREAM_LEGACY` and `CU_STREAM_PER_THREAD`.
const LEGACY: i64 = 1;
const PER_THREAD: u64 = 2;
/// The version of `__cuda_array_interface__` that added streams.
const FIRST_WITH_STREAMS: u32 = 3;

/// A tensor in the memory of a session's device: an output of `Session.run(…, device_outputs=True)`. It can be an input
/// of other runs on that device, and with CUDA, of any library that supports `__cuda_array_interface__` or DLPack.
#[pyclass(frozen, module = "compiler._runtime")]
pub struct DeviceArray {
    array: Array,
    /// Whether another library knows the address. Its work may then be pending when the tensor is freed.
    is_shared: AtomicBool,
}

impl Drop for DeviceArray {
    fn drop(&mut self) {
        if *self.is_shared.get_mut() {
            // SAFETY: no stream is passed. If the GPU is lost, no work is pending.
            let _ = unsafe { self.array.free_after(None) };
        }
    }
}

impl DeviceArray {
    /// Wraps a tensor on a device whose elements are already computed.
    pub fn new(array: Array) -> DeviceArray {
        DeviceArray { array, is_shared: AtomicBool::new(false) }
    }

    /// Returns the number of CUDA's GPU, or `None` on another device.
    fn ordinal(&self) -> Option<i32> {
        match self.array.device() {
            "cuda" => Some(0),
            device => device.strip_prefix("cuda:")?.parse().ok(),
        }
    }
}

#[pymethods]
impl DeviceArray {
    /// The name of the device.
    #[getter]
    fn device(&self) -> &str {
        self.array.device()
    }

    /// The dimensions.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.array.dims())
    }

    /// The dtype of the elements, from NumPy or `ml_dtypes`.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        dtype_name(py, self.array.dtype())
    }

    /// Copies the elements to a NumPy array on the host.
    fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let on_host = py.detach(|| self.array.to_host()).map_err(|error| failed(py, &self.array, &error))?;
        tensor_to_python(py, on_host)
    }

    /// Supports `numpy.asarray`.
    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if copy == Some(false) {
            return Err(pyo3::exceptions::PyValueError::new_err(
                "the elements lie on a device: they have to be copied",
            ));
        }
        let array = self.numpy(py)?;
        match dtype {
            Some(dtype) => array.call_method1("astype", (dtype,)),
            None => Ok(array),
        }
    }

    /// The CUDA array interface, version 3. The elements are computed, so there is no stream to wait for.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let kind = type_string(self.array.dtype()).filter(|_| self.ordinal().is_some());
        let Some(kind) = kind else {
            let (dtype, device) = (self.array.dtype(), self.array.device());
            return Err(PyAttributeError::new_err(format!("there is no such interface of {dtype} on {device}")));
        };
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("shape", self.shape(py)?)?;
        interface.set_item("typestr", kind)?;
        interface.set_item("data", (self.array.address().map_err(to_python)?, false))?;
        interface.set_item("strides", py.None())?;
        interface.set_item("stream", py.None())?;
        self.is_shared.store(true, Ordering::Relaxed);
        Ok(interface)
    }

    /// The device in DLPack's numbering.
    fn __dlpack_device__(&self) -> PyResult<(i32, i32)> {
        let ordinal = self.ordinal();
        let other = || PyBufferError::new_err(format!("DLPack has no device {}", self.array.device()));
        ordinal.map(|ordinal| (dlpack::CUDA, ordinal)).ok_or_else(other)
    }

    /// Makes a DLPack capsule. The elements are computed, so the consumer's stream need not wait.
    #[pyo3(signature = (*, stream = None, max_version = None, dl_device = None, copy = None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = max_version; // every consumer reads a capsule without a version
        let device = self.__dlpack_device__()?;
        if dl_device.is_some_and(|wanted| wanted != device) || copy == Some(true) {
            return Err(PyBufferError::new_err("the tensor is not copied: call numpy() for a copy on the host"));
        }
        dlpack::capsule(py, &self.array, device.1, consumer(stream)?)
    }

    fn __repr__(&self) -> String {
        format!("DeviceArray({}, {})", Value::from(self.array.clone()).describe(), self.array.device())
    }
}

/// Returns the stream that a consumer passed, by default the legacy stream. Returns `None` if the number does not
/// identify a stream: −1 means no stream, and 2 a different one in each thread.
fn consumer(stream: Option<Bound<'_, PyAny>>) -> PyResult<Option<u64>> {
    let named = stream.map_or(Ok(LEGACY), |stream| stream.extract::<i64>())?;
    Ok(u64::try_from(named).ok().filter(|&stream| stream != 0 && stream != PER_THREAD))
}

/// Makes the `DeviceError` of `compiler` for an error of a device.
fn failed(py: Python<'_>, array: &Array, error: &Error) -> PyErr {
    let class = py.import("compiler.errors").and_then(|errors| errors.getattr("DeviceError"));
    let made = class.and_then(|class| class.call1((format!("device {:?}: {error}", array.device()),)));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// Converts an input to a value. A tensor on the session's device stays there; anything else is passed like a host
/// array.
///
/// # Errors
/// `TypeError`: the element type is unsupported, or the array is on another device. `DeviceError`: the device fails.
pub fn given_value(session: &Session, object: &Bound<'_, PyAny>, passing: Passing) -> PyResult<Value> {
    if object.cast::<numpy::PyUntypedArray>().is_ok() {
        return from_python(object, passing);
    }
    if let Ok(array) = object.cast::<DeviceArray>() {
        return Ok(Value::Tensor(array.get().array.clone()));
    }
    let lent = match session.stream() {
        Some(stream) => lent(session, stream, object)?,
        None => None,
    };
    let Some(lent) = lent else { return host_value(session, object, passing) };
    // SAFETY: an object that offers the interface keeps the elements valid as long as it lives.
    let value = object.py().detach(|| unsafe { session.lend(lent) });
    value.map_err(|error| match error {
        Error::Op(reason) => PyTypeError::new_err(reason),
        error => to_python(error),
    })
}

/// Converts an input on the host to a value.
///
/// # Errors
/// `TypeError`: the input is on a GPU, or its element type is unsupported.
fn host_value(session: &Session, object: &Bound<'_, PyAny>, passing: Passing) -> PyResult<Value> {
    let kind = match object.getattr_opt("__dlpack_device__")? {
        Some(device) => Some(device.call0()?.extract::<(i32, i32)>()?.0),
        None => None,
    };
    match kind {
        // NumPy has no array for some tensors, such as PyTorch's of bfloat16, and DLPack none for others.
        Some(dlpack::CPU | dlpack::CUDA_HOST) => match by_capsule(object, passing) {
            Err(error) if object.hasattr("__array__")? => from_python(object, passing).map_err(|_| error),
            value => value,
        },
        None if object.hasattr("__array__")? || !object.hasattr("__cuda_array_interface__")? => {
            from_python(object, passing)
        }
        _ => {
            let place = session.device();
            Err(PyTypeError::new_err(format!("a tensor on a GPU, and the session is on {place}: give a NumPy array")))
        }
    }
}

/// Converts a tensor on the host that supports DLPack.
///
/// # Errors
/// The object gives no capsule, or its tensor cannot be an input.
fn by_capsule(object: &Bound<'_, PyAny>, passing: Passing) -> PyResult<Value> {
    let lent = dlpack::taken(&resolved(object)?.call_method0("__dlpack__")?)?;
    // SAFETY: the owner of the capsule's tensor keeps its elements. The caller of a run promises not to write to them.
    let value = unsafe { lend_tensor_on_host(lent) };
    let value = value.map_err(|error| PyTypeError::new_err(error.to_string()))?;
    match (&value, passing) {
        (Value::Tensor(array), Passing::Copy) => array.copy().map(Value::Tensor).map_err(to_python),
        _ => Ok(value),
    }
}

/// Returns the tensor without a pending negation. PyTorch has such views, and its capsules do not tell of the negation.
fn resolved<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match object.getattr_opt("is_neg")? {
        Some(is_neg) if is_neg.call0()?.is_truthy()? => object.call_method0("resolve_neg"),
        _ => Ok(object.clone()),
    }
}

/// Returns the tensor on a GPU that an object offers, or `None` if it offers none.
fn lent(session: &Session, stream: u64, object: &Bound<'_, PyAny>) -> PyResult<Option<Lent>> {
    let py = object.py();
    if let Some(device) = object.getattr_opt("__dlpack_device__")? {
        let (kind, ordinal): (i32, i32) = device.call0()?.extract()?;
        if kind != dlpack::CUDA {
            return Ok(None);
        }
        let place = if ordinal == 0 { "cuda".to_string() } else { format!("cuda:{ordinal}") };
        if place != session.device() {
            return Err(PyTypeError::new_err(format!(
                "a tensor on {place}, and the session is on {}",
                session.device()
            )));
        }
        let arguments = PyDict::new(py);
        arguments.set_item("stream", stream)?;
        arguments.set_item("max_version", (1, 0))?;
        let tensor = resolved(object)?;
        let capsule = match tensor.call_method("__dlpack__", (), Some(&arguments)) {
            Err(error) if error.is_instance_of::<PyTypeError>(py) => {
                arguments.del_item("max_version")?; // an older version of DLPack
                tensor.call_method("__dlpack__", (), Some(&arguments))?
            }
            capsule => capsule?,
        };
        return dlpack::taken(&capsule).map(Some);
    }
    match object.getattr_opt("__cuda_array_interface__")? {
        Some(interface) => match interface.cast::<PyDict>() {
            Ok(interface) => by_interface(object, interface).map(Some),
            Err(_) => Err(PyTypeError::new_err("its __cuda_array_interface__ is not a dict")),
        },
        None => Ok(None),
    }
}

/// Returns the tensor that a `__cuda_array_interface__` describes.
fn by_interface(object: &Bound<'_, PyAny>, interface: &Bound<'_, PyDict>) -> PyResult<Lent> {
    if item::<Bound<'_, PyAny>>(interface, "mask")?.is_some() {
        return Err(PyTypeError::new_err("its __cuda_array_interface__ has a mask"));
    }
    let missing = |name: &str| PyTypeError::new_err(format!("its __cuda_array_interface__ has no {name}"));
    let kind: String = item(interface, "typestr")?.ok_or_else(|| missing("typestr"))?;
    let dtype =
        element_type(&kind).ok_or_else(|| PyTypeError::new_err(format!("{kind:?} is not a supported element type")))?;
    let (address, _): (u64, bool) = item(interface, "data")?.ok_or_else(|| missing("data"))?;
    let dims: Vec<usize> = item(interface, "shape")?.ok_or_else(|| missing("shape"))?;
    let strides = item::<Vec<isize>>(interface, "strides")?;
    let strides = strides.map(|strides| in_elements(&strides, &kind)).transpose()?;
    let version: u32 = item(interface, "version")?.unwrap_or(0);
    let stream = match item::<u64>(interface, "stream")? {
        Some(0) => {
            return Err(PyTypeError::new_err("its __cuda_array_interface__ has the stream 0, which is ambiguous"))
        }
        // Before version 3, the interface has no stream. The legacy stream may still be computing the tensor.
        None if version < FIRST_WITH_STREAMS => Some(LEGACY as u64),
        stream => stream,
    };
    let owner = Box::new(object.clone().unbind());
    Ok(Lent { address, dims, strides, dtype, stream, owner })
}

/// Returns an entry of the interface, or `None` if it is missing or `None`.
fn item<'py, T: FromPyObjectOwned<'py>>(interface: &Bound<'py, PyDict>, name: &str) -> PyResult<Option<T>> {
    let Some(found) = interface.get_item(name)?.filter(|found| !found.is_none()) else { return Ok(None) };
    found.extract().map(Some).map_err(|_| {
        let found = found.repr().map_or_else(|_| "of another type".to_string(), |text| text.to_string());
        PyTypeError::new_err(format!("its __cuda_array_interface__ has the {name} {found}"))
    })
}

/// Converts strides in bytes to strides in elements.
fn in_elements(strides: &[isize], kind: &str) -> PyResult<Vec<isize>> {
    let bytes: isize = kind[2..].parse().map_err(|_| PyTypeError::new_err(format!("{kind} is not a type")))?;
    match strides.iter().all(|stride| stride % bytes == 0) {
        true => Ok(strides.iter().map(|stride| stride / bytes).collect()),
        false => Err(PyTypeError::new_err("a stride that is no whole number of elements")),
    }
}

/// The dtypes that `__cuda_array_interface__` supports.
const TYPES: [(DType, &str); 12] = [
    (DType::Bool, "|b1"),
    (DType::Int8, "|i1"),
    (DType::Uint8, "|u1"),
    (DType::Int16, "<i2"),
    (DType::Uint16, "<u2"),
    (DType::Int32, "<i4"),
    (DType::Uint32, "<u4"),
    (DType::Int64, "<i8"),
    (DType::Uint64, "<u8"),
    (DType::Float16, "<f2"),
    (DType::Float32, "<f4"),
    (DType::Float64, "<f8"),
];

fn type_string(dtype: DType) -> Option<&'static str> {
    TYPES.iter().find(|(each, _)| *each == dtype).map(|(_, kind)| *kind)
}

fn element_type(kind: &str) -> Option<DType> {
    TYPES
        .iter()
        .find(|(_, each)| kind.starts_with(['<', '|', '=']) && each.get(1..) == kind.get(1..))
        .map(|(dtype, _)| *dtype)
}
