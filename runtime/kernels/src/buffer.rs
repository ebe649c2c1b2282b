//! Memory that a kernel is about to fill.

use bytemuck::Pod;

/// A vector of `len` elements whose contents are arbitrary: the kernel that takes it writes every element.
///
/// Zeroing first would cost a kernel that runs at memory speed a third of its time. In debug builds the bytes are
/// `0xA5`, so that a test sees an element that was not written.
pub fn for_overwrite<T: Pod>(len: usize) -> Vec<T> {
    filled_up(Vec::with_capacity(len), len)
}

/// [`for_overwrite`] for a length that comes from outside: `None` where there is not so much memory.
pub fn try_for_overwrite<T: Pod>(len: usize) -> Option<Vec<T>> {
    let mut data = Vec::new();
    data.try_reserve_exact(len).ok()?;
    Some(filled_up(data, len))
}

fn filled_up<T: Pod>(mut data: Vec<T>, len: usize) -> Vec<T> {
    assert!(data.capacity() >= len, "room for {len} elements");
    if cfg!(debug_assertions) {
        // SAFETY: the capacity is at least `len` elements, and any bytes are a valid `T: Pod`.
        unsafe { std::ptr::write_bytes(data.as_mut_ptr(), 0xA5, len) };
    }
    // SAFETY: the capacity is at least `len`; `T: Pod` has neither invalid values nor drop glue, and callers only write.
    #[allow(clippy::uninit_vec)]
    unsafe {
        data.set_len(len)
    };
    data
}
