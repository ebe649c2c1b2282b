//! The allocator of the extensions.

use std::ffi::c_int;

use candle_plan_memory::allocator::Allocator;
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: Allocator<MiMalloc> = {
    // SAFETY: this is the global allocator, and see `keeps_pages`.
    unsafe { Allocator::new(MiMalloc, keeps_pages) }
};

/// Whether mimalloc gives back free pages with `MADV_DONTNEED`. On Linux, it does unless the environment contains
/// `MIMALLOC_PURGE_DECOMMITS=0`: then it uses `MADV_FREE`. On macOS, it uses `MADV_FREE_REUSABLE`.
///
/// mimalloc reads the environment when the extension is loaded. Nothing changes the option later.
fn keeps_pages() -> bool {
    // SAFETY: the function reads an option, and the number is that of an option.
    cfg!(target_os = "linux") && unsafe { mi_option_is_enabled(PURGE_DECOMMITS) }
}

/// `mi_option_purge_decommits` in mimalloc.h. The crate `libmimalloc-sys` does not declare it.
const PURGE_DECOMMITS: c_int = 5;

extern "C" {
    fn mi_option_is_enabled(option: c_int) -> bool;
}
