//! CPU kernels: matrix products with weights of few bits.

use std::borrow::Cow;

use candle_plan_kernels::gemm::Finish;
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::lowbit::{rounded_bytes, LowBitCodes, PackedCodes};
use candle_plan_kernels::products::multiply_low_bit;
use candle_plan_kernels::threads::Threads;
use candle_plan_memory::buffer::collected;

use super::convert::{converted, read_f32, widened_bytes};
use super::finish::with_finish;
use super::packed::{HasKernel, Packed};
use super::planned::CpuOperands;
use super::product_forms::low_bit;
use crate::dtype::DType;
use crate::error::Result;
use crate::form::{Alternative, KernelForm};
use crate::kernel::{Call, Kernel};
use crate::ops::matmul_nbits::MatMulNBits;
use crate::types::Types;
use crate::value::{alloc_uninit, Array, Value};
use crate::work;

impl HasKernel for MatMulNBits {
    fn kernel(&self, operands: &CpuOperands) -> Result<Box<dyn Kernel>> {
        let constants = &operands.constants;
        let zeros = constants.tensor(3);
        let is_constant = zeros.is_some() || constants.types.get(3).copied().flatten().is_none();
        let packed = match (constants.tensor(1), constants.tensor(2)) {
            (Some(b), Some(scales)) if is_constant => Some(self.packed(&Threads::serial(), b, scales, zeros)?),
            _ => None,
        };
        Ok(Packed::boxed(self, packed))
    }
}

/// Whether input `input` belongs to the weights: the codes, the scales or the zero points.
fn is_weight(input: usize) -> bool {
    (1..=3).contains(&input)
}

impl Kernel for Packed<MatMulNBits, Option<PackedCodes>> {
    fn is_replaced(&self, input: usize) -> bool {
        self.packed.is_some() && is_weight(input)
    }

    fn form(&self) -> KernelForm {
        let (op, packed) = (&self.op, self.packed.as_ref());
        let rounded = if op.rounds_a { ", rows in 8 bits where that is faster" } else { "" };
        let name = format!("codes of {} bits in blocks of {}{rounded}", op.bits, op.block);
        KernelForm::named(name).packed(packed.map_or(0, PackedCodes::bytes)).with(op.epilogue.as_ref())
    }

    fn alternatives(&self, inputs: &Types) -> Vec<Alternative> {
        low_bit(inputs, &self.op)
    }

    fn scratch(&self, inputs: &Types) -> Option<usize> {
        let (op, packed) = (&self.op, self.packed.as_ref());
        let bytes = if packed.is_some() { 0 } else { op.packed_bytes() };
        let rounded = if op.rounds_a { op.rounded_bytes(inputs)? } else { 0 };
        widened_bytes(op, inputs, is_weight).map(|widened| widened.saturating_add(bytes).saturating_add(rounded))
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (op, packed) = (&self.op, self.packed.as_ref());
        let a = call.tensor(0)?;
        let dims = op.result(a.dims(), op.n)?;
        let made;
        let packed = match packed {
            Some(packed) => packed,
            None => {
                let (b, scales, zeros) = (call.tensor(1)?, call.tensor(2)?, call.optional_tensor(3)?);
                made = op.packed(call.threads, b, scales, zeros)?;
                &made
            }
        };
        let out = match a.dtype() {
            DType::Float32 => with_finish(op.epilogue.as_ref(), call, &dims, |finish| {
                op.product(call.threads, a.read()?, packed, &dims, finish)
            })?,
            dtype => {
                let out = op.product(call.threads, &read_f32(a)?, packed, &dims, None)?;
                converted(&out, dtype, call.threads)?
            }
        };
        Ok(vec![out.into()])
    }
}

