//! The functions of cuBLAS, `libcublas.so.13`, that this crate calls: types and numbers are those of `cublas_api.h`.

#![allow(non_snake_case)]

use std::ffi::{c_int, c_longlong, c_uint, c_void};
use std::sync::Arc;

use super::errors::Failure;
use super::library::{functions, Library};
use super::stream::Stream;

pub(super) static BLAS: Library = Library::new("libcublas.so.13", FUNCTIONS);

/// `CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION` and none of the modes that round operands.
const EXACT: c_uint = 16;

/// `cublasHandle_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct BlasHandle(usize);

functions! { BLAS, Failure::Blas;
    fn cublasCreate_v2(handle: *mut BlasHandle);
    fn cublasDestroy_v2(handle: BlasHandle);
    fn cublasSetStream_v2(handle: BlasHandle, stream: super::driver::StreamHandle);
    fn cublasSetMathMode(handle: BlasHandle, mode: c_uint);
    fn cublasGemmStridedBatchedEx(
        handle: BlasHandle,
        operation_a: c_uint,
        operation_b: c_uint,
        m: c_int,
        n: c_int,
        k: c_int,
        alpha: *const c_void,
        a: *const c_void,
        kind_a: c_uint,
        row_a: c_int,
        next_a: c_longlong,
        b: *const c_void,
        kind_b: c_uint,
        row_b: c_int,
        next_b: c_longlong,
        beta: *const c_void,
        c: *mut c_void,
        kind_c: c_uint,
        row_c: c_int,
        next_c: c_longlong,
        batch: c_int,
        compute: c_uint,
        algorithm: c_int,
    );
}

/// cuBLAS for one stream. With a handle of its own, a stream has a workspace of its own: what other streams do does not
/// change which algorithm cuBLAS takes, so two runs give the same bits. Not to be used by two threads at once.
pub(super) struct Blas {
    pub handle: BlasHandle,
    stream: Arc<Stream>,
}

impl Blas {
    /// The stream's context is the thread's.
    pub fn new(stream: &Arc<Stream>) -> Result<Blas, Failure> {
        let mut handle = BlasHandle(0);
        // SAFETY: it writes one handle.
        unsafe { cublasCreate_v2(&raw mut handle) }?;
        let blas = Blas { handle, stream: Arc::clone(stream) };
        // SAFETY: the handle was just made, and keeps the stream.
        unsafe { cublasSetStream_v2(handle, stream.handle()).and_then(|()| cublasSetMathMode(handle, EXACT)) }?;
        Ok(blas)
    }
}

impl Drop for Blas {
    fn drop(&mut self) {
        if let Ok(_bound) = self.stream.bind() {
            // SAFETY: nobody uses the handle any more. After an error that the GPU does not recover from, this fails too.
            let _ = unsafe { cublasDestroy_v2(self.handle) };
        }
    }
}
