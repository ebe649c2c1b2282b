//! The register tile of matrix products. The rows of the right operand have a constant stride. While they are
//! multiplied, the tile prefetches the following ones.

use half::{bf16, f16};

use super::stored::Format;
use super::table::kernels;
use super::tile::{finish, Start, Tile, PIECE};
use crate::prefetch::{prefetch, prefetch_l2};
use crate::vector::{Stored, Vector};

/// A tile whose right operand has row `k` at `k · b_step`, padded to whole vectors. A tile over two panels has the second
/// one's rows `b_panel` further on.
pub(super) struct Strip<'a> {
    /// Its right operand and table of offsets are not used.
    pub tile: Tile<'a>,
    /// The right operand: numbers of the kernel's type.
    pub b: *const u8,
    /// The strides of the right operand's rows and panels.
    pub b_step: usize,
    pub b_panel: usize,
    /// The number of rows of the right operand.
    pub depth: usize,
    /// The address to prefetch; any address is allowed.
    pub ahead: *const u8,
    /// The number of bytes that are prefetched after every [`STEPS`] rows.
    pub ahead_step: usize,
    /// Whether to prefetch into the L1 cache instead of the L2 cache.
    pub near: bool,
}

/// A tile with a fixed number of rows, panels and vectors per panel, for one type of the right operand.
///
/// # Safety
/// Every address in the formula of [`Tile`], with `k · b_step` for `offsets[k]`, is inside its allocation. Nothing else
/// writes `out`. The processor has the instruction set.
pub(super) type Kernel = unsafe fn(&Strip);

/// The tiles of one instruction set, by the type of the right operand.
pub(super) struct Strips {
    single: Kernels,
    half: Kernels,
    bfloat: Kernels,
}

/// The tiles for one type of the right operand.
struct Kernels {
    /// By rows and vectors. Those for 16-bit numbers support only the widths of panels.
    panel: &'static [&'static [Kernel]],
    /// The tile of one row over two panels of [`PAIRED`] vectors. A multiply-add waits for the one before it in the same
    /// sum, and two sums are too few to keep the processor busy meanwhile.
    pair: Option<Kernel>,
}

/// The vectors of a panel in a tile over two panels.
const PAIRED: usize = 2;

impl Strips {
    /// Returns the tile with `rows` rows and `vectors` vectors.
    pub fn kernel(&self, format: Format, rows: usize, vectors: usize) -> Kernel {
        self.of(format).panel[rows - 1][vectors - 1]
    }

    /// Returns the tile with `rows` rows over two panels of `vectors` vectors, if it is faster than one after the other.
    pub fn pair(&self, format: Format, rows: usize, vectors: usize) -> Option<Kernel> {
        self.of(format).pair.filter(|_| [rows, vectors] == [1, PAIRED])
    }

    fn of(&self, format: Format) -> &Kernels {
        match format {
            Format::Float32 => &self.single,
            Format::Float16 => &self.half,
            Format::Bfloat16 => &self.bfloat,
        }
    }
}

/// Rows that are multiplied between two prefetches.
pub(super) const STEPS: usize = 4;

/// See [`Kernel`].
#[inline(always)]
unsafe fn strip<V: Vector, T: Stored, const ROWS: usize, const VECTORS: usize, const PANELS: usize>(s: &Strip) {
    let (mut start, mut depth) = (s.tile.start, 0);
    loop {
        let end = s.depth.min(depth + PIECE);
        // SAFETY: guaranteed by the caller; after the first piece, this tile has written the output.
        unsafe { piece::<V, T, ROWS, VECTORS, PANELS>(s, depth, end, start) };
        if end == s.depth {
            return;
        }
        (start, depth) = (Start::Output, end);
    }
}

/// Sums the terms `depth .. end`, and adds them to `start`.
#[inline(always)]
unsafe fn piece<V: Vector, T: Stored, const ROWS: usize, const VECTORS: usize, const PANELS: usize>(
    s: &Strip,
    depth: usize,
    end: usize,
    start: Start,
) {
    let t = &s.tile;
    let width = VECTORS * V::LANES;
    let mut sums = [[[V::splat(0.0); VECTORS]; ROWS]; PANELS];
    let (mut a, mut b) = (t.a.wrapping_add(depth * t.a_step), s.b.cast::<T>().wrapping_add(depth * s.b_step));
    let mut ahead = s.ahead.wrapping_add(depth / STEPS * s.ahead_step);
    // SAFETY: the caller guarantees every address below, except those that are only prefetched.
    unsafe {
        for _ in 0..(end - depth) / STEPS {
            for _ in 0..steps() {
                step(a, t.a_row, b, s.b_panel, &mut sums);
                (a, b) = (a.wrapping_add(t.a_step), b.wrapping_add(s.b_step));
            }
            if V::LANES > 1 {
                for p in 0..PANELS {
                    ahead_of(s, ahead.wrapping_add(p * s.b_panel * size_of::<T>()), STEPS * width * size_of::<T>());
                }
                ahead = ahead.wrapping_add(s.ahead_step);
            }
        }
        for _ in 0..(end - depth) % STEPS {
            step(a, t.a_row, b, s.b_panel, &mut sums);
            (a, b) = (a.wrapping_add(t.a_step), b.wrapping_add(s.b_step));
        }
        for (p, sums) in sums.iter_mut().enumerate() {
            let panel = Tile { out: t.out.wrapping_add(p * width), ..*t };
            let last = (t.width - p * width).min(width) - (VECTORS - 1) * V::LANES;
            finish::<V, ROWS, VECTORS>(&panel, last, start.at(p * width), sums);
        }
    }
}

