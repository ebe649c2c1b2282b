//! The sizes of a convolution, and the residues of a transposed one.

mod shape;
mod transposed;

pub use shape::Shape;
pub use transposed::Taps;
