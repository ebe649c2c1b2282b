//! Buffers of a kernel, and the memory budget of a thread.

use std::alloc::Layout;
use std::cell::{Cell, RefCell};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;

use crate::machine;

/// The bytes that a thread may still allocate with the functions of this module.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    Unlimited,
    /// Only this thread works on the kernel.
    Own(usize),
    /// The last number in [`SHARED`]. Other threads work on the same kernel.
    Shared,
}

thread_local! {
    /// Every allocation reads it; it has no destructor, so the read is cheap.
    static LEFT: Cell<Left> = const { Cell::new(Left::Unlimited) };
    /// The budgets that this thread shares with others: one for each kernel within another.
    static SHARED: RefCell<Vec<Arc<AtomicUsize>>> = const { RefCell::new(Vec::new()) };
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
    match LEFT.get() {
        Left::Unlimited => usize::MAX,
        Left::Own(left) => left,
        Left::Shared => SHARED.with_borrow(|shared| shared.last().map_or(usize::MAX, |left| left.load(Relaxed))),
    }
}

/// Runs `work` with a budget of `bytes` bytes in total, including threads that [help](crate::threads::Threads).
pub fn within<R>(bytes: usize, work: impl FnOnce() -> R) -> R {
    with(if bytes == usize::MAX { Left::Unlimited } else { Left::Own(bytes) }, work)
}

/// Returns the budget, to pass to a thread that helps this one.
pub fn shared() -> Budget {
    match LEFT.get() {
        Left::Unlimited => None,
        Left::Own(left) => {
            let left = Arc::new(AtomicUsize::new(left));
            SHARED.with_borrow_mut(|shared| shared.push(Arc::clone(&left)));
            LEFT.set(Left::Shared);
            Some(left)
        }
        Left::Shared => SHARED.with_borrow(|shared| shared.last().cloned()),
    }
}

/// Runs `work` with the budget of the thread that this one helps.
pub fn sharing<R>(budget: Budget, work: impl FnOnce() -> R) -> R {
    let Some(left) = budget else { return with(Left::Unlimited, work) };
    SHARED.with_borrow_mut(|shared| shared.push(left));
    with(Left::Shared, work)
}

/// Runs `work` with a budget. The last one of [`SHARED`] ends with it, also if `work` has made it.
fn with<R>(left: Left, work: impl FnOnce() -> R) -> R {
    struct Outer(Left);
    impl Drop for Outer {
        fn drop(&mut self) {
            if LEFT.replace(self.0) == Left::Shared {
                SHARED.with_borrow_mut(Vec::pop);
            }
        }
    }
    if left == Left::Unlimited && LEFT.get() == Left::Unlimited {
        return work();
    }
    let _outer = Outer(LEFT.replace(left));
    work()
}

/// Takes `bytes` from the [`budget`], for memory allocated elsewhere. Returns false, and takes nothing, if the budget
/// is smaller.
pub fn charge(bytes: usize) -> bool {
    match LEFT.get() {
        Left::Unlimited => true,
        Left::Own(left) => {
            let rest = left.checked_sub(bytes);
            rest.inspect(|rest| LEFT.set(Left::Own(*rest))).is_some()
        }
        Left::Shared => SHARED.with_borrow(|shared| {
            let take =
                |left: &Arc<AtomicUsize>| left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(bytes)).is_ok();
            shared.last().is_none_or(take)
        }),
    }
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
    fn a_budget_that_is_shared_ends_with_its_kernel() {
        let helped = |shared: Budget, bytes: usize| {
            let work = move || sharing(shared, || charge(bytes).then(budget));
            std::thread::spawn(work).join().expect("no panic")
        };
        within(100, || {
            assert!(charge(10) && !charge(91));
            within(50, || {
                assert_eq!(helped(shared(), 20), Some(30));
                assert_eq!((budget(), helped(shared(), 31), charge(30), budget()), (30, None, true, 0));
                within(usize::MAX, || {
                    assert_eq!((budget(), shared().is_none(), charge(1000)), (usize::MAX, true, true))
                });
                assert_eq!(budget(), 0);
            });
            assert_eq!((budget(), helped(shared(), 5), budget()), (90, Some(85), 85));
            let stopped = caught(|| {
                within(7, || {
                    let _shared = shared();
                    OutOfMemory::end(Some(8))
                })
            });
            assert_eq!(stopped, Err(OutOfMemory { bytes: 8, left: 7 }));
            assert_eq!(budget(), 85);
        });
        assert_eq!((budget(), SHARED.with_borrow(Vec::len)), (usize::MAX, 0));
    }

    #[test]
    #[should_panic(expected = "at most 2")]
    fn no_vector_has_more_elements_than_were_counted() {
        collected_up_to(2, 0..3);
    }
}
