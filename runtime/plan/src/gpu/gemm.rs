//! GPU kernels: products of matrices inside tensors, and `Gemm`.

use bytemuck::{Pod, Zeroable};
use candle_plan_device::{GemmKind, Gpu, Grid, Matrix, Symbol};

use super::integer_product::{is_integer, Integers};
use super::launch::{alloc_uninit, count, kind, launch, Params};
use super::program::{finished, OnGpuProgram};
use super::OnGpu;
use crate::bail;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::gpu::gpu_kernel;
use crate::kernel::Call;
use crate::ops::gemm::{steps, Gemm};
use crate::value::{Array, Value};

/// `C[i] = alpha · A[i] · B[i] + beta · C[i]` for `batch` products of `A [m, k]`, `B [k, n]` and `C [m, n]`. Sums of
/// 16-bit elements are computed in `float32`; C may be `float32` then.
#[derive(Debug, Clone, Copy)]
pub(super) struct Product {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub batch: usize,
    pub alpha: f32,
    /// With 0, the elements of C may be uninitialized.
    pub beta: f32,
}

/// The position of the matrices of products in a device tensor. The tensor's dimensions do not matter.
#[derive(Debug, Clone, Copy)]
pub(super) struct Matrices<'a> {
    pub tensor: &'a Array,
    /// The index of the first element.
    pub start: usize,
    /// The stride from one product's matrix to the next.
    pub next: usize,
    /// The stride from one row to the next, or from one column if the matrix is transposed.
    pub row: usize,
    /// Whether the matrix is stored transposed, by columns.
    pub transposed: bool,
}

impl Product {
    /// `A · B` for one product.
    pub fn of(m: usize, n: usize, k: usize) -> Product {
        Product { m, n, k, batch: 1, alpha: 1.0, beta: 0.0 }
    }

    /// Computes the products.
    ///
    /// # Errors
    /// The dtypes do not match, a matrix is not inside its tensor, or the device fails.
    pub fn run(&self, gpu: &Gpu, a: Matrices, b: Matrices, c: Matrices) -> Result<()> {
        let Product { m, n, k, batch, alpha, beta } = *self;
        if m == 0 || n == 0 || batch == 0 {
            return Ok(());
        }
        let kind = kind_of(a.tensor.dtype(), b.tensor.dtype(), c.tensor.dtype())?;
        let [a, b, c] = [a.placed([m, k], batch)?, b.placed([k, n], batch)?, c.placed([m, n], batch)?];
        let [rows, columns, depth] = [count(m)?, count(n)?, count(k)?];
        let batch = count(batch)?;
        let gemm = candle_plan_device::Gemm { kind, m: rows, n: columns, k: depth, batch, a, b, c, alpha, beta };
        // SAFETY: `Matrices::placed` checked that all matrices are inside their tensors, which live until the end of
        // the call. Memory is freed in stream order, after this work.
        Ok(unsafe { gpu.gemm(&gemm) }?)
    }
}

impl Matrices<'_> {
    /// Describes contiguous matrices `[rows, columns]` that follow each other.
    pub fn all(tensor: &Array, [rows, columns]: [usize; 2]) -> Matrices<'_> {
        Matrices { tensor, start: 0, next: rows * columns, row: columns, transposed: false }
    }

    /// Describes the same matrices stored transposed.
    pub fn columns(self) -> Self {
        Matrices { transposed: true, ..self }
    }

    /// Checks that `batch` matrices `[rows, columns]` are inside the tensor.
    fn placed(&self, [rows, columns]: [usize; 2], batch: usize) -> Result<Matrix> {
        let [outer, inner] = if self.transposed { [columns, rows] } else { [rows, columns] };
        let width = self.tensor.dtype().storage_dtype()?.size_in_bytes();
        let reach = |times: usize, step: usize| times.saturating_sub(1).checked_mul(step);
        let last = || {
            let matrix = reach(outer, self.row)?.checked_add(inner)?;
            self.start.checked_add(reach(batch, self.next)?)?.checked_add(matrix)
        };
        let is_inside = outer * inner == 0 || last().is_some_and(|end| end <= self.tensor.len()) && self.row >= inner;
        if !is_inside {
            bail!("{batch} matrices of [{rows}, {columns}] are not inside {:?}", self.tensor.dims());
        }
        // An empty matrix has no position.
        let [start, next] = if outer * inner == 0 { [0; 2] } else { [self.start * width, self.next] };
        Ok(Matrix {
            address: self.tensor.address()? + start as u64,
            next: next as u64,
            row: count(self.row.max(1))?,
            transposed: self.transposed.into(),
        })
    }
}

