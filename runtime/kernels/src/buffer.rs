//! Memory that a kernel is about to fill.

use bytemuck::Pod;

/// A vector of `len` elements whose contents are arbitrary: the kernel that takes it writes every element.
///
/// Zeroing first would cost a kernel that runs at memory speed a third of its time. In debug builds the bytes are
/// `0xA5`, so that a test sees an element that was not written.
pub fn for_overwrite<T: Pod>(len: usize) -> Vec<T> {
    let mut data: Vec<T> = Vec::with_capacity(len);
    if cfg!(debug_assertions) {
        // SAFETY: the capacity is `len` elements, and any bytes are a valid `T: Pod`.
        unsafe { std::ptr::write_bytes(data.as_mut_ptr(), 0xA5, len) };
    }
    // SAFETY: the capacity is `len`; `T: Pod` has neither invalid values nor drop glue, and callers only write.
    #[allow(clippy::uninit_vec)]
    unsafe {
        data.set_len(len)
    };
    data
}
