//! Tensors whose memory belongs to other code: on the host, and on a session's device.

use candle_core::Tensor;
use candle_plan_descriptors::strided::View;
use candle_plan_kernels::threads::Threads;

use crate::array::backing::{Backing, Loan};
use crate::array::words;
use crate::bail;
use crate::by_width;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::gpu::copied;
use crate::movable::copy_view;
use crate::read::check_bits;
use crate::session::Session;
use crate::size::element_count;
use crate::value::{Array, Value};

/// A tensor on the host or on a device that belongs to the caller.
pub struct Lent {
    /// The address of its element `[0, 0, …]`.
    pub address: u64,
    /// The dimensions.
    pub dims: Vec<usize>,
    /// The stride of each dimension, in elements; `None` for row-major order without gaps.
    pub strides: Option<Vec<isize>>,
    /// The dtype. The elements are stored as the runtime stores them on the host.
    pub dtype: DType,
    /// The stream that computes the elements, a CUDA handle; `None` if they are already computed.
    pub stream: Option<u64>,
    /// Keeps the memory alive.
    pub owner: Box<dyn Send + Sync>,
}

impl Lent {
    /// The elements of a tensor of Candle whose storage begins at this address, already computed.
    pub(crate) fn of(tensor: &Tensor, storage: u64, dtype: DType, owner: Box<dyn Send + Sync>) -> Lent {
        let layout = tensor.layout();
        let strides = layout.stride().iter().map(|&stride| stride as isize).collect();
        Lent {
            address: storage + (layout.start_offset() * tensor.dtype().size_in_bytes()) as u64,
            dims: layout.dims().to_vec(),
            strides: Some(strides),
            dtype,
            stream: None,
            owner,
        }
    }
}

/// Lends contiguous elements on the host, in row-major order, as an input of a run, without a copy. A run does not
/// write to them, and its limit of memory does not count them. If an output of the run is a view of the input, it also
/// keeps the owner alive.
///
/// # Errors
/// [`Error::Op`]: the number of bytes does not fit `dims` and `dtype`, or the elements are not aligned.
///
/// # Safety
/// While the owner lives, the bytes stay where they are, and nobody writes to them.
pub unsafe fn lend_on_host(bytes: &[u8], dims: &[usize], dtype: DType, owner: Box<dyn Send + Sync>) -> Result<Value> {
    // SAFETY: the caller guarantees the bytes while the owner lives, and the loan holds both.
    let bytes = unsafe { std::slice::from_raw_parts(bytes.as_ptr(), bytes.len()) };
    Ok(Array::lying_in(Backing::Lent(Loan::new(bytes, owner)), dims, dtype)?.into())
}

/// Lends a tensor on the host as an input of a run. It is copied only if it has gaps or is not in row-major order.
///
/// # Errors
/// [`Error::Op`]: the elements are not aligned, the tensor's sizes and addresses do not fit 64-bit numbers, or a byte is
/// no element of the dtype.
///
/// # Safety
/// While the owner lives, the elements are where `lent` says, and nobody writes to them.
pub unsafe fn lend_tensor_on_host(lent: Lent) -> Result<Value> {
    let Lent { address, dims, strides, dtype, stream: _, owner } = lent;
    let width = dtype.storage_dtype()?.size_in_bytes();
    if element_count(&dims)? == 0 {
        return by_width!(dtype, W => Ok(words::array(Vec::<W>::new(), &dims, dtype)?.into()));
    }
    let (first, view, count) = extent(&dims, strides, width)?;
    let start = address.checked_sub(first).and_then(|start| usize::try_from(start).ok()).filter(|&start| start > 0);
    let (Some(start), Some(bytes)) = (start, count.checked_mul(width)) else { bail!("the tensor has no such memory") };
    // SAFETY: the caller guarantees the elements and the owner, and the extent covers exactly the elements.
    let value = unsafe {
        let bytes = std::slice::from_raw_parts(std::ptr::with_exposed_provenance(start), bytes);
        lend_on_host(bytes, &[count], dtype, owner)?
    };
    let array = value.tensor()?;
    let array = match view == View::contiguous(&dims) {
        true => array.reshape(&dims)?,
        false => copy_view(array, &view, &Threads::serial())?,
    };
    if width == 1 {
        check_bits(dtype, array.bits::<u8>()?)?;
    }
    Ok(array.into())
}

#[doc(hidden)]
impl Session {
    /// The stream of the session's device, a CUDA handle; `None` if the device has no streams.
    pub fn stream(&self) -> Option<u64> {
        match &self.device {
            Device::Cpu => None,
            Device::Gpu(gpu) => gpu.stream(),
        }
    }

