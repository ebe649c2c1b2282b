//! cuBLAS, as one stream uses it.

use std::ffi::c_uint;
use std::sync::Arc;

use super::cublas::{cublasCreate_v2, cublasDestroy_v2, cublasSetMathMode, cublasSetStream_v2, BlasHandle};
use super::failure::Failure;
use super::stream::Stream;

/// `CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION` and none of the modes that round operands.
const EXACT: c_uint = 16;

/// cuBLAS for one stream. With a handle of its own, a stream has a workspace of its own: what other streams do does not
/// change which algorithm cuBLAS takes, so two runs give the same bits. Not to be used by two threads at once.
pub(super) struct Blas {
    pub handle: BlasHandle,
    stream: Arc<Stream>,
}

impl Blas {
    /// The stream's context is the thread's.
    pub fn new(stream: &Arc<Stream>) -> Result<Blas, Failure> {
        let mut handle = BlasHandle::NULL;
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
