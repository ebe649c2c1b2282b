//! Epilogues: programs that finish an operator's result, run by run, while it is in the cache.

use candle_plan_kernels::gemm::Finish;
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::program::{unary_in_place, Argument, Binary, Instruction, Operand, Program, Start, Unary};

use smallvec::SmallVec;

use crate::bail;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::Call;
use crate::types::Types;

/// Checks that a step whose result has dtype `dtype` can have this epilogue: the result and all operands must be
/// `float32`.
///
/// # Errors
/// The program is malformed, or a dtype is not `float32`.
pub fn check(program: Option<&Program>, inputs: &Types, dtype: DType) -> Result<()> {
    let Some(program) = program else { return Ok(()) };
    program.check(Start::Result, inputs.len()).map_err(|error| Error::op(format!("epilogue: {error}")))?;
    for input in program.inputs() {
        let operand = inputs.tensor(input)?.dtype;
        if operand != DType::Float32 {
            bail!("epilogue: input {input} is {operand}, not float32");
        }
    }
    if dtype != DType::Float32 {
        bail!("an epilogue needs a float32 result, not {dtype}");
    }
    Ok(())
}

/// The bounds `[min, max]` of a program that only limits a result. NaN must pass, as it does in the program's
/// functions.
pub fn limits(program: Option<&Program>) -> Option<[f32; 2]> {
    match program?.code[..] {
        [Instruction::Unary(Unary::Relu)] => Some([0.0, f32::INFINITY]),
        [Instruction::Unary(Unary::Clip { min, max })] => Some([min, max]),
        _ => None,
    }
}

/// Returns the input that a program adds to the result first, and the rest of the program; `None` if it begins in
/// another way, or the rest reads this input too.
pub fn residual(program: &Program) -> Option<(usize, Program)> {
    let (Instruction::Binary(Binary::Add, Operand::Input(input)), rest) = program.code.split_first()? else {
        return None;
    };
    let rest = Program { code: rest.to_vec() };
    let is_read_once = rest.inputs().all(|other| other != *input);
    is_read_once.then_some((*input, rest))
}

/// Calls `compute` with the function that applies the epilogue to a run of a result of shape `result`; with `None` if
/// there is no epilogue.
///
/// # Errors
/// An operand is missing, is not `float32`, or does not broadcast to the result; or `compute` fails.
pub fn with<R>(
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
    let bound = program.bind(result, &arguments).map_err(|error| Error::op(format!("epilogue: {error}")))?;
    compute(Some(&|run: &mut [f32], offset: usize| bound.run(Isa::get(), offset, run)))
}