/// Returns the types in which products of these dtypes are computed.
fn kind_of(a: DType, b: DType, c: DType) -> Result<GemmKind> {
    Ok(match (a, b, c) {
        (DType::Float16, DType::Float16, DType::Float16) => GemmKind::F16,
        (DType::Bfloat16, DType::Bfloat16, DType::Bfloat16) => GemmKind::Bf16,
        (DType::Float16, DType::Float16, DType::Float32) => GemmKind::F16ToF32,
        (DType::Bfloat16, DType::Bfloat16, DType::Float32) => GemmKind::Bf16ToF32,
        (DType::Float32, DType::Float32, DType::Float32) => GemmKind::F32,
        (DType::Float64, DType::Float64, DType::Float64) => GemmKind::F64,
        _ => bail!("{a} and {b} do not multiply to {c}"),
    })
}

/// The addend was checked to broadcast to Y.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(Addend in "matmul.cu")]
struct AddendParams {
    addend: u64,
    y: u64,
    count: u32,
    n: u32,
    step: [u32; 2],
    is_zero: u32,
    padding: u32,
}

/// A [`Gemm`] step.
#[derive(Debug)]
pub(crate) struct GemmOnGpu {
    op: Gemm,
    epilogue: Option<OnGpuProgram>,
}

gpu_kernel!(Gemm: "gemm" by |self, operands, gpu| operands.dtype(0).map(|_| self.for_gpu(gpu)).transpose());

impl Gemm {
    /// Returns the step on a GPU.
    ///
    /// # Errors
    /// See [`OnGpuProgram::new`].
    pub(crate) fn for_gpu(&self, gpu: &Gpu) -> Result<GemmOnGpu> {
        let epilogue = self.epilogue.as_ref().map(|program| OnGpuProgram::new(gpu, program)).transpose()?;
        Ok(GemmOnGpu { op: self.clone(), epilogue })
    }
}

impl OnGpu for GemmOnGpu {
    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let (a, b, c) = (call.tensor(0)?, call.tensor(1)?, call.optional_tensor(2)?);
        let sizes = self.op.sizes(a, b, c)?;
        let [m, n, k] = [sizes.m, sizes.n, sizes.k];
        let y = alloc_uninit(gpu, &[m, n], a.dtype())?;
        let transposed = [self.op.trans_a, self.op.trans_b];
        if is_integer(a.dtype()) {
            let factors = [self.op.alpha, self.op.beta];
            let addend = c.map(|c| (c, steps(c.dims())));
            Integers { m, n, k, transposed, factors, addend, groups: &[] }.run(gpu, [a, b, &y])?;
            return Ok(vec![y.into()]);
        }
        let beta = match c {
            Some(c) => self.expand(gpu, c, &y)?,
            None => 0.0,
        };
        let order = |tensor, sizes: [usize; 2], transposed: bool| match transposed {
            true => Matrices::all(tensor, [sizes[1], sizes[0]]).columns(),
            false => Matrices::all(tensor, sizes),
        };
        let (left, right) = (order(a, [m, k], transposed[0]), order(b, [k, n], transposed[1]));
        Product { alpha: self.op.alpha, beta, ..Product::of(m, n, k) }.run(
            gpu,
            left,
            right,
            Matrices::all(&y, [m, n]),
        )?;
        finished(self.epilogue.as_ref(), call, y)
    }
}

