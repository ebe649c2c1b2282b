//! Depthwise convolutions: each channel has its own window.

use std::ops::Range;

use super::codes::{Codes, SPLIT};
use super::finish::{Finish, Out};
use super::form::{PackedQuantizedConv, QuantizedConvCase, QuantizedConvForm, Taps, UNIT};
use super::windows::{Tap, Windows};
use crate::buffer::{filled, is_cached};
use crate::conv_shape::Shape;
use crate::form::Form;
use crate::isa::Isa;
use crate::lane_loops::per_isa;
use crate::quantize::Code;
use crate::scratch::Scratch;
use crate::threads::Threads;

/// The form for one channel and one output per group.
pub(crate) struct QuantizedDepthwiseForm;

/// The instructions for a tap of a vector of channels: two loads with a conversion, a multiplication and an addition.
const TAP: f64 = 4.0;

impl Form<QuantizedConvCase> for QuantizedDepthwiseForm {
    fn name(&self, _: &QuantizedConvCase) -> String {
        "int8, depthwise".to_string()
    }

    fn fits(&self, case: &QuantizedConvCase) -> bool {
        case.is_depthwise()
    }

    fn cost(&self, case: &QuantizedConvCase) -> f64 {
        TAP * case.taps() as f64 * case.groups as f64 / UNIT
    }
}

impl QuantizedConvForm for QuantizedDepthwiseForm {
    fn pack(&self, case: &QuantizedConvCase, weights: &Taps) -> Box<dyn PackedQuantizedConv> {
        Box::new(Depthwise::new(case, weights))
    }
}

/// The weights minus their zero points, `[tap][channel]`.
#[derive(Debug)]
pub(super) struct Depthwise {
    isa: Isa,
    channels: usize,
    taps: usize,
    pub differences: Vec<i16>,
    /// The sum of each channel's differences.
    sums: Vec<i32>,
}

/// Channels whose sums stay in registers together.
const WIDE: usize = 64;
/// Channels per vector.
const NARROW: usize = 16;

impl Depthwise {
    /// Packs the weights `[C, 1, kernel]` of a depthwise convolution.
    pub fn new(case: &QuantizedConvCase, weights: &Taps) -> Depthwise {
        let (isa, channels, taps) = (case.isa, case.groups, case.taps());
        let mut differences = filled(0, weights.bits.len());
        let mut sums = filled(0, channels);
        for (i, &bits) in weights.bits.iter().enumerate() {
            let (channel, tap) = (i / taps, i % taps);
            let difference = weights.code(bits) - weights.zero(channel);
            differences[tap * channels + channel] = difference as i16;
            sums[channel] += difference;
        }
        Depthwise { isa, channels, taps, differences, sums }
    }

    /// Returns the conversion of sums over codes with the zero point `zero`, for channels padded to [`WIDE`].
    ///
    /// # Panics
    /// The weights do not fit the shape.
    pub fn finish(&self, shape: &Shape, zero: i32, bias: Option<&[i32]>, out: &mut Out) -> Finish {
        assert!([shape.groups, shape.outputs, self.channels] == [shape.channels; 3], "{shape:?}");
        assert!(self.taps > 0 && self.taps == shape.kernel[0] * shape.kernel[1], "{shape:?}");
        let mut start = Scratch::filled(0, self.channels.next_multiple_of(WIDE));
        start.iter_mut().zip(&self.sums).for_each(|(start, sum)| *start = sum.wrapping_mul(zero).wrapping_neg());
        for (start, bias) in start.iter_mut().zip(bias.unwrap_or_default()) {
            *start = start.wrapping_add(*bias);
        }
        Finish::new(out, 0, self.channels, start, Scratch::new())
    }

    /// Calls `task` for runs of the output's rows, counted over all images.
    pub fn for_each_run(&self, threads: &Threads, shape: &Shape, task: impl Fn(Range<usize>) + Sync) {
        let lines = shape.batch * shape.output[0];
        let work = lines * shape.output[1] * self.differences.len();
        let parts = if work * 4 > SPLIT { threads.count() * 4 } else { 1 };
        let together = lines.div_ceil(parts).max(1);
        threads.for_each(lines.div_ceil(together), |i| task(i * together..lines.min((i + 1) * together)));
    }
}

