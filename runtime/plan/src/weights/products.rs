//! Products whose weights stay quantized, as a GGUF file has them.

use std::collections::HashSet;

use candle_core::quantized::{GgmlDType, QTensor};
use candle_plan_descriptors::program::{Binary, Instruction, Operand, Program};
use half::f16;

use crate::dtype::DType;
use crate::error::Result;
use crate::ids::{ConstantId, ValueId};
use crate::ops::matmul_nbits::MatMulNBits;
use crate::ops::Op;
use crate::plan::{Block, Constant, ConstantValue, Plan, Step, ValueInfo};
use crate::types::{TensorType, Type};
use crate::value::{with_capacity, Array, Value};

/// The codes of a block of `Q4_0` and of `Q8_0`, which have one scale.
const BLOCK: usize = 32;
/// The bytes of the scale, a float16, in front of the codes.
const SCALE: usize = 2;

/// Replaces the products that read a weight by products with the codes of `tensor`, and returns whether it did: the tensor
/// is of the type `Q4_0` or `Q8_0`, and all readers of the weight are products with its transposed matrix. `tensor` has
/// the shape of the weight, and the plan is [verified](crate::verify).
///
/// # Errors
/// The host lacks memory for the codes.
pub fn keep(tensor: &QTensor, weight: ConstantId, plan: &mut Plan, constants: &mut Vec<Value>) -> Result<bool> {
    let (Some(bits), &[n, k]) = (bits_of(tensor.dtype()), tensor.shape().dims()) else { return Ok(false) };
    let is_in_blocks = n > 0 && k > 0 && k % BLOCK == 0;
    let Some(products) = products(&plan.main, weight).filter(|_| is_in_blocks) else { return Ok(false) };
    let stored = tensor.data()?;
    let added = repacked(&stored, bits, n, k)?.map(|array| add(array, plan, constants));
    for (at, epilogue) in products {
        let step = &mut plan.main.steps[at];
        step.op = Op::MatMulNBits(MatMulNBits { k, n, bits, block: BLOCK, epilogue });
        let rest = step.inputs.split_off(step.inputs.len().min(2));
        step.inputs.truncate(1);
        step.inputs.extend(added.map(Some));
        if !rest.is_empty() {
            step.inputs.push(None); // the zero points
            step.inputs.extend(rest);
        }
    }
    Ok(true)
}

/// The bits of a code, for the types whose elements are `(code − 2^(bits − 1)) · scale`.
fn bits_of(kind: GgmlDType) -> Option<usize> {
    match kind {
        GgmlDType::Q4_0 => Some(4),
        GgmlDType::Q8_0 => Some(8),
        _ => None,
    }
}

/// The steps that read a weight, with their epilogues for products with codes; `None` if a reader is no such product.
fn products(main: &Block, weight: ConstantId) -> Option<Vec<(usize, Option<Program>)>> {
    let values: HashSet<ValueId> = stored(main, weight).collect();
    let is_weight = |id: &ValueId| values.contains(id);
    if main.outputs.iter().any(is_weight) || main.steps.iter().any(|step| is_read_inside(step, weight)) {
        return None;
    }
    let reads = |step: &Step| step.inputs.iter().flatten().any(is_weight);
    let mut found = Vec::new();
    for (at, step) in main.steps.iter().enumerate().filter(|(_, step)| reads(step)) {
        let is_matrix = |(i, id): (usize, &Option<ValueId>)| id.as_ref().is_some_and(is_weight) == (i == 1);
        let kind = step.inputs.first().copied().flatten().map(|id| &main.values[id.at()].kind)?;
        if !step.inputs.iter().enumerate().all(is_matrix) {
            return None;
        }
        found.push((at, epilogue(step, kind.tensor().ok()?.dtype)?));
    }
    Some(found)
}

/// The values of a block that hold a constant.
fn stored(block: &Block, constant: ConstantId) -> impl Iterator<Item = ValueId> + '_ {
    block.constants.iter().filter(move |entry| entry.constant == constant).map(|entry| entry.value)
}

/// Whether a nested block of a step has a constant.
fn is_read_inside(step: &Step, constant: ConstantId) -> bool {
    let has = |block: &&Block| stored(block, constant).next().is_some();
    let nested = |block: &&Block| block.steps.iter().any(|step| is_read_inside(step, constant));
    step.op.blocks().iter().any(|block| has(block) || nested(block))
}

/// The epilogue of a product with codes that computes a step: the sum with the bias comes first. `None` if the step is no
/// product with a transposed matrix, or its result is not of a type that such an epilogue finishes.
fn epilogue(step: &Step, dtype: DType) -> Option<Option<Program>> {
    let (given, is_gemm) = match &step.op {
        Op::MatMul(op) if !op.trans_a && op.trans_b => (&op.epilogue, false),
        Op::Gemm(op) if !op.trans_a && op.trans_b && op.alpha == 1.0 && op.beta == 1.0 => (&op.epilogue, true),
        _ => return None,
    };
    let mut code = Vec::new();
    if is_gemm && step.inputs.get(2).is_some_and(Option::is_some) {
        code.push(Instruction::Binary(Binary::Add, Operand::Input(4)));
    }
    if let Some(program) = given {
        code.extend(program.clone().with_inputs(|input| if input < 2 { input } else { input + 2 }).code);
    }
    let is_kept = match dtype {
        DType::Float32 => code.len() <= Program::MAX_LENGTH,
        DType::Float16 | DType::Bfloat16 => code.is_empty(),
        _ => false,
    };
    is_kept.then(|| Some(Program { code }).filter(|program| !program.is_empty()))
}

/// The codes `[n, blocks, bytes]` and the scales `[n, blocks]` of rows of blocks, as a [`MatMulNBits`] reads them.
fn repacked(stored: &[u8], bits: usize, n: usize, k: usize) -> Result<[Array; 2]> {
    let (blocks, bytes) = (k / BLOCK, BLOCK * bits / 8);
    let mut codes = with_capacity(n * blocks * bytes)?;
    let mut scales = with_capacity(n * blocks)?;
    for block in stored.chunks_exact(SCALE + bytes) {
        let (scale, given) = block.split_at(SCALE);
        scales.push(f16::from_ne_bytes([scale[0], scale[1]]).to_f32());
        match bits {
            4 => codes.extend((0..bytes).map(|at| four_bits(given, 2 * at) | four_bits(given, 2 * at + 1) << 4)),
            _ => codes.extend(given.iter().map(|code| code ^ 0x80)),
        }
    }
    Ok([Array::new::<u8>(codes, &[n, blocks, bytes])?, Array::new::<f32>(scales, &[n, blocks])?])
}

/// A code of a block of `Q4_0`: the low bits of the bytes hold the first half of the codes.
fn four_bits(given: &[u8], at: usize) -> u8 {
    match at.checked_sub(given.len()) {
        None => given[at] & 15,
        Some(at) => given[at] >> 4,
    }
}

/// Adds a constant to the plan, and returns its value.
fn add(array: Array, plan: &mut Plan, constants: &mut Vec<Value>) -> ValueId {
    let kind = TensorType::sized(array.dtype(), array.dims());
    let constant = ConstantId(constants.len() as u32);
    let value = ValueId(plan.main.values.len() as u32);
    constants.push(array.into());
    plan.constants.push(Constant::Tensor(kind.clone()));
    plan.main.values.push(ValueInfo { name: String::new(), kind: Type::Tensor(kind) });
    plan.main.constants.push(ConstantValue { value, constant });
    value
}
