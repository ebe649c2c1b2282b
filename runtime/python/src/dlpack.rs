//! DLPack capsules, which exchange tensors with other libraries. The structures are those of `dlpack.h`.

use std::ffi::{c_void, CStr};

use candle_plan::internal::{Array, Lent};
use candle_plan::DType;
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;

const NAME: &CStr = c"dltensor";
const USED: &CStr = c"used_dltensor";
const NAME_VERSIONED: &CStr = c"dltensor_versioned";
const USED_VERSIONED: &CStr = c"used_dltensor_versioned";
/// The only major version of versioned capsules that is read.
const MAJOR: u32 = 1;

/// `kDLCUDA`.
pub const CUDA: i32 = 2;
/// `kDLCPU`: host memory.
pub const CPU: i32 = 1;
/// `kDLCUDAHost`: pinned host memory.
pub const CUDA_HOST: i32 = 3;

#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device: [i32; 2],
    rank: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    offset: u64,
}

#[repr(C)]
struct Managed {
    tensor: Tensor,
    context: *mut c_void,
    delete: Option<unsafe extern "C" fn(*mut Managed)>,
}

#[repr(C)]
struct Versioned {
    version: [u32; 2],
    context: *mut c_void,
    delete: Option<unsafe extern "C" fn(*mut Versioned)>,
    flags: u64,
    tensor: Tensor,
}

/// Owns a tensor taken out of its capsule, and calls its deleter on drop.
enum Owner {
    Managed(*mut Managed),
    Versioned(*mut Versioned),
}

// SAFETY: the deleter may be called in any thread that holds the interpreter's lock.
unsafe impl Send for Owner {}
// SAFETY: a shared owner has no methods.
unsafe impl Sync for Owner {}

impl Drop for Owner {
    fn drop(&mut self) {
        // After the interpreter has ended, the process frees the memory.
        Python::try_attach(|_| match *self {
            // SAFETY: the capsule was taken, so the deleter is called here and nowhere else.
            Owner::Managed(managed) => unsafe { (*managed).delete.map_or((), |delete| delete(managed)) },
            // SAFETY: see above.
            Owner::Versioned(managed) => unsafe { (*managed).delete.map_or((), |delete| delete(managed)) },
        });
    }
}

/// Takes the tensor out of a capsule. Its elements are valid in the stream for which the capsule was made.
///
/// # Errors
/// `TypeError`: the object is not an unused DLPack capsule, or the element type is unsupported.
pub fn taken(capsule: &Bound<'_, PyAny>) -> PyResult<Lent> {
    let (pointer, name) = (capsule.as_ptr(), [NAME_VERSIONED, NAME].into_iter().find(|name| is_valid(capsule, name)));
    let Some(name) = name else { return Err(PyTypeError::new_err("it gives no DLPack capsule that was not used")) };
    // SAFETY: a valid capsule of this name contains the structure of that name.
    let (tensor, owner) = unsafe {
        let content = ffi::PyCapsule_GetPointer(pointer, name.as_ptr());
        if name == NAME_VERSIONED {
            let managed = content.cast::<Versioned>();
            if (*managed).version[0] != MAJOR {
                return Err(PyTypeError::new_err(format!("a DLPack capsule of version {}", (*managed).version[0])));
            }
            ffi::PyCapsule_SetName(pointer, USED_VERSIONED.as_ptr());
            (&raw const (*managed).tensor, Owner::Versioned(managed))
        } else {
            let managed = content.cast::<Managed>();
            ffi::PyCapsule_SetName(pointer, USED.as_ptr());
            (&raw const (*managed).tensor, Owner::Managed(managed))
        }
    };
    // SAFETY: the owner keeps the tensor alive.
    described(unsafe { &*tensor }, owner)
}

fn is_valid(capsule: &Bound<'_, PyAny>, name: &CStr) -> bool {
    // SAFETY: `PyCapsule_IsValid` accepts any object.
    unsafe { ffi::PyCapsule_IsValid(capsule.as_ptr(), name.as_ptr()) == 1 }
}

fn described(tensor: &Tensor, owner: Owner) -> PyResult<Lent> {
    let rank = usize::try_from(tensor.rank).unwrap_or(0);
    let list = |start: *mut i64| match start.is_null() || rank == 0 {
        true => None,
        // SAFETY: the list has one number per dimension.
        false => Some(unsafe { std::slice::from_raw_parts(start, rank) }),
    };
    let dtype = match (tensor.code, tensor.bits, tensor.lanes) {
        (0, 8, 1) => DType::Int8,
        (0, 16, 1) => DType::Int16,
        (0, 32, 1) => DType::Int32,
        (0, 64, 1) => DType::Int64,
        (1, 8, 1) => DType::Uint8,
        (1, 16, 1) => DType::Uint16,
        (1, 32, 1) => DType::Uint32,
        (1, 64, 1) => DType::Uint64,
        (2, 16, 1) => DType::Float16,
        (2, 32, 1) => DType::Float32,
        (2, 64, 1) => DType::Float64,
        (4, 16, 1) => DType::Bfloat16,
        (6, 8, 1) => DType::Bool,
        (10, 8, 1) => DType::Float8E4M3Fn,
        (11, 8, 1) => DType::Float8E4M3Fnuz,
        (12, 8, 1) => DType::Float8E5M2,
        (13, 8, 1) => DType::Float8E5M2Fnuz,
        (14, 8, 1) => DType::Float8E8M0Fnu,
        (code, bits, lanes) => {
            let kind = format!("DLPack type {code} of {bits} bits and {lanes} lanes is not a supported element type");
            return Err(PyTypeError::new_err(kind));
        }
    };
    let size = |&size: &i64| usize::try_from(size).map_err(|_| PyTypeError::new_err("a dimension is negative"));
    let dims = list(tensor.shape).unwrap_or_default().iter().map(size).collect::<PyResult<Vec<usize>>>()?;
    let strides = list(tensor.strides).map(|strides| strides.iter().map(|&stride| stride as isize).collect());
    let address = (tensor.data.addr() as u64).wrapping_add(tensor.offset);
    Ok(Lent { address, dims, strides, dtype, stream: None, owner: Box::new(owner) })
}

