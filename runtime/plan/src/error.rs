//! The errors of this crate, and the place of a step that failed.

/// The result of everything in this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of reading, preparing or running a plan.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The bytes are not a plan that this version can read.
    #[error("cannot read the plan: {0}")]
    Read(String),
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
    },
    /// The device cannot be used.
    #[error("device {device:?}: {reason}")]
    Device {
        /// The name of the requested device.
        device: String,
        /// The reason, and a remedy.
        reason: String,
    },
    /// A [`Stop`](crate::interrupt::Stop) ended the run.
    #[error("the run was interrupted")]
    Interrupted,
    /// The run did not end before its [deadline](crate::request::Request::deadline).
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
    /// A state does not fit the session, or what the caller asks of it.
    #[error("{0}")]
    State(String),
    /// An op would do more than any kernel does by design; the executor adds the [`Place`].
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
}

/// The place of a failed step, in the plan and in the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The step's index in its block.
    pub step: usize,
    /// The op's name.
    pub op: &'static str,
    /// The blocks around the step, the outermost first, as `block 0 of step 3 Loop`.
    pub within: Vec<String>,
    /// The inputs, as `float32 [1, 3, 224, 224]`; empty if they are no longer known.
    pub inputs: Vec<String>,
    /// The ONNX nodes and source lines of the step.
    pub origin: String,
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
}

impl From<candle_core::Error> for Error {
    fn from(error: candle_core::Error) -> Error {
        match error {
            candle_core::Error::WithBacktrace { inner, .. } => Error::from(*inner),
            other => Error::Op(other.to_string()),
        }
    }
}

/// Returns an op's error from the enclosing function: `bail!("axis {axis} is out of range")`.
#[macro_export]
macro_rules! bail {
    ($($message:tt)*) => { return Err($crate::error::Error::op(format!($($message)*))) };
}
