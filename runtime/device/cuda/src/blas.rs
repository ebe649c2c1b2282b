//! The cuBLAS handle of one stream.

use std::ffi::c_uint;
use std::sync::Arc;

use crate::cublas::{cublasCreate_v2, cublasDestroy_v2, cublasSetMathMode, cublasSetStream_v2, BlasHandle};
use crate::failure::Failure;
use crate::stream::Stream;

/// `CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION`, without any mode that rounds operands.
const EXACT: c_uint = 16;

/// The cuBLAS handle of one stream. A separate handle has a separate workspace: other streams do not affect the
/// algorithms that cuBLAS chooses, so two runs give the same bits. Two threads must not use it at the same time.
pub(super) struct Blas {
    pub handle: BlasHandle,
    stream: Arc<Stream>,
}

impl Blas {
    /// The stream's context must be bound to the thread.
    pub fn new(stream: &Arc<Stream>) -> Result<Blas, Failure> {
        let mut handle = BlasHandle::NULL;
        // SAFETY: the call writes one handle.
        unsafe { cublasCreate_v2(&raw mut handle) }?;
        let blas = Blas { handle, stream: Arc::clone(stream) };
        // SAFETY: the handle was just created, and keeps the stream.
        unsafe { cublasSetStream_v2(handle, stream.handle()).and_then(|()| cublasSetMathMode(handle, EXACT)) }?;
        Ok(blas)
    }
}

impl Drop for Blas {
    fn drop(&mut self) {
        if let Ok(_bound) = self.stream.bind() {
            // SAFETY: nothing uses the handle any more. After a fatal error of the GPU, this call fails too.
            let _ = unsafe { cublasDestroy_v2(self.handle) };
        }
    }
}
