//! The allocator of the extensions.

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::{c_int, c_void};

use candle_plan_memory::allocator::Allocator;
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: Allocator<Plain> = {
    // SAFETY: this is the global allocator, and see `keeps_pages`.
    unsafe { Allocator::new(Plain, keeps_pages) }
};

/// mimalloc without its functions for aligned blocks where these are not needed. [`MiMalloc`] always calls them. Unless
/// the size of a block is a power of two, they take more instructions, and the memory of a larger block.
struct Plain;

/// The alignment of every block that mimalloc allocates, except smaller ones: `MI_MAX_ALIGN_SIZE` in mimalloc/types.h.
const ALIGNMENT: usize = 16;

fn is_plain(layout: Layout) -> bool {
    layout.align() <= ALIGNMENT && layout.align() <= layout.size()
}

// SAFETY: all functions are mimalloc's, whose blocks are freed by the same function, and `is_plain` ensures the alignment.
unsafe impl GlobalAlloc for Plain {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: guaranteed by the caller.
        unsafe {
            match is_plain(layout) {
                true => mi_malloc(layout.size()).cast(),
                false => MiMalloc.alloc(layout),
            }
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: guaranteed by the caller.
        unsafe {
            match is_plain(layout) {
                true => mi_zalloc(layout.size()).cast(),
                false => MiMalloc.alloc_zeroed(layout),
            }
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: guaranteed by the caller.
        unsafe { MiMalloc.dealloc(block, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: guaranteed by the caller.
        unsafe { MiMalloc.realloc(block, layout, size) }
    }
}

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
    fn mi_malloc(size: usize) -> *mut c_void;
    fn mi_zalloc(size: usize) -> *mut c_void;
}
