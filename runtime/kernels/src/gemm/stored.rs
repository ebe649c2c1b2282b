//! The storage format of a packed matrix: the smallest one that represents every number exactly.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use crate::isa::Isa;
use crate::vector::{dispatch_isa, Vector};

/// The type in which a packed matrix stores its numbers. All are multiplied and summed as `f32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// 32 bits.
    Float32,
    /// 16 bits with an 11-bit mantissa.
    Float16,
    /// 16 bits with an 8-bit mantissa and the range of `f32`.
    Bfloat16,
}

impl Format {
    /// Returns the narrowest format that represents every number exactly.
    pub(crate) fn holding(isa: Isa, data: &[f32]) -> Format {
        match () {
            () if holds::<f16>(isa, data) => Format::Float16,
            () if holds::<bf16>(isa, data) => Format::Bfloat16,
            () => Format::Float32,
        }
    }

    /// The size of a number in bytes.
    pub(crate) fn size(self) -> usize {
        match self {
            Format::Float32 => 4,
            Format::Float16 | Format::Bfloat16 => 2,
        }
    }
}

/// A number of a packed matrix.
pub(super) trait Stored: bytemuck::Pod + Send {
    /// Loads `V::LANES` numbers; the conversion is exact.
    ///
    /// # Safety
    /// They can be read at `from`.
    unsafe fn load<V: Vector>(from: *const Self) -> V;
}

/// A 16-bit number.
pub(super) trait Half: Stored {
    /// Converts with rounding to nearest. The slices have the same length.
    fn narrow(from: &[f32], to: &mut [Self]);

    /// Converts exactly. The slices have the same length.
    fn widen(isa: Isa, from: &[Self], to: &mut [f32]);
}

impl Stored for f32 {
    #[inline(always)]
    unsafe fn load<V: Vector>(from: *const f32) -> V {
        // SAFETY: guaranteed by the caller.
        unsafe { V::load(from) }
    }
}

macro_rules! half {
    ($($half:ident $load:ident)*) => {
        $(impl Stored for $half {
            #[inline(always)]
            unsafe fn load<V: Vector>(from: *const $half) -> V {
                // SAFETY: guaranteed by the caller.
                unsafe { V::$load(from) }
            }
        }

        impl Half for $half {
            fn narrow(from: &[f32], to: &mut [$half]) {
                to.convert_from_f32_slice(from);
            }

            fn widen(isa: Isa, from: &[$half], to: &mut [f32]) {
                assert_eq!(from.len(), to.len());
                dispatch_isa!(isa, (from: &[$half] = from, to: &mut [f32] = to), V => widen::<V, $half>(from, to));
            }
        })*
    };
}

half! { f16 load_f16 bf16 load_bf16 }

/// See [`Half::widen`].
#[inline(always)]
fn widen<V: Vector, T: Half>(from: &[T], to: &mut [f32]) {
    let whole = from.len() - from.len() % V::LANES;
    for i in (0..whole).step_by(V::LANES) {
        // SAFETY: both slices have the same length, with a whole vector at `i`.
        unsafe { T::load::<V>(from.as_ptr().add(i)).store(to.as_mut_ptr().add(i)) };
    }
    for (from, to) in from[whole..].iter().zip(&mut to[whole..]) {
        // SAFETY: a vector with one lane is one number.
        *to = unsafe { T::load::<f32>(from) };
    }
}

/// Numbers that are tested at a time; the first chunk rules out most matrices.
const CHUNK: usize = 1024;

/// Whether `T` represents every number exactly.
fn holds<T: Half>(isa: Isa, data: &[f32]) -> bool {
    let (mut narrow, mut wide) = ([T::zeroed(); CHUNK], [0.0; CHUNK]);
    data.chunks(CHUNK).all(|chunk| {
        let (narrow, wide) = (&mut narrow[..chunk.len()], &mut wide[..chunk.len()]);
        T::narrow(chunk, narrow);
        T::widen(isa, narrow, wide);
        chunk.iter().zip(wide).all(|(a, b)| a.to_bits() == b.to_bits())
    })
}
