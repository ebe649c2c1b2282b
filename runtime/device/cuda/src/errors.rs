//! Converts statuses of the driver and of cuBLAS to errors of this crate.

use std::ffi::{c_char, CStr};
use std::fmt::{Display, Formatter};

use candle_plan_device::Error;

use crate::driver::{cuGetErrorName, cuGetErrorString, OUT_OF_MEMORY};
use crate::failure::Failure;

/// `CUBLAS_STATUS_NOT_INITIALIZED`: cuBLAS also returns it if it finds no memory for a handle.
const NOT_INITIALIZED: u32 = 1;
/// `CUBLAS_STATUS_ALLOC_FAILED`.
const ALLOC_FAILED: u32 = 3;
/// The statuses after which the driver runs nothing more in this process.
const FATAL: [u32; 10] = [214, 700, 702, 710, 714, 715, 716, 717, 718, 719];

impl Failure {
    /// Whether the call may succeed when more device memory is free.
    pub fn is_memory(self) -> bool {
        matches!(self, Failure::Driver(OUT_OF_MEMORY) | Failure::Blas(ALLOC_FAILED | NOT_INITIALIZED))
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match *self {
            Failure::Missing { library, function } => write!(
                f,
                "{library} has no function {function}: install NVIDIA's driver 580 or newer and the libraries of CUDA 13 \
                 (pip install 'candle-compiler[cuda]')"
            ),
            Failure::Driver(OUT_OF_MEMORY) | Failure::Blas(ALLOC_FAILED) => {
                f.write_str("the device has no memory left: free memory of the GPU, or use smaller inputs")
            },
            Failure::Driver(status) => {
                let (name, text) = (said(status, cuGetErrorName), said(status, cuGetErrorString));
                let told = match (name, text) {
                    (Some(name), Some(text)) => write!(f, "{name}, {text}"),
                    (Some(text), None) | (None, Some(text)) => write!(f, "CUDA_ERROR {status}, {text}"),
                    (None, None) => write!(f, "CUDA_ERROR {status}"),
                };
                let advice = if FATAL.contains(&status) { ": this process cannot use the GPU any more; start a new one" } else { "" };
                told.and_then(|()| f.write_str(advice))
            }
            Failure::Blas(NOT_INITIALIZED) => f.write_str(
                "cuBLAS does not start (CUBLAS_STATUS_NOT_INITIALIZED): the device may have no memory left, or the driver \
                 may be older than the library: free memory of the GPU, or install a newer driver",
            ),
            Failure::Blas(status) => write!(f, "cuBLAS: {}", blas_name(status)),
        }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Error {
        match failure {
            Failure::Missing { .. } => Error::Unavailable(failure.to_string()),
            failure => Error::Failed(failure.to_string()),
        }
    }
}

/// Returns the driver's name or description of a status.
fn said(status: u32, ask: unsafe fn(u32, *mut *const c_char) -> Result<(), Failure>) -> Option<String> {
    let mut text = std::ptr::null();
    // SAFETY: the call writes one pointer.
    unsafe { ask(status, &raw mut text) }.ok()?;
    // SAFETY: the driver's texts are constants that end with a null byte.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

fn blas_name(status: u32) -> String {
    let name = match status {
        7 => "CUBLAS_STATUS_INVALID_VALUE",
        8 => "CUBLAS_STATUS_ARCH_MISMATCH",
        11 => "CUBLAS_STATUS_MAPPING_ERROR",
        13 => "CUBLAS_STATUS_EXECUTION_FAILED",
        14 => "CUBLAS_STATUS_INTERNAL_ERROR",
        15 => "CUBLAS_STATUS_NOT_SUPPORTED",
        status => return format!("status {status}"),
    };
    name.to_string()
}
