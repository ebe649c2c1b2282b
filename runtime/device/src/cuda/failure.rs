//! Why a call of one of NVIDIA's libraries failed.

/// What a call of one of NVIDIA's libraries failed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// The library lacks a function, or is not there.
    Missing { library: &'static str, function: &'static str },
    /// A status of the driver.
    Driver(u32),
    /// A status of cuBLAS.
    Blas(u32),
}
