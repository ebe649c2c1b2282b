//! Elements aligned to cache lines: loading a vector that straddles two lines takes twice as long.

use std::ops::{Deref, DerefMut};

use crate::buffer;
use crate::scratch::Scratch;

#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Line([f32; 16]);

// SAFETY: all zeros are valid numbers.
unsafe impl bytemuck::Zeroable for Line {}
// SAFETY: any bits are valid numbers, and there is no padding.
unsafe impl bytemuck::Pod for Line {}

/// A buffer of elements aligned to a cache line.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lines(Scratch<Line>);

impl Lines {
    /// An empty buffer.
    pub const fn new() -> Lines {
        Lines(Scratch::new())
    }

    /// Allocates at least `len` elements with arbitrary values.
    pub fn for_overwrite(len: usize) -> Lines {
        Lines(Scratch::for_overwrite(len.div_ceil(16)))
    }

    /// Returns `len` elements with arbitrary values. Reallocates if the buffer is smaller.
    pub fn alloc_uninit(&mut self, len: usize) -> &mut [f32] {
        if self.len() < len {
            // As large as a cache, and kept for later products, so it does not count toward a step's budget.
            *self = buffer::within(usize::MAX, || Lines::for_overwrite(len));
        }
        &mut self[..len]
    }
}

impl Deref for Lines {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        bytemuck::cast_slice(&self.0)
    }
}

impl DerefMut for Lines {
    fn deref_mut(&mut self) -> &mut [f32] {
        bytemuck::cast_slice_mut(&mut self.0)
    }
}
