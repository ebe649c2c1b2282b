//! CPU kernels: matrix products of rounded numbers.

use candle_plan_kernels::gemm::{Finish, ProductSizes};
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::products::{multiply_rounded, pack_rounded};
use candle_plan_kernels::rounded::{Halves, PackedRounded};
use candle_plan_kernels::threads::Threads;
use half::bf16;

use super::finish::with_finish;
use super::packed::{HasKernel, Packed};
use super::planned::CpuOperands;
use super::product_forms::{is_rounded_narrow, rounded, rounded_rows};
use crate::error::Result;
use crate::form::{Alternative, KernelForm};
use crate::kernel::{Call, Kernel};
use crate::ops::matrices::ordered;
use crate::ops::rounded_matmul::RoundedMatMul;
use crate::types::{TensorType, Types};
use crate::value::{alloc_uninit, Array, Value};
use crate::work;

impl HasKernel for RoundedMatMul {
    fn kernel(&self, operands: &CpuOperands) -> Result<Box<dyn Kernel>> {
        let packed = match operands.constants.tensor(1) {
            Some(w) if w.rank() == 2 => {
                let (rows, is_narrow) = (rounded_rows(operands), is_rounded_narrow(operands));
                Some(self.packed(&Threads::serial(), w, rows, is_narrow)?)
            }
            _ => None,
        };
        Ok(Packed::boxed(self, packed))
    }
}

impl Kernel for Packed<RoundedMatMul, Option<PackedRounded>> {
    fn is_replaced(&self, input: usize) -> bool {
        self.packed.is_some() && input == 1
    }

    fn form(&self) -> KernelForm {
        let (op, packed) = (&self.op, self.packed.as_ref());
        let form = |packed: &PackedRounded| KernelForm::named(packed.name()).packed(packed.bytes());
        KernelForm::of(packed, form).with(op.epilogue.as_ref())
    }

    fn alternatives(&self, inputs: &Types) -> Vec<Alternative> {
        rounded(inputs, self.op.trans_w)
    }

    /// The rounded left operand. If `W` is not packed, also the packed matrix and a copy as `float32`.
    fn scratch(&self, inputs: &Types) -> Option<usize> {
        let left = left(inputs.tensor(0).ok()?)?;
        let right = match self.packed {
            Some(_) => 0,
            None => {
                let padded = |size: &usize| size.checked_add(WIDEST);
                let sizes = inputs.tensor(1).ok()?.sizes()?;
                sizes.iter().try_fold(2usize, |count, size| count.checked_mul(padded(size)?))?
            }
        };
        left.checked_add(right)?.checked_mul(size_of::<f32>())
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (op, packed) = (&self.op, self.packed.as_ref());
        let (a, w) = (call.tensor(0)?, call.tensor(1)?);
        let (sizes, dims) = op.sizes(a.dims(), w.dims())?;
        let made;
        let packed = match packed {
            Some(packed) => packed,
            None => {
                made = op.packed(call.threads, w, sizes.m, true)?;
                &made
            }
        };
        let out = with_finish(op.epilogue.as_ref(), call, &dims, |finish| {
            product(call.threads, sizes, a, packed, &dims, finish)
        })?;
        Ok(vec![out.into()])
    }
}

/// The most columns of a panel.
const WIDEST: usize = 64;
/// The rows and the depth of the largest tile of the left operand.
const TILE: [usize; 2] = [16, 32];

/// The most numbers of the rounded left operand, in units of `float32`: all of them as `float32`, or whole tiles of
/// `bfloat16`.
fn left(a: &TensorType) -> Option<usize> {
    let count = usize::try_from(work::count(a)?).ok()?;
    let k = usize::try_from(work::size_from_end(a, 0)?).ok()?;
    let rows = count.checked_div(k).unwrap_or(0).checked_next_multiple_of(TILE[0])?;
    let halves = rows.checked_mul(k.checked_next_multiple_of(TILE[1])?)?;
    Some(count.max(halves.div_ceil(2)))
}

