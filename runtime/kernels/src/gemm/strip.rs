//! The register tile of matrix products. The rows of the right operand have a constant stride. While they are
//! multiplied, the tile prefetches the following ones.

use half::{bf16, f16};

use super::stored::{Format, Stored};
use super::table::kernels;
use super::tile::{finish, Start, Tile, PIECE};
use crate::prefetch::{prefetch, prefetch_l2};
use crate::vector::Vector;

/// A tile whose right operand has row `k` at `k · b_step`, padded to whole vectors.
pub(super) struct Strip<'a> {
    /// Its right operand and table of offsets are not used.
    pub tile: Tile<'a>,
    /// The right operand: numbers of the kernel's type.
    pub b: *const u8,
    /// The row stride of the right operand.
    pub b_step: usize,
    /// The number of rows of the right operand.
    pub depth: usize,
    /// The address to prefetch; any address is allowed.
    pub ahead: *const u8,
    /// The number of bytes that are prefetched after every [`STEPS`] rows.
    pub ahead_step: usize,
    /// Whether to prefetch into the L1 cache instead of the L2 cache.
    pub near: bool,
}

/// A tile with a fixed number of rows and vectors, for one type of the right operand.
///
/// # Safety
/// Every address in the formula of [`Tile`], with `k · b_step` for `offsets[k]`, is inside its allocation. Nothing else
/// writes `out`. The processor has the instruction set.
pub(super) type Kernel = unsafe fn(&Strip);

/// The tiles of one instruction set, by the type of the right operand. Those for 16-bit numbers support only the widths
/// of panels.
pub(super) struct Strips {
    single: &'static [&'static [Kernel]],
    half: &'static [&'static [Kernel]],
    bfloat: &'static [&'static [Kernel]],
}

impl Strips {
    /// Returns the tile with `rows` rows and `vectors` vectors.
    pub fn kernel(&self, format: Format, rows: usize, vectors: usize) -> Kernel {
        let kernels = match format {
            Format::Float32 => self.single,
            Format::Float16 => self.half,
            Format::Bfloat16 => self.bfloat,
        };
        kernels[rows - 1][vectors - 1]
    }
}

/// Rows that are multiplied between two prefetches.
pub(super) const STEPS: usize = 4;

/// See [`Kernel`].
#[inline(always)]
unsafe fn strip<V: Vector, T: Stored, const ROWS: usize, const VECTORS: usize>(s: &Strip) {
    let (mut start, mut depth) = (s.tile.start, 0);
    loop {
        let end = s.depth.min(depth + PIECE);
        // SAFETY: guaranteed by the caller; after the first piece, this tile has written the output.
        unsafe { piece::<V, T, ROWS, VECTORS>(s, depth, end, start) };
        if end == s.depth {
            return;
        }
        (start, depth) = (Start::Output, end);
    }
}

/// Sums the terms `depth .. end`, and adds them to `start`.
#[inline(always)]
unsafe fn piece<V: Vector, T: Stored, const ROWS: usize, const VECTORS: usize>(
    s: &Strip,
    depth: usize,
    end: usize,
    start: Start,
) {
    let t = &s.tile;
    let last = t.width - (VECTORS - 1) * V::LANES;
    let mut sums = [[V::splat(0.0); VECTORS]; ROWS];
    let (mut a, mut b) = (t.a.wrapping_add(depth * t.a_step), s.b.cast::<T>().wrapping_add(depth * s.b_step));
    let mut ahead = s.ahead.wrapping_add(depth / STEPS * s.ahead_step);
    // SAFETY: the caller guarantees every address below, except those that are only prefetched.
    unsafe {
        for _ in 0..(end - depth) / STEPS {
            for _ in 0..STEPS {
                step(a, t.a_row, b, &mut sums);
                (a, b) = (a.wrapping_add(t.a_step), b.wrapping_add(s.b_step));
            }
            if V::LANES > 1 {
                for byte in (0..s.ahead_step).step_by(LINE) {
                    if s.near {
                        prefetch(ahead.wrapping_add(byte));
                    } else {
                        prefetch_l2(ahead.wrapping_add(byte));
                    }
                }
                ahead = ahead.wrapping_add(s.ahead_step);
            }
        }
        for _ in 0..(end - depth) % STEPS {
            step(a, t.a_row, b, &mut sums);
            (a, b) = (a.wrapping_add(t.a_step), b.wrapping_add(s.b_step));
        }
        finish::<V, ROWS, VECTORS>(t, last, start, &mut sums);
    }
}

/// Adds the products of one column of the left operand and one row of the right operand.
#[inline(always)]
unsafe fn step<V: Vector, T: Stored, const ROWS: usize, const VECTORS: usize>(
    a: *const f32,
    a_row: usize,
    b: *const T,
    sums: &mut [[V; VECTORS]; ROWS],
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let b: [V; VECTORS] = std::array::from_fn(|v| T::load(b.add(v * V::LANES)));
        for (m, sums) in sums.iter_mut().enumerate() {
            let a = V::splat(*a.add(m * a_row));
            for (sum, &b) in sums.iter_mut().zip(&b) {
                *sum = a.mul_add(b, *sum);
            }
        }
    }
}

/// The size of a cache line in bytes.
const LINE: usize = 64;

unsafe fn scalar<T: Stored, const ROWS: usize, const VECTORS: usize>(s: &Strip) {
    // SAFETY: guaranteed by the caller.
    unsafe { strip::<f32, T, ROWS, VECTORS>(s) }
}

pub(super) static SCALAR: Strips = Strips {
    single: kernels!(scalar scalar f32),
    half: kernels!(scalar scalar f16),
    bfloat: kernels!(scalar scalar bf16),
};

#[cfg(target_arch = "x86_64")]
pub(super) mod x86 {
    use half::{bf16, f16};

    use super::{kernels, strip, Kernel, Stored, Strip, Strips};
    use crate::vector::{F32x16, F32x8};

    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c")]
    unsafe fn avx512<T: Stored, const ROWS: usize, const VECTORS: usize>(s: &Strip) {
        // SAFETY: guaranteed by the caller.
        unsafe { strip::<F32x16, T, ROWS, VECTORS>(s) }
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn avx2<T: Stored, const ROWS: usize, const VECTORS: usize>(s: &Strip) {
        // SAFETY: guaranteed by the caller.
        unsafe { strip::<F32x8, T, ROWS, VECTORS>(s) }
    }

    pub static AVX512: Strips = Strips {
        single: kernels!(avx512 avx512 f32),
        half: kernels!(avx512 panels avx512 f16),
        bfloat: kernels!(avx512 panels avx512 bf16),
    };
    pub static AVX2: Strips = Strips {
        single: kernels!(avx2 avx2 f32),
        half: kernels!(avx2 panels avx2 f16),
        bfloat: kernels!(avx2 panels avx2 bf16),
    };
}