impl MatMulNBits {
    /// Packs the weights.
    fn packed(&self, threads: &Threads, b: &Array, scales: &Array, zeros: Option<&Array>) -> Result<PackedCodes> {
        self.check_weights(Some(b.dims()), Some(scales.dims()), zeros.map(Array::dims))?;
        let (scales, zeros) = (read_f32(scales)?, zeros.map(numbers).transpose()?);
        let MatMulNBits { n, k, bits, block, .. } = *self;
        let codes = LowBitCodes { n, k, bits, block, bytes: b.read()?, scales: &scales, zeros: zeros.as_deref() };
        Ok(PackedCodes::new(Isa::get(), threads, &codes))
    }

    /// An upper bound in bytes on the packed weights and the copies of scales and zero points that packing makes.
    fn packed_bytes(&self) -> usize {
        let columns = self.n.saturating_add(WIDEST);
        let numbers = columns.saturating_mul(self.blocks()).saturating_mul(NUMBERS * size_of::<f32>());
        let codes = columns.saturating_mul(self.blocks()).saturating_mul(self.block).saturating_mul(self.bits) / 8;
        numbers.saturating_add(codes)
    }

    /// An upper bound in bytes on the rows that are rounded to 8 bits. `None` if a size is unknown.
    fn rounded_bytes(&self, inputs: &Types) -> Option<usize> {
        let rows = usize::try_from(work::count(inputs.tensor(0).ok()?)?).ok()?.checked_div(self.k)?;
        Some(rounded_bytes(rows, self.k, self.block))
    }

    /// `A · Wᵀ`, where `a` holds the rows of `A`, and `dims` are the dimensions of the result.
    fn product(
        &self,
        threads: &Threads,
        a: &[f32],
        packed: &PackedCodes,
        dims: &[usize],
        finish: Option<Finish>,
    ) -> Result<Array> {
        let out = alloc_uninit(dims)?;
        let rows = out.len() / self.n;
        Array::new(out.overwrite(|out| multiply_low_bit(threads, self.rounds_a, rows, a, packed, out, finish)), dims)
    }
}

/// The most columns of a panel.
const WIDEST: usize = 64;
/// The lists of scales or zero points that packing makes: each of the two as `float32`, in panels and packed.
const NUMBERS: usize = 6;

