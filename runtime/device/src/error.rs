//! What a device says of work that fails.

/// The result of everything in this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What a device says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It cannot be used: why, and what to do.
    #[error("{0}")]
    Unavailable(String),
    /// There is no room for so many bytes.
    #[error("the device has no room for {0} bytes more")]
    OutOfMemory(usize),
    /// A kernel or a copy failed.
    #[error("{0}")]
    Failed(String),
}