impl RoundedMatMul {
    /// Packs `W` for products of `rows` rows.
    fn packed(&self, threads: &Threads, w: &Array, rows: usize, is_narrow: bool) -> Result<PackedRounded> {
        let dims = ordered(w.dims(), self.trans_w)?;
        let matrix = Halves { k: dims[0], n: dims[1], data: w.read::<bf16>()?, transposed: self.trans_w };
        Ok(pack_rounded(Isa::get(), threads, rows, is_narrow, &matrix))
    }
}

/// `round(A) · W`, whose dimensions are `dims`.
fn product(
    threads: &Threads,
    sizes: ProductSizes,
    a: &Array,
    packed: &PackedRounded,
    dims: &[usize],
    finish: Option<Finish>,
) -> Result<Array> {
    let a = a.read::<f32>()?;
    let out = alloc_uninit(dims)?;
    Array::new(out.overwrite(|out| multiply_rounded(Isa::get(), threads, sizes, a, packed, out, finish)), dims)
}

#[cfg(test)]
mod tests {
    use candle_plan_descriptors::program::{Instruction, Program, Unary};

    use super::*;
    use crate::testing::{run, tensor};

    fn op(trans_w: bool) -> RoundedMatMul {
        RoundedMatMul { trans_w, epilogue: None }
    }

    /// Multiplies whole numbers, which `bf16` and `f32` represent exactly, and 257, which becomes 256.
    #[test]
    fn rows_of_any_rank_are_rounded_and_multiplied() {
        let w = |dims: &[usize], numbers: [f32; 6]| Some(tensor(&numbers.map(bf16::from_f32), dims));
        let plain = w(&[3, 2], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let turned = w(&[2, 3], [1.0, 3.0, 5.0, 2.0, 4.0, 6.0]);
        for (trans_w, w) in [(false, plain), (true, turned)] {
            for (dims, result) in [(&[3][..], &[2][..]), (&[1, 3], &[1, 2]), (&[1, 1, 3], &[1, 1, 2])] {
                let y = run(&op(trans_w), &[Some(tensor(&[257f32, -1.0, 2.0], dims)), w.clone()]).unwrap();
                let y = y.tensor().unwrap();
                assert_eq!((y.dims(), y.read::<f32>().unwrap()), (result, &[263f32, 520.0][..]));
            }
            let y = run(&op(trans_w), &[Some(tensor::<f32>(&[], &[2, 0, 3])), w]).unwrap();
            assert_eq!(y.tensor().unwrap().dims(), [2, 0, 2]);
        }
        let empty = [Some(tensor::<f32>(&[], &[2, 0])), Some(tensor::<bf16>(&[], &[0, 3]))];
        assert_eq!(run(&op(false), &empty).unwrap().tensor().unwrap().read::<f32>().unwrap(), &[0f32; 6]);
    }

    #[test]
    fn an_epilogue_finishes_the_result() {
        let epilogue = Some(Program { code: vec![Instruction::Unary(Unary::Relu)] });
        let inputs = [Some(tensor(&[-1f32, 2.0], &[2, 1])), Some(tensor(&[bf16::ONE; 3], &[1, 3]))];
        let y = run(&RoundedMatMul { epilogue, ..op(false) }, &inputs).unwrap();
        assert_eq!(y.tensor().unwrap().read::<f32>().unwrap(), &[0f32, 0.0, 0.0, 2.0, 2.0, 2.0]);
    }

    #[test]
    fn wrong_shapes_and_types_are_refused() {
        let f = |dims: &[usize]| Some(tensor(&vec![1f32; dims.iter().product()], dims));
        let h = |dims: &[usize]| Some(tensor(&vec![bf16::ONE; dims.iter().product()], dims));
        for (inputs, expected) in [
            ([f(&[2, 3]), h(&[2, 3])], "its last size must be 2"),
            ([f(&[]), h(&[2, 3])], "its last size must be 2"),
            ([f(&[2, 3]), h(&[3])], "must be a matrix"),
            ([f(&[2, 3]), h(&[1, 3, 2])], "must be a matrix"),
            ([f(&[2, 3]), f(&[3, 2])], "W"),
            ([h(&[2, 3]), h(&[3, 2])], "A"),
        ] {
            let error = run(&op(false), &inputs).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
