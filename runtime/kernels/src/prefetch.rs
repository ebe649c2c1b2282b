//! Bringing memory near before it is read.

/// Begins to bring a cache line near; the address may be any.
#[inline(always)]
pub(crate) fn prefetch<T>(from: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: it shows nothing to the program, and never fails.
    unsafe {
        use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
        _mm_prefetch::<_MM_HINT_T0>(from.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = from;
}
