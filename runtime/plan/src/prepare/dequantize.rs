//! Dequantizes constants when a plan is loaded: kernels can pack the numbers, and no run computes them again.

use candle_plan_kernels::threads::Threads;

use crate::error::Result;
use crate::kernel::{Call, Input, Kernel, NoBlocks};
use crate::ops::quantize::DequantizeLinear;
use crate::ops::Op;
use crate::plan::{Block, ConstantId, ConstantValue, Step, ValueId};
use crate::value::{catch_out_of_memory, Value};

/// Makes the results of every DequantizeLinear of constants in a block constants, without those of nested blocks. A step
/// that fails stays a step, so that a run reports the error.
pub(super) fn dequantize(block: &mut Block, constants: &mut Vec<Value>) {
    let mut constant_of = vec![None; block.values.len()];
    for entry in &block.constants {
        constant_of[entry.value.at()] = Some(entry.constant);
    }
    for step in &block.steps {
        let (Op::DequantizeLinear(op), [Some(output)]) = (&step.op, &step.outputs[..]) else { continue };
        if let Some(Ok(value)) = inputs(step, &constant_of, constants).map(|inputs| numbers(op, inputs)) {
            let constant = ConstantId(constants.len() as u32);
            constants.push(value);
            block.constants.push(ConstantValue { value: *output, constant });
        }
    }
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

fn numbers(op: &DequantizeLinear, mut inputs: Vec<Input>) -> Result<Value> {
    let mut call = Call { inputs: &mut inputs, outputs: 1, threads: &Threads::serial(), blocks: &NoBlocks };
    let mut found = catch_out_of_memory(|| op.run(&mut call))?;
    Ok(found.swap_remove(0))
}
