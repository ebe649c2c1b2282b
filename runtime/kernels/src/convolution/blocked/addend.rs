//! The residual that a convolution adds to its outputs.

use crate::vector::Vector;

/// The address of some residual elements, or none.
#[derive(Clone, Copy)]
pub(super) struct Addend(*const f32);

impl Addend {
    /// Nothing to add.
    pub const NONE: Addend = Addend(std::ptr::null());

    /// The residual at an address that is not null.
    pub fn new(first: *const f32) -> Addend {
        Addend(first)
    }

    /// Whether there is nothing to add.
    pub fn is_none(self) -> bool {
        self.0.is_null()
    }

    /// The residual from element `offset` on.
    pub fn from(self, offset: usize) -> Addend {
        if self.is_none() {
            self
        } else {
            Addend(self.0.wrapping_add(offset))
        }
    }

    /// Adds the elements at `offset` to a vector.
    ///
    /// # Safety
    /// They can be read, if there is a residual.
    #[inline(always)]
    pub unsafe fn add_to<V: Vector>(self, sum: V, offset: usize) -> V {
        if self.0.is_null() {
            sum
        } else {
            // SAFETY: guaranteed by the caller.
            sum + unsafe { V::load(self.0.add(offset)) }
        }
    }
}
