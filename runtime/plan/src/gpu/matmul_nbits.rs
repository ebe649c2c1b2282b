//! GPU kernels: matrix products with weights of few bits.

use bytemuck::{Pod, Zeroable};
use candle_plan_device::{Gpu, Grid, Symbol};

use super::gemm::{Matrices, Product};
use super::launch::{address, alloc_uninit, count, kind, launch, Params};
use super::numbers::number;
use super::program::{finished, OnGpuProgram};
use super::OnGpu;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::gpu_kernel;
use crate::kernel::Call;
use crate::ops::matmul_nbits::MatMulNBits;
use crate::value::{Array, Value};

/// `MatMulNBits::check_weights` and `result` check the sizes of the tensors. Y is `[m, n]`, or W `[n, k]`.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(LowBit in "matmul_nbits.cu")]
struct LowBitParams {
    a: u64,
    b: u64,
    scales: u64,
    zeros: u64,
    y: u64,
    m: u32,
    n: u32,
    k: u32,
    bits: u32,
    block: u32,
    blocks: u32,
    scale: u32,
    zero: u32,
}

/// The rows that a block of threads multiplies, as in `matmul_nbits.cu`.
const ROWS: usize = 4;
/// The maximum number of rows that are multiplied with codes. With more rows, a kernel computes W first.
const FEW: usize = 8;

/// A [`MatMulNBits`] step. It never rounds `A`.
#[derive(Debug)]
pub(crate) struct MatMulNBitsOnGpu {
    op: MatMulNBits,
    epilogue: Option<OnGpuProgram>,
}

gpu_kernel!(MatMulNBits: "matmul_nbits" by |self, operands, gpu| {
    operands.dtype(0).map(|_| self.for_gpu(gpu)).transpose()
});

impl MatMulNBits {
    /// Returns the step on a GPU.
    ///
    /// # Errors
    /// See [`OnGpuProgram::new`].
    pub(crate) fn for_gpu(&self, gpu: &Gpu) -> Result<MatMulNBitsOnGpu> {
        let epilogue = self.epilogue.as_ref().map(|program| OnGpuProgram::new(gpu, program)).transpose()?;
        Ok(MatMulNBitsOnGpu { op: self.clone(), epilogue })
    }
}

impl OnGpu for MatMulNBitsOnGpu {
    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let MatMulNBits { n, k, bits, block, .. } = self.op;
        let (a, b, scales, zeros) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?, call.optional_tensor(3)?);
        self.op.check_weights(Some(b.dims()), Some(scales.dims()), zeros.map(Array::dims))?;
        let y = alloc_uninit(gpu, &self.op.result(a.dims(), n)?, a.dtype())?;
        let m = a.len() / k;
        let params = LowBitParams {
            a: a.address()?,
            b: b.address()?,
            scales: scales.address()?,
            zeros: address(zeros)?,
            y: y.address()?,
            m: count(m)?,
            n: count(n)?,
            k: count(k)?,
            bits: count(bits)?,
            block: count(block)?,
            blocks: count(self.op.blocks())?,
            scale: number(scales.dtype())?,
            zero: number(zeros.map_or(DType::Uint8, Array::dtype))?,
        };
        if m > FEW {
            let w = alloc_uninit(gpu, &[n, k], a.dtype())?;
            let units = count(n.saturating_mul(k.div_ceil(32 / bits)))?;
            let symbol = Symbol { module: "matmul_nbits", name: "weights", kind: kind(a.dtype())? };
            launch(gpu, symbol, Grid::over(units), &LowBitParams { y: w.address()?, ..params })?;
            let (left, right) = (Matrices::all(a, [m, k]), Matrices::all(&w, [n, k]).columns());
            Product::of(m, n, k).run(gpu, left, right, Matrices::all(&y, [m, n]))?;
        } else if m > 0 {
            let units = count(m.div_ceil(ROWS).saturating_mul(n))?;
            let symbol = Symbol { module: "matmul_nbits", name: "product", kind: kind(a.dtype())? };
            launch(gpu, symbol, Grid::blocks(units), &params)?;
        }
        finished(self.epilogue.as_ref(), call, y)
    }
}

#[cfg(test)]
mod tests {
    use candle_plan_descriptors::program::{Instruction, Program, Unary};

    use super::*;
    use crate::testing::{numbers_of, run};

    /// The products of every type of operands, by both ways to compute them.
    #[test]
    fn products_match_the_cpu() {
        let drawn = |dtype: DType, dims: &[usize], modulus: usize, scale: f64| -> Option<Value> {
            let count = dims.iter().product::<usize>();
            let numbers: Vec<f64> = (0..count).map(|i| (i * 7919 % modulus) as f64 * scale).collect();
            Some(numbers_of(dtype, &numbers, dims).into())
        };
        let floats = [DType::Float32, DType::Float16, DType::Bfloat16];
        for (dtype, rows) in floats.into_iter().flat_map(|dtype| [5, 9].map(|rows| (dtype, rows))) {
            for (bits, scale) in [(2, DType::Float32), (4, dtype), (8, DType::Float32)] {
                let op = MatMulNBits { k: 43, n: 5, bits, block: 32, rounds_a: false, epilogue: None };
                let a = drawn(dtype, &[1, rows, 43], 11, 0.25);
                let (b, scales) = (drawn(DType::Uint8, &[5, 2, 4 * bits], 251, 1.0), drawn(scale, &[5, 2], 5, 0.125));
                for zeros in [None, Some(DType::Uint8), Some(DType::Float32)] {
                    let zeros = zeros.and_then(|dtype| drawn(dtype, &[5, 2], 1 << bits, 1.0));
                    run(&op, &[a.clone(), b.clone(), scales.clone(), zeros]).expect("it multiplies");
                }
            }
        }
    }

    #[test]
    fn an_epilogue_finishes_the_result() {
        let epilogue = Some(Program { code: vec![Instruction::Unary(Unary::Relu)] });
        let op = MatMulNBits { k: 16, n: 2, bits: 4, block: 16, rounds_a: false, epilogue };
        let of = |dtype, number: f64, dims: &[usize]| -> Option<Value> {
            Some(numbers_of(dtype, &vec![number; dims.iter().product()], dims).into())
        };
        let inputs =
            [of(DType::Float32, 1.0, &[3, 16]), of(DType::Uint8, 0.0, &[2, 1, 8]), of(DType::Float32, 1.0, &[2, 1])];
        let y = run(&op, &inputs).expect("it multiplies");
        assert_eq!(y.tensor().expect("a tensor").read::<f32>().expect("float32"), [0.0; 6]);
    }
}