/// Returns [`STEPS`]. For ARM, the compiler does not know this number: if it unrolled the loop over the steps, it would keep
/// sums in memory.
#[inline(always)]
fn steps() -> usize {
    if cfg!(target_arch = "aarch64") {
        std::hint::black_box(STEPS)
    } else {
        STEPS
    }
}

/// Prefetches a part of a panel that is multiplied later. In most cases it has as many bytes as the rows between two
/// prefetches, `usual`. The compiler knows this number, and unrolls the loop over them.
#[inline(always)]
fn ahead_of(s: &Strip, from: *const u8, usual: usize) {
    match (s.ahead_step == usual, s.near) {
        (true, true) => lines(from, usual, prefetch),
        (true, false) => lines(from, usual, prefetch_l2),
        (false, true) => lines(from, s.ahead_step, prefetch),
        (false, false) => lines(from, s.ahead_step, prefetch_l2),
    }
}

/// Prefetches the cache lines of `bytes` bytes.
#[inline(always)]
fn lines(from: *const u8, bytes: usize, prefetch: impl Fn(*const u8)) {
    (0..bytes).step_by(LINE).for_each(|byte| prefetch(from.wrapping_add(byte)));
}

/// Adds the products of one column of the left operand and one row of each panel of the right operand.
#[inline(always)]
unsafe fn step<V: Vector, T: Stored, const ROWS: usize, const VECTORS: usize, const PANELS: usize>(
    a: *const f32,
    a_row: usize,
    b: *const T,
    b_panel: usize,
    sums: &mut [[[V; VECTORS]; ROWS]; PANELS],
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        for (p, sums) in sums.iter_mut().enumerate() {
            let b: [V; VECTORS] = std::array::from_fn(|v| T::load(b.add(p * b_panel + v * V::LANES)));
            for (m, sums) in sums.iter_mut().enumerate() {
                let a = V::splat(*a.add(m * a_row));
                for (sum, &b) in sums.iter_mut().zip(&b) {
                    *sum = a.mul_add(b, *sum);
                }
            }
        }
    }
}

/// The size of a cache line in bytes.
const LINE: usize = 64;

unsafe fn scalar<T: Stored, const ROWS: usize, const VECTORS: usize>(s: &Strip) {
    // SAFETY: guaranteed by the caller.
    unsafe { strip::<f32, T, ROWS, VECTORS, 1>(s) }
}

pub(super) static SCALAR: Strips = Strips {
    single: Kernels { panel: kernels!(scalar scalar f32), pair: None },
    half: Kernels { panel: kernels!(scalar scalar f16), pair: None },
    bfloat: Kernels { panel: kernels!(scalar scalar bf16), pair: None },
};

#[cfg(target_arch = "x86_64")]
pub(super) mod x86 {
    use half::{bf16, f16};

    use super::{kernels, strip, Kernel, Kernels, Stored, Strip, Strips, PAIRED};
    use crate::vector::{F32x16, F32x8};

    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c")]
    unsafe fn avx512<T: Stored, const ROWS: usize, const VECTORS: usize>(s: &Strip) {
        // SAFETY: guaranteed by the caller.
        unsafe { strip::<F32x16, T, ROWS, VECTORS, 1>(s) }
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn avx2<T: Stored, const ROWS: usize, const VECTORS: usize>(s: &Strip) {
        // SAFETY: guaranteed by the caller.
        unsafe { strip::<F32x8, T, ROWS, VECTORS, 1>(s) }
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn avx2_pair<T: Stored>(s: &Strip) {
        // SAFETY: guaranteed by the caller.
        unsafe { strip::<F32x8, T, 1, PAIRED, 2>(s) }
    }

    pub static AVX512: Strips = Strips {
        single: Kernels { panel: kernels!(avx512 avx512 f32), pair: None },
        half: Kernels { panel: kernels!(avx512 panels avx512 f16), pair: None },
        bfloat: Kernels { panel: kernels!(avx512 panels avx512 bf16), pair: None },
    };
    pub static AVX2: Strips = Strips {
        single: Kernels { panel: kernels!(avx2 avx2 f32), pair: Some(avx2_pair::<f32>) },
        half: Kernels { panel: kernels!(avx2 panels avx2 f16), pair: Some(avx2_pair::<f16>) },
        bfloat: Kernels { panel: kernels!(avx2 panels avx2 bf16), pair: Some(avx2_pair::<bf16>) },
    };
}

#[cfg(target_arch = "aarch64")]
pub(super) mod neon {
    use half::{bf16, f16};

    use super::{kernels, strip, Kernel, Kernels, Stored, Strip, Strips, PAIRED};
    use crate::vector::F32x4x2;

    unsafe fn neon<T: Stored, const ROWS: usize, const VECTORS: usize>(s: &Strip) {
        // SAFETY: guaranteed by the caller.
        unsafe { strip::<F32x4x2, T, ROWS, VECTORS, 1>(s) }
    }

    unsafe fn pair<T: Stored>(s: &Strip) {
        // SAFETY: guaranteed by the caller.
        unsafe { strip::<F32x4x2, T, 1, PAIRED, 2>(s) }
    }

    pub static NEON: Strips = Strips {
        single: Kernels { panel: kernels!(neon neon f32), pair: Some(pair::<f32>) },
        half: Kernels { panel: kernels!(neon panels neon f16), pair: Some(pair::<f16>) },
        bfloat: Kernels { panel: kernels!(neon panels neon bf16), pair: Some(pair::<bf16>) },
    };
}
