//! Products of matrices by cuBLAS.

use std::ffi::c_void;

use candle_core::cuda_backend::cudarc::cublas::result::{gemm_strided_batched_ex, CublasError};
use candle_core::cuda_backend::cudarc::cublas::sys as blas;

use crate::gemm::{Gemm, Kind, Matrix};

/// What is in rows here stands in columns for cuBLAS: it multiplies the transposed matrices, the other way round.
///
/// # Safety
/// The addresses are those of matrices of these sizes, on the handle's device.
pub(super) unsafe fn multiply(handle: blas::cublasHandle_t, gemm: &Gemm) -> std::result::Result<(), CublasError> {
    let [kind, result] = kinds(gemm.kind);
    let single = [gemm.alpha, gemm.beta];
    let double = single.map(f64::from);
    let (compute, [alpha, beta]) = match gemm.kind {
        Kind::F64 => (blas::cublasComputeType_t::CUBLAS_COMPUTE_64F, double.each_ref().map(untyped)),
        _ => (blas::cublasComputeType_t::CUBLAS_COMPUTE_32F, single.each_ref().map(untyped)),
    };
    let Gemm { m, n, k, batch, a, b, c, .. } = gemm;
    // SAFETY: the caller's promise; the factors live to the end of the call, which reads them.
    unsafe {
        gemm_strided_batched_ex(
            handle,
            operation(b),
            operation(a),
            n.cast_signed(),
            m.cast_signed(),
            k.cast_signed(),
            alpha,
            b.address as *const c_void,
            kind,
            b.row.cast_signed(),
            b.next.cast_signed(),
            a.address as *const c_void,
            kind,
            a.row.cast_signed(),
            a.next.cast_signed(),
            beta,
            c.address as *mut c_void,
            result,
            c.row.cast_signed(),
            c.next.cast_signed(),
            batch.cast_signed(),
            compute,
            blas::cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT,
        )
    }
}

fn operation(matrix: &Matrix) -> blas::cublasOperation_t {
    match matrix.transposed {
        0 => blas::cublasOperation_t::CUBLAS_OP_N,
        _ => blas::cublasOperation_t::CUBLAS_OP_T,
    }
}

fn untyped<T>(factor: &T) -> *const c_void {
    (&raw const *factor).cast()
}

/// The types of the operands and of the result.
fn kinds(kind: Kind) -> [blas::cudaDataType; 2] {
    use blas::cudaDataType::{CUDA_R_16BF, CUDA_R_16F, CUDA_R_32F, CUDA_R_64F};
    match kind {
        Kind::F16 => [CUDA_R_16F; 2],
        Kind::Bf16 => [CUDA_R_16BF; 2],
        Kind::F32 => [CUDA_R_32F; 2],
        Kind::F64 => [CUDA_R_64F; 2],
        Kind::F16ToF32 => [CUDA_R_16F, CUDA_R_32F],
        Kind::Bf16ToF32 => [CUDA_R_16BF, CUDA_R_32F],
    }
}
