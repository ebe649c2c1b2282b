//! The conversion of sums to results.

use crate::scratch::Scratch;

/// The type of the results, and the output buffer.
pub enum Out<'a> {
    /// The sums themselves.
    Sums(&'a mut [i32]),
    /// `sum · scale[column]`, with one scale for all columns or one per column.
    Floats(&'a mut [f32], &'a [f32]),
    /// Codes.
    Codes(&'a mut [u8], Requantize<'a>),
}

/// `code = clamp(round(sum · scale[column]) + zero, low, high)`, ties to even; `low` if the product is NaN. A negative
/// code is stored as `i8`.
#[derive(Debug, Clone, Copy)]
pub struct Requantize<'a> {
    /// One scale for all columns, or one per column.
    pub scale: &'a [f32],
    /// The code that represents 0.
    pub zero: i32,
    /// The smallest code.
    pub low: i32,
    /// The largest code.
    pub high: i32,
}

/// Converts the sums of a matrix, whose columns are padded.
pub(super) struct Finish {
    pub sink: Sink,
    /// The start value of each column's sums, and its scale.
    pub start: Scratch<i32>,
    pub scale: Scratch<f32>,
    /// The factor of the row sum that is subtracted for each column; empty if there is nothing to subtract.
    pub zeros: Scratch<i32>,
}

/// See [`Out`].
#[derive(Clone, Copy)]
pub(super) enum Sink {
    Sums(*mut i32),
    Floats(*mut f32),
    Codes(*mut u8, Bounds),
}

/// The limits of codes. Only code for x86 and ARM uses the fields for registers.
#[derive(Clone, Copy)]
#[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), expect(dead_code))]
pub(super) struct Bounds {
    /// The code that represents 0, and the smallest code.
    pub zero: i32,
    pub low: i32,
    /// The difference between the largest code and that of 0.
    pub high: f32,
    /// The code of 0 twice in 16 bits each, and the smallest and the largest code four times each: they fill the lanes
    /// of registers without a shuffle.
    pub zeros: i32,
    pub limits: [i32; 2],
    /// Whether every scaled sum fits in 32 bits.
    pub is_small: bool,
    /// Whether saturation alone converts rounded numbers to codes: the code of 0 is 0, and the limits are the least
    /// and the largest byte.
    pub is_plain: bool,
}

// SAFETY: tasks that share it write disjoint elements.
unsafe impl Sync for Finish {}

/// Adding it to a number below 2²² rounds that to the nearest integer, ties to even, and leaves it in the low bits.
const ROUND: f32 = 12_582_912.0; // 1.5 · 2²³

impl Out<'_> {
    /// The number of elements.
    pub(crate) fn len(&self) -> usize {
        match self {
            Out::Sums(out) => out.len(),
            Out::Floats(out, _) => out.len(),
            Out::Codes(out, _) => out.len(),
        }
    }
}

impl Bounds {
    fn new(by: &Requantize) -> Bounds {
        Bounds {
            zero: by.zero,
            low: by.low,
            high: (by.high - by.zero) as f32,
            zeros: by.zero << 16 | by.zero & 0xFFFF,
            limits: [by.low, by.high].map(|code| i32::from_ne_bytes([code as u8; 4])),
            is_plain: by.zero == 0 && matches!((by.low, by.high), (0, 255) | (-128, 127)),
            is_small: !by.scale.iter().any(|scale| scale.abs() >= 1.0),
        }
    }
}

