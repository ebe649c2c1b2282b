//! Programs of elementwise functions on `f32`, for fused elementwise steps and for the epilogues of convolutions and
//! matrix products.
//!
//! A program rewrites one value, the accumulator, instruction by instruction; the accumulator stays in registers.
//! Operands are the step's inputs; they broadcast to the shape of the result by NumPy's rules.

mod bind;
mod machine;
mod registers;
mod unary;

pub use bind::{Argument, Bound};
pub use candle_plan_descriptors::program::{Binary, Instruction, Invalid, Operand, Program, Start, Unary};
pub(crate) use unary::floor_mod;
pub use unary::{rewrite_unary, unary, unary_in_place};

#[cfg(test)]
mod tests;
