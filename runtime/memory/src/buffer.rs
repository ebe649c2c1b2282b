//! Buffers of a kernel, and the memory budget of a thread.

use std::alloc::Layout;
use std::cell::{Cell, RefCell};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;

use crate::machine;

thread_local! {
    /// The bytes that this thread may still allocate with the functions of this module, shared with the other threads
    /// that work on the same kernel. `None` means unlimited.
    static BUDGET: RefCell<Budget> = const { RefCell::new(None) };
    /// Whether [`BUDGET`] is set. Every allocation reads it; it has no destructor, so the read is cheap.
    static IS_BOUNDED: Cell<bool> = const { Cell::new(false) };
}

/// The bytes that a core's cache holds. A task has only a few buffers up to this size, so they do not count toward the
/// budget.
pub const CACHED: usize = 1 << 20;

/// Whether a buffer of `len` elements fits a [cache](CACHED), so that it does not count toward the budget.
pub fn is_cached<T>(len: usize) -> bool {
    len.saturating_mul(size_of::<T>()) <= CACHED
}

/// The remaining bytes, shared by threads that work together.
pub type Budget = Option<Arc<AtomicUsize>>;

/// Returns the bytes that this thread may still allocate; `usize::MAX` if unlimited.
pub fn budget() -> usize {
    if !IS_BOUNDED.get() {
        return usize::MAX;
    }
    BUDGET.with_borrow(|budget| budget.as_ref().map_or(usize::MAX, |left| left.load(Relaxed)))
}

/// Runs `work` with a budget of `bytes` bytes in total, including threads that [help](crate::threads::Threads).
pub fn within<R>(bytes: usize, work: impl FnOnce() -> R) -> R {
    sharing((bytes != usize::MAX).then(|| Arc::new(AtomicUsize::new(bytes))), work)
}

/// Returns the budget, to pass to a thread that helps this one.
pub fn shared() -> Budget {
    if IS_BOUNDED.get() {
        BUDGET.with_borrow(Clone::clone)
    } else {
        None
    }
}

/// Runs `work` with the budget of the thread that this one helps.
pub fn sharing<R>(budget: Budget, work: impl FnOnce() -> R) -> R {
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

/// Sets this thread's budget, and returns the previous one.
fn set(budget: Budget) -> Budget {
    IS_BOUNDED.set(budget.is_some());
    BUDGET.replace(budget)
}

/// Takes `bytes` from the [`budget`], for memory allocated elsewhere. Returns false, and takes nothing, if the budget
/// is smaller.
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

/// The reason a kernel stopped early: there was no memory for a buffer besides its operands and its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfMemory {
    /// The bytes that it requested; `usize::MAX` if the number overflows.
    pub bytes: usize,
    /// The bytes that were left in the [`budget`].
    pub left: usize,
}

impl OutOfMemory {
    /// Stops the kernel: unwinds to [`caught`], through all threads that work on it. The panic hook does not run.
    #[cold]
    pub fn end(bytes: Option<usize>) -> ! {
        resume_unwind(Box::new(OutOfMemory { bytes: bytes.unwrap_or(usize::MAX), left: budget() }))
    }
}

/// Runs a kernel that may [stop](OutOfMemory::end) for lack of memory.
///
/// # Errors
/// The kernel ran out of memory. Its result is incomplete.
pub fn caught<R>(work: impl FnOnce() -> R) -> Result<R, OutOfMemory> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|reason| match reason.downcast::<OutOfMemory>() {
        Ok(out_of_memory) => *out_of_memory,
        Err(panic) => resume_unwind(panic),
    })
}

/// Collects the elements of an iterator. If memory runs out, the kernel [stops](OutOfMemory::end).
pub fn collected<T>(items: impl ExactSizeIterator<Item = T>) -> Vec<T> {
    collected_up_to(items.len(), items)
}

/// Like [`collected`], for an iterator of at most `most` elements.
///
/// # Panics
/// There are more.
pub fn collected_up_to<T>(most: usize, items: impl Iterator<Item = T>) -> Vec<T> {
    let mut data = with_capacity(most);
    data.extend(items);
    assert!(data.len() <= most, "{} elements, at most {most}", data.len());
    data
}