    /// Lends a tensor on the session's device as an input of a run. It is copied only if it has gaps or is not in
    /// row-major order. A run does not write to it.
    ///
    /// # Errors
    /// [`Error::Op`]: the session's device is the CPU, the memory belongs to another device, or the tensor's sizes and
    /// addresses do not fit 64-bit numbers. [`Error::Device`]: the device fails.
    ///
    /// # Safety
    /// While the owner lives, the elements are where `lent` says. Nobody writes to them until the runs that take the
    /// value have returned. The stream belongs to the session's device.
    pub unsafe fn lend(&self, lent: Lent) -> Result<Value> {
        let Device::Gpu(gpu) = &self.device else { bail!("a session on the CPU takes only tensors on the host") };
        let Lent { address, dims, strides, dtype, stream, owner } = lent;
        let refused = |error: candle_plan_device::Error| self.device.refused(error.to_string());
        gpu.check_process().map_err(refused)?;
        let width = dtype.storage_dtype()?.size_in_bytes();
        if element_count(&dims)? == 0 {
            return Ok(Array::on_device(gpu.allocate(0).map_err(refused)?, &dims, dtype)?.into());
        }
        let (first, view, count) = extent(&dims, strides, width)?;
        let address = address.checked_sub(first).filter(|address| address.is_multiple_of(width as u64));
        let Some(address) = address else { bail!("the elements are not aligned to {width} bytes") };
        let bytes = count.checked_mul(width).ok_or_else(|| Error::op("the tensor has too many bytes"))?;
        // SAFETY: the caller guarantees the address and the owner, and the extent covers exactly the elements.
        let array = unsafe {
            stream.map_or(Ok(()), |stream| gpu.wait_for(stream)).map_err(refused)?;
            let memory = gpu.lent(address, bytes, owner).map_err(|error| Error::op(error.to_string()))?;
            Array::on_device(memory, &[count], dtype)?
        };
        if view == View::contiguous(&dims) {
            return Ok(array.reshape(&dims)?.into());
        }
        let copy = copied(gpu, &array, &view).map_err(|error| self.device.refused(error.to_string()))?;
        gpu.finish().map_err(refused)?; // before the owner is dropped
        Ok(copy.into())
    }
}

/// Returns the extent in memory of elements with these strides. It consists of three parts: the number of bytes from
/// the first element in memory to element `[0, 0, …]`, the view of the elements from the first one on, and the number
/// of elements up to the last one, including those in gaps.
fn extent(dims: &[usize], strides: Option<Vec<isize>>, width: usize) -> Result<(u64, View, usize)> {
    let plain = View::contiguous(dims);
    let strides = strides.unwrap_or_else(|| plain.strides.clone());
    if strides.len() != dims.len() {
        bail!("a tensor of shape {dims:?} has {} strides", strides.len());
    }
    let (mut low, mut high) = (0i128, 0i128);
    for (&size, &stride) in dims.iter().zip(&strides) {
        let reach = (size as i128 - 1) * stride as i128;
        (low, high) = (low + reach.min(0), high + reach.max(0));
    }
    let too_far = || Error::op("the elements are too far apart");
    let offset = usize::try_from(-low).map_err(|_| too_far())?;
    let count = usize::try_from(high - low + 1).map_err(|_| too_far())?;
    let first = u64::try_from(-low * width as i128).map_err(|_| too_far())?;
    // The stride of a dimension of size 1 has no meaning.
    let step = |((&size, stride), plain): ((&usize, isize), &isize)| if size == 1 { *plain } else { stride };
    let strides = dims.iter().zip(strides).zip(&plain.strides).map(step).collect();
    Ok((first, View { offset, dims: dims.to_vec(), strides }, count))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytemuck::cast_slice;

    use super::*;

    #[test]
    fn lent_elements_are_read_in_place_and_copied_to_change() {
        let owner = Arc::new(vec![1f32, 2.0, 3.0, 4.0]);
        let bytes: &[u8] = cast_slice(&owner);
        // SAFETY: the clone of the owner keeps the elements, and nobody can write to a shared vector.
        let lend =
            |bytes, dims: &[usize]| unsafe { lend_on_host(bytes, dims, DType::Float32, Box::new(owner.clone())) };
        let Ok(Value::Tensor(mut lent)) = lend(bytes, &[2, 2]) else { panic!("not a tensor") };
        assert_eq!(lent.read::<f32>().expect("float32").as_ptr(), owner.as_ptr());
        assert!(!lent.is_alone() && Arc::strong_count(&owner) == 2);
        assert_eq!(lent.storage(), (owner.as_ptr().addr(), 0), "the caller holds the memory");
        let reverse = |elements: &mut [f32]| {
            elements.reverse();
            Ok(())
        };
        lent.update(reverse).expect("a copy");
        assert_eq!((lent.read::<f32>().unwrap(), &owner[..]), (&[4f32, 3.0, 2.0, 1.0][..], &[1f32, 2.0, 3.0, 4.0][..]));
        assert_eq!(Arc::strong_count(&owner), 1, "the copy needs no owner");
        assert!(lend(bytes, &[3]).is_err() && lend(&bytes[2..14], &[3]).is_err(), "not as many, and not aligned");
    }

    #[test]
    fn an_extent_holds_every_element() {
        // Dimensions and strides; then the bytes before, the offset, the number of elements, and whether they are
        // contiguous.
        for (dims, strides, expected) in [
            (vec![2, 3], None, (0, 0, 6, true)),
            (vec![2, 3], Some(vec![3, 1]), (0, 0, 6, true)),
            (vec![1, 3], Some(vec![77, 1]), (0, 0, 3, true)),
            (vec![2, 3], Some(vec![1, 2]), (0, 0, 6, false)),
            (vec![2, 3], Some(vec![8, 2]), (0, 0, 13, false)),
            (vec![4], Some(vec![-1]), (12, 3, 4, false)),
            (vec![5], Some(vec![0]), (0, 0, 1, false)),
        ] {
            let (first, view, count) = extent(&dims, strides.clone(), 4).expect("it is small");
            let found = (first, view.offset, count, view == View::contiguous(&dims));
            assert_eq!(found, expected, "{dims:?} {strides:?}");
            assert!(view.fits(count));
        }
        assert!(extent(&[2], Some(vec![1, 1]), 4).is_err());
        assert!(extent(&[usize::MAX, 2], Some(vec![isize::MAX, 1]), 4).is_err());
    }
}
