//! Elements aligned to cache lines: loading a vector that straddles two lines takes twice as long.

use std::ops::{Deref, DerefMut};

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

    /// Allocates at least `len` zeros.
    pub fn zeroed(len: usize) -> Lines {
        Lines(Scratch::filled(Line([0.0; 16]), len.div_ceil(16)))
    }

    /// Allocates at least `len` elements, and has `write` write the first `len` of them. See [`Scratch::overwritten`].
    pub fn overwritten(len: usize, write: impl FnOnce(&mut [f32])) -> Lines {
        Lines(Scratch::overwritten(len.div_ceil(16), |lines| write(&mut bytemuck::cast_slice_mut(lines)[..len])))
    }

    /// Discards the contents, and has `write` write `len` elements. Reallocates if the buffer is smaller. See
    /// [`Scratch::overwrite_kept`].
    pub fn overwrite(&mut self, len: usize, write: impl FnOnce(&mut [f32])) -> &mut [f32] {
        let lines = self.0.overwrite_kept(len.div_ceil(16), |lines| write(&mut bytemuck::cast_slice_mut(lines)[..len]));
        &mut bytemuck::cast_slice_mut(lines)[..len]
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
