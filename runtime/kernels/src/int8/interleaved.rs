//! Convolutions of each channel with a window of its own, where one instruction adds four taps: the bytes that they read
//! are brought together, for sixty-four channels at once.

use std::arch::x86_64::*;
use std::ops::Range;

use super::depthwise::{Depthwise, WIDE};
use super::finish::{Finish, Out, Sink};
use super::product::shifted_zero;
use super::wide::{codes, place, store};
use super::windows::{Tap, Windows};
use super::{Codes, SIGN};
use crate::conv::Shape;
use crate::gemm::Lines;
use crate::threads::Threads;

/// Weights, `[channels / 64][taps / 4][64][4]`, the channels in the order that unpacking leaves them in.
#[derive(Debug, Clone)]
pub(super) struct Interleaved {
    plain: Depthwise,
    quads: usize,
    data: Lines,
}

impl Interleaved {
    /// Rearranges weights; `None` where the difference to a zero point is no `i8`.
    pub fn new(channels: usize, plain: &Depthwise) -> Option<Interleaved> {
        let quads = plain.differences.len().checked_div(channels)?.div_ceil(4);
        let mut data = Lines::for_overwrite(channels.div_ceil(WIDE) * quads * WIDE);
        let bytes: &mut [i8] = bytemuck::cast_slice_mut(&mut data);
        bytes.fill(0);
        for (i, &difference) in plain.differences.iter().enumerate() {
            let (tap, channel) = (i / channels, i % channels);
            let quad = (channel / WIDE * quads + tap / 4) * WIDE + place(channel % WIDE);
            bytes[quad * 4 + tap % 4] = i8::try_from(difference).ok()?;
        }
        Some(Interleaved { plain: plain.clone(), quads, data })
    }
}

/// [`conv`](super::conv()) of a channel a group.
pub(super) fn conv(
    threads: &Threads,
    shape: &Shape,
    weights: &Interleaved,
    x: Codes,
    bias: Option<&[i32]>,
    mut out: Out,
) {
    let mut finish = weights.plain.finish(shape, shifted_zero(&x), bias, &mut out);
    if let Sink::Codes(..) = finish.sink {
        reorder(&mut finish);
    }
    let outside = vec![x.zero as u8; shape.channels];
    weights.plain.for_each_run(threads, shape, |run| {
        // SAFETY: there are such weights only where the processor has the features; the results of the run's pixels are
        // this task's alone.
        unsafe {
            match x.signed {
                true => lines::<true>(weights, &finish, shape, x.bits, &outside, run),
                false => lines::<false>(weights, &finish, shape, x.bits, &outside, run),
            }
        }
    });
}

/// Brings what there is for each channel into the order of the sums.
fn reorder(finish: &mut Finish) {
    let (start, scale) = (finish.start.clone(), finish.scale.clone());
    for i in 0..start.len() {
        let to = i / WIDE * WIDE + place(i % WIDE);
        (finish.start[to], finish.scale[to]) = (start[i], scale[i]);
    }
}

/// Some rows of the output. `FLIP`: the bytes are `i8`, and taken as 128 more.
///
/// # Safety
/// The processor has the features, and nobody else writes the results.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn lines<const FLIP: bool>(
    weights: &Interleaved,
    finish: &Finish,
    shape: &Shape,
    x: &[u8],
    outside: &[u8],
    run: Range<usize>,
) {
    let mut windows = Windows::new(shape, x, outside, weights.quads * 4);
    for line in run {
        for column in 0..shape.output[1] {
            let out = (line * shape.output[1] + column) * shape.channels;
            // SAFETY: the taps have an element a channel, and there are four a quad; the caller's promise.
            unsafe { pixel::<FLIP>(weights, finish, windows.at(line, column), shape.channels, out) };
        }
    }
}

/// All channels of a pixel, whose first result is element `out`.
///
/// # Safety
/// As for [`lines`]; `taps` are as many as `weights` has, with as many elements as there are channels.
#[inline(always)]
unsafe fn pixel<const FLIP: bool>(
    weights: &Interleaved,
    finish: &Finish,
    taps: &[Tap<u8>],
    channels: usize,
    out: usize,
) {
    let mut vectors = weights.data.as_ptr().cast::<__m512i>();
    for first in (0..channels).step_by(WIDE) {
        // SAFETY: the caller's promise; each block has a vector of weights for every one that is read.
        unsafe {
            let count = WIDE.min(channels - first);
            let mut sums = [_mm512_setzero_si512(); 4];
            for taps in taps.chunks_exact(4) {
                for (sum, bytes) in sums.iter_mut().zip(read::<FLIP>(taps, first, count)) {
                    *sum = _mm512_dpbusd_epi32(*sum, bytes, _mm512_load_si512(vectors));
                    vectors = vectors.wrapping_add(1);
                }
            }
            match &finish.sink {
                Sink::Codes(to, by) => store(codes(&sums, finish, by, first, 0), to.add(out + first), count),
                _ => finish.write(&in_order(&sums), first, 0, out + first, count),
            }
        }
    }
}

/// The sums in the order of the channels.
///
/// # Safety
/// The processor has AVX-512F.
unsafe fn in_order(sums: &[__m512i; 4]) -> [i32; WIDE] {
    // SAFETY: both are as large, and any bits are such numbers.
    let sums: [i32; WIDE] = unsafe { std::mem::transmute(*sums) };
    std::array::from_fn(|i| sums[place(i)])
}

/// Four bytes a channel, of `count` channels from `first` on.
///
/// # Safety
/// As for [`pixel`], of four taps.
#[inline(always)]
unsafe fn read<const FLIP: bool>(taps: &[Tap<u8>], first: usize, count: usize) -> [__m512i; 4] {
    // SAFETY: the caller's promise.
    unsafe {
        let row = |i: usize| {
            let at = taps[i].at.cast::<i8>().add(first);
            let bytes = match count {
                WIDE => _mm512_loadu_si512(at.cast()),
                _ => _mm512_maskz_loadu_epi8((1 << count) - 1, at),
            };
            if FLIP {
                _mm512_xor_si512(bytes, _mm512_set1_epi8(SIGN as i8))
            } else {
                bytes
            }
        };
        let (a, b, c, d) = (row(0), row(1), row(2), row(3));
        let (low, low2) = (_mm512_unpacklo_epi8(a, b), _mm512_unpacklo_epi8(c, d));
        let (high, high2) = (_mm512_unpackhi_epi8(a, b), _mm512_unpackhi_epi8(c, d));
        [
            _mm512_unpacklo_epi16(low, low2),
            _mm512_unpackhi_epi16(low, low2),
            _mm512_unpacklo_epi16(high, high2),
            _mm512_unpackhi_epi16(high, high2),
        ]
    }
}
