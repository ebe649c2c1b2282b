//! The allocator of the extensions.

use candle_plan_memory::allocator::Allocator;
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: Allocator<MiMalloc> = {
    // SAFETY: this is the global allocator, and mimalloc gives back free pages with `MADV_DONTNEED`.
    unsafe { Allocator::new(MiMalloc) }
};
