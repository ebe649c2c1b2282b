//! Temporary buffers of a kernel.

use std::mem::take;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::Ordering::Relaxed;

use bytemuck::Pod;

use crate::buffer::{self, Budget, OutOfMemory, CACHED};
use crate::uninit::Uninit;

/// A temporary buffer of a kernel. A buffer larger than a cache counts toward the [budget](buffer::budget) while it
/// exists. If memory runs out, the kernel [stops](OutOfMemory::end).
#[derive(Debug)]
pub struct Scratch<T> {
    data: Vec<T>,
    bytes: usize,
    budget: Budget,
}

impl<T> Scratch<T> {
    /// An empty buffer.
    pub const fn new() -> Scratch<T> {
        Scratch { data: Vec::new(), bytes: 0, budget: None }
    }

    /// Allocates `len` copies of `value`.
    pub fn filled(value: T, len: usize) -> Scratch<T>
    where
        T: Clone,
    {
        let mut data = Scratch::with_capacity(len);
        data.data.resize(len, value);
        data
    }

    /// Collects the elements of an iterator.
    pub fn of(items: impl ExactSizeIterator<Item = T>) -> Scratch<T> {
        Scratch::of_up_to(items.len(), items)
    }

    /// Collects an iterator of at most `most` elements.
    ///
    /// # Panics
    /// There are more.
    pub fn of_up_to(most: usize, items: impl Iterator<Item = T>) -> Scratch<T> {
        let mut data = Scratch::with_capacity(most);
        data.data.extend(items);
        assert!(data.len() <= most, "{} elements, at most {most}", data.len());
        data
    }

    fn with_capacity(len: usize) -> Scratch<T> {
        let bytes = len.checked_mul(size_of::<T>());
        let budget = if bytes.is_some_and(|bytes| bytes <= CACHED) { None } else { buffer::shared() };
        match (buffer::try_with_capacity(len), bytes) {
            (Some(data), Some(bytes)) => Scratch { data, bytes, budget },
            _ => OutOfMemory::end(bytes),
        }
    }

    /// Allocates `len` elements, and has `write` write them. They start with unspecified values, which stay in elements that
    /// it does not write ([`Uninit`]).
    pub fn overwritten(len: usize, write: impl FnOnce(&mut [T])) -> Scratch<T>
    where
        T: Pod,
    {
        Scratch::with_capacity(len).written(len, write)
    }

    /// Has `write` write `len` elements, for which there is capacity.
    fn written(mut self, len: usize, write: impl FnOnce(&mut [T])) -> Scratch<T>
    where
        T: Pod,
    {
        self.data = Uninit::of(take(&mut self.data), len).overwrite(write);
        self
    }

    /// Keeps only the first `len` elements.
    pub fn truncate(&mut self, len: usize) {
        self.data.truncate(len);
    }

    /// Discards the contents, and has `write` write `len` elements. They start with unspecified values, as those of
    /// [`Scratch::overwritten`]. Reallocates if the buffer is smaller.
    pub fn overwrite(&mut self, len: usize, write: impl FnOnce(&mut [T])) -> &mut [T]
    where
        T: Pod,
    {
        self.overwrite_in(len, Scratch::with_capacity, write)
    }

    /// Like [`Scratch::overwrite`], for a buffer as large as a cache that a thread keeps for later kernels: it does not count
    /// toward a budget.
    pub fn overwrite_kept(&mut self, len: usize, write: impl FnOnce(&mut [T])) -> &mut [T]
    where
        T: Pod,
    {
        self.overwrite_in(len, |len| buffer::within(usize::MAX, || Scratch::with_capacity(len)), write)
    }

    fn overwrite_in(
        &mut self,
        len: usize,
        allocate: impl FnOnce(usize) -> Scratch<T>,
        write: impl FnOnce(&mut [T]),
    ) -> &mut [T]
    where
        T: Pod,
    {
        if self.data.len() < len {
            *self = Scratch::new(); // frees the old buffer before it allocates the new one
            *self = allocate(len).written(len, write);
            return &mut self.data;
        }
        let elements = &mut self.data[..len];
        write(elements);
        elements
    }
}

impl<T> Default for Scratch<T> {
    fn default() -> Scratch<T> {
        Scratch::new()
    }
}

impl<T: Clone> Clone for Scratch<T> {
    fn clone(&self) -> Scratch<T> {
        Scratch::of(self.iter().cloned())
    }
}

impl<T> Drop for Scratch<T> {
    fn drop(&mut self) {
        if let Some(left) = &self.budget {
            left.fetch_add(self.bytes, Relaxed);
        }
    }
}

impl<T> Deref for Scratch<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.data
    }
}

impl<T> DerefMut for Scratch<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.data
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::{budget, caught, within};
    use crate::threads::Threads;

    const MIB: usize = 1 << 20;

    #[test]
    fn scratch_memory_counts_until_it_is_dropped() {
        within(10 * MIB, || {
            let mut some = Scratch::filled(1u16, MIB);
            assert_eq!((some[99], budget()), (1, 8 * MIB));
            let other = Scratch::of((0..MIB / 2).map(|i| i as u64));
            assert_eq!((other[7], budget()), (7, 4 * MIB));
            let refused = caught(|| Scratch::<f32>::overwritten(MIB + 1, |_| ())).err();
            assert_eq!(refused, Some(OutOfMemory { bytes: 4 * MIB + 4, left: 4 * MIB }));
            let small = Scratch::filled(0u8, CACHED);
            assert_eq!((small.len(), budget()), (MIB, 4 * MIB));
            drop(other);
            assert_eq!((some.overwrite(3 * MIB, |some| some.fill(2))[99], budget()), (2, 4 * MIB));
            assert_eq!(some.overwrite(2, |some| some.fill(3)), [3, 3]);
            drop(some);
            assert_eq!(budget(), 10 * MIB);
            let mut kept = Scratch::<u8>::new();
            assert_eq!((kept.overwrite_kept(3 * MIB, |kept| kept.fill(4))[99], budget()), (4, 10 * MIB));
            assert_eq!(kept.overwrite_kept(2, |kept| kept[0] = 5), [5, 4]);
            drop(kept);
            assert_eq!(budget(), 10 * MIB);
        });
    }

    #[test]
    fn more_than_there_is_memory_ends_the_kernel() {
        for len in [usize::MAX, 1 << 61, 1 << 58] {
            assert!(caught(|| Scratch::filled(0f64, len)).is_err(), "{len}");
        }
    }

    #[test]
    fn threads_share_a_budget() {
        for threads in [Threads::serial(), Threads::new(2).unwrap()] {
            let run = |bytes: usize| {
                let task = |_: usize| assert_eq!(Scratch::filled(0u8, bytes).len(), bytes);
                within(10 * MIB, || caught(|| threads.for_each(20, task)).map(|()| budget()))
            };
            assert_eq!(run(5 * MIB), Ok(10 * MIB));
            assert_eq!(run(11 * MIB), Err(OutOfMemory { bytes: 11 * MIB, left: 10 * MIB }));
            let held = within(10 * MIB, || {
                let _held = Scratch::filled(0u8, 6 * MIB);
                caught(|| threads.for_each(2, |_| drop(Scratch::filled(0u8, 5 * MIB))))
            });
            assert_eq!(held, Err(OutOfMemory { bytes: 5 * MIB, left: 4 * MIB }));
        }
    }

    #[test]
    fn a_panic_is_no_lack_of_memory() {
        let panic = std::panic::catch_unwind(|| caught(|| panic!("another")));
        assert_eq!(panic.unwrap_err().downcast_ref(), Some(&"another"));
    }
}
