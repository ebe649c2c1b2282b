//! Maps elements to unsigned integers with the same order.

use half::{bf16, f16};

/// An unsigned integer with the order of the elements.
pub(super) trait Key: Copy + Ord + Send + Sync + std::ops::BitXor<Output = Self> {
    const MIN: Self;
    const MAX: Self;

    /// The previous key; the first key returns itself.
    fn before(self) -> Self;
}

/// A key and an index in one integer: ordered by key, then by index.
pub(super) trait Packed<K>: Copy + Ord + Default {
    fn pack(key: K, place: usize) -> Self;
    fn key(self) -> K;
    fn place(self) -> i64;
}

/// Elements that map to a key.
pub(super) trait Keyed: Copy + Send + Sync {
    type Key: Key;

    /// Equal for equal elements, for 0 and −0, and for all NaNs, which come after every number.
    fn key(self) -> Self::Key;
}

macro_rules! key {
    ($($key:ident)*) => {
        $(impl Key for $key {
            const MIN: $key = $key::MIN;
            const MAX: $key = $key::MAX;

            fn before(self) -> $key {
                self.saturating_sub(1)
            }
        })*
    };
}

key!(u32 u64);

macro_rules! packed {
    ($($key:ident $packed:ident $bits:literal;)*) => {
        $(impl Packed<$key> for $packed {
            #[inline(always)]
            fn pack(key: $key, place: usize) -> $packed {
                ($packed::from(key) << $bits) | place as $packed
            }

            fn key(self) -> $key {
                (self >> $bits) as $key
            }

            fn place(self) -> i64 {
                (self & ((1 << $bits) - 1)) as i64
            }
        })*
    };
}

packed! {
    u32 u64 32;
    u32 u128 64;
    u64 u128 64;
}

macro_rules! integers {
    ($($element:ident $signed:ident $key:ident;)*) => {
        $(impl Keyed for $element {
            type Key = $key;

            #[inline(always)]
            fn key(self) -> $key {
                $signed::from(self) as $key ^ $signed::MIN as $key
            }
        })*
    };
}

integers! {
    i8 i32 u32;
    i16 i32 u32;
    i32 i32 u32;
    i64 i64 u64;
    u8 i32 u32;
    u16 i32 u32;
}

macro_rules! unsigned {
    ($($key:ident)*) => {
        $(impl Keyed for $key {
            type Key = $key;

            #[inline(always)]
            fn key(self) -> $key {
                self
            }
        })*
    };
}

unsigned!(u32 u64);

macro_rules! floats {
    ($($float:ident $bits:ident $signed:ident $key:ident;)*) => {
        $(impl Keyed for $float {
            type Key = $key;

            #[inline(always)]
            fn key(self) -> $key {
                let bits = self.to_bits();
                let magnitude = $key::from(bits & ($bits::MAX >> 1)) as $signed;
                let value = if bits > $bits::MAX >> 1 { -magnitude } else { magnitude };
                let infinity = $key::from($float::INFINITY.to_bits()) as $signed;
                let key = value as $key ^ $signed::MIN as $key;
                if magnitude > infinity { $key::MAX } else { key }
            }
        })*
    };
}

floats! {
    f32 u32 i32 u32;
    f16 u16 i32 u32;
    bf16 u16 i32 u32;
    f64 u64 i64 u64;
}
