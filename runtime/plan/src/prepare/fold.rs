//! Computes what steps make of weights alone, when a plan is loaded. No pass has transposed, scaled or joined the weights
//! that a session may replace, and a run need not do it each time.

use candle_plan_kernels::blocking::Blocking;
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::threads::Threads;

use super::dequantize::inputs;
use crate::cpu::{self, CpuOperands};
use crate::dtype::DType;
use crate::error::Result;
use crate::kernel::{Call, Constants, Input, Memory, NoBlocks};
use crate::plan::{Block, ConstantId, ConstantValue, Step, ValueId};
use crate::types::Type;
use crate::value::{catch_out_of_memory, Value};

/// The most bytes of a result that has more bytes than the inputs together.
const SMALL: usize = 64 << 10;

/// Makes the results of steps constants, if their inputs are constants, without the steps of nested blocks. A step that
/// fails stays a step, so that a run reports the error.
pub(super) fn fold(block: &mut Block, constants: &mut Vec<Value>) {
    let mut constant_of = vec![None; block.values.len()];
    for entry in &block.constants {
        constant_of[entry.value.at()] = Some(entry.constant);
    }
    for step in block.steps.iter().filter(|step| step.op.operator().is_foldable()) {
        let [Some(output)] = step.outputs[..] else { continue };
        let kind = |id: ValueId| &block.values[id.at()].kind;
        let Some(given) = inputs(step, &constant_of, constants) else { continue };
        let read: usize = step.inputs.iter().flatten().filter_map(|id| bytes(kind(*id))).sum();
        if given.is_empty() || bytes(kind(output)).is_none_or(|made| made > read.max(SMALL)) {
            continue;
        }
        let types: Vec<Option<&Type>> = step.inputs.iter().map(|id| id.map(kind)).collect();
        let Ok(value) = result(step, given, &types) else { continue };
        let constant = ConstantId(constants.len() as u32);
        constants.push(value);
        constant_of[output.at()] = Some(constant);
        block.constants.push(ConstantValue { value: output, constant });
    }
}

/// The bytes of a tensor of numbers; `None` if a size is unknown.
fn bytes(kind: &Type) -> Option<usize> {
    let tensor = kind.tensor().ok().filter(|tensor| tensor.dtype != DType::String)?;
    let count = tensor.sizes()?.iter().try_fold(1usize, |count, &size| count.checked_mul(size))?;
    count.checked_mul(tensor.dtype.width().ok()?)
}

fn result(step: &Step, mut inputs: Vec<Input>, types: &[Option<&Type>]) -> Result<Value> {
    let values = vec![None; types.len()];
    let constants = Constants { values: &values, types };
    let operands = CpuOperands { constants, memory: Memory::Low, blocking: Blocking::largest(Isa::get()) };
    let kernel = cpu::kernel(&step.op, &operands)?;
    let mut call = Call { inputs: &mut inputs, outputs: 1, threads: &Threads::serial(), blocks: &NoBlocks };
    let mut found = catch_out_of_memory(|| kernel.run(&mut call))?;
    Ok(found.swap_remove(0))
}
