//! Structures that the kernels have too.

pub use candle_plan_derive::Mirror;

/// A structure with the memory layout of a struct of the kernels. `#[derive(Mirror)]` compares the fields of both.
///
/// # Safety
/// The struct in the file that [`TWIN`](Mirror::TWIN) names has the same fields.
#[diagnostic::on_unimplemented(message = "`{Self}` is part of a kernel's parameters, but does not derive `Mirror`")]
pub unsafe trait Mirror {
    /// The kernels' struct and its file, as `Dims in device.cuh`.
    const TWIN: &'static str;
}

/// Whether a structure mirrors a struct of the kernels: `Dims in device.cuh`.
pub const fn is_mirror<S: Mirror>(twin: &str) -> bool {
    let (one, other) = (S::TWIN.as_bytes(), twin.as_bytes());
    let mut equal = if one.len() == other.len() { one.len() } else { return false };
    while equal > 0 && one[equal - 1] == other[equal - 1] {
        equal -= 1;
    }
    equal == 0
}
