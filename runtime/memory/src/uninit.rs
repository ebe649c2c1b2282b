//! Memory that nobody has written yet.

use std::mem::MaybeUninit;

use bytemuck::Pod;

use crate::allocator::keeps_pages;
use crate::buffer::{charge, try_with_capacity, OutOfMemory, CACHED};

/// The size of a page in bytes, or a divisor of it.
const PAGE: usize = 4 << 10;

/// Memory for a number of elements that nobody has written yet. The methods that make a vector of the memory write all
/// elements, or leave this to a closure. So the allocation needs no zeros, which would take a third of the time of a kernel
/// that runs at memory speed.
///
/// A closure receives the elements as plain slices, as kernels need them: a kernel may leave gaps between rows, and load
/// whole vectors that reach into a gap. The elements start with unspecified values: in a release build, bytes that an earlier
/// value left in the memory. If the closure misses an element, the result is wrong and may show these bytes, but the behavior
/// of the program is defined (`freeze` in this file explains why). In debug builds, every byte starts as `0xA5`, so that
/// tests notice elements that were not written.
///
/// ```
/// use candle_plan_memory::uninit::Uninit;
///
/// let squares = Uninit::new(3).overwrite(|out| (0u32..).zip(out).for_each(|(i, out)| *out = i * i));
/// assert_eq!(squares, [0, 1, 4]);
/// assert_eq!(Uninit::new(3).copy(&squares), squares);
/// assert_eq!(Uninit::new(2).fill(7u8), [7, 7]);
/// ```
#[must_use]
#[derive(Debug)]
pub struct Uninit<T> {
    /// An empty vector with capacity for the elements.
    memory: Vec<T>,
    len: usize,
}

impl<T> Uninit<T> {
    /// Allocates memory for `len` elements. If memory runs out, the kernel [stops](OutOfMemory::end).
    pub fn new(len: usize) -> Uninit<T> {
        Uninit::try_new(len).unwrap_or_else(|| OutOfMemory::end(len.checked_mul(size_of::<T>())))
    }

    /// Allocates memory for `len` elements, a number from untrusted input. Returns `None` if the allocation fails or exceeds
    /// the [budget](crate::buffer::budget).
    pub fn try_new(len: usize) -> Option<Uninit<T>> {
        Some(Uninit::of(try_with_capacity(len)?, len))
    }

    /// Like [`Uninit::try_new`], for one of many results of a kernel: even a small one counts toward the budget.
    pub fn try_result(len: usize) -> Option<Uninit<T>> {
        let bytes = len.checked_mul(size_of::<T>())?;
        (bytes > CACHED || charge(bytes)).then(|| Uninit::try_new(len))?
    }

