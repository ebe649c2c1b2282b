//! Matrix products with cuBLAS.

use std::ffi::{c_int, c_uint, c_void};

use candle_plan_device::{Gemm, GemmKind, Matrix};

use crate::cublas::{cublasGemmStridedBatchedEx, BlasHandle};
use crate::failure::Failure;

/// `CUBLAS_GEMM_DEFAULT`.
const DEFAULT: c_int = -1;
/// `CUBLAS_COMPUTE_32F` and `CUBLAS_COMPUTE_64F`.
const COMPUTE: [c_uint; 2] = [68, 70];

/// Computes a product. cuBLAS expects column-major matrices, and those of this crate are row-major, so cuBLAS
/// multiplies the transposed matrices in the opposite order.
///
/// # Safety
/// Matrices with these sizes are at the addresses, on the handle's device.
pub(super) unsafe fn multiply(handle: BlasHandle, gemm: &Gemm) -> Result<(), Failure> {
    let [kind, result] = kinds(gemm.kind);
    let single = [gemm.alpha, gemm.beta];
    let double = single.map(f64::from);
    let (compute, [alpha, beta]) = match gemm.kind {
        GemmKind::F64 => (COMPUTE[1], double.each_ref().map(untyped)),
        _ => (COMPUTE[0], single.each_ref().map(untyped)),
    };
    let Gemm { m, n, k, batch, a, b, c, .. } = gemm;
    // SAFETY: guaranteed by the caller. The call reads the factors before it returns.
    unsafe {
        cublasGemmStridedBatchedEx(
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
            DEFAULT,
        )
    }
}

/// `CUBLAS_OP_N` or `CUBLAS_OP_T`.
fn operation(matrix: &Matrix) -> c_uint {
    c_uint::from(matrix.transposed != 0)
}

fn untyped<T>(factor: &T) -> *const c_void {
    (&raw const *factor).cast()
}

/// The types of the operands and of the result, as numbers of `cudaDataType`.
fn kinds(kind: GemmKind) -> [c_uint; 2] {
    /// `CUDA_R_32F`, `CUDA_R_64F`, `CUDA_R_16F`, `CUDA_R_16BF`.
    const F32: c_uint = 0;
    const F64: c_uint = 1;
    const F16: c_uint = 2;
    const BF16: c_uint = 14;
    match kind {
        GemmKind::F16 => [F16; 2],
        GemmKind::Bf16 => [BF16; 2],
        GemmKind::F32 => [F32; 2],
        GemmKind::F64 => [F64; 2],
        GemmKind::F16ToF32 => [F16, F32],
        GemmKind::Bf16ToF32 => [BF16, F32],
    }
}
