//! Dequantizes and widens constants when a plan is loaded: kernels can pack the numbers, and no run computes them again.

use candle_plan_kernels::threads::Threads;

use crate::dtype::DType;
use crate::error::Result;
use crate::kernel::{Call, Input, Kernel, NoBlocks};
use crate::ops::Op;
use crate::plan::{Block, ConstantId, ConstantValue, Step, ValueId};
use crate::value::{catch_out_of_memory, Value};

/// Makes the results of every DequantizeLinear of constants in a block constants, and of every Cast of constants of 16 bits
/// to `float32`, without those of nested blocks. A step that fails stays a step, so that a run reports the error.
pub(super) fn dequantize(block: &mut Block, constants: &mut Vec<Value>) {
    let mut constant_of = vec![None; block.values.len()];
    for entry in &block.constants {
        constant_of[entry.value.at()] = Some(entry.constant);
    }
    for step in &block.steps {
        let [Some(output)] = &step.outputs[..] else { continue };
        let op: &dyn Kernel = match &step.op {
            Op::DequantizeLinear(op) => op,
            Op::Cast(op) if op.to == DType::Float32 && reads_half(step, block) => op,
            _ => continue,
        };
        if let Some(Ok(value)) = inputs(step, &constant_of, constants).map(|inputs| numbers(op, inputs)) {
            let constant = ConstantId(constants.len() as u32);
            constants.push(value);
            block.constants.push(ConstantValue { value: *output, constant });
        }
    }
}

/// Whether the first input of a step is a tensor of floats of 16 bits.
fn reads_half(step: &Step, block: &Block) -> bool {
    let kind = step.inputs.first().copied().flatten().map(|id| &block.values[id.at()].kind);
    kind.and_then(|kind| kind.tensor().ok()).is_some_and(|x| matches!(x.dtype, DType::Float16 | DType::Bfloat16))
}

/// Returns the inputs of a step, if all of them are constants.
pub(super) fn inputs<'a>(
    step: &Step,
    constant_of: &[Option<ConstantId>],
    constants: &'a [Value],
) -> Option<Vec<Input<'a>>> {
    let input = |id: &Option<ValueId>| match id {
        Some(id) => constants.get(constant_of[id.at()]?.at()).map(Input::Shared),
        None => Some(Input::Absent),
    };
    step.inputs.iter().map(input).collect()
}

fn numbers(op: &dyn Kernel, mut inputs: Vec<Input>) -> Result<Value> {
    let mut call = Call { inputs: &mut inputs, outputs: 1, threads: &Threads::serial(), blocks: &NoBlocks };
    let mut found = catch_out_of_memory(|| op.run(&mut call))?;
    Ok(found.swap_remove(0))
}
