//! The register tile of matrix products: the rows of the right side lie at one distance from each other, and while they are
//! multiplied, what comes after them is fetched.

use half::{bf16, f16};

use super::stored::{Format, Stored};
use super::table::kernels;
use super::tile::{finish, Start, Tile, PIECE};
use crate::prefetch::prefetch;
use crate::vector::Vector;

/// A tile whose right side's row `k` begins at `k · b_step`, and is of whole vectors.
pub(super) struct Strip<'a> {
    /// Its own right side and table of offsets are not read.
    pub tile: Tile<'a>,
    /// The right side: numbers of the kernel's type.
    pub b: *const u8,
    /// The distance from one row of the right side to the next.
    pub b_step: usize,
    /// The number of those rows.
    pub depth: usize,
    /// What will be read soon: anywhere.
    pub ahead: *const u8,
    /// How many bytes of it are one step further after [`STEPS`] rows: as much as the tile's width is fetched in them,
    /// and by tiles of at most [`FEW`] rows as much as they read.
    pub ahead_step: usize,
}

/// A tile of a fixed number of rows and vectors, over a right side of one type.
///
/// # Safety
/// Every address that the formula of [`Tile`] names is inside its allocation, with `k · b_step` for `offsets[k]`, `out` is
/// written by nobody else, and the processor has the instruction set.
pub(super) type Kernel = unsafe fn(&Strip);

/// The tiles of one instruction set, by the type of the right side: for numbers of 16 bits, those that a panel can have.
pub(super) struct Strips {
    single: &'static [&'static [Kernel]],
    half: &'static [&'static [Kernel]],
    bfloat: &'static [&'static [Kernel]],
}

impl Strips {
    /// The tile of `rows` rows and `vectors` vectors.
    pub fn kernel(&self, format: Format, rows: usize, vectors: usize) -> Kernel {
        let kernels = match format {
            Format::Float32 => self.single,
            Format::Float16 => self.half,
            Format::Bfloat16 => self.bfloat,
        };
        kernels[rows - 1][vectors - 1]
    }
}

/// Rows that are multiplied between two fetches.
pub(super) const STEPS: usize = 4;
/// Rows with which a tile is done before memory has brought what it reads next.
pub(super) const FEW: usize = 4;

/// See [`Kernel`].
#[inline(always)]
unsafe fn strip<V: Vector, T: Stored, const ROWS: usize, const VECTORS: usize>(s: &Strip) {
    let (mut start, mut depth) = (s.tile.start, 0);
    loop {
        let end = s.depth.min(depth + PIECE);
        // SAFETY: the caller's promise; after the first piece, the output was written by this tile.
        unsafe { piece::<V, T, ROWS, VECTORS>(s, depth, end, start) };
        if end == s.depth {
            return;
        }
        (start, depth) = (Start::Output, end);
    }
}

/// The terms `depth .. end`, added to `start`.
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
    // SAFETY: the caller's promise covers every address below, but for those that are only fetched.
    unsafe {
        for _ in 0..(end - depth) / STEPS {
            for _ in 0..STEPS {
                step(a, t.a_row, b, &mut sums);
                (a, b) = (a.wrapping_add(t.a_step), b.wrapping_add(s.b_step));
            }
            if V::LANES > 1 {
                let rows = if ROWS <= FEW { STEPS } else { 1 };
                let bytes = rows * VECTORS * V::LANES * size_of::<T>();
                (0..bytes.div_ceil(LINE)).for_each(|line| prefetch(ahead.wrapping_add(line * LINE)));
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

/// Adds one column of the left side times one row of the right side.
#[inline(always)]
unsafe fn step<V: Vector, T: Stored, const ROWS: usize, const VECTORS: usize>(
    a: *const f32,
    a_row: usize,
    b: *const T,
    sums: &mut [[V; VECTORS]; ROWS],
) {
    // SAFETY: the caller's promise.
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

/// The bytes of a cache line.
const LINE: usize = 64;

unsafe fn scalar<T: Stored, const ROWS: usize, const VECTORS: usize>(s: &Strip) {
    // SAFETY: the caller's promise.
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
        // SAFETY: the caller's promise.
        unsafe { strip::<F32x16, T, ROWS, VECTORS>(s) }
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn avx2<T: Stored, const ROWS: usize, const VECTORS: usize>(s: &Strip) {
        // SAFETY: the caller's promise.
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
