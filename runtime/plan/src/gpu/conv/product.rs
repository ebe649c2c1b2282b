//! Convolutions with windows of one element as matrix products in cuBLAS.

use candle_plan_device::{Gemm, GemmKind, Matrix};

use super::case::Case;
use super::constants::{kernel, FEW, MULTIPROCESSORS};
use super::form::{GpuConvForm, Work};
use super::params::NO_LIMITS;
use crate::dtype::DType;
use crate::error::Result;

/// The product of the weights and the image, for each image or each group.
#[derive(Debug)]
pub(super) struct GpuProductForm;

/// The multiply-adds of a multiprocessor in a nanosecond.
const RATE: f64 = 133.0;

/// The microseconds for each term of a sum, up to `SPLIT` terms: cuBLAS splits longer sums.
const TERM: f64 = 0.0054;

const SPLIT: usize = 512;

impl GpuConvForm for GpuProductForm {
    fn name(&self) -> &'static str {
        "product"
    }

    fn refusal(&self, case: &Case) -> Option<String> {
        let (shape, channels) = (case.shape, case.channels());
        let is_one = shape.groups == 1 || shape.batch == 1 && case.outputs() >= FEW && channels >= FEW;
        let is_point = shape.kernel == [1, 1] && shape.strides == [1, 1] && shape.before == [0, 0];
        let is_product = is_one && is_point && shape.output == shape.input && channels > 0 && !case.transposed;
        let words = "which is for windows of one element at every element, of one image or of one image's large groups";
        (!is_product).then(|| words.to_string())
    }

    fn cost(&self, case: &Case, _parts: usize) -> f64 {
        kernel(case.products() / MULTIPROCESSORS as f64, RATE) + TERM * case.depth().min(SPLIT) as f64
    }

    fn run(&self, work: Work, _parts: usize) -> Result<()> {
        let mut params = work.params;
        let dtype = work.case.dtype;
        // A result that is not rounded can get the bias afterwards.
        let rounded = matches!(dtype, DType::Float16 | DType::Bfloat16) && params.bias != 0;
        if rounded {
            params.parts = 0;
            work.finish(&params)?;
        }
        let gemm = Gemm { beta: if rounded { 1.0 } else { 0.0 }, ..gemm(&work) };
        // SAFETY: the form is for one image or one group, whose matrices are contiguous.
        unsafe { work.gpu.gemm(&gemm) }?;
        if rounded || (params.bias == 0 && [params.low, params.high] == NO_LIMITS) {
            return Ok(());
        }
        (params.parts, params.partial) = (1, params.y);
        work.finish(&params)
    }
}

/// Returns the product for each image or each group.
fn gemm(work: &Work) -> Gemm {
    let params = &work.params;
    let (groups, k, m, batch) = (params.groups, params.channels, params.outputs, params.batch);
    let n = (params.output[0] * params.output[1]).unsigned_abs();
    let matrix = |address, next, row| Matrix { address, next, row, transposed: 0 };
    let weights = if groups > 1 { u64::from(m) * u64::from(k) } else { 0 };
    Gemm {
        kind: match work.case.dtype {
            DType::Float16 => GemmKind::F16,
            DType::Bfloat16 => GemmKind::Bf16,
            DType::Float64 => GemmKind::F64,
            _ => GemmKind::F32,
        },
        m,
        n,
        k,
        batch: batch * groups,
        a: matrix(params.w, weights, k),
        b: matrix(params.x, u64::from(k) * u64::from(n), n),
        c: matrix(params.y, u64::from(m) * u64::from(n), n),
        alpha: 1.0,
        beta: 0.0,
    }
}
