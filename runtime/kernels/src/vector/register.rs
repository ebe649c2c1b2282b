//! Vectors of `f32` in registers.

use half::{bf16, f16};

/// A vector of `f32` in a register.
///
/// Generic code is `#[inline(always)]`, down from a function with the vector's `#[target_feature]`. Such a function
/// runs only for an [`Isa`](crate::isa::Isa) of its level, which proves that the processor has the features. The
/// methods may therefore execute their intrinsics.
pub(crate) trait Vector:
    Copy
    + std::ops::Add<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::Mul<Output = Self>
    + std::ops::Div<Output = Self>
{
    /// The number of lanes.
    const LANES: usize;
    /// One boolean per lane.
    type Mask: Copy;

    /// Sets every lane to `value`.
    fn splat(value: f32) -> Self;

    /// # Safety
    /// `LANES` elements can be read at `from`.
    unsafe fn load(from: *const f32) -> Self;

    /// Loads 16-bit numbers; the conversion is exact.
    ///
    /// # Safety
    /// `LANES` elements can be read at `from`.
    unsafe fn load_f16(from: *const f16) -> Self;

    /// Loads 16-bit numbers; the conversion is exact.
    ///
    /// # Safety
    /// `LANES` elements can be read at `from`.
    unsafe fn load_bf16(from: *const bf16) -> Self;

    /// Loads the first `count` elements; the other lanes are 0.
    ///
    /// # Safety
    /// `count` elements can be read at `from`.
    unsafe fn load_first(from: *const f32, count: usize) -> Self;

    /// Loads the first `count` elements; the other lanes are `beyond`.
    ///
    /// # Safety
    /// `count` elements can be read at `from`.
    unsafe fn load_padded(from: *const f32, count: usize, beyond: f32) -> Self;

    /// # Safety
    /// `LANES` elements can be written at `to`.
    unsafe fn store(self, to: *mut f32);

    /// Stores the first `count` lanes.
    ///
    /// # Safety
    /// `count` elements can be written at `to`.
    unsafe fn store_first(self, to: *mut f32, count: usize);

    /// `self · a + b`, rounded once.
    fn mul_add(self, a: Self, b: Self) -> Self;

    /// `b - self · a`, rounded once.
    fn neg_mul_add(self, a: Self, b: Self) -> Self;

    /// `self` if `self < other`, else `other` (also when either is NaN).
    fn lesser(self, other: Self) -> Self;

    /// `self` if `self > other`, else `other` (also when either is NaN).
    fn greater(self, other: Self) -> Self;

    /// Clamps to `limits[0] ..= limits[1]`; NaN stays NaN.
    #[inline(always)]
    fn within(self, limits: [f32; 2]) -> Self {
        Self::splat(limits[1]).lesser(Self::splat(limits[0]).greater(self))
    }

    /// Returns the four vectors. The compiler computes all of them before it uses any. Without this, it would finish one
    /// vector after the other.
    #[inline(always)]
    fn in_step(vectors: [Self; 4]) -> [Self; 4] {
        vectors
    }

    /// The absolute value.
    fn abs(self) -> Self;

    /// Inverts the sign.
    fn neg(self) -> Self;

    /// The magnitude of `self` with the sign of `sign`.
    fn copy_sign(self, sign: Self) -> Self;

    /// The square root.
    fn sqrt(self) -> Self;

    /// Rounds down.
    fn floor(self) -> Self;

    /// Rounds up.
    fn ceil(self) -> Self;

    /// Rounds to the nearest integer, ties to even.
    fn round(self) -> Self;

    /// `self · 2ⁿ` rounded once, for integers `n` in -252 ..= 254.
    fn times_power_of_two(self, n: Self) -> Self;

    /// Like [`Vector::times_power_of_two`], for integers `n` in -126 ..= 127.
    fn times_normal_power_of_two(self, n: Self) -> Self;

    /// `(m, e)` with `self = m · 2ᵉ` and `m` in `[2/3, 4/3)`, for positive normal numbers.
    fn split(self) -> (Self, Self);

    /// Looks up `table` with bits 22 to 24 of each lane: the top bit of the mantissa, and two bits of the exponent.
    fn pick(self, table: &[f32; 8]) -> Self;

    /// `self < other`
    fn less(self, other: Self) -> Self::Mask;

    /// `self ≤ other`
    fn less_or_equal(self, other: Self) -> Self::Mask;

    /// `self = other`
    fn equal(self, other: Self) -> Self::Mask;

    /// Where the lane is NaN.
    fn is_nan(self) -> Self::Mask;

    /// `yes` where the mask is set, else `no`.
    fn select(mask: Self::Mask, yes: Self, no: Self) -> Self;

    /// Whether any lane of the mask is set.
    fn any(mask: Self::Mask) -> bool;

    /// The sum of the lanes, added pairwise.
    fn sum(self) -> f32;

    /// The largest lane; no lane may be NaN.
    fn largest(self) -> f32;

    /// Applies `function` to each lane in turn.
    #[inline(always)]
    fn each_lane(self, function: impl Fn(f32) -> f32) -> Self {
        let mut lanes = [0.0; 16];
        // SAFETY: no vector has more than 16 lanes.
        unsafe {
            self.store(lanes.as_mut_ptr());
            lanes[..Self::LANES].iter_mut().for_each(|lane| *lane = function(*lane));
            Self::load(lanes.as_ptr())
        }
    }
}
