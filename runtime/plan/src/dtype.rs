//! Logical element types, and the candle storage that carries each.

use candle_core::{CpuStorage, DType as StorageDType};
use half::{bf16, f16};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The element type of a tensor, as ONNX defines it, under its NumPy or `ml_dtypes` name.
///
/// Candle has fewer types. A type that it lacks is stored, bits unchanged, as a [storage dtype](DType::storage_dtype)
/// of the same width. The 4-bit and 2-bit integers are unpacked, one per byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum DType {
    Bool,
    Int2,
    Int4,
    Int8,
    Int16,
    Int32,
    Int64,
    Uint2,
    Uint4,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Float16,
    Bfloat16,
    Float32,
    Float64,
    #[serde(rename = "float8_e4m3fn")]
    Float8E4M3Fn,
    #[serde(rename = "float8_e4m3fnuz")]
    Float8E4M3Fnuz,
    #[serde(rename = "float8_e5m2")]
    Float8E5M2,
    #[serde(rename = "float8_e5m2fnuz")]
    Float8E5M2Fnuz,
    #[serde(rename = "float8_e8m0fnu")]
    Float8E8M0Fnu,
    #[serde(rename = "float4_e2m1fn")]
    Float4E2M1Fn,
    String,
}

impl DType {
    /// The candle type whose storage holds this type's bits.
    ///
    /// # Errors
    /// Candle has no tensors of strings.
    pub fn storage_dtype(self) -> Result<StorageDType> {
        Ok(match self {
            DType::Int16 | DType::Uint16 => StorageDType::I16,
            DType::Int32 => StorageDType::I32,
            DType::Uint32 => StorageDType::U32,
            DType::Int64 | DType::Uint64 => StorageDType::I64,
            DType::Float16 => StorageDType::F16,
            DType::Bfloat16 => StorageDType::BF16,
            DType::Float32 => StorageDType::F32,
            DType::Float64 => StorageDType::F64,
            DType::String => return Err(Error::op("a string tensor has no numeric storage")),
            _ => StorageDType::U8,
        })
    }

    /// The bytes of an element in its storage.
    ///
    /// # Errors
    /// Strings have no such storage.
    pub fn width(self) -> Result<usize> {
        Ok(match self.storage_dtype()? {
            StorageDType::U8 => 1,
            StorageDType::I16 | StorageDType::F16 | StorageDType::BF16 => 2,
            StorageDType::I32 | StorageDType::U32 | StorageDType::F32 => 4,
            _ => 8,
        })
    }

    /// Whether arithmetic on this type is floating-point.
    pub fn is_float(self) -> bool {
        matches!(self, DType::Float16 | DType::Bfloat16 | DType::Float32 | DType::Float64) || self.is_small_float()
    }

    /// Whether this is one of the 8-bit and 4-bit floating-point types, which ops store and convert but do not compute
    /// with.
    pub fn is_small_float(self) -> bool {
        use DType::*;
        matches!(self, Float8E4M3Fn | Float8E4M3Fnuz | Float8E5M2 | Float8E5M2Fnuz | Float8E8M0Fnu | Float4E2M1Fn)
    }

    /// Whether this is a signed or unsigned integer (booleans are not).
    pub fn is_int(self) -> bool {
        !self.is_float() && !matches!(self, DType::Bool | DType::String)
    }
}

impl std::fmt::Display for DType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match serde_json::to_value(self) {
            Ok(serde_json::Value::String(name)) => f.write_str(&name),
            _ => write!(f, "{self:?}"),
        }
    }
}

/// The dtypes of floating-point arithmetic.
pub const FLOATS: [DType; 4] = [DType::Float16, DType::Bfloat16, DType::Float32, DType::Float64];

/// The dtypes for which ONNX defines sums and products along axes.
pub const SUMMED: [DType; 8] = [
    DType::Float16,
    DType::Bfloat16,
    DType::Float32,
    DType::Float64,
    DType::Int32,
    DType::Int64,
    DType::Uint32,
    DType::Uint64,
];

/// The dtypes with a Rust type of their own, except booleans.
pub const NUMBERS: [DType; 12] = [
    DType::Float16,
    DType::Bfloat16,
    DType::Float32,
    DType::Float64,
    DType::Int8,
    DType::Int16,
    DType::Int32,
    DType::Int64,
    DType::Uint8,
    DType::Uint16,
    DType::Uint32,
    DType::Uint64,
];

