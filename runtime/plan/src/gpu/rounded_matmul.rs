//! GPU kernels: matrix products of rounded numbers.

use candle_plan_descriptors::gemm::ProductSizes;
use candle_plan_device::Gpu;

use super::cast::rounded;
use super::gemm::{Matrices, Product};
use super::launch::alloc_uninit;
use super::program::{finished, OnGpuProgram};
use super::OnGpu;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::gpu_kernel;
use crate::kernel::Call;
use crate::ops::rounded_matmul::RoundedMatMul;
use crate::value::Value;

/// A [`RoundedMatMul`] step.
#[derive(Debug)]
pub(crate) struct RoundedMatMulOnGpu {
    op: RoundedMatMul,
    epilogue: Option<OnGpuProgram>,
}

gpu_kernel!(RoundedMatMul: "cast" by |self, operands, gpu| {
    let epilogue = || self.epilogue.as_ref().map(|program| OnGpuProgram::new(gpu, program)).transpose();
    let kernel = |_| Ok(RoundedMatMulOnGpu { op: self.clone(), epilogue: epilogue()? });
    operands.dtype(0).map(kernel).transpose()
});

impl OnGpu for RoundedMatMulOnGpu {
    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let (a, w) = (call.tensor(0)?, call.tensor(1)?);
        let (ProductSizes { m, n, k }, dims) = self.op.sizes(a.dims(), w.dims())?;
        let y = alloc_uninit(gpu, &dims, DType::Float32)?;
        if !y.is_empty() {
            let a = rounded(gpu, a)?;
            let right = match self.op.trans_w {
                true => Matrices::all(w, [n, k]).columns(),
                false => Matrices::all(w, [k, n]),
            };
            let (left, result) = (Matrices::all(&a, [m, k]), Matrices::all(&y, [m, n]));
            Product::of(m, n, k).run(gpu, left, right, result)?;
        }
        finished(self.epilogue.as_ref(), call, y)
    }
}

#[cfg(test)]
mod tests {
    use candle_plan_descriptors::program::{Instruction, Program, Unary};

    use super::*;
    use crate::testing::{numbers_of, run};

    #[test]
    fn products_match_the_cpu() {
        let drawn = |dtype: DType, dims: &[usize]| -> Option<Value> {
            let count = dims.iter().product::<usize>();
            let numbers: Vec<f64> = (0..count).map(|i| (i * 7919 % 1009) as f64 * 0.03 - 15.0).collect();
            Some(numbers_of(dtype, &numbers, dims).into())
        };
        for (k, n) in [(43, 5), (1, 1), (64, 17)] {
            for (trans_w, dims) in [(false, [k, n]), (true, [n, k])] {
                for epilogue in [None, Some(Program { code: vec![Instruction::Unary(Unary::Relu)] })] {
                    let op = RoundedMatMul { trans_w, epilogue };
                    let inputs = [drawn(DType::Float32, &[2, 3, k]), drawn(DType::Bfloat16, &dims)];
                    run(&op, &inputs).expect("it multiplies");
                }
            }
        }
    }
}
