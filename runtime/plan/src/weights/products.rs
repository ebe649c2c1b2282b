//! Products whose weights stay quantized, as a GGUF file has them.

use std::collections::HashSet;

use candle_core::quantized::QTensor;
use candle_plan_descriptors::program::{Binary, Instruction, Operand, Program};

use super::blocks::{Codes, Format};
use crate::dtype::DType;
use crate::error::Result;
use crate::ids::{ConstantId, ValueId};
use crate::ops::matmul_nbits::MatMulNBits;
use crate::ops::Op;
use crate::plan::{Block, Constant, ConstantValue, Plan, Step, ValueInfo};
use crate::types::{TensorType, Type};
use crate::value::{with_capacity, Array, Value};

/// Replaces the products that read a weight by products with the codes of `tensor`, and returns whether it did: the tensor
/// has a [format](Format::of) of codes, and all readers of the weight are products with its transposed matrix. `tensor` has
/// the shape of the weight, and the plan is [verified](crate::verify).
///
/// # Errors
/// The host lacks memory for the codes.
pub fn keep(tensor: &QTensor, weight: ConstantId, plan: &mut Plan, constants: &mut Vec<Value>) -> Result<bool> {
    let Some((format, n, k)) = matrix(tensor) else { return Ok(false) };
    let Some(products) = products(&plan.main, weight) else { return Ok(false) };
    let arrays = repacked(&tensor.data()?, &format, n, k)?;
    let added: Vec<_> = arrays.into_iter().map(|array| Some(add(array, plan, constants))).collect();
    for (at, epilogue) in products {
        let step = &mut plan.main.steps[at];
        let (bits, block) = (format.bits, format.part);
        step.op = Op::MatMulNBits(MatMulNBits { k, n, bits, block, rounds_a: false, epilogue });
        let rest = step.inputs.split_off(step.inputs.len().min(2));
        step.inputs.truncate(1);
        step.inputs.extend_from_slice(&added);
        if !rest.is_empty() {
            step.inputs.resize(4, None); // without minima, there are no zero points
            step.inputs.extend(rest);
        }
    }
    Ok(true)
}

/// The format of a matrix `[n, k]` whose rows consist of whole blocks, with `n` and `k`; `None` for other tensors.
fn matrix(tensor: &QTensor) -> Option<(Format, usize, usize)> {
    let (format, &[n, k]) = (Format::of(tensor.dtype())?, tensor.shape().dims()) else { return None };
    (n > 0 && k > 0 && k % format.elements == 0).then_some((format, n, k))
}

/// The bits of a code, and the constants of a [`MatMulNBits`] with the transposed matrix `tensor`; `None` if the tensor has
/// no [format](Format::of) of codes.
///
/// # Errors
/// The host lacks memory for the codes.
pub fn codes(tensor: &QTensor) -> Result<Option<(usize, Vec<Array>)>> {
    let Some((format, n, k)) = matrix(tensor) else { return Ok(None) };
    Ok(Some((format.bits, repacked(&tensor.data()?, &format, n, k)?)))
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

/// The constants of a [`MatMulNBits`]: the codes `[n, parts, bytes]` and the scales `[n, parts]`. A type with minima also has
/// zero points `[n, parts]`. A row has `k` elements.
fn repacked(stored: &[u8], format: &Format, n: usize, k: usize) -> Result<Vec<Array>> {
    let (parts, bytes) = (k / format.part, format.part * format.bits / 8);
    let mut codes = with_capacity(n * parts * bytes)?;
    let mut scales = with_capacity(n * parts)?;
    let mut zeros = with_capacity(if format.has_minima { n * parts } else { 0 })?;
    let mut read = Codes::new();
    for block in stored.chunks_exact(format.bytes) {
        format.read(block, &mut read);
        for (at, part) in read.codes[..format.elements].chunks_exact_mut(format.part).enumerate() {
            let (mut scale, minimum) = (read.scales[at], read.minima[at]);
            if format.has_minima && scale == 0.0 {
                part.fill(0); // all elements are −minimum
                (scale, _) = (minimum, zeros.push(1.0));
            } else if format.has_minima {
                zeros.push(minimum / scale);
            }
            scales.push(scale);
            match format.bits {
                4 => codes.extend(part.chunks_exact(2).map(|pair| pair[0] | pair[1] << 4)),
                _ => codes.extend_from_slice(part),
            }
        }
    }
    let mut arrays = vec![Array::new::<u8>(codes, &[n, parts, bytes])?, Array::new::<f32>(scales, &[n, parts])?];
    if format.has_minima {
        arrays.push(Array::new::<f32>(zeros, &[n, parts])?);
    }
    Ok(arrays)
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
