//! The storage format of a packed matrix: the smallest one that represents every number exactly.

use half::{bf16, f16};

use crate::isa::Isa;
use crate::vector::Half;

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

/// Numbers that are tested at a time; the first chunk rules out most matrices.
const CHUNK: usize = 1024;

/// Whether `T` represents every number exactly.
fn holds<T: Half>(isa: Isa, data: &[f32]) -> bool {
    let (mut narrow, mut wide) = ([T::zeroed(); CHUNK], [0.0; CHUNK]);
    data.chunks(CHUNK).all(|chunk| {
        let (narrow, wide) = (&mut narrow[..chunk.len()], &mut wide[..chunk.len()]);
        T::narrow(isa, chunk, narrow);
        T::widen(isa, narrow, wide);
        chunk.iter().zip(wide).all(|(a, b)| a.to_bits() == b.to_bits())
    })
}
