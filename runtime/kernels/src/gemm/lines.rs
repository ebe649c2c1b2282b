//! Elements that begin at a cache line: a vector that straddles two takes twice as long to load.

use std::ops::{Deref, DerefMut};

use crate::buffer;
use crate::scratch::Scratch;

#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Line([f32; 16]);

// SAFETY: all zeros are 16 numbers.
unsafe impl bytemuck::Zeroable for Line {}
// SAFETY: any bits are 16 numbers, and there is nothing between them.
unsafe impl bytemuck::Pod for Line {}

/// Elements that begin at a cache line.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lines(Scratch<Line>);

impl Lines {
    /// No elements.
    pub const fn new() -> Lines {
        Lines(Scratch::new())
    }

    /// At least `len` elements, whose contents are arbitrary.
    pub fn for_overwrite(len: usize) -> Lines {
        Lines(Scratch::for_overwrite(len.div_ceil(16)))
    }

    /// `len` elements, whose contents are arbitrary.
    pub fn alloc_uninit(&mut self, len: usize) -> &mut [f32] {
        if self.len() < len {
            // As large as a cache, and kept for the next product: no step's own.
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
