//! CPU kernels: matrix products whose operands are quantized to 8 bits.

use candle_plan_kernels::int8::{multiply_rows, Matrix, Scaled};
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::products::pack_scaled;

use super::finish::with_finish;
use super::packed::{HasKernel, Packed};
use super::planned::CpuOperands;
use super::product_forms::quantized;
use crate::error::Result;
use crate::form::{Alternative, KernelForm};
use crate::kernel::{Call, Kernel};
use crate::ops::quantized_matmul::{check_weights, result, QuantizedMatMul};
use crate::types::Types;
use crate::value::{alloc_uninit, Array, Value};
use crate::work;

impl HasKernel for QuantizedMatMul {
    fn kernel(&self, operands: &CpuOperands) -> Result<Box<dyn Kernel>> {
        let packed = match (operands.constants.tensor(1), operands.constants.tensor(2)) {
            (Some(w), Some(scales)) => Some(packed(w, scales)?),
            _ => None,
        };
        Ok(Packed::boxed(self, packed))
    }
}

impl Kernel for Packed<QuantizedMatMul, Option<Scaled>> {
    fn is_replaced(&self, input: usize) -> bool {
        self.packed.is_some() && matches!(input, 1 | 2)
    }

    fn form(&self) -> KernelForm {
        let form = |packed: &Scaled| KernelForm::named(format!("int8, {}", packed.form())).packed(packed.bytes());
        KernelForm::of(self.packed.as_ref(), form).with(self.op.epilogue.as_ref())
    }

    fn alternatives(&self, inputs: &Types) -> Vec<Alternative> {
        quantized(inputs, self.packed.as_ref().map_or(0, Scaled::again))
    }

    /// The codes of the left operand, at most of 16 bits and padded, and the numbers of its rows. If `W` is not packed, also
    /// the packed matrix and its columns. A packed matrix may store a code twice.
    fn scratch(&self, inputs: &Types) -> Option<usize> {
        let count = |i: usize| usize::try_from(work::count(inputs.tensor(i).ok()?)?).ok();
        let [a, w] = [count(0)?, count(1)?];
        let w_sizes = inputs.tensor(1).ok()?.sizes()?;
        let [n, k] = w_sizes[..] else { return None };
        let rows = a.checked_div(k)?;
        let left = a.checked_mul(2)?.checked_add(rows.checked_mul(ROW)?)?;
        let columns = n.checked_add(WIDEST)?.checked_mul(COLUMN)?;
        let right = match self.packed {
            Some(_) => 0,
            None => w.checked_add(WIDEST.checked_mul(k.checked_add(PADDED)?)?)?.checked_mul(2)?.checked_add(k)?,
        };
        left.checked_add(columns)?.checked_add(right)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (a, w) = (call.tensor(0)?, call.tensor(1)?);
        let dims = result(a.dims(), w.dims())?;
        let made;
        let packed = match self.packed.as_ref() {
            Some(packed) => packed,
            None => {
                made = packed(w, call.tensor(2)?)?;
                &made
            }
        };
        let out = with_finish(self.op.epilogue.as_ref(), call, &dims, |finish| {
            let (a, out) = (a.read::<f32>()?, alloc_uninit(&dims)?);
            Array::new(out.overwrite(|out| multiply_rows(Isa::get(), call.threads, a, packed, out, finish)), &dims)
        })?;
        Ok(vec![out.into()])
    }
}

/// The most columns of a panel, and the most codes that pad a row.
const WIDEST: usize = 64;
const PADDED: usize = 64;
/// The bytes for a row besides its codes: the padding, two zero points and two scales.
const ROW: usize = 2 * PADDED + 16;
/// The bytes for a column: start value, scale and sum.
const COLUMN: usize = 16;

