//! Memory that a kernel is about to fill.

use std::cell::{Cell, RefCell};
use std::mem::MaybeUninit;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;

use bytemuck::Pod;

use crate::machine;

thread_local! {
    /// The bytes that this thread may still allocate with this page's functions, beside others that work on the same; none
    /// where nobody bounds them.
    static BUDGET: RefCell<Budget> = const { RefCell::new(None) };
    /// Whether there is a [`BUDGET`]. Every allocation asks, and this needs no destructor, so the answer is cheap.
    static IS_BOUNDED: Cell<bool> = const { Cell::new(false) };
}

/// The bytes that a core's cache holds. Lists as small as this, of which a task has a few, do not count to the budget.
pub const CACHED: usize = 1 << 20;

/// The bytes that are left, which threads share while they work together.
pub(crate) type Budget = Option<Arc<AtomicUsize>>;

/// The bytes that this thread may still allocate; `usize::MAX` where nobody bounds them.
pub fn budget() -> usize {
    if !IS_BOUNDED.get() {
        return usize::MAX;
    }
    BUDGET.with_borrow(|budget| budget.as_ref().map_or(usize::MAX, |left| left.load(Relaxed)))
}

/// Runs `work`, which may allocate `bytes` bytes in all, also on threads that [help](crate::threads::Threads) it.
pub fn within<R>(bytes: usize, work: impl FnOnce() -> R) -> R {
    sharing((bytes != usize::MAX).then(|| Arc::new(AtomicUsize::new(bytes))), work)
}

/// The budget, for a thread that helps this one.
pub(crate) fn shared() -> Budget {
    if IS_BOUNDED.get() {
        BUDGET.with_borrow(Clone::clone)
    } else {
        None
    }
}

/// Runs `work` with the budget of another thread, which it helps.
pub(crate) fn sharing<R>(budget: Budget, work: impl FnOnce() -> R) -> R {
    struct Outer(Budget);
    impl Drop for Outer {
        fn drop(&mut self) {
            set(self.0.take());
        }
    }
    if budget.is_none() && !IS_BOUNDED.get() {
        return work();
    }
    let _outer = Outer(set(budget));
    work()
}

/// Sets this thread's budget, and gives the one before.
fn set(budget: Budget) -> Budget {
    IS_BOUNDED.set(budget.is_some());
    BUDGET.replace(budget)
}

/// Whether the [`budget`] has so many bytes, which it has less of afterwards: for memory that lies elsewhere.
pub fn charge(bytes: usize) -> bool {
    if !IS_BOUNDED.get() {
        return true;
    }
    BUDGET.with_borrow(|budget| {
        let take =
            |left: &Arc<AtomicUsize>| left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(bytes)).is_ok();
        budget.as_ref().is_none_or(take)
    })
}

/// Why a kernel ended before its time: there is no memory for what it holds beside its operands and its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfMemory {
    /// The bytes that it asked for; `usize::MAX` where these are more than can be counted.
    pub bytes: usize,
    /// The bytes that the [`budget`] had left.
    pub left: usize,
}

impl OutOfMemory {
    /// Ends the kernel: unwinds to [`caught`], through all threads that work on it. No hook for panics is called.
    #[cold]
    pub fn end(bytes: Option<usize>) -> ! {
        resume_unwind(Box::new(OutOfMemory { bytes: bytes.unwrap_or(usize::MAX), left: budget() }))
    }
}

/// Runs `work`, a kernel that may [end](OutOfMemory::end) where it has no room.
///
/// # Errors
/// It did. Its result is not whole.
pub fn caught<R>(work: impl FnOnce() -> R) -> Result<R, OutOfMemory> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|reason| match reason.downcast::<OutOfMemory>() {
        Ok(out_of_memory) => *out_of_memory,
        Err(panic) => resume_unwind(panic),
    })
}

/// A vector of `len` elements of arbitrary values: the kernel that takes it writes every element. A kernel that misses one
/// gives a wrong result, but its behavior is defined.
///
/// Zeroing first would cost a kernel that runs at memory speed a third of its time. In debug builds the bytes are
/// `0xA5`, so that a test sees an element that was not written. Where there is no room, the kernel [ends](OutOfMemory::end).
pub fn for_overwrite<T: Pod>(len: usize) -> Vec<T> {
    try_for_overwrite(len).unwrap_or_else(|| OutOfMemory::end(len.checked_mul(size_of::<T>())))
}

/// The elements that an iterator gives. Where there is no room, the kernel [ends](OutOfMemory::end).
pub fn collected<T>(items: impl ExactSizeIterator<Item = T>) -> Vec<T> {
    let mut data = with_capacity(items.len());
    data.extend(items);
    data
}

/// An empty vector with room for `len` elements. Where there is no room, the kernel [ends](OutOfMemory::end).
pub fn with_capacity<T>(len: usize) -> Vec<T> {
    try_with_capacity(len).unwrap_or_else(|| OutOfMemory::end(len.checked_mul(size_of::<T>())))
}

/// `len` elements, each a copy of `value`. Where there is no room, the kernel [ends](OutOfMemory::end).
pub fn filled<T: Clone>(value: T, len: usize) -> Vec<T> {
    collected(std::iter::repeat_n(value, len))
}

/// [`for_overwrite`] for a length that comes from outside: `None` where there is not so much memory, or the [`budget`] is
/// less.
pub fn try_for_overwrite<T: Pod>(len: usize) -> Option<Vec<T>> {
    Some(filled_up(try_with_capacity(len)?, len))
}

/// [`try_for_overwrite`] for one of many results of a kernel: it counts to the [`budget`] even if it is small.
pub fn try_for_result<T: Pod>(len: usize) -> Option<Vec<T>> {
    let bytes = len.checked_mul(size_of::<T>())?;
    (bytes > CACHED || charge(bytes)).then(|| try_for_overwrite(len))?
}

/// An empty vector with room for `len` elements. It counts to the [`budget`] if it is larger than a [cache](CACHED). `None`
/// where the budget is less, or the machine's [memory](machine::memory) is, or there is not so much of it.
pub fn try_with_capacity<T>(len: usize) -> Option<Vec<T>> {
    let bytes = len.checked_mul(size_of::<T>()).filter(|&bytes| bytes <= machine::memory())?;
    let counted = if bytes > CACHED { bytes } else { 0 };
    if budget() < counted {
        return None;
    }
    let mut data = Vec::new();
    data.try_reserve_exact(len).ok()?;
    charge(counted).then_some(data)
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
    give_values(&mut data.spare_capacity_mut()[..len]);
    // SAFETY: the capacity is at least `len`, every element has a value, and `T: Pod` has no invalid ones.
    unsafe { data.set_len(len) };
    data
}

/// Gives every element a value, which nobody knows. To read memory that was never written is undefined behavior, whatever
/// its type. An empty assembly block may write whatever it can reach, so afterwards the compiler takes the memory as written.
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
fn give_values<T: Pod>(elements: &mut [MaybeUninit<T>]) {
    // SAFETY: the block contains no instruction. It is allowed to write the elements, because they are borrowed mutably.
    unsafe { std::arch::asm!("/* {} */", in(reg) elements.as_mut_ptr(), options(nostack, preserves_flags)) };
}

#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
fn give_values<T: Pod>(elements: &mut [MaybeUninit<T>]) {
    elements.fill(MaybeUninit::zeroed());
}
