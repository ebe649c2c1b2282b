//! Convolutions of each channel with a window of its own.

use std::ops::Range;

use super::conv::position;
use super::finish::{Finish, Out};
use super::{Codes, SPLIT};
use crate::conv::Shape;
use crate::isa::Isa;
use crate::lanes::per_isa;
use crate::quantize::Code;
use crate::threads::Threads;

/// Weights less their zero points, `[tap][channel]`.
#[derive(Debug, Clone)]
pub(super) struct Depthwise {
    isa: Isa,
    channels: usize,
    taps: usize,
    differences: Vec<i16>,
    /// The sum of each channel's differences.
    sums: Vec<i32>,
}

/// Channels whose sums stay in registers at once.
const WIDE: usize = 64;
/// Channels of a vector.
const NARROW: usize = 16;

impl Depthwise {
    /// Packs `w`, `[C, taps]`.
    pub fn new(isa: Isa, taps: usize, w: &[u8], signed: bool, zeros: &[i32]) -> Depthwise {
        let channels = w.len().checked_div(taps).unwrap_or(zeros.len());
        let mut differences = vec![0; w.len()];
        let mut sums = vec![0; channels];
        for (i, &bits) in w.iter().enumerate() {
            let (channel, tap) = (i / taps, i % taps);
            let code = if signed { i32::from(bits as i8) } else { i32::from(bits) };
            let difference = code - zeros[if zeros.len() == 1 { 0 } else { channel }];
            differences[tap * channels + channel] = difference as i16;
            sums[channel] += difference;
        }
        Depthwise { isa, channels, taps, differences, sums }
    }
}

/// [`conv`](super::conv()) of a channel a group.
pub(super) fn conv(
    threads: &Threads,
    shape: &Shape,
    weights: &Depthwise,
    x: Codes,
    bias: Option<&[i32]>,
    mut out: Out,
) {
    let channels = shape.channels;
    assert!(shape.groups == channels && shape.outputs == channels && weights.channels == channels, "{shape:?}");
    assert!(weights.taps > 0 && weights.taps == shape.kernel[0] * shape.kernel[1], "{shape:?}");
    let mut start: Vec<i32> = weights.sums.iter().map(|sum| sum.wrapping_mul(x.zero).wrapping_neg()).collect();
    for (start, bias) in start.iter_mut().zip(bias.unwrap_or_default()) {
        *start = start.wrapping_add(*bias);
    }
    start.resize(channels.next_multiple_of(NARROW), 0);
    let finish = Finish::new(&mut out, 0, channels, start, Vec::new());
    let outside = vec![x.zero as u8; channels];
    if x.signed {
        let (x, outside) = (bytemuck::cast_slice(x.bits), bytemuck::cast_slice(&outside));
        Lines::<i8> { shape, weights, finish: &finish, x, outside }.run(threads);
    } else {
        Lines::<u8> { shape, weights, finish: &finish, x: x.bits, outside: &outside }.run(threads);
    }
}

/// Where a window reads a tap, and how far from there it is to the next column's: not at all, outside the image.
#[derive(Clone, Copy)]
struct Tap<T> {
    at: *const T,
    step: usize,
}

/// Rows of an output.
struct Lines<'a, T> {
    shape: &'a Shape,
    weights: &'a Depthwise,
    finish: &'a Finish,
    x: &'a [T],
    /// What a pixel outside the image holds.
    outside: &'a [T],
}

impl<T: Code> Lines<'_, T> {
    fn run(&self, threads: &Threads) {
        let lines = self.shape.batch * self.shape.output[0];
        let work = self.shape.output[1] * self.weights.differences.len();
        let parts = if lines * work * 4 > SPLIT { threads.count() * 4 } else { 1 };
        let together = lines.div_ceil(parts).max(1);
        threads.for_each(lines.div_ceil(together), |i| {
            line::<T>(self.weights.isa, self, i * together..lines.min((i + 1) * together));
        });
    }

    /// Where the window of the output at column `x` of row `line` reads each of its taps.
    fn locate(&self, line: usize, x: usize, taps: &mut [Tap<T>]) {
        let shape = self.shape;
        let (image, y) = (line / shape.output[0], line % shape.output[0]);
        for (i, taps) in taps.chunks_exact_mut(shape.kernel[1]).enumerate() {
            let row = position(shape, 0, y, i).map(|row| (image * shape.input[0] + row) * shape.input[1]);
            for (j, tap) in taps.iter_mut().enumerate() {
                *tap = match (row, position(shape, 1, x, j)) {
                    (Some(row), Some(column)) => {
                        let at = self.x[(row + column) * shape.channels..][..shape.channels].as_ptr();
                        Tap { at, step: shape.strides[1] * shape.channels }
                    }
                    _ => Tap { at: self.outside.as_ptr(), step: 0 },
                };
            }
        }
    }

    /// The columns whose windows lie inside the image's.
    fn inside(&self) -> Range<usize> {
        let last = self.shape.kernel[1].saturating_sub(1);
        let is_inside = |x: &usize| [0, last].iter().all(|&tap| position(self.shape, 1, *x, tap).is_some());
        let first = (0..self.shape.output[1]).find(is_inside).unwrap_or(0);
        first..(first..self.shape.output[1]).take_while(is_inside).last().map_or(first, |last| last + 1)
    }
}

