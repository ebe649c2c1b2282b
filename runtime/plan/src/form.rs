//! The form of a step: how it runs, described for people by [`Kernel::form`](crate::kernel::Kernel::form). Its
//! alternatives are those that a planner compared.

use candle_plan_descriptors::program::Program;
pub use candle_plan_kernels::alternative::Alternative;
use serde::Serialize;

/// The kernel of a step, its program and the size of its packed constants.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct KernelForm {
    /// The kernel, or the chosen one of its forms, if there is a choice.
    pub kernel: Option<String>,
    /// The elementwise program that the step consists of, or that finishes its result.
    pub program: Option<String>,
    /// The bytes of the packed constants.
    pub packed_bytes: usize,
}

/// A form of a kernel for a device, and its expected time. The kernel chooses a form in every run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimate {
    /// The form.
    pub form: String,
    /// The expected time on the device that the kernel's file names, in microseconds.
    pub microseconds: f64,
    /// Whether the kernel runs in this form.
    pub chosen: bool,
    /// Why the kernel does not choose the form, whatever its time; `None` if it may.
    pub limit: Option<&'static str>,
}

impl KernelForm {
    /// A form of this name.
    pub fn named(kernel: impl Into<String>) -> KernelForm {
        KernelForm { kernel: Some(kernel.into()), ..KernelForm::default() }
    }

    /// The form that `describe` gives of the packed constants; the default form if there are none.
    pub fn of<P>(packed: Option<&P>, describe: impl FnOnce(&P) -> KernelForm) -> KernelForm {
        packed.map(describe).unwrap_or_default()
    }

    /// The form with `bytes` bytes of packed constants.
    pub fn packed(self, bytes: usize) -> KernelForm {
        KernelForm { packed_bytes: bytes, ..self }
    }

    /// The form with a program, if there is one.
    pub fn with(self, program: Option<&Program>) -> KernelForm {
        KernelForm { program: program.filter(|program| !program.is_empty()).map(ToString::to_string), ..self }
    }
}
