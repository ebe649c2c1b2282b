//! The functions of rows that this module computes.

/// The function to compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// `eˣ / Σ eˣ`
    Softmax,
    /// `x − ln Σ eˣ`
    LogSoftmax,
}
