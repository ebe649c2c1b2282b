//! The tiles of each kind of dot-product instructions: as many sums as fit in its registers.

use super::dot::Scalar;
use super::tile::{tile, unpack, Bytes, Kernel, Packed, Source, Tile};
use crate::int8::{Dots, Instructions};
use crate::isa::Isa;
use crate::lowbit::pack::PackedCodes;

/// Writes the codes of some words as bytes.
///
/// # Safety
/// As for [`Kernel`]; `to` has room for the bytes.
pub(super) type Unpack = unsafe fn(words: *const u32, count: usize, width: usize, to: *mut u32);

/// The tiles of some instructions, by number of rows - 1.
pub(super) struct Kernels {
    /// For words of codes of 2, 4 and 8 bits.
    packed: [&'static [Kernel]; 3],
    /// For bytes of at most 4 bits, and of 8 bits.
    bytes: [&'static [Kernel]; 2],
    /// Unpack codes of 2 and of 4 bits.
    unpack: [Unpack; 2],
    /// The lanes of a register.
    pub lanes: usize,
}

/// The instructions of a level for vectors.
pub(super) fn dots(isa: Isa) -> Dots {
    Dots::of(isa).without_tiles()
}

impl Kernels {
    /// The tiles of a level.
    pub fn of(isa: Isa) -> &'static Kernels {
        Kernels::with(dots(isa))
    }

    /// The tiles for some instructions.
    pub fn with(dots: Dots) -> &'static Kernels {
        match dots.without_tiles().instructions() {
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx512Vnni => &x86::VNNI_512,
            #[cfg(target_arch = "x86_64")]
            Instructions::AvxVnni => &x86::VNNI_256,
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2 => &x86::PAIRS_256,
            #[cfg(target_arch = "aarch64")]
            Instructions::I8mm => &arm::I8MM,
            #[cfg(target_arch = "aarch64")]
            Instructions::Dotprod => &arm::DOTPROD,
            #[cfg(target_arch = "aarch64")]
            Instructions::Neon => &arm::NEON,
            _ => &SCALAR,
        }
    }

    /// The tiles for the words of a matrix.
    pub fn packed(&self, b: &PackedCodes) -> &'static [Kernel] {
        self.packed[b.bits.ilog2() as usize - 1]
    }

    /// The tiles for the codes of a matrix in bytes.
    pub fn bytes(&self, b: &PackedCodes) -> &'static [Kernel] {
        self.bytes[usize::from(b.bits == 8)]
    }

    /// The most rows of a tile.
    pub fn rows(&self) -> usize {
        self.packed[0].len()
    }

    /// The function that unpacks the codes of a matrix. `None` if they are bytes already.
    pub fn unpack(&self, b: &PackedCodes) -> Option<Unpack> {
        self.unpack.get(b.bits.ilog2() as usize - 1).copied()
    }
}

/// The tiles of a kind of instructions: for each number of rows, the number of vectors.
macro_rules! kernels {
    ($tile:ident $unpack:ident $lanes:literal $packed:tt $bytes:tt) => {
        Kernels {
            packed: [
                kernels!(@ $tile Packed<2>, $packed),
                kernels!(@ $tile Packed<4>, $packed),
                kernels!(@ $tile Packed<8>, $packed),
            ],
            bytes: [kernels!(@ $tile Bytes<false>, $bytes), kernels!(@ $tile Bytes<true>, $bytes)],
            unpack: [$unpack::<Packed<2>>, $unpack::<Packed<4>>],
            lanes: $lanes,
        }
    };
    (@ $tile:ident $source:ty, [$($rows:literal $vectors:literal),*]) => {
        &[$($tile::<$source, $rows, $vectors> as Kernel),*]
    };
}

/// Functions for instructions, which are compiled with their features.
macro_rules! compiled {
    ($dot:ty, $tile:ident $unpack:ident $(, $features:literal)?) => {
        $(#[target_feature(enable = $features)])?
        unsafe fn $tile<S: Source, const ROWS: usize, const VECTORS: usize>(t: &Tile) {
            // SAFETY: guaranteed by the caller.
            unsafe { tile::<$dot, S, ROWS, VECTORS>(t) }
        }

        $(#[target_feature(enable = $features)])?
        unsafe fn $unpack<S: Source>(words: *const u32, count: usize, width: usize, to: *mut u32) {
            // SAFETY: guaranteed by the caller.
            unsafe { unpack::<$dot, S>(words, count, width, to) }
        }
    };
}

compiled!(Scalar, scalar unpack_scalar);

static SCALAR: Kernels = kernels!(scalar unpack_scalar 1 [1 4, 2 4] [1 4, 2 4]);

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{tile, unpack, Bytes, Kernel, Kernels, Packed, Source, Tile};
    use crate::lowbit::integer::dot::{Pairs256, Vnni256, Vnni512};

    compiled!(Vnni512, vnni_512 unpack_512, "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c,avx512vnni");
    compiled!(Vnni256, vnni_256 unpack_vnni_256, "avx2,fma,f16c,avxvnni");
    compiled!(Pairs256, pairs_256 unpack_256, "avx2,fma,f16c");

    pub static VNNI_512: Kernels = kernels!(
        vnni_512 unpack_512 16 [1 4, 2 4, 3 4, 4 4, 5 4, 6 4] [1 4, 2 4, 3 4, 4 2, 5 2, 6 2]
    );
    pub static VNNI_256: Kernels = kernels!(
        vnni_256 unpack_vnni_256 8 [1 4, 2 4, 3 2, 4 2, 5 2, 6 2] [1 4, 2 4, 3 2, 4 2, 5 2, 6 2]
    );
    pub static PAIRS_256: Kernels = kernels!(pairs_256 unpack_256 8 [1 4, 2 4, 3 2, 4 2] [1 4, 2 4, 3 2, 4 2]);
}

#[cfg(target_arch = "aarch64")]
mod arm {
    use super::{tile, unpack, Bytes, Kernel, Kernels, Packed, Source, Tile};
    use crate::lowbit::integer::neon::Pair;
    use crate::vector::dots::{Mixed, Plain, Signed};

    compiled!(Pair<Mixed>, i8mm unpack_i8mm, "neon,i8mm");
    compiled!(Pair<Signed>, dotprod unpack_dotprod, "neon,dotprod");
    compiled!(Pair<Plain>, neon unpack_neon, "neon");

    pub static I8MM: Kernels =
        kernels!(i8mm unpack_i8mm 8 [1 4, 2 4, 3 2, 4 2, 5 2, 6 2] [1 4, 2 4, 3 2, 4 2, 5 2, 6 2]);
    pub static DOTPROD: Kernels =
        kernels!(dotprod unpack_dotprod 8 [1 4, 2 4, 3 2, 4 2, 5 2, 6 2] [1 4, 2 4, 3 2, 4 2, 5 2, 6 2]);
    pub static NEON: Kernels = kernels!(neon unpack_neon 8 [1 4, 2 4, 3 2, 4 2] [1 4, 2 4, 3 2, 4 2]);
}
