//! The unsigned integers that represent elements of the same width.

use bytemuck::cast_slice_mut;
use candle_core::{CpuStorage, DType as StorageDType};
use candle_plan_descriptors::word;

/// An unsigned integer of the same width as the elements it represents.
pub trait Word: word::Word {
    /// Returns the elements of a storage for writing, or `None` if they have another width.
    fn of_mut(storage: &mut CpuStorage) -> Option<&mut [Self]>;

    /// Makes a storage of type `stored` from words, without a copy, or returns `None` if it has another width.
    fn into_storage(words: Vec<Self>, stored: StorageDType) -> Option<CpuStorage>;
}

macro_rules! words {
    ($($word:ty: $($storage:ident)+;)*) => {
        $(impl Word for $word {
            fn of_mut(storage: &mut CpuStorage) -> Option<&mut [Self]> {
                match storage {
                    $(CpuStorage::$storage(elements) => Some(cast_slice_mut(elements)),)+
                    _ => None,
                }
            }

            fn into_storage(words: Vec<Self>, stored: StorageDType) -> Option<CpuStorage> {
                match stored {
                    $(StorageDType::$storage => Some(CpuStorage::$storage(bytemuck::allocation::cast_vec(words))),)+
                    _ => None,
                }
            }
        })*
    };
}

words! {
    u8: U8;
    u16: I16 F16 BF16;
    u32: I32 U32 F32;
    u64: I64 F64;
}

/// Runs `$body` with `$W` as the word type of a dtype's width.
macro_rules! by_width {
    ($dtype:expr, $W:ident => $body:expr) => {{
        use candle_core::DType as StorageDType;
        match $dtype.storage_dtype() {
            Err(error) => Err(error),
            Ok(StorageDType::U8) => {
                type $W = u8;
                $body
            }
            Ok(StorageDType::I16 | StorageDType::F16 | StorageDType::BF16) => {
                type $W = u16;
                $body
            }
            Ok(StorageDType::I32 | StorageDType::U32 | StorageDType::F32) => {
                type $W = u32;
                $body
            }
            Ok(_) => {
                type $W = u64;
                $body
            }
        }
    }};
}
pub(crate) use by_width;
