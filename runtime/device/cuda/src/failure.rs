//! The error of a call to NVIDIA's libraries.

/// The error of a call to NVIDIA's libraries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// The library is missing, or lacks a function.
    Missing { library: &'static str, function: &'static str },
    /// A status of the driver.
    Driver(u32),
    /// A status of cuBLAS.
    Blas(u32),
}
