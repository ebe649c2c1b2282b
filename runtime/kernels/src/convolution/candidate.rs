//! Candidates for a convolution: the ways to compute it, with their expected times.

use std::fmt::Debug;

use crate::alternative::Alternative;
use crate::convolution::form::{ImageLayout, PackedConv};
use crate::form::least;

/// A way to compute a convolution.
pub(super) trait Candidate: Debug {
    /// The name of its form.
    fn name(&self) -> String;

    /// The layouts of the image and of the result outside the step.
    fn layouts(&self) -> [ImageLayout; 2];

    /// The time for one image, in multiply-adds of a vector, with the conversions within the step.
    fn time(&self) -> f64;

    /// The time that a result in blocks saves for one image compared with images in rows, if the form states it.
    fn saving(&self) -> Option<f64>;

    /// Packs the weights.
    ///
    /// # Panics
    /// `w` does not have the shape of the weights.
    fn pack(&self, w: &[f32]) -> Box<dyn PackedConv>;
}

/// Returns the fastest candidate. Of equally fast ones, it is the first.
pub(super) fn fastest(candidates: Vec<Box<dyn Candidate>>) -> Option<Box<dyn Candidate>> {
    least(candidates.into_iter(), |candidate| candidate.time())
}

/// Lists candidates. Of candidates with one name and one layout of the result, it lists the fastest.
pub(super) fn listed(candidates: impl IntoIterator<Item = Box<dyn Candidate>>) -> Vec<Alternative> {
    let mut listed: Vec<Alternative> = Vec::new();
    for each in candidates {
        let in_blocks = each.layouts()[1] == ImageLayout::Blocks;
        let each = Alternative { form: each.name(), in_blocks, time: each.time(), saving: each.saving(), part: None };
        match listed.iter_mut().find(|other| other.form == each.form && other.in_blocks == each.in_blocks) {
            Some(other) if each.time < other.time => *other = each,
            Some(_) => {}
            None => listed.push(each),
        }
    }
    listed
}
