//! Depthwise convolutions with the AVX2 instruction that multiplies and adds two taps at once, in 16 bits.

use std::arch::x86_64::*;
use std::ops::Range;

use super::codes::Codes;
use super::depthwise::Depthwise;
use super::finish::{Finish, Out};
use super::form::{PackedQuantizedConv, QuantizedConvCase, QuantizedConvForm, Taps, UNIT};
use super::instructions::Instructions;
use super::rows;
use super::windows::{Tap, Windows};
use crate::buffer::{filled, is_cached};
use crate::conv_shape::Shape;
use crate::form::Form;
use crate::scratch::Scratch;
use crate::threads::Threads;

/// The form for one channel and one output per group, with two taps per instruction.
pub(crate) struct PairedForm;

/// The instructions for a tap of a vector of channels: half of two loads with a conversion, two unpackings, and two
/// multiplications and additions of vectors that are half as wide.
const TAP: f64 = 2.0;
/// The channels of a block, which fill a vector of 16-bit numbers.
const BLOCK: usize = 16;

impl Form<QuantizedConvCase> for PairedForm {
    fn name(&self, _: &QuantizedConvCase) -> String {
        "int8, depthwise, taps in pairs".to_string()
    }

    fn fits(&self, case: &QuantizedConvCase) -> bool {
        case.is_depthwise() && case.groups >= BLOCK && case.dots.instructions() == Instructions::Avx2
    }

    fn cost(&self, case: &QuantizedConvCase) -> f64 {
        TAP * case.taps() as f64 * case.groups as f64 / UNIT
    }
}

impl QuantizedConvForm for PairedForm {
    fn pack(&self, case: &QuantizedConvCase, weights: &Taps) -> Box<dyn PackedQuantizedConv> {
        Box::new(Paired::new(case, weights))
    }
}

/// Weights minus their zero points, `[block][taps / 2][channel][2]`, in the order in which `vpunpcklwd` and `vpunpckhwd`
/// leave the channels of a block.
#[derive(Debug)]
struct Paired {
    plain: Depthwise,
    channels: usize,
    pairs: usize,
    data: Vec<i16>,
}

/// The first channels of the blocks. The last block repeats some channels, so that it is full.
fn blocks(channels: usize) -> impl Iterator<Item = usize> {
    (0..channels).step_by(BLOCK).map(move |first| first.min(channels - BLOCK))
}

impl Paired {
    /// Packs weights.
    ///
    /// # Panics
    /// The form does not fit.
    fn new(case: &QuantizedConvCase, weights: &Taps) -> Paired {
        let (plain, channels, pairs) = (Depthwise::new(case, weights), case.groups, case.taps().div_ceil(2));
        let mut data = filled(0, channels.div_ceil(BLOCK) * pairs * 2 * BLOCK);
        for (first, block) in blocks(channels).zip(data.chunks_exact_mut(pairs * 2 * BLOCK)) {
            for (tap, row) in plain.differences.chunks_exact(channels).enumerate() {
                for channel in 0..BLOCK {
                    // The low half of each 128-bit lane comes first.
                    let place = channel / 4 % 2 * 8 + channel / 8 * 4 + channel % 4;
                    block[tap / 2 * 2 * BLOCK + place * 2 + tap % 2] = row[first + channel];
                }
            }
        }
        Paired { plain, channels, pairs, data }
    }
}

impl PackedQuantizedConv for Paired {
    fn run(&self, threads: &Threads, shape: &Shape, x: Codes, bias: Option<&[i32]>, mut out: Out) {
        let finish = self.plain.finish(shape, x.zero, bias, &mut out);
        let outside = Scratch::filled(x.zero as u8, shape.channels * shape.output[1]);
        self.plain.for_each_run(threads, shape, |run| {
            // SAFETY: the `Dots` of the case prove that the processor has AVX2. The results of the run's pixels belong
            // to this task alone.
            unsafe {
                if x.signed {
                    self.lines::<true>(&finish, shape, x.bits, &outside, run);
                } else {
                    self.lines::<false>(&finish, shape, x.bits, &outside, run);
                }
            }
        });
    }