impl PackedQuantizedConv for Depthwise {
    fn run(&self, threads: &Threads, shape: &Shape, x: Codes, bias: Option<&[i32]>, mut out: Out) {
        let finish = self.finish(shape, x.zero, bias, &mut out);
        let outside = Scratch::filled(x.zero as u8, shape.channels * shape.output[1]);
        self.for_each_run(threads, shape, |run| {
            if x.signed {
                let (x, outside) = (bytemuck::cast_slice(x.bits), bytemuck::cast_slice(&outside));
                lines::<i8>(self.isa, self, &finish, shape, x, outside, run);
            } else {
                lines::<u8>(self.isa, self, &finish, shape, x.bits, &outside, run);
            }
        });
    }

    fn bytes(&self) -> usize {
        size_of_val(&self.differences[..]) + size_of_val(&self.sums[..])
    }

    fn is_cached(&self, shape: &Shape) -> bool {
        is_cached::<u8>(shape.channels * shape.output[1]) && is_cached::<Tap<u8>>(self.taps)
    }
}

per_isa! {
    /// Computes some rows of the output.
    fn lines<T: Code>(weights: &Depthwise, finish: &Finish, shape: &Shape, x: &[T], outside: &[T], run: Range<usize>)
    where FMA {
        let mut windows = Windows::new(shape, x, outside, weights.taps);
        for line in run {
            for column in 0..shape.output[1] {
                let out = (line * shape.output[1] + column) * weights.channels;
                // SAFETY: each tap has an element per channel. The results of the run's pixels belong to this task
                // alone.
                unsafe { pixel(weights, finish, windows.at(line, column), out) };
            }
        }
    }
}

/// Computes all channels of a pixel, whose first result is element `out`.
///
/// # Safety
/// Every tap has an element per channel, and nothing else writes the results.
#[inline(always)]
unsafe fn pixel<T: Code>(weights: &Depthwise, finish: &Finish, taps: &[Tap<T>], out: usize) {
    let (channels, mut done) = (weights.channels, 0);
    // SAFETY: guaranteed by the caller; `done` plus the vector's width is at most the number of channels.
    unsafe {
        while done + WIDE <= channels {
            some::<T, WIDE>(weights, finish, taps, done, out);
            done += WIDE;
        }
        while done < channels && channels >= NARROW {
            // repeats some channels, so that the vector is full
            done = done.min(channels - NARROW);
            some::<T, NARROW>(weights, finish, taps, done, out);
            done += NARROW;
        }
        if done < channels {
            few(weights, finish, taps, out);
        }
    }
}

/// Computes channels `first .. first + W`.
///
/// # Safety
/// As for [`pixel`]; the channels exist.
#[inline(always)]
unsafe fn some<T: Code, const W: usize>(
    weights: &Depthwise,
    finish: &Finish,
    taps: &[Tap<T>],
    first: usize,
    out: usize,
) {
    // SAFETY: `finish` is padded beyond these channels.
    let mut sums: [i32; W] = unsafe { finish.starts(first) };
    let mut row = weights.differences.as_ptr().wrapping_add(first);
    for tap in taps {
        // SAFETY: guaranteed by the caller; the weights have one row of channels per tap.
        let (x, w) = unsafe { (&*tap.at.add(first).cast::<[T; W]>(), &*row.cast::<[i16; W]>()) };
        for i in 0..W {
            sums[i] = sums[i].wrapping_add(x[i].to_i32() * i32::from(w[i]));
        }
        row = row.wrapping_add(weights.channels);
    }
    // SAFETY: guaranteed by the caller.
    unsafe { finish.write(&sums, first, 0, out + first, W) };
}

/// Computes all channels if there are fewer than a vector has.
///
/// # Safety
/// As for [`pixel`].
unsafe fn few<T: Code>(weights: &Depthwise, finish: &Finish, taps: &[Tap<T>], out: usize) {
    // SAFETY: `finish` is padded to more than a vector.
    let mut sums: [i32; NARROW] = unsafe { finish.starts(0) };
    for (tap, row) in taps.iter().zip(weights.differences.chunks_exact(weights.channels)) {
        for (i, (sum, &w)) in sums.iter_mut().zip(row).enumerate() {
            // SAFETY: guaranteed by the caller.
            *sum = sum.wrapping_add(unsafe { *tap.at.add(i) }.to_i32() * i32::from(w));
        }
    }
    // SAFETY: guaranteed by the caller; `finish` is padded to more than a vector.
    unsafe { finish.write(&sums, 0, 0, out, weights.channels) };
}
