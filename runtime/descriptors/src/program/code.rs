//! The instructions of a program, and the checks of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::function::{Binary, Unary};

/// A sequence of instructions on the accumulator; the result is the accumulator after the last one.
///
/// The program of an `Elementwise` step starts with [`Instruction::Load`]. For an epilogue, the accumulator starts with
/// the operator's result. Booleans are the numbers 0 and 1; any other number counts as true.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// The instructions, in order.
    pub code: Vec<Instruction>,
}

/// One step of a [`Program`]; `acc` is the accumulator.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum Instruction {
    /// `acc = operand`
    Load(Operand),
    /// `saved[i] = acc`
    Save(u8),
    /// `acc = function(acc)`
    Unary(Unary),
    /// `acc = function(acc, operand)`
    Binary(Binary, Operand),
    /// `acc = function(operand, acc)`
    Reverse(Binary, Operand),
    /// `acc = first operand if acc is true, else second operand`
    Select(Operand, Operand),
}

/// The second operand of an instruction. The first is the accumulator.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum Operand {
    /// The step's input with this index.
    Input(usize),
    /// A finite number.
    Constant(f32),
    /// The value that [`Instruction::Save`] saved in this slot.
    Saved(u8),
}

/// The contents of the accumulator before the first instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// Nothing: the program must start with [`Instruction::Load`].
    Empty,
    /// The result of the operator that has the program as its epilogue.
    Result,
}

/// Why a program cannot run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// The program is longer than [`Program::MAX_LENGTH`].
    #[error("the program has {0} instructions; at most {max} are allowed", max = Program::MAX_LENGTH)]
    Length(usize),
    /// Instruction 0 of a program without a start value is not `Load`.
    #[error("the program does not begin with Load")]
    NoLoad,
    /// An operand names an input that the step does not have.
    #[error("instruction {at} reads input {input}, and the step has {inputs} inputs")]
    Input {
        /// The instruction.
        at: usize,
        /// The input it reads.
        input: usize,
        /// The number of inputs.
        inputs: usize,
    },
    /// An operand names a slot that holds no value, or a slot that does not exist.
    #[error("instruction {at} reads or writes slot {slot}; slots are 0 to {last}, saved before they are read", last = Program::SLOTS - 1)]
    Slot {
        /// The instruction.
        at: usize,
        /// The slot.
        slot: u8,
    },
    /// A constant or parameter is infinite or NaN.
    #[error("instruction {at} has a parameter that is not finite")]
    NotFinite {
        /// The instruction.
        at: usize,
    },
    /// The function does not support `f32`.
    #[error("instruction {at}: {function} is not defined for float32")]
    Function {
        /// The instruction.
        at: usize,
        /// The function's name.
        function: String,
    },
    /// An operand is an input that is absent in this execution.
    #[error("input {0} is absent")]
    Absent(usize),
    /// The number of an operand's elements does not match its shape.
    #[error("{0} elements do not fill an operand of shape {1:?}")]
    Elements(usize, Vec<usize>),
    /// An operand's shape does not broadcast to the result's.
    #[error("an operand of shape {operand:?} does not broadcast to {result:?}")]
    Broadcast {
        /// The operand's dimensions.
        operand: Vec<usize>,
        /// The result's dimensions.
        result: Vec<usize>,
    },
}

impl Program {
    /// The maximum number of instructions.
    pub const MAX_LENGTH: usize = 256;
    /// The number of slots for [`Instruction::Save`].
    pub const SLOTS: u8 = 16;

    /// Whether there are no instructions.
    pub fn is_empty(&self) -> bool {
        self.code.is_empty()
    }

    /// Checks that the program can run in a step with `inputs` inputs. Programs are untrusted.
    ///
    /// # Errors
    /// The first violation found.
    pub fn check(&self, start: Start, inputs: usize) -> Result<(), Invalid> {
        if self.code.len() > Program::MAX_LENGTH {
            return Err(Invalid::Length(self.code.len()));
        }
        if start == Start::Empty && !matches!(self.code.first(), Some(Instruction::Load(_))) {
            return Err(Invalid::NoLoad);
        }
        let mut saved = [false; Program::SLOTS as usize];
        for (at, instruction) in self.code.iter().enumerate() {
            instruction.check_function(at)?;
            for operand in instruction.operands() {
                operand.check(at, inputs, &saved)?;
            }
            if let Instruction::Save(slot) = *instruction {
                *saved.get_mut(usize::from(slot)).ok_or(Invalid::Slot { at, slot })? = true;
            }
        }
        Ok(())
    }

