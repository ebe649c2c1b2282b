//! How a step runs, for people: what [`Kernel::form`](crate::kernel::Kernel::form) tells.

use candle_plan_kernels::program::Program;
use serde::Serialize;

/// The kernel of a step, and what it has beside its inputs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Form {
    /// The kernel, or which of its forms, where there is a choice.
    pub kernel: Option<String>,
    /// The program of elementwise functions that the step is, or that finishes its result.
    pub program: Option<String>,
    /// The bytes of what was packed of constants.
    pub packed_bytes: usize,
}

impl Form {
    /// A form of this name.
    pub fn named(kernel: impl Into<String>) -> Form {
        Form { kernel: Some(kernel.into()), ..Form::default() }
    }

    /// The form that `tell` finds in what was packed.
    pub fn of<P>(packed: Option<&P>, tell: impl FnOnce(&P) -> Form) -> Form {
        packed.map(tell).unwrap_or_default()
    }

    /// The form with so many bytes of packed constants.
    pub fn packed(self, bytes: usize) -> Form {
        Form { packed_bytes: bytes, ..self }
    }

    /// The form with a program, if there is one.
    pub fn with(self, program: Option<&Program>) -> Form {
        Form { program: program.filter(|program| !program.is_empty()).map(ToString::to_string), ..self }
    }
}
