//! Epilogues: programs that finish an operator's result, run by run, while it is in the cache.

use candle_plan_descriptors::program::{Binary, Instruction, Operand, Program, Start, Unary};

use crate::bail;
use crate::dtype::DType;
use crate::error::{Error, Result};
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
