//! The tiles of each instruction set: as many sums as fit in its registers.

use super::pack::{PackedCodes, Zeros};
use super::tile::{tile, Kernel, Packed, Source, Tile, Unpacked};
use crate::isa::Isa;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use crate::isa::Level;

/// The tiles of an instruction set, by number of rows - 1.
pub(super) struct Kernels {
    /// For words of codes: for 2, 4 and 8 bits, the tiles for one zero point, and the tiles for one zero point a block.
    packed: [[&'static [Kernel]; 2]; 3],
    /// For numbers that were computed before.
    pub unpacked: &'static [Kernel],
}

impl Kernels {
    /// The tiles of an instruction set.
    pub fn of(isa: Isa) -> &'static Kernels {
        match isa.level() {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => &x86::AVX512,
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => &x86::AVX2,
            #[cfg(target_arch = "aarch64")]
            Level::Neon => &NEON,
            _ => &SCALAR,
        }
    }

    /// The tiles for words of the codes of a matrix.
    pub fn packed(&self, b: &PackedCodes) -> &'static [Kernel] {
        let [two, four, eight] = &self.packed;
        let [alike, each] = match b.bits {
            2 => two,
            4 => four,
            _ => eight,
        };
        match b.zeros {
            Zeros::All(_) => alike,
            Zeros::Each(_) => each,
        }
    }
}

/// The tiles of an instruction set: for each number of rows, the number of vectors.
macro_rules! kernels {
    ($function:ident $packed:tt $unpacked:tt) => {
        Kernels {
            packed: [
                [kernels!(@ $function Packed<2, false>, $packed), kernels!(@ $function Packed<2, true>, $packed)],
                [kernels!(@ $function Packed<4, false>, $packed), kernels!(@ $function Packed<4, true>, $packed)],
                [kernels!(@ $function Packed<8, false>, $packed), kernels!(@ $function Packed<8, true>, $packed)],
            ],
            unpacked: kernels!(@ $function Unpacked, $unpacked),
        }
    };
    (@ $function:ident $source:ty, [$($rows:literal $vectors:literal),*]) => {
        &[$($function::<$source, $rows, $vectors> as Kernel),*]
    };
}

unsafe fn scalar<S: Source, const ROWS: usize, const VECTORS: usize>(t: &Tile) {
    // SAFETY: guaranteed by the caller.
    unsafe { tile::<f32, S, ROWS, VECTORS>(t) }
}

static SCALAR: Kernels = kernels!(scalar [1 4, 2 4] [1 4, 2 4]);

#[cfg(target_arch = "aarch64")]
unsafe fn neon<S: Source, const ROWS: usize, const VECTORS: usize>(t: &Tile) {
    // SAFETY: guaranteed by the caller.
    unsafe { tile::<crate::vector::F32x4x2, S, ROWS, VECTORS>(t) }
}

#[cfg(target_arch = "aarch64")]
static NEON: Kernels = kernels!(neon [1 4, 2 4, 3 2, 4 2, 5 2, 6 2] [1 2, 2 2, 3 2, 4 2, 5 2, 6 2]);

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{tile, Kernel, Kernels, Packed, Source, Tile, Unpacked};
    use crate::vector::{F32x16, F32x8};

    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c")]
    unsafe fn avx512<S: Source, const ROWS: usize, const VECTORS: usize>(t: &Tile) {
        // SAFETY: guaranteed by the caller.
        unsafe { tile::<F32x16, S, ROWS, VECTORS>(t) }
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn avx2<S: Source, const ROWS: usize, const VECTORS: usize>(t: &Tile) {
        // SAFETY: guaranteed by the caller.
        unsafe { tile::<F32x8, S, ROWS, VECTORS>(t) }
    }

    pub static AVX512: Kernels = kernels!(avx512 [1 4, 2 4, 3 4, 4 4, 5 4, 6 4] [1 4, 2 4, 3 4, 4 2, 5 2, 6 2]);
    pub static AVX2: Kernels = kernels!(avx2 [1 4, 2 4, 3 2, 4 2, 5 2, 6 2] [1 2, 2 2, 3 2, 4 2, 5 2, 6 2]);
}
