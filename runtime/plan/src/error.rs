//! The errors of this crate, their kinds, and the place of a step that failed.

use crate::ids::{BlockId, StepId};

/// The result of everything in this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of reading, preparing or running a plan: its [kind](Error::kind) says what went wrong, and its
/// [place](Error::place) where.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The bytes are not a plan that this version can read.
    #[error("cannot read the plan: {reason}")]
    Read {
        /// [`NotAPlan`](ErrorKind::NotAPlan), [`Damaged`](ErrorKind::Damaged), [`Version`](ErrorKind::Version),
        /// [`Invalid`](ErrorKind::Invalid), [`File`](ErrorKind::File), [`Memory`](ErrorKind::Memory) or
        /// [`CustomOp`](ErrorKind::CustomOp).
        kind: ErrorKind,
        /// The reason, and a remedy.
        reason: String,
    },
    /// The plan breaks the rules of the format. The list holds every violation, in order.
    #[error("the plan is not valid:\n  {}", .0.join("\n  "))]
    Verify(Vec<String>),
    /// An input of a run does not fit its declaration in the plan.
    #[error("input {name:?}: expected {expected}, found {found}")]
    Input {
        /// The name of the input.
        name: String,
        /// The declared type.
        expected: String,
        /// The given value.
        found: String,
    },
    /// A step failed.
    #[error("{place}: {message}")]
    Run {
        /// The step: its place in the plan, its op, its inputs' dtypes and shapes, its origin.
        place: Box<Place>,
        /// The op's message.
        message: String,
        /// [`Op`](ErrorKind::Op), [`Limit`](ErrorKind::Limit), [`Memory`](ErrorKind::Memory),
        /// [`Device`](ErrorKind::Device) or [`Setting`](ErrorKind::Setting).
        kind: ErrorKind,
    },
    /// The device cannot be used.
    #[error("device {device:?}: {reason}")]
    Device {
        /// The name of the requested device.
        device: String,
        /// The reason, and a remedy.
        reason: String,
    },
    /// The [function](crate::Request::stop) that may end a run ended it.
    #[error("the run was interrupted")]
    Interrupted,
    /// The run did not end before its [deadline](crate::Request::deadline).
    #[error("the run reached its time limit")]
    TimedOut,
    /// A session cannot have this number of threads.
    #[error("{count} threads: {reason}")]
    Threads {
        /// The requested number.
        count: usize,
        /// The reason.
        reason: String,
    },
    /// A state does not fit the session or the request of the caller.
    #[error("{0}")]
    State(String),
    /// The bytes are not a saved state, or damaged.
    #[error("cannot load the state: {0}")]
    StateFile(String),
    /// Other weights do not fit a plan, or their file cannot be read. The list holds every reason, in order.
    #[error("the weights cannot be used:\n  {}", .0.join("\n  "))]
    Weights(Vec<String>),
    /// An op exceeds a limit that all kernels have by design; the executor adds the [`Place`].
    #[error("{message}: {help}")]
    Limit {
        /// The limit.
        message: String,
        /// The way around it.
        help: String,
    },
    /// The message of an op about its inputs or attributes; the executor adds the [`Place`].
    #[error("{0}")]
    Op(String),
    /// The host lacks memory, or the run would exceed its `max_memory`; the executor adds the [`Place`].
    #[error("{0}")]
    Memory(String),
    /// A GPU fails, or lacks memory or a kernel; the executor adds the [`Place`].
    #[error("{0}")]
    Gpu(String),
    /// An environment variable has a wrong value, or one that does not suit the step; the executor adds the [`Place`].
    #[error("{0}")]
    Setting(String),
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal,)*) => {
        /// What went wrong, for programs: a later version may word a message otherwise, but keeps the kind.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorKind { $($(#[$doc])* $kind,)* }

        impl ErrorKind {
            /// Every kind.
            pub const ALL: &'static [ErrorKind] = &[$(ErrorKind::$kind),*];

            /// The name of the kind, as `not_a_plan`. Python's exceptions have it as their attribute `kind`.
            pub const fn name(self) -> &'static str {
                match self { $(ErrorKind::$kind => $name),* }
            }
        }
    };
}

kinds! {
    /// The bytes are of another format.
    NotAPlan = "not_a_plan",
    /// The file begins as a plan, and is cut short, edited or damaged.
    Damaged = "damaged",
    /// The plan has a newer version than this crate reads, or an op, attribute or field that it does not know.
    Version = "version",
    /// The plan breaks the rules of the format.
    Invalid = "invalid",
    /// The system cannot read the file, or it changed meanwhile.
    File = "file",
    /// An input of a run does not fit its declaration.
    Input = "input",
    /// A step refuses its inputs or attributes.
    Op = "op",
    /// A step exceeds a limit that all kernels have by design.
    Limit = "limit",
    /// The host lacks memory, or a run would exceed its `max_memory`.
    Memory = "memory",
    /// The device is not available or fails, or lacks memory or a kernel.
    Device = "device",
    /// An environment variable has a wrong value, or one that does not suit a step.
    Setting = "setting",
    /// The caller interrupted the run.
    Interrupted = "interrupted",
    /// The run reached its time limit.
    TimedOut = "timed_out",
    /// A session cannot have the requested number of threads.
    Threads = "threads",
    /// A state does not fit the session or the request of the caller.
    State = "state",
    /// The bytes are not a saved state, or damaged.
    StateFile = "state_file",
    /// Other weights do not fit the plan, or their file cannot be read.
    Weights = "weights",
    /// The plan has a custom operator that the program has not registered.
    CustomOp = "custom_op",
}

