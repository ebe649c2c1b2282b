//! Sizes that come from outside, and memory for tensors of such sizes.

use candle_plan_memory::buffer::{self, OutOfMemory, CACHED};
use candle_plan_memory::machine;
use candle_plan_memory::uninit::Uninit;

use crate::dtype::Element;
use crate::error::{Error, Result};

/// The maximum rank of a tensor, the same as NumPy's.
pub const MAX_RANK: usize = 64;

/// The product of the dimensions.
///
/// # Errors
/// There are more than [`MAX_RANK`] dimensions, or the product of the nonzero ones does not fit in memory's address
/// range. This also ensures that no product of some of the dimensions overflows.
pub fn element_count(dims: &[usize]) -> Result<usize> {
    if dims.len() > MAX_RANK {
        return Err(Error::op(format!("a tensor has at most {MAX_RANK} dimensions, found {}", dims.len())));
    }
    let (mut count, mut is_empty) = (Some(1usize), false);
    for &dim in dims {
        count = count.and_then(|count| count.checked_mul(dim.max(1)));
        is_empty |= dim == 0;
    }
    match count.filter(|&count| count <= isize::MAX as usize / 8) {
        Some(_) if is_empty => Ok(0),
        Some(count) => Ok(count),
        None => Err(Error::op(format!("a tensor of shape {dims:?} is too large"))),
    }
}

/// Allocates an empty list with capacity for `count` elements.
///
/// # Errors
/// The allocation fails.
pub fn with_capacity<T>(count: usize) -> Result<Vec<T>> {
    buffer::try_with_capacity(count).ok_or_else(|| out_of_memory(&[count]))
}

/// Accounts for `count` elements of `T` that a kernel is about to allocate in another way than with these functions.
///
/// # Errors
/// There is not enough memory for them.
pub fn scratch<T>(count: usize) -> Result<()> {
    match count.checked_mul(size_of::<T>()) {
        Some(bytes) if bytes <= CACHED => Ok(()),
        _ => with_capacity::<T>(count).map(drop),
    }
}

/// Collects a list whose length comes from outside.
///
/// # Errors
/// The allocation fails.
pub fn list<T>(items: impl ExactSizeIterator<Item = T>) -> Result<Vec<T>> {
    let mut list = with_capacity(items.len())?;
    list.extend(items);
    Ok(list)
}

/// Copies a slice.
///
/// # Errors
/// The allocation fails.
pub fn copied<T: Copy>(elements: &[T]) -> Result<Vec<T>> {
    let mut copy = with_capacity(elements.len())?;
    copy.extend_from_slice(elements);
    Ok(copy)
}

/// Like [`list`], for items that may be errors.
///
/// # Errors
/// The allocation fails, or an item is an error: the first one.
pub fn try_list<T>(items: impl ExactSizeIterator<Item = Result<T>>) -> Result<Vec<T>> {
    let mut list = with_capacity(items.len())?;
    for item in items {
        list.push(item?);
    }
    Ok(list)
}

/// Allocates memory for the elements of a tensor of shape `dims`.
///
/// # Errors
/// The shape is too large, or the allocation fails.
pub fn alloc_uninit<T: Element>(dims: &[usize]) -> Result<Uninit<T>> {
    Uninit::try_new(element_count(dims)?).ok_or_else(|| out_of_memory(dims))
}

/// Counts a tensor of shape `dims`, whose memory the caller allocates elsewhere, toward the run's memory limit. Returns
/// its bytes; an element has `width` of them.
///
/// # Errors
/// The shape is too large, or the tensor exceeds the limit.
pub(crate) fn charge(dims: &[usize], width: usize) -> Result<usize> {
    let bytes = element_count(dims)?.checked_mul(width);
    bytes.filter(|&bytes| buffer::charge(bytes)).ok_or_else(|| out_of_memory(dims))
}

/// Runs `work`, and turns a lack of memory for scratch buffers in it into an error.
///
/// # Errors
/// There is not enough memory for scratch buffers, or `work` fails.
pub(crate) fn catch_out_of_memory<R>(work: impl FnOnce() -> Result<R>) -> Result<R> {
    buffer::caught(work).unwrap_or_else(|out_of_memory| Err(beyond(out_of_memory)))
}

/// The error for a lack of memory beside inputs and outputs.
pub(crate) fn beyond(OutOfMemory { bytes, left }: OutOfMemory) -> Error {
    let needed = match bytes {
        usize::MAX => "more bytes than can be counted".to_string(),
        bytes => format!("{bytes} bytes"),
    };
    Error::Memory(match left < bytes && left < machine::memory() {
        true => format!(
            "it needs {needed} beside its inputs and outputs, but max_memory leaves {left}: raise it or use smaller inputs"
        ),
        false => format!("it needs {needed} beside its inputs and outputs, but there is no memory: use smaller inputs"),
    })
}

/// The error for a failed allocation of a tensor.
pub(crate) fn out_of_memory(dims: &[usize]) -> Error {
    Error::Memory(match buffer::budget() {
        left if left < machine::memory() => {
            format!("a tensor of shape {dims:?} needs more than the {left} bytes that max_memory leaves: raise it or use smaller inputs")
        }
        _ => format!("there is no memory for a tensor of shape {dims:?}: use smaller inputs"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_is_bounded_in_rank_and_in_every_product() {
        let cases: [(&[usize], Option<usize>); 9] = [
            (&[], Some(1)),
            (&[2, 3], Some(6)),
            (&[2, 0, 3], Some(0)),
            (&[1 << 59], Some(1 << 59)),
            (&[1 << 60], None),
            (&[1 << 40, 1 << 40], None),
            (&[0, 1 << 40, 1 << 40], None),
            (&[usize::MAX, 0], None),
            (&[0, 1 << 40], Some(0)),
        ];
        for (dims, expected) in cases {
            assert_eq!(element_count(dims).ok(), expected, "{dims:?}");
        }
        assert_eq!(element_count(&[1; MAX_RANK]).ok(), Some(1));
        assert!(element_count(&[1; MAX_RANK + 1]).is_err() && element_count(&[0; MAX_RANK + 1]).is_err());
        assert!(matches!(list(0..usize::MAX / 8), Err(Error::Memory(_))));
        assert!(machine::memory() == usize::MAX || alloc_uninit::<u8>(&[machine::memory() + 1]).is_err());
        assert_eq!(list(0..3usize).ok(), Some(vec![0, 1, 2]));
    }

    /// Release builds check overflow too: `Cargo.toml` enables it, because sizes come from outside.
    #[test]
    #[should_panic(expected = "overflow")]
    fn an_overflow_panics() {
        std::hint::black_box(std::hint::black_box(usize::MAX) + 1);
    }
}
