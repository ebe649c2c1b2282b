//! What the driver, cuBLAS and candle say, in words of this crate.

use candle_core::cuda_backend::cudarc::cublas::result::CublasError;
use candle_core::cuda_backend::cudarc::cublas::sys as blas;
use candle_core::cuda_backend::cudarc::driver::result::DriverError;
use candle_core::cuda_backend::cudarc::driver::sys::CUresult;
use candle_core::cuda_backend::CudaError;

use crate::backend::Error;

/// What is said where nothing more can be allocated.
const FULL: &str = "the device has no memory left";

pub(super) fn unavailable(message: String) -> Error {
    Error::Unavailable(message)
}

pub(super) fn failed(error: DriverError) -> Error {
    match error {
        DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY) => Error::Failed(FULL.to_string()),
        error => Error::Failed(error.to_string()),
    }
}

pub(super) fn not_multiplied(error: CublasError) -> Error {
    match error {
        CublasError(blas::cublasStatus_t::CUBLAS_STATUS_ALLOC_FAILED) => Error::Failed(FULL.to_string()),
        error => Error::Failed(format!("cuBLAS: {error}")),
    }
}

/// What candle says, without the places that it was passed on.
pub(super) fn told(error: &candle_core::Error) -> String {
    use candle_core::Error as Told;
    match error {
        Told::WithBacktrace { inner, .. } | Told::Context { inner, .. } => told(inner),
        Told::Cuda(error) => match error.downcast_ref::<CudaError>() {
            Some(CudaError::Cuda(error) | CudaError::Load { cuda: error, .. }) => failed(*error).to_string(),
            Some(CudaError::Cublas(error)) => not_multiplied(*error).to_string(),
            _ => error.to_string(),
        },
        error => error.to_string(),
    }
}
