//! Elements as unsigned words of the same width, for operators that move data without computing on it.

use candle_plan_memory::uninit::Uninit;

pub use super::word::Word;
use super::Array;
use crate::by_width;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::size::{element_count, out_of_memory};

/// Returns the elements as words, without a copy.
///
/// # Errors
/// The elements have another width, or are not on the CPU.
pub fn read<W: Word>(array: &Array) -> Result<&[W]> {
    array.elements().ok_or_else(|| wrong_width::<W>(array.dtype()))
}

/// Allocates memory for the words of a tensor of shape `dims`.
///
/// # Errors
/// The allocation fails.
pub fn alloc_uninit<W: Word>(dims: &[usize]) -> Result<Uninit<W>> {
    Uninit::try_result(element_count(dims)?).ok_or_else(|| out_of_memory(dims))
}

/// Makes a tensor from words, without a copy.
///
/// # Errors
/// The width of the words differs from `dtype`, or their number is not the product of the dimensions.
pub fn array<W: Word>(words: Vec<W>, dims: &[usize], dtype: DType) -> Result<Array> {
    let count = words.len();
    let storage = W::into_storage(words, dtype.storage_dtype()?).ok_or_else(|| wrong_width::<W>(dtype))?;
    Array::filled(storage, count, dims, dtype)
}

impl Array {
    /// Returns a tensor with the same elements in memory of its own.
    ///
    /// # Errors
    /// The allocation fails, or the tensor is not on the host.
    pub fn copy(&self) -> Result<Array> {
        fn copied<W: Word>(array: &Array) -> Result<Array> {
            let words = alloc_uninit::<W>(array.dims())?.copy(read::<W>(array)?);
            self::array(words, array.dims(), array.dtype())
        }
        by_width!(self.dtype(), W => copied::<W>(self))
    }
}

/// Changes the words of a tensor with `rewrite`, in place if the storage [is unshared](Array::is_alone), otherwise in a
/// copy.
///
/// # Errors
/// The elements have another width, or are not on the CPU.
pub fn update<W: Word>(array: &mut Array, rewrite: impl FnOnce(&mut [W])) -> Result<()> {
    let dtype = array.dtype();
    let (storage, range) = array.alone()?;
    let words = W::of_mut(storage).and_then(|all| all.get_mut(range)).ok_or_else(|| wrong_width::<W>(dtype))?;
    rewrite(words);
    Ok(())
}

fn wrong_width<W>(dtype: DType) -> Error {
    Error::op(format!("{dtype} elements on this device are not words of {} bytes", size_of::<W>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reversed<W: Word + Into<u64>>(dtype: DType, words: Vec<W>) -> Result<Vec<u64>> {
        let mut made = array(words, &[3], dtype)?;
        update::<W>(&mut made, |words| words.reverse())?;
        let read = read::<W>(&made)?;
        Ok(read.iter().map(|&word| word.into()).collect())
    }

    #[test]
    fn words_convert_to_every_storage_dtype() {
        use DType::*;
        for dtype in
            [Bool, Int4, Float8E5M2, Int16, Uint16, Float16, Bfloat16, Int32, Uint32, Float32, Int64, Uint64, Float64]
        {
            let moved = by_width!(dtype, W => reversed::<W>(dtype, vec![3, 1, 2]));
            assert_eq!(moved.expect("every dtype has a storage dtype"), [2, 1, 3], "{dtype}");
        }
        let mut floats = Array::new(vec![1f32], &[1]).expect("one element");
        assert!(read::<u16>(&floats).is_err() && update::<u8>(&mut floats, |_| ()).is_err());
        assert!(array::<u8>(vec![1], &[1], DType::Float32).is_err());
    }
}
