//! The errors of a device.

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of a device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The device is not available: the reason, and a remedy.
    #[error("{0}")]
    Unavailable(String),
    /// An allocation of this many bytes failed.
    #[error("the device has no memory for {0} bytes more: free memory of the GPU, or use smaller inputs")]
    OutOfMemory(usize),
    /// A kernel or a copy failed.
    #[error("{0}")]
    Failed(String),
}