impl GemmOnGpu {
    /// Broadcasts the addend to `y`, and returns its factor.
    fn expand(&self, gpu: &Gpu, c: &Array, y: &Array) -> Result<f32> {
        // Products ignore an addend whose factor is 0, but NaN times 0 must be NaN.
        let is_zero = self.op.beta == 0.0;
        let [row, column] = steps(c.dims()).map(count);
        let n = y.dims().last().copied().ok_or_else(|| Error::op("the product is a matrix"))?;
        let params = AddendParams {
            addend: c.address()?,
            y: y.address()?,
            count: count(y.len())?,
            n: count(n)?,
            step: [row?, column?],
            is_zero: is_zero.into(),
            padding: 0,
        };
        let symbol = Symbol { module: "matmul", name: "addend", kind: kind(c.dtype())? };
        launch(gpu, symbol, Grid::over(params.count), &params)?;
        Ok(if is_zero { 1.0 } else { self.op.beta })
    }
}

#[cfg(test)]
mod tests {
    use candle_plan_descriptors::program::{Binary, Instruction, Operand, Program, Unary};

    use super::*;
    use crate::testing::{run, tensor};

    fn data(dims: &[usize]) -> Vec<f32> {
        (0..dims.iter().product()).map(|i: usize| (i * 7919 % 101) as f32 / 50.0 - 1.0).collect()
    }

    fn floats(dims: &[usize]) -> Option<Value> {
        Some(tensor(&data(dims), dims))
    }

    #[test]
    fn several_tiles_are_multiplied_added_and_finished() {
        // max(y · input 3, 0)
        let code = vec![Instruction::Binary(Binary::Mul, Operand::Input(3)), Instruction::Unary(Unary::Relu)];
        for (m, n, k) in [(65, 67, 33), (1, 130, 17), (129, 1, 1), (3, 0, 2), (2, 3, 0)] {
            let c: [&[usize]; 4] = [&[m, n], &[n], &[m, 1], &[]];
            for (i, c) in c.into_iter().enumerate() {
                let (trans_a, trans_b) = (i % 2 == 1, i > 1);
                let epilogue = (i < 3).then(|| Program { code: code.clone() });
                let op = Gemm { alpha: 0.5, beta: 2.0, trans_a, trans_b, epilogue };
                let [a, b] = [if trans_a { [k, m] } else { [m, k] }, if trans_b { [n, k] } else { [k, n] }];
                run(&op, &[floats(&a), floats(&b), floats(c), floats(&[n])]).expect("it fits");
            }
        }
    }

    #[test]
    fn a_factor_of_zero_lets_nan_through() {
        let op = Gemm { alpha: 1.0, beta: 0.0, trans_a: false, trans_b: false, epilogue: None };
        let y = run(&op, &[floats(&[2, 3]), floats(&[3, 2]), Some(tensor(&[f32::NAN, 1.0], &[2]))]).expect("it fits");
        let nans: Vec<bool> = y.tensor().unwrap().read::<f32>().unwrap().iter().map(|y| y.is_nan()).collect();
        assert_eq!(nans, [true, false, true, false]);
    }

    #[test]
    fn matrices_outside_of_their_tensors_are_refused() {
        let gpu = candle_plan_device_emulator::open().expect("enough memory");
        let there = crate::gpu::upload(&gpu, &tensor(&[0f32; 12], &[12])).expect("enough memory");
        let tensor = there.tensor().expect("a tensor");
        let at = |start, next, row| Matrices { tensor, start, next, row, transposed: false };
        let product = Product { batch: 2, ..Product::of(2, 2, 2) };
        let c = at(0, 4, 2);
        assert!(product.run(&gpu, at(4, 4, 2), at(0, 0, 2), c).is_ok());
        for outside in [at(5, 4, 2), at(0, 9, 2), at(0, 4, 7), at(0, 4, 1), at(usize::MAX, 4, 2), at(0, usize::MAX, 2)]
        {
            assert!(product.run(&gpu, outside, c, c).is_err(), "{outside:?}");
            assert!(product.run(&gpu, c, outside, c).is_err(), "{outside:?}");
            assert!(product.run(&gpu, c, c, outside).is_err(), "{outside:?}");
        }
    }
}
