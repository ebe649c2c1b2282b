//! The kinds of recurrent layers, and the activation functions of their gates.

mod activation;
mod cell;

pub use activation::Activation;
pub use cell::Cell;
