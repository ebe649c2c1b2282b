//! Conversion between arrays and Candle tensors.

use std::sync::Arc;

use candle_core::op::BackpropOp;
use candle_core::Tensor;
use candle_plan_descriptors::broadcast::Dims;

use super::backing::Backing;
use super::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};

impl Array {
    /// Copies a Candle tensor.
    ///
    /// # Errors
    /// The tensor's type is not `dtype`'s storage dtype, or Candle fails.
    pub fn from_candle(tensor: &Tensor, dtype: DType) -> Result<Array> {
        if tensor.dtype() != dtype.storage_dtype()? {
            return Err(Error::op(format!("a Candle tensor of type {:?} cannot hold {dtype}", tensor.dtype())));
        }
        let tensor = tensor.contiguous()?;
        let (storage, layout) = tensor.storage_and_layout();
        let storage = Arc::new(Backing::Candle(storage.try_clone(layout)?));
        Ok(Array { storage, start: layout.start_offset(), dims: Dims::from_slice(tensor.dims()), dtype })
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
}
