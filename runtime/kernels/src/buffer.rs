//! Memory that a kernel is about to fill.

use std::cell::Cell;

use bytemuck::Pod;

use crate::machine;

thread_local! {
    /// The bytes that this thread may still allocate with [`try_for_overwrite`] and [`try_with_room`].
    static BUDGET: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// The bytes that this thread may still allocate; `usize::MAX` where nobody bounds them.
pub fn budget() -> usize {
    BUDGET.get()
}

/// Runs `work`, which may allocate `bytes` bytes in all on this thread.
pub fn within<R>(bytes: usize, work: impl FnOnce() -> R) -> R {
    struct Outer(usize);
    impl Drop for Outer {
        fn drop(&mut self) {
            BUDGET.set(self.0);
        }
    }
    let _outer = Outer(BUDGET.replace(bytes));
    work()
}

/// Whether the [`budget`] has so many bytes, which it has less of afterwards: for memory that lies elsewhere.
pub fn charge(bytes: usize) -> bool {
    let left = budget().checked_sub(bytes);
    if let (Some(left), true) = (left, budget() != usize::MAX) {
        BUDGET.set(left);
    }
    left.is_some()
}

/// A vector of `len` elements whose contents are arbitrary: the kernel that takes it writes every element.
///
/// Zeroing first would cost a kernel that runs at memory speed a third of its time. In debug builds the bytes are
/// `0xA5`, so that a test sees an element that was not written.
pub fn for_overwrite<T: Pod>(len: usize) -> Vec<T> {
    filled_up(Vec::with_capacity(len), len)
}

/// [`for_overwrite`] for a length that comes from outside: `None` where there is not so much memory, or the [`budget`] is
/// less.
pub fn try_for_overwrite<T: Pod>(len: usize) -> Option<Vec<T>> {
    Some(filled_up(try_with_room(len)?, len))
}

/// An empty vector with room for `len` elements: `None` where the [`budget`] is less, or the machine's
/// [memory](machine::memory) is, or there is not so much of it.
pub fn try_with_room<T>(len: usize) -> Option<Vec<T>> {
    let bytes = len.checked_mul(size_of::<T>()).filter(|&bytes| bytes <= machine::memory())?;
    let left = budget().checked_sub(bytes)?;
    let mut data = Vec::new();
    data.try_reserve_exact(len).ok()?;
    if budget() != usize::MAX {
        BUDGET.set(left);
    }
    Some(data)
}

/// The bytes of a huge page.
#[cfg(target_os = "linux")]
const HUGE: usize = 2 << 20;

/// Asks for huge pages where a buffer covers whole ones, which takes fewer misses of the table of addresses. Elsewhere they
/// would hold memory that nobody uses.
#[cfg(target_os = "linux")]
fn prefer_huge_pages<T>(data: &Vec<T>) {
    let start = data.as_ptr().addr();
    let first = start.next_multiple_of(HUGE);
    let end = (start + data.capacity() * size_of::<T>()) / HUGE * HUGE;
    if first < end {
        let page = data.as_ptr().cast_mut().wrapping_byte_add(first - start);
        // SAFETY: these pages are the buffer's alone, and advice changes no bytes; a system that has none says so.
        unsafe { libc::madvise(page.cast(), end - first, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn prefer_huge_pages<T>(_: &Vec<T>) {}

fn filled_up<T: Pod>(mut data: Vec<T>, len: usize) -> Vec<T> {
    assert!(data.capacity() >= len, "room for {len} elements");
    prefer_huge_pages(&data);
    if cfg!(debug_assertions) {
        // SAFETY: the capacity is at least `len` elements, and any bytes are a valid `T: Pod`.
        unsafe { std::ptr::write_bytes(data.as_mut_ptr(), 0xA5, len) };
    }
    // SAFETY: the capacity is at least `len`; `T: Pod` has neither invalid values nor drop glue, and callers only write.
    #[allow(clippy::uninit_vec)]
    unsafe {
        data.set_len(len)
    };
    data
}
