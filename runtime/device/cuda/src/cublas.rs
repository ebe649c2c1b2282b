//! The functions of cuBLAS, `libcublas.so.13`, that this crate calls. Types and numbers are from `cublas_api.h`.

#![allow(non_snake_case)]

use std::ffi::{c_int, c_longlong, c_uint, c_void};

use crate::driver::StreamHandle;
use crate::failure::Failure;
use crate::library::{functions, Library};

pub(super) static BLAS: Library = Library::new("libcublas.so.13", FUNCTIONS);

/// `cublasHandle_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct BlasHandle(usize);

impl BlasHandle {
    pub const NULL: BlasHandle = BlasHandle(0);
}

functions! { BLAS, Failure::Blas;
    fn cublasCreate_v2(handle: *mut BlasHandle);
    fn cublasDestroy_v2(handle: BlasHandle);
    fn cublasSetStream_v2(handle: BlasHandle, stream: StreamHandle);
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