impl Finish {
    /// Creates the conversion for columns `first .. first + columns` of `out`; `start` and `zeros` belong to these
    /// columns, and are padded.
    ///
    /// # Panics
    /// There are too few scales, or a limit does not fit in a byte.
    pub fn new(out: &mut Out, first: usize, columns: usize, start: Scratch<i32>, zeros: Scratch<i32>) -> Finish {
        assert!(columns <= start.len() && (zeros.is_empty() || zeros.len() == start.len()));
        let (sink, scales) = match out {
            Out::Sums(out) => (Sink::Sums(out.as_mut_ptr()), &[1.0f32][..]),
            Out::Floats(out, scale) => (Sink::Floats(out.as_mut_ptr()), *scale),
            Out::Codes(out, by) => {
                assert!(-128 <= by.low && by.low <= by.high && by.high <= 255 && by.high - by.low <= 255, "{by:?}");
                assert!((-128..=255).contains(&by.zero) && (by.low >= 0 || by.high <= 127), "{by:?}");
                (Sink::Codes(out.as_mut_ptr(), Bounds::new(by)), by.scale)
            }
        };
        let mut scale = Scratch::filled(0.0, start.len());
        match scales {
            [one] => scale[..columns].fill(*one),
            each => scale[..columns].copy_from_slice(&each[first..first + columns]),
        }
        Finish { sink, start, scale, zeros }
    }

    /// Returns the start values of columns `column ..`.
    ///
    /// # Safety
    /// `column + L` is at most the number of padded columns.
    #[inline(always)]
    pub unsafe fn starts<const L: usize>(&self, column: usize) -> [i32; L] {
        // SAFETY: guaranteed by the caller.
        unsafe { *lanes(&self.start, column) }
    }

    /// Whether row sums are needed.
    pub fn needs_row_sums(&self) -> bool {
        !self.zeros.is_empty()
    }

    /// Converts `L` sums of columns `column ..`, which include the start values, and stores the first `count` from
    /// element `offset` on.
    ///
    /// # Safety
    /// `column + L` is at most the number of padded columns, and `count` is at most `L`. The elements are inside the
    /// output, and nothing else writes them.
    #[inline(always)]
    pub unsafe fn write<const L: usize>(
        &self,
        sums: &[i32; L],
        column: usize,
        row_sum: i32,
        offset: usize,
        count: usize,
    ) {
        let mut totals = *sums;
        // SAFETY: guaranteed by the caller.
        let scale = unsafe { lanes::<f32, L>(&self.scale, column) };
        if !self.zeros.is_empty() {
            // SAFETY: `zeros` is as long as `start`.
            let zeros: &[i32; L] = unsafe { lanes(&self.zeros, column) };
            for i in 0..L {
                totals[i] = totals[i].wrapping_sub(zeros[i].wrapping_mul(row_sum));
            }
        }
        // SAFETY: guaranteed by the caller.
        unsafe {
            match self.sink {
                Sink::Sums(to) => put(&totals, to.add(offset), count),
                Sink::Floats(to) => put(&scaled(&totals, scale), to.add(offset), count),
                Sink::Codes(to, by) => put(&codes(&scaled(&totals, scale), &by), to.add(offset), count),
            }
        }
    }
}

/// # Safety
/// `all` has `L` elements from `at` on.
#[inline(always)]
unsafe fn lanes<T, const L: usize>(all: &[T], at: usize) -> &[T; L] {
    debug_assert!(at + L <= all.len());
    // SAFETY: guaranteed by the caller.
    unsafe { &*all.as_ptr().add(at).cast() }
}

#[inline(always)]
fn scaled<const L: usize>(totals: &[i32; L], scale: &[f32; L]) -> [f32; L] {
    let mut out = [0.0; L];
    for i in 0..L {
        out[i] = totals[i] as f32 * scale[i];
    }
    out
}

#[inline(always)]
fn codes<const L: usize>(x: &[f32; L], by: &Bounds) -> [u8; L] {
    let (mut out, low) = ([0; L], (by.low - by.zero) as f32);
    for i in 0..L {
        // the comparison is false for NaN
        let code = if x[i] > low { x[i] } else { low };
        let code = if code < by.high { code } else { by.high };
        out[i] = ((code + ROUND).to_bits() as u8).wrapping_add(by.zero as u8);
    }
    out
}

/// # Safety
/// `count` is at most `L`, and that many elements can be written at `to`.
#[inline(always)]
unsafe fn put<T: Copy, const L: usize>(from: &[T; L], to: *mut T, count: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if count == L {
            to.cast::<[T; L]>().write_unaligned(*from);
        } else {
            std::ptr::copy_nonoverlapping(from.as_ptr(), to, count);
        }
    }
}
