//! The interface of the forms of a product with a matrix of `bf16`.

use super::case::{Halves, RoundedCase};
use super::pack::PackedRounded;
use crate::form::Form;
use crate::threads::Threads;

/// A form of a product with a matrix of `bf16`.
///
/// The forms multiply the same numbers, but round sums differently: the relative error of an addition is at most `2⁻²³`.
pub(crate) trait RoundedForm: Form<RoundedCase> {
    /// Packs a matrix that has the sizes of the case.
    fn pack(&self, case: &RoundedCase, threads: &Threads, matrix: &Halves) -> PackedRounded;
}
