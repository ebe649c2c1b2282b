//! Transposed convolutions. Each residue of the output (its position modulo the stride) is a plain convolution.
//!
//! Output `y` uses tap `i` with input row `(y + before − i·d) / s` if that is an integer. With
//! `r = (y + before) mod s`, these are the taps with `(i·d) mod s = r`: every `s / gcd(s, d)`-th tap, with input rows
//! `d / gcd(s, d)` apart. The outputs of one residue are therefore a convolution with stride 1 over the input, with the
//! taps in reverse. One convolution can compute several residues, as more outputs. Each convolution has the form that the
//! planner of plain convolutions chooses. Their results are moved to their places in the output. Outputs of residues
//! without taps equal the bias.

mod division;
mod packed;
mod part;
mod places;

#[cfg(test)]
mod tests;

pub(super) use division::candidates;
