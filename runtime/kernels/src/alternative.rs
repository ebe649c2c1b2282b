//! The forms of a computation that a planner compared.

use serde::Serialize;

/// A form of a step that a planner compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Alternative {
    /// The form, in words.
    pub form: String,
    /// Whether it reads and writes images in blocks of channels.
    pub in_blocks: bool,
    /// The expected time for one image or one matrix product, in multiply-adds of a vector.
    pub time: f64,
    /// The time that blocks save compared with rows, if the form states it. Otherwise, it is the difference of the
    /// times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saving: Option<f64>,
    /// If the step computes several operators, the one that this form computes, counted from 0. Otherwise, or if the form
    /// computes all of them, `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<usize>,
}

impl Alternative {
    /// The alternatives of these names and times, for values in the layout of the plan.
    pub fn all<N: Into<String>>(found: impl IntoIterator<Item = (N, f64)>) -> Vec<Alternative> {
        let alternative = |(form, time): (N, f64)| Alternative {
            form: form.into(),
            in_blocks: false,
            time,
            saving: None,
            part: None,
        };
        found.into_iter().map(alternative).collect()
    }
}