/// Zero points, which may be codes.
fn numbers(zeros: &Array) -> Result<Cow<'_, [f32]>> {
    match zeros.dtype() {
        DType::Uint8 => Ok(Cow::Owned(collected(zeros.read::<u8>()?.iter().map(|&code| f32::from(code))))),
        _ => read_f32(zeros),
    }
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;
    use crate::testing::{numbers_of, run, tensor};

    const OP: MatMulNBits = MatMulNBits { k: 18, n: 3, bits: 4, block: 16, rounds_a: false, epilogue: None };

    /// Two rows, three rows of codes of two blocks, scales and zero points.
    fn operands() -> [Array; 4] {
        let list = |dims: &[usize], scale: f64, modulus: usize| {
            let count = dims.iter().product::<usize>();
            let numbers: Vec<f64> = (0..count).map(|i| (i * 7 % modulus) as f64 * scale).collect();
            numbers_of(if scale == 1.0 { DType::Uint8 } else { DType::Float32 }, &numbers, dims)
        };
        [list(&[1, 2, 18], 0.5, 11), list(&[3, 2, 8], 1.0, 251), list(&[3, 2], 0.25, 5), list(&[3, 2], 1.0, 16)]
    }

    /// The product by its definition.
    fn expected(zeros: Option<&[f64]>) -> Vec<f64> {
        let [a, b, scales, _] = operands();
        let (a, b, scales) = (a.read::<f32>().unwrap(), b.read::<u8>().unwrap(), scales.read::<f32>().unwrap());
        let element = |j: usize, k: usize| {
            let code = (b[j * 16 + k / 2] >> (k % 2 * 4)) & 15;
            let block = j * 2 + k / 16;
            (f64::from(code) - zeros.map_or(8.0, |zeros| zeros[block])) * f64::from(scales[block])
        };
        let sum = |i: usize, j: usize| (0..18).map(|k| f64::from(a[i * 18 + k]) * element(j, k)).sum();
        (0..2).flat_map(|i| (0..3).map(move |j| sum(i, j))).collect()
    }

    fn single(values: &[f64]) -> Vec<f32> {
        values.iter().map(|&value| value as f32).collect()
    }

    #[test]
    fn zero_points_are_absent_codes_or_numbers() {
        let [a, b, scales, zeros] = operands().map(|array| Some(array.into()));
        let given: Vec<f64> = (0..6).map(|i| (i * 7 % 16) as f64).collect();
        let floats = Some(tensor(&single(&given), &[3, 2]));
        for (zeros, expected) in [
            (None, expected(None)),
            (zeros, expected(Some(&given))),
            (floats, expected(Some(&given))),
            (Some(tensor(&[0.5f32; 6], &[3, 2])), expected(Some(&[0.5; 6]))),
        ] {
            let y = run(&OP, &[a.clone(), b.clone(), scales.clone(), zeros]).expect("it multiplies");
            let y = y.tensor().expect("a tensor");
            assert_eq!((y.dims(), y.read::<f32>().expect("float32")), (&[1, 2, 3][..], &single(&expected)[..]));
        }
    }

    #[test]
    fn halves_are_rounded_once() {
        let [a, b, scales, _] = operands();
        let half =
            |array: &Array| Some(converted(array, DType::Float16, &Threads::serial()).expect("it rounds").into());
        let y = run(&OP, &[half(&a), Some(b.into()), half(&scales)]).expect("it multiplies");
        let expected: Vec<f16> = expected(None).iter().map(|&value| f16::from_f64(value)).collect();
        assert_eq!(y.tensor().expect("a tensor").read::<f16>().expect("float16"), expected);
    }

    /// The largest magnitude of each block is 127, so whole numbers are exact.
    #[test]
    fn rows_may_be_rounded() {
        let [_, b, scales, zeros] = operands().map(|array| Some(Value::from(array)));
        let numbers: Vec<f32> = (0..36).map(|i| [127.0, -3.0, 64.0][i % 18 % 16 % 3]).collect();
        for rest in [vec![], vec![zeros]] {
            let given = [vec![Some(tensor(&numbers, &[2, 18])), b.clone(), scales.clone()], rest].concat();
            let [exact, rounded] = [false, true].map(|rounds_a| {
                let y = run(&MatMulNBits { rounds_a, ..OP }, &given).expect("it multiplies");
                y.tensor().expect("a tensor").read::<f32>().expect("float32").to_vec()
            });
            assert_eq!(exact, rounded);
        }
    }

    #[test]
    fn older_plans_do_not_round_rows() {
        let older = r#"{"k": 18, "n": 3, "bits": 4, "block": 16, "epilogue": null}"#;
        assert_eq!(serde_json::from_str::<MatMulNBits>(older).expect("a plan's operator"), OP);
    }

    #[test]
    fn other_sizes_are_refused() {
        let [a, b, scales, zeros] = operands().map(|array| Some(Value::from(array)));
        let inputs = [a, b, scales, zeros];
        for (op, message) in [
            (MatMulNBits { k: 19, ..OP }, "its last size must be 19"),
            (MatMulNBits { n: 4, ..OP }, "B has shape [3, 2, 8]; it must be [4, 2, 8]"),
            (MatMulNBits { k: 40, ..OP }, "it must be [3, 3, 8]"),
            (MatMulNBits { bits: 3, ..OP }, "codes of 3 bits"),
            (MatMulNBits { block: 8, ..OP }, "blocks of 8"),
            (MatMulNBits { block: 0, ..OP }, "blocks of 0"),
            (MatMulNBits { k: 0, ..OP }, "rows of 0 codes"),
        ] {
            let error = run(&op, &inputs).unwrap_err().to_string();
            assert!(error.contains(message), "{op:?}: {error}");
        }
        let [a, b, scales, _] = inputs;
        let wrong = run(&OP, &[a, b, scales, Some(tensor(&[1u8; 3], &[3]))]).unwrap_err().to_string();
        assert!(wrong.contains("the zero point has shape [3]; it must be [3, 2]"), "{wrong}");
    }
}
