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

/// Weights, `[block][taps / 4][64][4]`, in the order that unpacking leaves bytes in. The blocks go through the channels again
/// and again, until one ends with the last channel: pixels that follow one another are one run of bytes.
#[derive(Debug, Clone)]
pub(super) struct Interleaved {
    plain: Depthwise,
    quads: usize,
    blocks: usize,
    data: Lines,
}

impl Interleaved {
    /// The bytes that the packed weights take.
    pub fn bytes(&self) -> usize {
        self.plain.bytes() + size_of_val(&self.data[..])
    }

    /// Rearranges weights; `None` where the difference to a zero point is no `i8`.
    pub fn new(channels: usize, plain: &Depthwise) -> Option<Interleaved> {
        let quads = plain.differences.len().checked_div(channels)?.div_ceil(4);
        let blocks = channels / greatest_divisor(channels, WIDE);
        let mut data = Lines::for_overwrite(blocks * quads * WIDE);
        let bytes: &mut [i8] = bytemuck::cast_slice_mut(&mut data);
        bytes.fill(0);
        for (tap, row) in plain.differences.chunks_exact(channels).enumerate() {
            for at in 0..blocks * WIDE {
                let quad = (at / WIDE * quads + tap / 4) * WIDE + place(at % WIDE);
                bytes[quad * 4 + tap % 4] = i8::try_from(row[at % channels]).ok()?;
            }
        }
        Some(Interleaved { plain: plain.clone(), quads, blocks, data })
    }
}

fn greatest_divisor(a: usize, b: usize) -> usize {
    if b == 0 {
        a
    } else {
        greatest_divisor(b, a % b)
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
    repeat(&mut finish, shape.channels, weights.blocks);
    let outside = vec![x.zero as u8; shape.channels * shape.output[1]];
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

/// Brings what there is for each channel into the order of the sums: for codes, as they are unpacked.
fn repeat(finish: &mut Finish, channels: usize, blocks: usize) {
    let is_unpacked = matches!(finish.sink, Sink::Codes(..));
    let (mut start, mut scale) = (vec![0; blocks * WIDE], vec![0.0; blocks * WIDE]);
    for at in 0..blocks * WIDE {
        let to = if is_unpacked { at / WIDE * WIDE + place(at % WIDE) } else { at };
        (start[to], scale[to]) = (finish.start[at % channels], finish.scale[at % channels]);
    }
    (finish.start, finish.scale) = (start, scale);
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
        let mut column = 0;
        while column < shape.output[1] {
            let (taps, columns) = windows.side_by_side(line, column);
            let out = (line * shape.output[1] + column) * shape.channels;
            // SAFETY: the taps have an element a channel of so many columns, and there are four a quad; the caller's promise.
            unsafe { pixels::<FLIP>(weights, finish, taps, columns * shape.channels, out) };
            column += columns;
        }
    }
}

/// Pixels side by side, of `len` channels together, the first of which has element `out`.
///
/// # Safety
/// As for [`lines`]; `taps` are as many as `weights` has, and have as many elements.
#[inline(always)]
unsafe fn pixels<const FLIP: bool>(weights: &Interleaved, finish: &Finish, taps: &[Tap<u8>], len: usize, out: usize) {
    let (all, each) = (weights.data.as_ptr().cast::<__m512i>(), weights.quads * 4);
    let mut block = 0;
    for first in (0..len).step_by(WIDE) {
        // SAFETY: the caller's promise; each block has a vector of weights for every one that is read.
        unsafe {
            let count = WIDE.min(len - first);
            let mut vectors = all.add(block * each);
            let mut sums = [_mm512_setzero_si512(); 4];
            for taps in taps.chunks_exact(4) {
                for (sum, bytes) in sums.iter_mut().zip(read::<FLIP>(taps, first, count)) {
                    *sum = _mm512_dpbusd_epi32(*sum, bytes, _mm512_load_si512(vectors));
                    vectors = vectors.wrapping_add(1);
                }
            }
            match &finish.sink {
                Sink::Codes(to, by) => store(codes(&sums, finish, by, block * WIDE, 0), to.add(out + first), count),
                _ => finish.write(&in_order(&sums), block * WIDE, 0, out + first, count),
            }
        }
        block = if block + 1 == weights.blocks { 0 } else { block + 1 };
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
/// As for [`pixels`], of four taps.
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