    /// The indices of the inputs that the program reads, with repetitions.
    pub fn inputs(&self) -> impl Iterator<Item = usize> + '_ {
        self.code.iter().flat_map(Instruction::operands).filter_map(|operand| match operand {
            Operand::Input(input) => Some(input),
            _ => None,
        })
    }

    /// Replaces the index `i` of every input by `place(i)`.
    pub fn with_inputs(mut self, place: impl Fn(usize) -> usize) -> Program {
        for operand in self.code.iter_mut().flat_map(Instruction::operands_mut) {
            if let Operand::Input(input) = operand {
                *input = place(*input);
            }
        }
        self
    }
}

impl Instruction {
    /// The operands besides the accumulator.
    pub fn operands(&self) -> impl Iterator<Item = Operand> {
        let (first, second) = match *self {
            Instruction::Load(a) | Instruction::Binary(_, a) | Instruction::Reverse(_, a) => (Some(a), None),
            Instruction::Select(a, b) => (Some(a), Some(b)),
            Instruction::Save(_) | Instruction::Unary(_) => (None, None),
        };
        first.into_iter().chain(second)
    }

    fn operands_mut(&mut self) -> impl Iterator<Item = &mut Operand> {
        let (first, second) = match self {
            Instruction::Load(a) | Instruction::Binary(_, a) | Instruction::Reverse(_, a) => (Some(a), None),
            Instruction::Select(a, b) => (Some(a), Some(b)),
            Instruction::Save(_) | Instruction::Unary(_) => (None, None),
        };
        first.into_iter().chain(second)
    }

    fn check_function(&self, at: usize) -> Result<(), Invalid> {
        let (defined, function) = match *self {
            Instruction::Unary(function) if !function.has_finite_parameters() => return Err(Invalid::NotFinite { at }),
            Instruction::Unary(function) => (function.takes_f32(), format!("{function:?}")),
            Instruction::Binary(function, _) | Instruction::Reverse(function, _) => {
                (function.takes_f32(), format!("{function:?}"))
            }
            _ => return Ok(()),
        };
        if defined {
            Ok(())
        } else {
            Err(Invalid::Function { at, function })
        }
    }
}

impl Operand {
    fn check(self, at: usize, inputs: usize, saved: &[bool]) -> Result<(), Invalid> {
        match self {
            Operand::Input(input) if input >= inputs => Err(Invalid::Input { at, input, inputs }),
            Operand::Saved(slot) if saved.get(usize::from(slot)) != Some(&true) => Err(Invalid::Slot { at, slot }),
            Operand::Constant(value) if !value.is_finite() => Err(Invalid::NotFinite { at }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Instruction::{Load, Save, Select};
    use Operand::{Constant, Input, Saved};

    #[test]
    fn a_program_that_cannot_run_is_refused() {
        let not_finite = Instruction::Unary(Unary::Elu { alpha: f32::NAN });
        let cases: &[(&[Instruction], Start, Option<Invalid>)] = &[
            (&[Load(Input(0)), Save(1), Select(Saved(1), Constant(1.0))], Start::Empty, None),
            (&[], Start::Result, None),
            (&[], Start::Empty, Some(Invalid::NoLoad)),
            (&[Save(0)], Start::Empty, Some(Invalid::NoLoad)),
            (&[Load(Input(2))], Start::Empty, Some(Invalid::Input { at: 0, input: 2, inputs: 2 })),
            (&[Save(16)], Start::Result, Some(Invalid::Slot { at: 0, slot: 16 })),
            (&[Load(Saved(0)), Save(0)], Start::Result, Some(Invalid::Slot { at: 0, slot: 0 })),
            (&[Save(0), Load(Constant(f32::INFINITY))], Start::Result, Some(Invalid::NotFinite { at: 1 })),
            (&[not_finite], Start::Result, Some(Invalid::NotFinite { at: 0 })),
            (&[Save(0); 257], Start::Result, Some(Invalid::Length(257))),
            (
                &[Instruction::Unary(Unary::BitwiseNot)],
                Start::Result,
                Some(Invalid::Function { at: 0, function: "BitwiseNot".into() }),
            ),
        ];
        for (code, start, expected) in cases {
            let program = Program { code: code.to_vec() };
            assert_eq!(program.check(*start, 2).err(), *expected, "{code:?}");
        }
    }
}
