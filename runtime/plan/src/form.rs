//! The form of a step: how it runs, described for people by [`Kernel::form`](crate::kernel::Kernel::form). Its
//! alternatives are those that a planner compared.

use candle_plan_kernels::convolution;
use candle_plan_kernels::program::Program;
use serde::Serialize;

/// The kernel of a step, its program and the size of its packed constants.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Form {
    /// The kernel, or the chosen one of its forms, if there is a choice.
    pub kernel: Option<String>,
    /// The elementwise program that the step consists of, or that finishes its result.
    pub program: Option<String>,
    /// The bytes of the packed constants.
    pub packed_bytes: usize,
}

/// A form of a step that a planner compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Alternative {
    /// The form, in words.
    pub form: String,
    /// Whether it reads and writes images in blocks of channels.
    pub in_blocks: bool,
    /// The expected time for one image or one matrix product, in multiply-adds of a vector.
    pub time: f64,
    /// The time that blocks save compared with rows, where it is not the difference of the times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saving: Option<f64>,
}

impl From<convolution::Alternative> for Alternative {
    fn from(found: convolution::Alternative) -> Alternative {
        let convolution::Alternative { form, in_blocks, time, saving } = found;
        Alternative { form, in_blocks, time, saving }
    }
}

impl Alternative {
    /// The alternatives of these names and times, for values in the layout of the plan.
    pub fn all<N: Into<String>>(found: impl IntoIterator<Item = (N, f64)>) -> Vec<Alternative> {
        let alternative =
            |(form, time): (N, f64)| Alternative { form: form.into(), in_blocks: false, time, saving: None };
        found.into_iter().map(alternative).collect()
    }
}

impl Form {
    /// A form of this name.
    pub fn named(kernel: impl Into<String>) -> Form {
        Form { kernel: Some(kernel.into()), ..Form::default() }
    }

    /// The form that `describe` gives of the packed constants; the default form if there are none.
    pub fn of<P>(packed: Option<&P>, describe: impl FnOnce(&P) -> Form) -> Form {
        packed.map(describe).unwrap_or_default()
    }

    /// The form with `bytes` bytes of packed constants.
    pub fn packed(self, bytes: usize) -> Form {
        Form { packed_bytes: bytes, ..self }
    }

    /// The form with a program, if there is one.
    pub fn with(self, program: Option<&Program>) -> Form {
        Form { program: program.filter(|program| !program.is_empty()).map(ToString::to_string), ..self }
    }
}