/// Rejects a dtype that is not in the list.
///
/// # Errors
/// `dtype` is not in the list. The error names the allowed ones.
pub fn require_dtype(name: &str, dtype: DType, allowed: &[DType]) -> Result<()> {
    if allowed.contains(&dtype) {
        return Ok(());
    }
    let allowed: Vec<String> = allowed.iter().map(DType::to_string).collect();
    Err(Error::op(format!("{name} is {dtype}; allowed are {}", allowed.join(", "))))
}

/// A Rust type of elements: the integers of 8 to 64 bits, `half::f16` and `half::bf16`, `f32` and `f64`.
pub trait Element: bytemuck::Pod + Send + Sync + std::fmt::Debug + PartialEq {
    /// The logical type.
    const DTYPE: DType;
    /// The element of the storage dtype, with the size and alignment of `Self`.
    #[doc(hidden)]
    type Stored: candle_core::WithDType + bytemuck::Pod;

    /// The elements of the storage; `None` if it has another storage dtype.
    #[doc(hidden)]
    fn stored(storage: &CpuStorage) -> Option<&[Self::Stored]>;

    /// The elements of the storage, for writing; `None` if it has another storage dtype.
    #[doc(hidden)]
    fn stored_mut(storage: &mut CpuStorage) -> Option<&mut Vec<Self::Stored>>;

    /// Makes a storage from elements, without a copy.
    #[doc(hidden)]
    fn into_storage(elements: Vec<Self>) -> CpuStorage;
}

/// A boolean as ONNX stores it: one byte, 0 or 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct Bool(pub u8);

impl From<bool> for Bool {
    fn from(value: bool) -> Bool {
        Bool(u8::from(value))
    }
}

impl Bool {
    /// Whether the byte is not zero.
    pub fn is_true(self) -> bool {
        self.0 != 0
    }
}

macro_rules! elements {
    ($($rust:ty => $dtype:ident on $stored:ty as $storage:ident;)*) => {
        $(impl Element for $rust {
            const DTYPE: DType = DType::$dtype;
            type Stored = $stored;

            fn stored(storage: &CpuStorage) -> Option<&[$stored]> {
                match storage {
                    CpuStorage::$storage(elements) => Some(elements),
                    _ => None,
                }
            }

            fn stored_mut(storage: &mut CpuStorage) -> Option<&mut Vec<$stored>> {
                match storage {
                    CpuStorage::$storage(elements) => Some(elements),
                    _ => None,
                }
            }

            fn into_storage(elements: Vec<$rust>) -> CpuStorage {
                CpuStorage::$storage(bytemuck::allocation::cast_vec(elements))
            }
        })*
    };
}

elements! {
    Bool => Bool on u8 as U8;
    i8 => Int8 on u8 as U8;
    i16 => Int16 on i16 as I16;
    i32 => Int32 on i32 as I32;
    i64 => Int64 on i64 as I64;
    u8 => Uint8 on u8 as U8;
    u16 => Uint16 on i16 as I16;
    u32 => Uint32 on u32 as U32;
    u64 => Uint64 on i64 as I64;
    f16 => Float16 on f16 as F16;
    bf16 => Bfloat16 on bf16 as BF16;
    f32 => Float32 on f32 as F32;
    f64 => Float64 on f64 as F64;
}

/// Runs `$body` with `$T` as the Rust type of a logical dtype. A dtype that is not listed is an error that names `$op`
/// and the dtype.
///
/// ```ignore
/// dispatch!("Add", x.dtype(), [f32, f64, i32, i64], T => add::<T>(x, y))
/// ```
macro_rules! dispatch {
    ($op:expr, $dtype:expr, [$($rust:ty),+ $(,)?], $T:ident => $body:expr) => {{
        let dtype = $dtype;
        $(if dtype == <$rust as $crate::dtype::Element>::DTYPE {
            type $T = $rust;
            $body
        } else)+ {
            Err($crate::error::Error::op(format!("{} is not defined for {dtype}", $op)))
        }
    }};
}
pub(crate) use dispatch;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_lists_the_allowed_dtypes() {
        assert!(require_dtype("X", DType::Float16, &FLOATS).is_ok());
        assert!(require_dtype("X", DType::Int8, &FLOATS).is_err_and(|e| e.to_string().contains("float16, bfloat16")));
    }
}