/// The content of a capsule made here.
struct Exported {
    managed: Managed,
    shape: Vec<i64>,
    memory: Memory,
}

/// The memory of a tensor in a capsule made here.
enum Memory {
    /// Of a tensor on a GPU, and the consumer's stream, whose work may be pending when it frees the tensor; `None` if unknown.
    Device(Array, Option<u64>),
    /// Of an array on the host.
    Host(Py<PyAny>),
}

/// Makes a capsule of a tensor on CUDA's GPU number `ordinal`, for a consumer that works in `stream`.
///
/// # Errors
/// `BufferError`: DLPack does not support the element type.
pub fn capsule<'py>(py: Python<'py>, array: &Array, ordinal: i32, stream: Option<u64>) -> PyResult<Bound<'py, PyAny>> {
    let address = array.address().map_err(crate::errors::to_python)? as *mut c_void;
    let memory = Memory::Device(array.clone(), stream);
    exported(py, (address, [CUDA, ordinal]), array.dims(), array.dtype(), memory)
}

/// Makes a capsule of a contiguous NumPy array whose elements have a dtype.
///
/// # Errors
/// `BufferError`: DLPack does not support the element type.
pub fn host_capsule<'py>(array: &Bound<'py, PyUntypedArray>, dtype: DType) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: the array is a NumPy array, whose structure has these fields.
    let address = unsafe { (*array.as_array_ptr()).fields.data }.cast::<c_void>();
    let memory = Memory::Host(array.clone().into_any().unbind());
    exported(array.py(), (address, [CPU, 0]), array.shape(), dtype, memory)
}

/// Returns DLPack's code of an element type, and the bits of an element.
///
/// # Errors
/// `BufferError`: DLPack does not support the element type.
fn code_of(dtype: DType) -> PyResult<(u8, u8)> {
    Ok(match dtype {
        DType::Int8 => (0, 8),
        DType::Int16 => (0, 16),
        DType::Int32 => (0, 32),
        DType::Int64 => (0, 64),
        DType::Uint8 => (1, 8),
        DType::Uint16 => (1, 16),
        DType::Uint32 => (1, 32),
        DType::Uint64 => (1, 64),
        DType::Float16 => (2, 16),
        DType::Float32 => (2, 32),
        DType::Float64 => (2, 64),
        DType::Bfloat16 => (4, 16),
        DType::Bool => (6, 8),
        DType::Float8E4M3Fn => (10, 8),
        DType::Float8E4M3Fnuz => (11, 8),
        DType::Float8E5M2 => (12, 8),
        DType::Float8E5M2Fnuz => (13, 8),
        DType::Float8E8M0Fnu => (14, 8),
        other => return Err(PyBufferError::new_err(format!("DLPack has no {other}"))),
    })
}

/// Makes a capsule of elements in row-major order, which lie at an address on a device.
fn exported<'py>(
    py: Python<'py>,
    (data, device): (*mut c_void, [i32; 2]),
    dims: &[usize],
    dtype: DType,
    memory: Memory,
) -> PyResult<Bound<'py, PyAny>> {
    let (code, bits) = code_of(dtype)?;
    let shape = dims.iter().map(|&size| size as i64).collect();
    let rank = dims.len() as i32;
    let (shape_start, strides) = (std::ptr::null_mut(), std::ptr::null_mut());
    let tensor = Tensor { data, device, rank, code, bits, lanes: 1, shape: shape_start, strides, offset: 0 };
    let managed = Managed { tensor, context: std::ptr::null_mut(), delete: Some(delete) };
    let exported = Box::into_raw(Box::new(Exported { managed, shape, memory }));
    // SAFETY: the box is fully initialized, and only `delete` frees it. Consumers see its first field, `Managed`.
    unsafe {
        (*exported).managed.tensor.shape = (*exported).shape.as_mut_ptr();
        (*exported).managed.context = exported.cast();
        let managed = &raw mut (*exported).managed;
        let capsule = ffi::PyCapsule_New(managed.cast(), NAME.as_ptr(), Some(drop_capsule));
        Bound::from_owned_ptr_or_err(py, capsule).inspect_err(|_| delete(managed))
    }
}

/// Frees a tensor whose capsule was made here.
unsafe extern "C" fn delete(managed: *mut Managed) {
    // SAFETY: the context is the box that `exported` made, and the consumer calls this once.
    let exported = unsafe { Box::from_raw((*managed).context.cast::<Exported>()) };
    match exported.memory {
        Memory::Device(array, stream) => {
            // SAFETY: the consumer passed its stream for this device. If the GPU is lost, no work is pending.
            let _ = unsafe { array.free_after(stream) };
        }
        // After the interpreter has ended, the process frees the memory.
        Memory::Host(array) => match Python::try_attach(|_| ()) {
            Some(()) => Python::attach(|_| drop(array)),
            None => std::mem::forget(array),
        },
    }
}

/// Frees a tensor that no consumer took.
unsafe extern "C" fn drop_capsule(capsule: *mut ffi::PyObject) {
    // SAFETY: `exported` made this capsule. A taken capsule has another name.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, NAME.as_ptr()) == 1 {
            delete(ffi::PyCapsule_GetPointer(capsule, NAME.as_ptr()).cast());
        }
    }
}
