//! Epilogues on the CPU, as functions that kernels call.

use candle_plan_kernels::gemm::Finish;
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::program::{unary_in_place, Argument, Bound, Instruction, Program, Unary};
use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::kernel::Call;

/// Calls `compute` with the function that applies the epilogue to a run of a result of shape `result`; with `None` if
/// there is no epilogue.
///
/// # Errors
/// An operand is missing, is not `float32`, or does not broadcast to the result; or `compute` fails.
pub(super) fn with_finish<R>(
    program: Option<&Program>,
    call: &Call,
    result: &[usize],
    compute: impl FnOnce(Option<Finish>) -> Result<R>,
) -> Result<R> {
    let Some(program) = program.filter(|program| !program.is_empty()) else { return compute(None) };
    // A limit reads no operand, so there is nothing to bind.
    if let [Instruction::Unary(function @ (Unary::Relu | Unary::Clip { .. }))] = program.code[..] {
        return compute(Some(&|run: &mut [f32], _| unary_in_place(Isa::get(), function, run)));
    }
    let mut arguments = SmallVec::<[Argument; 4]>::new();
    for i in program.inputs() {
        if arguments.len() <= i && i < call.len() {
            arguments.resize(i + 1, Argument::Absent);
        }
        let argument = arguments.get_mut(i).ok_or_else(|| Error::op(format!("input {i} is missing")))?;
        *argument = Argument::Tensor(call.read(i)?, call.tensor(i)?.dims());
    }
    let bound = Bound::new(program, result, &arguments).map_err(|error| Error::op(format!("epilogue: {error}")))?;
    compute(Some(&|run: &mut [f32], offset: usize| bound.run(Isa::get(), offset, run)))
}