/// Copies a slice. If memory runs out, the kernel [stops](OutOfMemory::end).
pub fn copied<T: Copy>(data: &[T]) -> Vec<T> {
    let mut copy = with_capacity(data.len());
    copy.extend_from_slice(data);
    copy
}

/// Converts the elements of a vector: in its memory if both types have one layout, otherwise in new memory. If memory
/// runs out, the kernel [stops](OutOfMemory::end).
pub fn mapped<A, B>(data: Vec<A>, map: impl FnMut(A) -> B) -> Vec<B> {
    match Layout::new::<A>() == Layout::new::<B>() {
        true => data.into_iter().map(map).collect(), // the standard library keeps the memory in this case
        false => collected(data.into_iter().map(map)),
    }
}

/// Appends an element to a vector of unknown length. If memory runs out, the kernel [stops](OutOfMemory::end).
pub fn push<T>(data: &mut Vec<T>, item: T) {
    if data.len() == data.capacity() {
        let mut longer = with_capacity((2 * data.len()).max(8));
        longer.append(data);
        *data = longer;
    }
    data.push(item);
}

/// Allocates an empty vector with capacity for `len` elements. If memory runs out, the kernel
/// [stops](OutOfMemory::end).
pub fn with_capacity<T>(len: usize) -> Vec<T> {
    try_with_capacity(len).unwrap_or_else(|| OutOfMemory::end(len.checked_mul(size_of::<T>())))
}

/// Returns `len` copies of `value`. If memory runs out, the kernel [stops](OutOfMemory::end).
pub fn filled<T: Clone>(value: T, len: usize) -> Vec<T> {
    collected(std::iter::repeat_n(value, len))
}

/// Allocates an empty vector with capacity for `len` elements. It counts toward the [`budget`] if it is larger than a
/// [cache](CACHED). Returns `None` if it exceeds the budget or the machine's [memory](machine::memory), or if the
/// allocation fails.
pub fn try_with_capacity<T>(len: usize) -> Option<Vec<T>> {
    let bytes = len.checked_mul(size_of::<T>()).filter(|&bytes| bytes <= machine::memory())?;
    let is_counted = bytes > CACHED;
    if is_counted && budget() < bytes {
        return None;
    }
    let mut data = Vec::new();
    data.try_reserve_exact(len).ok()?;
    (!is_counted || charge(bytes)).then_some(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_converted_where_they_are_if_they_fit_there() {
        let numbers = copied(&[1.5f32, -2.0]);
        let before = numbers.as_ptr().addr();
        let bits = mapped(numbers, f32::to_bits);
        assert_eq!((&bits[..], bits.as_ptr().addr()), (&[0x3fc0_0000, 0xc000_0000][..], before));
        assert_eq!(mapped(bits, |bits| bits as u8), [0, 0]);
    }

    #[test]
    fn every_vector_counts_toward_the_budget() {
        let left = |make: fn()| {
            within(100 << 20, || {
                make();
                budget()
            })
        };
        let (all, many) = (100 << 20, 4 << 20);
        assert_eq!(left(|| drop(collected((0..4usize << 20).map(|i| i as u32)))), all - 4 * many);
        assert_eq!(left(|| drop(collected_up_to(4 << 20, (0..9u8).filter(|i| i % 2 == 0)))), all - many);
        assert_eq!(left(|| drop(copied(&vec![0u8; 4 << 20]))), all - many);
        assert_eq!(left(|| drop(mapped(vec![0u8; 4 << 20], u16::from))), all - 2 * many);
        assert_eq!(left(|| drop(mapped(vec![0u8; 4 << 20], |x| x as i8))), all);
        let pushed = || {
            let mut data = Vec::new();
            (0..4u32 << 20).for_each(|i| push(&mut data, i as u8));
        };
        assert_eq!(left(pushed), all - 2 * many + CACHED * 2);
        assert!(caught(|| within(many - 1, || copied(&vec![0u8; 4 << 20]))).is_err());
    }

    #[test]
    #[should_panic(expected = "at most 2")]
    fn no_vector_has_more_elements_than_were_counted() {
        collected_up_to(2, 0..3);
    }
}