    /// Uses the memory of a vector, and drops the vector's elements.
    ///
    /// # Panics
    /// The capacity is less than `len`.
    pub fn of(mut memory: Vec<T>, len: usize) -> Uninit<T> {
        assert!(memory.capacity() >= len, "capacity for {len} elements");
        memory.clear();
        prefer_huge_pages(&memory);
        Uninit { memory, len }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Writes `value` to all elements.
    pub fn fill(mut self, value: T) -> Vec<T>
    where
        T: Clone,
    {
        self.memory.resize(self.len, value);
        self.memory
    }

    /// Writes copies of these elements.
    ///
    /// # Panics
    /// Their number is not [`len`](Uninit::len).
    pub fn copy(mut self, elements: &[T]) -> Vec<T>
    where
        T: Copy,
    {
        assert_eq!(elements.len(), self.len, "the number of elements");
        self.memory.extend_from_slice(elements);
        self.memory
    }

    /// Has `write` write all elements.
    #[inline]
    pub fn overwrite(self, write: impl FnOnce(&mut [T])) -> Vec<T>
    where
        T: Pod,
    {
        let mut data = self.unspecified();
        write(&mut data);
        data
    }

    /// Has `write` write all elements of two results.
    #[inline]
    pub fn overwrite_both<U: Pod>(self, other: Uninit<U>, write: impl FnOnce(&mut [T], &mut [U])) -> (Vec<T>, Vec<U>)
    where
        T: Pod,
    {
        let (mut data, mut others) = (self.unspecified(), other.unspecified());
        write(&mut data, &mut others);
        (data, others)
    }

    /// Has `write` write all elements, unless it fails.
    ///
    /// # Errors
    /// `write` fails.
    #[inline]
    pub fn try_overwrite<E>(self, write: impl FnOnce(&mut [T]) -> Result<(), E>) -> Result<Vec<T>, E>
    where
        T: Pod,
    {
        let mut data = self.unspecified();
        write(&mut data).map(|()| data)
    }

    /// Has `write` write all elements of several memories, unless it fails.
    ///
    /// # Errors
    /// `write` fails.
    pub fn try_overwrite_all<E>(
        memories: Vec<Uninit<T>>,
        write: impl FnOnce(Vec<&mut [T]>) -> Result<(), E>,
    ) -> Result<Vec<Vec<T>>, E>
    where
        T: Pod,
    {
        let mut all: Vec<Vec<T>> = memories.into_iter().map(Uninit::unspecified).collect();
        write(all.iter_mut().map(Vec::as_mut_slice).collect()).map(|()| all)
    }

    /// Returns elements with unspecified values. Only a method that has them written calls this.
    #[inline]
    fn unspecified(mut self) -> Vec<T>
    where
        T: Pod,
    {
        let elements = &mut self.memory.spare_capacity_mut()[..self.len];
        give_values(elements);
        // SAFETY: every element has a value, and each pattern of bits is a valid `T: Pod`.
        unsafe { self.memory.set_len(self.len) };
        self.memory
    }
}

/// Gives every element an unspecified value.
fn give_values<T: Pod>(elements: &mut [MaybeUninit<T>]) {
    if cfg!(debug_assertions) {
        // SAFETY: the bytes belong to the elements.
        unsafe { std::ptr::write_bytes(elements.as_mut_ptr(), 0xA5, elements.len()) };
    } else if !keeps_pages() {
        touch_pages(elements);
    }
    freeze(elements);
}

/// Writes a byte to every page that holds an element.
fn touch_pages<T: Pod>(elements: &mut [MaybeUninit<T>]) {
    let (start, size) = (elements.as_mut_ptr().cast::<u8>(), size_of_val(elements));
    for at in (0..size).step_by(PAGE).chain(size.checked_sub(1)) {
        // SAFETY: the byte belongs to an element.
        unsafe { start.add(at).write_volatile(0) };
    }
}

/// Makes the bytes that the elements happen to have their values. Reading memory that was never written is undefined
/// behavior, whatever its type. The compiler must assume that an empty assembly block writes all memory that it can reach,
/// so afterwards the elements count as written.
///
/// The premise is that a page which was not written since it was allocated has the same bytes in every read. It holds
/// unless the page has the advice `MADV_FREE`: then the system may discard its bytes until the page is written. No allocator
/// gives this advice for a block in use. But some give it for free pages, and hand these out again. Unless the program's
/// allocator is known not to ([`keeps_pages`]), [`touch_pages`] therefore comes before this function.
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
fn freeze<T: Pod>(elements: &mut [MaybeUninit<T>]) {
    // SAFETY: the block contains no instruction. It may write the elements, because they are borrowed mutably.
    unsafe { std::arch::asm!("/* {} */", in(reg) elements.as_mut_ptr(), options(nostack, preserves_flags)) };
}

#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
fn freeze<T: Pod>(elements: &mut [MaybeUninit<T>]) {
    elements.fill(MaybeUninit::zeroed());
}

/// The size of a huge page in bytes.
#[cfg(target_os = "linux")]
const HUGE: usize = 2 << 20;

/// Requests huge pages for the part of a buffer that covers whole huge pages. This reduces TLB misses. In the rest of the
/// buffer, a huge page would hold unused memory.
#[cfg(target_os = "linux")]
fn prefer_huge_pages<T>(data: &Vec<T>) {
    let start = data.as_ptr().addr();
    let first = start.next_multiple_of(HUGE);
    let end = (start + data.capacity() * size_of::<T>()) / HUGE * HUGE;
    if first < end {
        let page = data.as_ptr().cast_mut().wrapping_byte_add(first - start);
        // SAFETY: these pages belong to the buffer alone. The advice changes no bytes, and a system that does not
        // support it returns an error.
        unsafe { libc::madvise(page.cast(), end - first, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn prefer_huge_pages<T>(_: &Vec<T>) {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::{budget, caught, within};

    #[test]
    fn a_vector_has_the_written_elements() {
        let three = || Uninit::<u16>::new(3);
        assert_eq!((three().len(), three().is_empty(), Uninit::<u16>::new(0).is_empty()), (3, false, true));
        assert_eq!(three().fill(7), [7, 7, 7]);
        assert_eq!(three().copy(&[1, 2, 3]), [1, 2, 3]);
        assert_eq!(three().overwrite(|out| out.copy_from_slice(&[4, 5, 6])), [4, 5, 6]);
        let both = three().overwrite_both(Uninit::new(1), |out, other| {
            out.fill(8);
            other.fill(0.5);
        });
        assert_eq!(both, (vec![8, 8, 8], vec![0.5]));
        let several = |fails: bool| {
            Uninit::try_overwrite_all(vec![three(), Uninit::new(1)], |all| {
                (1..).zip(all).for_each(|(i, out)| out.fill(i));
                (!fails).then_some(()).ok_or("no")
            })
        };
        assert_eq!((several(false), several(true)), (Ok(vec![vec![1, 1, 1], vec![2]]), Err("no")));
        let written = |fails: bool| {
            three().try_overwrite(|out| {
                out.fill(9);
                (!fails).then_some(()).ok_or("no")
            })
        };
        assert_eq!((written(false), written(true)), (Ok(vec![9, 9, 9]), Err("no")));
        assert_eq!(Uninit::of(vec![1u8, 2, 3], 2).copy(&[4, 5]), [4, 5]);
    }

    #[test]
    #[should_panic(expected = "the number of elements")]
    fn another_number_of_elements_is_not_copied() {
        drop(Uninit::new(3).copy(&[1, 2]));
    }

    #[test]
    fn memory_counts_toward_the_budget() {
        within(4 << 20, || {
            let large = Uninit::<u8>::try_new(3 << 20).expect("3 MiB are left");
            assert_eq!((budget(), Uninit::<u8>::try_new(2 << 20).is_none()), (1 << 20, true));
            assert!(caught(|| Uninit::<u16>::new(1 << 20)).is_err());
            assert_eq!((large.fill(1).len(), Uninit::<u8>::new(9).fill(0).len(), budget()), (3 << 20, 9, 1 << 20));
            assert!(Uninit::<u8>::try_result(9).is_some() && budget() == (1 << 20) - 9);
            assert!(Uninit::<u8>::try_result(usize::MAX).is_none() && Uninit::<u64>::try_new(usize::MAX).is_none());
        });
    }
}