impl std::fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// A nested block around a failed step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surrounding {
    /// The block's index among the blocks of the step that runs it.
    pub block: BlockId,
    /// The index of the step that runs it, in its own block.
    pub step: StepId,
    /// The op's name.
    pub op: &'static str,
}

impl std::fmt::Display for Surrounding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "block {} of step {} {}", self.block, self.step, self.op)
    }
}

/// The place of a failed step, in the plan and in the model. Its text describes all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub(crate) step: StepId,
    pub(crate) op: &'static str,
    /// The blocks around the step, the outermost first.
    pub(crate) within: Vec<Surrounding>,
    pub(crate) inputs: Vec<String>,
    pub(crate) origin: String,
}

impl Place {
    /// The step's index in its block.
    pub fn step(&self) -> usize {
        self.step.at()
    }

    /// The op's name.
    pub fn op(&self) -> &'static str {
        self.op
    }

    /// The blocks around the step, the outermost first, each as a text.
    pub fn within(&self) -> Vec<String> {
        self.within.iter().map(ToString::to_string).collect()
    }

    /// The inputs, as `float32 [1, 3, 224, 224]`; empty if they are no longer known.
    pub fn inputs(&self) -> &[String] {
        &self.inputs
    }

    /// The ONNX nodes and source lines of the step.
    pub fn origin(&self) -> &str {
        &self.origin
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "step {} {}", self.step, self.op)?;
        if !self.inputs.is_empty() {
            write!(f, "({})", self.inputs.join(", "))?;
        }
        self.within.iter().rev().try_for_each(|block| write!(f, " in {block}"))?;
        if self.origin.is_empty() {
            Ok(())
        } else {
            write!(f, " from {}", self.origin)
        }
    }
}

impl Error {
    /// An error with an op's message.
    pub fn op(message: impl Into<String>) -> Error {
        Error::Op(message.into())
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Read { kind, .. } | Error::Run { kind, .. } => *kind,
            Error::Verify(_) => ErrorKind::Invalid,
            Error::Input { .. } => ErrorKind::Input,
            Error::Device { .. } | Error::Gpu(_) => ErrorKind::Device,
            Error::Interrupted => ErrorKind::Interrupted,
            Error::TimedOut => ErrorKind::TimedOut,
            Error::Threads { .. } => ErrorKind::Threads,
            Error::State(_) => ErrorKind::State,
            Error::StateFile(_) => ErrorKind::StateFile,
            Error::Weights(_) => ErrorKind::Weights,
            Error::Limit { .. } => ErrorKind::Limit,
            Error::Op(_) => ErrorKind::Op,
            Error::Memory(_) => ErrorKind::Memory,
            Error::Setting(_) => ErrorKind::Setting,
        }
    }

    /// The step that failed, if the error belongs to one.
    pub fn place(&self) -> Option<&Place> {
        match self {
            Error::Run { place, .. } => Some(place),
            _ => None,
        }
    }
}

#[doc(hidden)]
impl From<candle_core::Error> for Error {
    fn from(error: candle_core::Error) -> Error {
        match error {
            candle_core::Error::WithBacktrace { inner, .. } => Error::from(*inner),
            other => Error::Op(other.to_string()),
        }
    }
}

/// Returns an op's error from the enclosing function: `bail!("axis {axis} is out of range")`.
macro_rules! bail {
    ($($message:tt)*) => { return Err($crate::error::Error::op(format!($($message)*))) };
}
pub(crate) use bail;

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_kind_has_a_name_of_its_own() {
        let names: HashSet<&str> = ErrorKind::ALL.iter().map(|kind| kind.name()).collect();
        assert_eq!(names.len(), ErrorKind::ALL.len());
        assert!(names.iter().all(|name| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')));
    }

    #[test]
    fn variants_have_kinds() {
        let from_device = Error::from(candle_plan_device::Error::OutOfMemory(8));
        assert_eq!((from_device.kind(), from_device.place()), (ErrorKind::Device, None));
        let place =
            Place { step: StepId(3), op: "Conv", within: Vec::new(), inputs: Vec::new(), origin: String::new() };
        let run = Error::Run { place: Box::new(place.clone()), message: String::new(), kind: ErrorKind::Limit };
        assert_eq!((run.kind(), run.place()), (ErrorKind::Limit, Some(&place)));
        for (error, kind) in [
            (Error::op("a message"), ErrorKind::Op),
            (Error::Memory(String::new()), ErrorKind::Memory),
            (Error::Setting(String::new()), ErrorKind::Setting),
            (Error::StateFile(String::new()), ErrorKind::StateFile),
            (Error::Verify(Vec::new()), ErrorKind::Invalid),
            (Error::Read { kind: ErrorKind::Version, reason: String::new() }, ErrorKind::Version),
        ] {
            assert_eq!(error.kind(), kind, "{error:?}");
        }
    }
}
