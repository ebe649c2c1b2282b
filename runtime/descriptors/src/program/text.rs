//! Programs as text: `x0, Mul(·, x1), Tanh`, where `·` is the accumulator, `x1` is input 1 and `s0` is the value in
//! slot 0.

use std::fmt::{Display, Formatter, Result};

use super::{Instruction, Operand, Program};

impl Display for Program {
    fn fmt(&self, f: &mut Formatter) -> Result {
        for (i, instruction) in self.code.iter().enumerate() {
            write!(f, "{}{instruction}", if i > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}

impl Display for Instruction {
    fn fmt(&self, f: &mut Formatter) -> Result {
        match self {
            Instruction::Load(operand) => write!(f, "{operand}"),
            Instruction::Save(slot) => write!(f, "s{slot} = ·"),
            Instruction::Unary(function) => write!(f, "{function:?}"),
            Instruction::Binary(function, operand) => write!(f, "{function:?}(·, {operand})"),
            Instruction::Reverse(function, operand) => write!(f, "{function:?}({operand}, ·)"),
            Instruction::Select(yes, no) => write!(f, "Select(·, {yes}, {no})"),
        }
    }
}

impl Display for Operand {
    fn fmt(&self, f: &mut Formatter) -> Result {
        match self {
            Operand::Input(input) => write!(f, "x{input}"),
            Operand::Constant(value) => write!(f, "{value}"),
            Operand::Saved(slot) => write!(f, "s{slot}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Binary, Unary};

    #[test]
    fn every_instruction_has_words() {
        let code = vec![
            Instruction::Load(Operand::Input(0)),
            Instruction::Save(1),
            Instruction::Unary(Unary::Tanh),
            Instruction::Binary(Binary::Mul, Operand::Saved(1)),
            Instruction::Reverse(Binary::Sub, Operand::Constant(0.5)),
            Instruction::Select(Operand::Input(2), Operand::Constant(-1.0)),
        ];
        let text = Program { code }.to_string();
        assert_eq!(text, "x0, s1 = ·, Tanh, Mul(·, s1), Sub(0.5, ·), Select(·, x2, -1)");
    }
}
