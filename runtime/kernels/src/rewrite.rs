//! Elementwise kernels that write an output of the same size, or work in place.

use crate::lane_loops::{load, store};
use crate::threads::Threads;

/// The output of an elementwise kernel, and its input if the kernel does not work in place.
pub struct Rewrite<'a, R> {
    from: Option<&'a [R]>,
    to: &'a mut [R],
}

impl<'a, R: Copy + Send + Sync> Rewrite<'a, R> {
    /// Overwrites the elements of `x`.
    pub fn in_place(x: &'a mut [R]) -> Self {
        Rewrite { from: None, to: x }
    }

    /// Fills `y` from `x`.
    ///
    /// # Panics
    /// The lengths differ.
    pub fn from_to(x: &'a [R], y: &'a mut [R]) -> Self {
        assert_eq!(x.len(), y.len(), "the output is as long as the input");
        Rewrite { from: Some(x), to: y }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.to.len()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.to.is_empty()
    }

    /// Returns the input elements.
    #[inline(always)]
    pub fn source(&self) -> &[R] {
        self.from.unwrap_or(self.to)
    }

    /// Returns the addresses of the input and the output: equal, or of memory that does not overlap.
    pub(crate) fn pointers(&mut self) -> (*const R, *mut R) {
        let to = self.to.as_mut_ptr();
        (self.from.map_or(to.cast_const(), <[R]>::as_ptr), to)
    }

    /// Copies the input to the output, unless it is there, and returns the output.
    pub fn copied(self) -> &'a mut [R] {
        if let Some(from) = self.from {
            self.to.copy_from_slice(from);
        }
        self.to
    }

    /// Sets every element to `value`.
    pub fn fill(&mut self, value: R) {
        self.to.fill(value);
    }

    /// Sets element `i`.
    ///
    /// # Panics
    /// `i` is out of bounds.
    pub fn set(&mut self, i: usize, value: R) {
        self.to[i] = value;
    }

    /// The output elements.
    #[inline(always)]
    pub(crate) fn target(&mut self) -> &mut [R] {
        self.to
    }

    /// Sets every element to `f` of its input.
    #[inline(always)]
    pub(crate) fn map(&mut self, f: impl Fn(R) -> R) {
        match self.from {
            Some(from) => {
                for (y, &x) in self.to.iter_mut().zip(from) {
                    *y = f(x);
                }
            }
            None => {
                for x in self.to.iter_mut() {
                    *x = f(*x);
                }
            }
        }
    }

    /// Sets every element to `f` of its input and the elements of `a` and `b` at the same index.
    #[inline(always)]
    pub(crate) fn zip_map(&mut self, a: &[R], b: &[R], f: impl Fn(R, R, R) -> R) {
        match self.from {
            Some(from) => {
                for (((y, &x), &a), &b) in self.to.iter_mut().zip(from).zip(a).zip(b) {
                    *y = f(x, a, b);
                }
            }
            None => {
                for ((x, &a), &b) in self.to.iter_mut().zip(a).zip(b) {
                    *x = f(*x, a, b);
                }
            }
        }
    }

    /// Calls `f` with the start and the input of every block of `W` elements, and writes its result. `pad` fills up the
    /// last block.
    #[inline(always)]
    pub(crate) fn map_blocks<const W: usize>(&mut self, pad: R, mut f: impl FnMut(usize, [R; W]) -> [R; W]) {
        let mut start = 0;
        while start < self.to.len() {
            let block = load(&self.source()[start..], pad);
            store(f(start, block), &mut self.to[start..]);
            start += W;
        }
    }

    /// Returns elements `start .. start + len`.
    #[inline(always)]
    pub(crate) fn part(&mut self, start: usize, len: usize) -> Rewrite<'_, R> {
        Rewrite { from: self.from.map(|from| &from[start..start + len]), to: &mut self.to[start..start + len] }
    }

    /// Calls `task(i, chunk)` for consecutive chunks of `length` elements; the last one may be shorter.
    pub fn for_each_chunk(self, threads: &Threads, length: usize, task: impl Fn(usize, Rewrite<'_, R>) + Sync) {
        let from = self.from;
        threads.for_each_chunk(self.to, length, |i, to| {
            let from = from.map(|from| &from[i * length..i * length + to.len()]);
            task(i, Rewrite { from, to });
        });
    }
}
