//! Programs of elementwise functions on `f32`, for fused elementwise steps and for the epilogues of convolutions and
//! matrix products.
//!
//! A program rewrites one value, the accumulator, instruction by instruction. Operands are the step's inputs; they
//! broadcast to the shape of the result by NumPy's rules.

mod code;
mod function;
mod text;

pub use code::{Instruction, Invalid, Operand, Program, Start};
pub use function::{Binary, Unary};