/// Packs `W` with its scales.
fn packed(w: &Array, scales: &Array) -> Result<Scaled> {
    check_weights(w.dims(), Some(scales.dims()))?;
    let (n, k) = (w.dims()[0], w.dims()[1]);
    let matrix = Matrix { bits: w.bits::<u8>()?, signed: true, zeros: &[0], row: 1, column: k };
    Ok(pack_scaled(Isa::get(), k, n, &matrix, scales.read()?))
}

#[cfg(test)]
mod tests {
    use candle_plan_descriptors::program::{Instruction, Program, Unary};

    use super::*;
    use crate::testing::{run, tensor};

    fn op() -> QuantizedMatMul {
        QuantizedMatMul { epilogue: None }
    }

    /// The rows range from 0 to 255 and from -255 to 0, so whole numbers are exact.
    #[test]
    fn rows_of_any_rank_are_quantized_and_multiplied() {
        let w = Some(tensor(&[1i8, 2, 3, -4, 5, -128], &[2, 3]));
        let scales = Some(tensor(&[0.5f32, 2.0], &[2]));
        for (dims, result) in [(&[3][..], &[2][..]), (&[1, 3], &[1, 2]), (&[1, 1, 3], &[1, 1, 2])] {
            for (row, expected) in
                [([255f32, 0.0, 10.0], [142.5f32, -4600.0]), ([0.0, -255.0, -3.0], [-259.5, -1782.0])]
            {
                let y = run(&op(), &[Some(tensor(&row, dims)), w.clone(), scales.clone()]).unwrap();
                let y = y.tensor().unwrap();
                assert_eq!((y.dims(), y.read::<f32>().unwrap()), (result, &expected[..]));
            }
        }
        let y = run(&op(), &[Some(tensor::<f32>(&[], &[2, 0, 3])), w, scales]).unwrap();
        assert_eq!(y.tensor().unwrap().dims(), [2, 0, 2]);
        let empty =
            [Some(tensor::<f32>(&[], &[2, 0])), Some(tensor::<i8>(&[], &[3, 0])), Some(tensor(&[1f32; 3], &[3]))];
        assert_eq!(run(&op(), &empty).unwrap().tensor().unwrap().read::<f32>().unwrap(), &[0f32; 6]);
    }

    #[test]
    fn an_epilogue_finishes_the_result() {
        let epilogue = Some(Program { code: vec![Instruction::Unary(Unary::Relu)] });
        let a = Some(tensor(&[-255f32, 255.0], &[2, 1]));
        let inputs = [a, Some(tensor(&[1i8; 3], &[3, 1])), Some(tensor(&[1f32; 3], &[3]))];
        let y = run(&QuantizedMatMul { epilogue }, &inputs).unwrap();
        assert_eq!(y.tensor().unwrap().read::<f32>().unwrap(), &[0f32, 0.0, 0.0, 255.0, 255.0, 255.0]);
    }

    #[test]
    fn wrong_shapes_and_types_are_refused() {
        let f = |dims: &[usize]| Some(tensor(&vec![1f32; dims.iter().product()], dims));
        let c = |dims: &[usize]| Some(tensor(&vec![1i8; dims.iter().product()], dims));
        for (inputs, expected) in [
            ([f(&[2, 3]), c(&[3, 2]), f(&[3])], "its last size must be 2"),
            ([f(&[]), c(&[3, 2]), f(&[3])], "its last size must be 2"),
            ([f(&[2, 3]), c(&[3]), f(&[3])], "W has shape [3]; it must be a matrix"),
            ([f(&[2, 3]), c(&[3, 3]), f(&[2])], "the scale has shape [2]; it must have 3 elements"),
            ([f(&[2, 3]), c(&[3, 3]), f(&[])], "the scale has shape []; it must have 3 elements"),
            ([f(&[0, 65537]), c(&[0, 65537]), f(&[0])], "at most 65536 columns"),
            ([f(&[2, 3]), f(&[3, 3]), f(&[3])], "W"),
            ([c(&[2, 3]), c(&[3, 3]), f(&[3])], "A"),
        ] {
            let error = run(&op(), &inputs).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