per_isa! {
    fn line<T: Code>(lines: &Lines<T>, numbers: Range<usize>) where FMA {
        let (channels, width) = (lines.shape.channels, lines.shape.output[1]);
        let (inside, mut taps) = (lines.inside(), vec![Tap { at: lines.outside.as_ptr(), step: 0 }; lines.weights.taps]);
        for number in numbers {
            for x in 0..width {
                if x > inside.start && x < inside.end {
                    taps.iter_mut().for_each(|tap| tap.at = tap.at.wrapping_add(tap.step));
                } else {
                    lines.locate(number, x, &mut taps);
                }
                // SAFETY: each tap has `channels` elements, here too; the pixel's results are this task's alone.
                unsafe { pixel(lines, &taps, (number * width + x) * channels) };
            }
        }
    }
}

/// All channels of a pixel, whose first result is element `out`.
///
/// # Safety
/// Every tap has as many elements as there are channels, and nobody else writes the results.
#[inline(always)]
unsafe fn pixel<T: Code>(lines: &Lines<T>, taps: &[Tap<T>], out: usize) {
    let (channels, mut done) = (lines.shape.channels, 0);
    // SAFETY: the caller's promise; `done` and what is added to it stay within the channels.
    unsafe {
        while done + WIDE <= channels {
            some::<T, WIDE>(lines, taps, done, out);
            done += WIDE;
        }
        while done < channels && channels >= NARROW {
            // the last ones again, so that a vector is full
            done = done.min(channels - NARROW);
            some::<T, NARROW>(lines, taps, done, out);
            done += NARROW;
        }
        if done < channels {
            few(lines, taps, out);
        }
    }
}

/// Channels `first .. first + W`.
///
/// # Safety
/// As for [`pixel`], and there are that many channels.
#[inline(always)]
unsafe fn some<T: Code, const W: usize>(lines: &Lines<T>, taps: &[Tap<T>], first: usize, out: usize) {
    let mut sums = [0i32; W];
    let mut weights = lines.weights.differences.as_ptr().wrapping_add(first);
    for tap in taps {
        // SAFETY: the caller's promise; the weights have a row of channels a tap.
        let (x, w) = unsafe { (&*tap.at.add(first).cast::<[T; W]>(), &*weights.cast::<[i16; W]>()) };
        for i in 0..W {
            sums[i] = sums[i].wrapping_add(x[i].to_i32() * i32::from(w[i]));
        }
        weights = weights.wrapping_add(lines.shape.channels);
    }
    // SAFETY: the caller's promise.
    unsafe { lines.finish.write(&sums, first, 0, out + first, W) };
}

/// All of fewer channels than a vector has.
///
/// # Safety
/// As for [`pixel`].
unsafe fn few<T: Code>(lines: &Lines<T>, taps: &[Tap<T>], out: usize) {
    let channels = lines.shape.channels;
    let mut sums = [0i32; NARROW];
    for (tap, weights) in taps.iter().zip(lines.weights.differences.chunks_exact(channels)) {
        for (i, (sum, &w)) in sums.iter_mut().zip(weights).enumerate() {
            // SAFETY: the caller's promise.
            *sum = sum.wrapping_add(unsafe { *tap.at.add(i) }.to_i32() * i32::from(w));
        }
    }
    // SAFETY: the caller's promise; the finish is padded to a vector.
    unsafe { lines.finish.write(&sums, 0, 0, out, channels) };
}
