//! Conversion between arrays and Candle tensors.

use std::sync::Arc;

use bytemuck::try_cast_slice;
use candle_core::op::BackpropOp;
use candle_core::{CpuStorage, Layout, Storage, Tensor};

use super::backing::{bytes_of, Backing};
use super::words::{self, Word};
use super::Array;
use crate::by_width;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::size::with_capacity;

impl Array {
    /// Copies the elements of a Candle tensor on the CPU. If the tensor is a view, the rest of its storage is not copied.
    /// [`Session::run_tensors`](crate::session::Session::run_tensors) lends tensors without a copy.
    ///
    /// # Errors
    /// The tensor's type is not `dtype`'s storage dtype, the tensor is not on the CPU, or the allocation fails.
    pub fn from_candle(tensor: &Tensor, dtype: DType) -> Result<Array> {
        if tensor.dtype() != dtype.storage_dtype()? {
            return Err(Error::op(format!("a Candle tensor of type {:?} cannot hold {dtype}", tensor.dtype())));
        }
        let (storage, layout) = tensor.storage_and_layout();
        let Storage::Cpu(storage) = &*storage else {
            return Err(Error::op(format!("the tensor is on {:?}, and not on the CPU", tensor.device())));
        };
        by_width!(dtype, W => words::array(viewed::<W>(storage, layout)?, tensor.dims(), dtype))
    }

    /// Converts this tensor to a Candle tensor. Copies the elements if the storage is shared or larger than the tensor.
    ///
    /// # Errors
    /// The allocation of the copy fails.
    pub fn into_candle(mut self) -> Result<Tensor> {
        if !self.is_alone() || self.bytes().map(<[u8]>::len) != self.storage.bytes().map(<[u8]>::len) {
            self = self.copy()?;
        }
        let dims = self.dims;
        match Arc::into_inner(self.storage) {
            Some(Backing::Candle(storage)) => Ok(Tensor::from_storage(storage, &dims[..], BackpropOp::none(), false)),
            _ => Err(Error::op("the storage is shared")),
        }
    }
}

/// Copies the elements of a view of a storage, in row-major order: the inner axes without gaps together.
fn viewed<W: Word>(storage: &CpuStorage, layout: &Layout) -> Result<Vec<W>> {
    let all: &[W] = try_cast_slice(bytes_of(storage)).map_err(|_| outside())?;
    let (dims, strides, count) = (layout.dims(), layout.stride(), layout.shape().elem_count());
    let mut found = with_capacity(count)?;
    let (mut outer, mut length) = (dims.len(), 1);
    while outer > 0 && (strides[outer - 1] == length || dims[outer - 1] == 1) {
        outer -= 1;
        length *= dims[outer];
    }
    let mut place = vec![0; outer];
    while found.len() < count {
        let start = layout.start_offset() + place.iter().zip(strides).map(|(at, stride)| at * stride).sum::<usize>();
        found.extend_from_slice(all.get(start..start + length).ok_or_else(outside)?);
        for axis in (0..outer).rev() {
            place[axis] += 1;
            if place[axis] < dims[axis] {
                break;
            }
            place[axis] = 0;
        }
    }
    Ok(found)
}

#[cold]
fn outside() -> Error {
    Error::op("the tensor has elements outside its storage")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candle_tensors_go_both_ways() {
        let x = Array::new(vec![1f32, 2.0, 3.0, 4.0], &[2, 2]).expect("four elements");
        let tensor = x.narrow_outer(0, 1, 1).and_then(Array::into_candle).expect("a copy");
        assert_eq!(tensor.to_vec2::<f32>().expect("a row"), [[3.0, 4.0]]);
        let transposed = x.into_candle().and_then(|x| Ok(x.t()?)).expect("a view");
        let back = Array::from_candle(&transposed, DType::Float32).expect("float32");
        assert_eq!((back.dims(), back.read::<f32>().unwrap()), (&[2, 2][..], &[1f32, 3.0, 2.0, 4.0][..]));
        assert!(Array::from_candle(&transposed, DType::Int32).is_err());
    }

    #[test]
    fn a_tensor_takes_over_the_memory_of_an_array() {
        let x = Array::new(vec![1f32, 2.0, 3.0], &[3]).expect("three elements");
        let address = x.read::<f32>().expect("float32").as_ptr().addr();
        let tensor = x.into_candle().expect("no copy");
        let (storage, _) = tensor.storage_and_layout();
        let Storage::Cpu(storage) = &*storage else { panic!("not on the CPU") };
        assert_eq!(bytes_of(storage).as_ptr().addr(), address);
    }

    #[test]
    fn a_copy_of_a_view_holds_only_its_elements() {
        let numbers: Vec<f32> = (0..24).map(|at| at as f32).collect();
        let whole = Tensor::from_vec(numbers, (4, 3, 2), &candle_core::Device::Cpu).expect("24 numbers");
        let views = [
            whole.clone(),
            whole.narrow(0, 1, 2).expect("rows"),
            whole.narrow(2, 1, 1).expect("columns"),
            whole.transpose(0, 2).and_then(|turned| turned.narrow(1, 1, 2)).expect("a view with strides"),
            whole.narrow(1, 0, 1).and_then(|rows| rows.broadcast_as((4, 3, 2))).expect("repeated rows"),
            whole.narrow(0, 4, 0).expect("no rows"),
        ];
        for view in views {
            let copy = Array::from_candle(&view, DType::Float32).expect("float32");
            let expected = view.flatten_all().and_then(|flat| flat.to_vec1::<f32>()).expect("numbers");
            assert_eq!((copy.dims(), copy.read::<f32>().unwrap()), (view.dims(), &expected[..]));
            assert_eq!(copy.storage.bytes().map(<[u8]>::len), Some(4 * expected.len()), "{:?}", view.layout());
            assert!(copy.is_alone() && copy.start == 0);
        }
    }
}