    fn bytes(&self) -> usize {
        self.plain.bytes() + size_of_val(&self.data[..])
    }

    fn is_cached(&self, shape: &Shape) -> bool {
        is_cached::<u8>(shape.channels * shape.output[1]) && is_cached::<Tap<u8>>(2 * self.pairs)
    }
}

impl Paired {
    /// Computes some rows of the output, counted over all images.
    ///
    /// # Safety
    /// The processor has AVX2, and nothing else writes the results.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn lines<const SIGNED: bool>(
        &self,
        finish: &Finish,
        shape: &Shape,
        x: &[u8],
        outside: &[u8],
        run: Range<usize>,
    ) {
        let mut windows = Windows::new(shape, x, outside, 2 * self.pairs);
        for line in run {
            for column in 0..shape.output[1] {
                let out = (line * shape.output[1] + column) * self.channels;
                // SAFETY: guaranteed by the caller; each tap has an element per channel.
                unsafe { self.pixel::<SIGNED>(finish, windows.at(line, column), out) };
            }
        }
    }

    /// Computes all channels of a pixel, whose first result is element `out`.
    ///
    /// # Safety
    /// As for [`lines`](Paired::lines); every tap has an element per channel.
    #[inline(always)]
    unsafe fn pixel<const SIGNED: bool>(&self, finish: &Finish, taps: &[Tap<u8>], out: usize) {
        let (size, mut weights, mut first) = (self.pairs * 2 * BLOCK, self.data.as_ptr(), 0);
        // SAFETY: guaranteed by the caller; the weights have a block for each that `blocks` lists.
        unsafe {
            while first + 2 * BLOCK <= self.channels {
                let [a, b] = sums::<SIGNED>(finish, taps, first, weights);
                let [c, d] = sums::<SIGNED>(finish, taps, first + BLOCK, weights.add(size));
                rows::write(&[a, b, c, d], finish, first, 0, out + first, 2 * BLOCK);
                (first, weights) = (first + 2 * BLOCK, weights.add(2 * size));
            }
            while first < self.channels {
                let start = first.min(self.channels - BLOCK);
                rows::write(&sums::<SIGNED>(finish, taps, start, weights), finish, start, 0, out + start, BLOCK);
                (first, weights) = (first + BLOCK, weights.wrapping_add(size));
            }
        }
    }
}

/// Returns the sums of channels `first .. first + BLOCK`, in order.
///
/// # Safety
/// The processor has AVX2. The taps and `finish` have these channels, and the weights a block.
#[inline(always)]
unsafe fn sums<const SIGNED: bool>(
    finish: &Finish,
    taps: &[Tap<u8>],
    first: usize,
    mut weights: *const i16,
) -> [__m256i; 2] {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let [mut low, mut high] = [_mm256_setzero_si256(); 2];
        for pair in taps.chunks_exact(2) {
            let [a, b] = [0, 1].map(|i| widened::<SIGNED>(pair[i].at.add(first)));
            let [first, second] = [0, BLOCK].map(|at| _mm256_loadu_si256(weights.add(at).cast()));
            low = _mm256_add_epi32(low, _mm256_madd_epi16(_mm256_unpacklo_epi16(a, b), first));
            high = _mm256_add_epi32(high, _mm256_madd_epi16(_mm256_unpackhi_epi16(a, b), second));
            weights = weights.wrapping_add(2 * BLOCK);
        }
        let ordered = [_mm256_permute2x128_si256::<0x20>(low, high), _mm256_permute2x128_si256::<0x31>(low, high)];
        let start = finish.start.as_ptr().add(first).cast::<__m256i>();
        [0, 1].map(|v| _mm256_add_epi32(ordered[v], _mm256_loadu_si256(start.add(v))))
    }
}

/// Loads [`BLOCK`] codes, and converts them to 16 bits.
///
/// # Safety
/// The processor has AVX2, and as many codes can be read.
#[inline(always)]
unsafe fn widened<const SIGNED: bool>(from: *const u8) -> __m256i {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let codes = _mm_loadu_si128(from.cast());
        if SIGNED {
            _mm256_cvtepi8_epi16(codes)
        } else {
            _mm256_cvtepu8_epi16(codes)
        }
    }
}
