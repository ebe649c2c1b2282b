//! The scales or zero points of a packed matrix.

use half::{bf16, f16};

use crate::gemm::{Format, Lines};
use crate::isa::Isa;
use crate::vector::{Half, Vector};

/// Numbers in the narrowest format that represents all of them exactly.
#[derive(Debug, Clone)]
pub(super) struct Numbers {
    format: Format,
    data: Lines,
    len: usize,
}

impl Numbers {
    /// Stores numbers.
    pub fn new(isa: Isa, numbers: &[f32]) -> Numbers {
        let (format, len) = (Format::holding(isa, numbers), numbers.len());
        let data = Lines::overwritten((len * format.size()).div_ceil(size_of::<f32>()), |data| match format {
            Format::Float32 => data.copy_from_slice(numbers),
            Format::Float16 => f16::narrow(isa, numbers, &mut bytemuck::cast_slice_mut(data)[..len]),
            Format::Bfloat16 => bf16::narrow(isa, numbers, &mut bytemuck::cast_slice_mut(data)[..len]),
        });
        Numbers { format, data, len }
    }

    /// The size in bytes.
    pub fn bytes(&self) -> usize {
        self.len * self.format.size()
    }

    /// Loads a vector of numbers, from number `index` on.
    ///
    /// # Safety
    /// There are `index + V::LANES` numbers.
    #[inline(always)]
    pub unsafe fn load<V: Vector>(&self, index: usize) -> V {
        let data = self.data.as_ptr();
        // SAFETY: guaranteed by the caller.
        unsafe {
            match self.format {
                Format::Float32 => V::load(data.add(index)),
                Format::Float16 => V::load_f16(data.cast::<f16>().add(index)),
                Format::Bfloat16 => V::load_bf16(data.cast::<bf16>().add(index)),
            }
        }
    }
}
