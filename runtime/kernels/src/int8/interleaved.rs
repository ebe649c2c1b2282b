//! Depthwise convolutions with instructions that add four taps at once.
//!
//! Four rows of the image are interleaved once per row of the output, as `[column][channel][4]`. The four taps of a
//! column of the window are then the bytes of one lane.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;
use std::ops::Range;

use num_integer::gcd;

#[cfg(target_arch = "aarch64")]
use super::bytes::Bytes;
use super::codes::{Codes, SIGN};
use super::depthwise::Depthwise;
use super::finish::{Finish, Out};
use super::form::{PackedQuantizedConv, QuantizedConvCase, QuantizedConvForm, Taps, UNIT};
use super::instructions::{Dots, Instructions};
use super::positions::{is_compact, position, within};
use super::product::shifted_zero;
use super::rows;
use super::strips::{Group, Strips};
use super::vector::Vector;
use crate::buffer::is_cached;
use crate::conv_shape::Shape;
use crate::form::Form;
use crate::gemm::Lines;
use crate::scratch::Scratch;
use crate::threads::Threads;
#[cfg(target_arch = "aarch64")]
use crate::vector::dots::{Mixed, Signed};

/// The form for one channel and one output per group, with four taps per instruction.
pub(crate) struct InterleavedForm;

/// The instructions, in the name of the form.
const NAME: &str = if cfg!(target_arch = "x86_64") { "VNNI" } else { "NEON" };
/// The instructions that interleave a vector of channels, as in a window of more columns.
const INTERLEAVE: usize = 2;

impl Form<QuantizedConvCase> for InterleavedForm {
    fn name(&self, _: &QuantizedConvCase) -> String {
        format!("int8, depthwise, rows interleaved for {NAME}")
    }

    fn fits(&self, case: &QuantizedConvCase) -> bool {
        case.is_depthwise() && case.is_narrow && compiled(case.dots).is_some()
    }

    fn cost(&self, case: &QuantizedConvCase) -> f64 {
        let quads = case.kernel[0].div_ceil(4) * (case.kernel[1] + INTERLEAVE);
        time(case.dots) * quads as f64 * case.groups as f64 / UNIT
    }
}

impl QuantizedConvForm for InterleavedForm {
    fn pack(&self, case: &QuantizedConvCase, weights: &Taps) -> Box<dyn PackedQuantizedConv> {
        Box::new(Interleaved::new(case, weights))
    }
}

/// Weights, `[block][rows / 4][column][channel][4]`. A block has as many channels as four registers. Blocks cycle
/// through the channels until one ends with the last channel, because consecutive pixels are one run of channels.
#[derive(Debug)]
struct Interleaved {
    /// The lanes of the registers.
    lanes: usize,
    /// The function for these registers.
    run: Run,
    /// The original weights, which support any shape.
    plain: Depthwise,
    kernel: [usize; 2],
    blocks: usize,
    data: Lines,
}

impl Interleaved {
    /// Packs weights.
    ///
    /// # Panics
    /// The form does not fit.
    fn new(case: &QuantizedConvCase, weights: &Taps) -> Interleaved {
        let (lanes, run) = compiled(case.dots).expect("the processor has the instructions");
        let (plain, channels, kernel) = (Depthwise::new(case, weights), case.groups, case.kernel);
        let width = 4 * lanes;
        let (quads, blocks) = (kernel[0].div_ceil(4), channels / gcd(channels, width));
        let mut data = Lines::zeroed(blocks * quads * kernel[1] * width);
        let bytes: &mut [i8] = bytemuck::cast_slice_mut(&mut data);
        for (tap, row) in plain.differences.chunks_exact(channels).enumerate() {
            let (i, j) = (tap / kernel[1], tap % kernel[1]);
            for at in 0..blocks * width {
                let vectors = ((at / width * quads + i / 4) * kernel[1] + j) * width;
                bytes[(vectors + at % width) * 4 + i % 4] =
                    i8::try_from(row[at % channels]).expect("the weights are narrow");
            }
        }
        Interleaved { lanes, run, plain, kernel, blocks, data }
    }
}

/// [`Task::lines`], compiled for some instructions.
type Run = unsafe fn(&Task, Range<usize>);

/// The lanes of registers that sum four products of bytes per lane, and the function for them; `None` if the processor has
/// no such instruction.
fn compiled(dots: Dots) -> Option<(usize, Run)> {
    match dots.instructions() {
        #[cfg(target_arch = "x86_64")]
        Instructions::Avx512Vnni | Instructions::Amx => Some((<__m512i as Vector>::LANES, wide)),
        #[cfg(target_arch = "x86_64")]
        Instructions::AvxVnni => Some((<__m256i as Vector>::LANES, narrow)),
        #[cfg(target_arch = "aarch64")]
        Instructions::I8mm => Some((Bytes::<Mixed>::LANES, i8mm)),
        #[cfg(target_arch = "aarch64")]
        Instructions::Dotprod => Some((Bytes::<Signed>::LANES, dotprod)),
        _ => None,
    }
}

/// The instructions for the four products of a lane.
fn time(dots: Dots) -> f64 {
    match dots.instructions() {
        #[cfg(target_arch = "aarch64")]
        Instructions::Dotprod => 4.0,
        _ => 1.0,
    }
}

impl PackedQuantizedConv for Interleaved {
    fn run(&self, threads: &Threads, shape: &Shape, x: Codes, bias: Option<&[i32]>, mut out: Out) {
        if !is_compact(shape) {
            return self.plain.run(threads, shape, x, bias, out);
        }
        assert_eq!(shape.kernel, self.kernel, "{shape:?}");
        let mut finish = self.plain.finish(shape, shifted_zero(&x), bias, &mut out);
        repeat(&mut finish, shape.channels, self.blocks * 4 * self.lanes);
        let strips = Strips::new(shape, self.lanes);
        let outside = Scratch::filled(x.zero as u8, shape.channels * shape.input[1]);
        let task = Task { weights: self, finish: &finish, shape, strips: &strips, x: &x, outside: &outside };
        self.plain.for_each_run(threads, shape, |run| {
            // SAFETY: the `Dots` of the case prove that the processor has the instructions of the function. The results of
            // the run's pixels belong to this task alone.
            unsafe { (self.run)(&task, run) }
        });
    }

    fn bytes(&self) -> usize {
        self.plain.bytes() + size_of_val(&self.data[..])
    }

    fn is_cached(&self, shape: &Shape) -> bool {
        if !is_compact(shape) {
            return self.plain.is_cached(shape);
        }
        let strips = Strips::new(shape, self.lanes);
        let together = shape.kernel[0].div_ceil(4) * strips.quad;
        is_cached::<u8>(together)
            && is_cached::<u8>(shape.channels * shape.input[1])
            && is_cached::<i32>(self.blocks * 4 * self.lanes)
            && is_cached::<usize>(strips.taps(shape).len())
            && is_cached::<Group>(strips.groups.len())
    }
}

/// Repeats the per-channel values in the order of the blocks, for `len` channels.
fn repeat(finish: &mut Finish, channels: usize, len: usize) {
    finish.start = Scratch::of((0..len).map(|at| finish.start[at % channels]));
    finish.scale = Scratch::of((0..len).map(|at| finish.scale[at % channels]));
}

struct Task<'a> {
    weights: &'a Interleaved,
    finish: &'a Finish,
    shape: &'a Shape,
    strips: &'a Strips,
    x: &'a Codes<'a>,
    /// A row of zero points, for rows outside the image.
    outside: &'a [u8],
}

/// See [`Task::lines`].
///
/// # Safety
/// As for [`Task::lines`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn wide(task: &Task, run: Range<usize>) {
    // SAFETY: guaranteed by the caller.
    unsafe { task.lines::<__m512i>(run) }
}

/// See [`Task::lines`].
///
/// # Safety
/// As for [`Task::lines`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avxvnni,avx2,fma")]
unsafe fn narrow(task: &Task, run: Range<usize>) {
    // SAFETY: guaranteed by the caller.
    unsafe { task.lines::<__m256i>(run) }
}

/// See [`Task::lines`].
///
/// # Safety
/// As for [`Task::lines`].
#[cfg(target_arch = "aarch64")]
#[target_feature(enable = "neon,i8mm")]
unsafe fn i8mm(task: &Task, run: Range<usize>) {
    // SAFETY: guaranteed by the caller.
    unsafe { task.lines::<Bytes<Mixed>>(run) }
}

/// See [`Task::lines`].
///
/// # Safety
/// As for [`Task::lines`].
#[cfg(target_arch = "aarch64")]
#[target_feature(enable = "neon,dotprod")]
unsafe fn dotprod(task: &Task, run: Range<usize>) {
    // SAFETY: guaranteed by the caller.
    unsafe { task.lines::<Bytes<Signed>>(run) }
}

impl Task<'_> {
    /// Computes some rows of the output, counted over all images.
    ///
    /// # Safety
    /// The processor has the features, and nothing else writes the results.
    #[inline(always)]
    unsafe fn lines<V: Vector>(&self, run: Range<usize>) {
        let quads = self.shape.kernel[0].div_ceil(4);
        let mut together = Lines::zeroed(quads * self.strips.quad / 4);
        let together: &mut [u8] = bytemuck::cast_slice_mut(&mut together);
        let taps = self.strips.taps(self.shape);
        for line in run {
            for first in (0..self.shape.output[1]).step_by(self.strips.columns) {
                // SAFETY: guaranteed by the caller.
                unsafe {
                    for (quad, to) in together.chunks_exact_mut(self.strips.quad).take(quads).enumerate() {
                        self.interleave::<V>(line, first, quad, to);
                    }
                    match <&[usize; 3]>::try_from(&taps[..]) {
                        Ok(taps) => self.strip::<V>(together, taps, line, first),
                        Err(_) => self.strip::<V>(together, &taps, line, first),
                    }
                }
            }
        }
    }

    /// Interleaves four input rows for row `line` of the output, from column `first` on.
    ///
    /// # Safety
    /// As for [`lines`](Task::lines).
    #[inline(always)]
    unsafe fn interleave<V: Vector>(&self, line: usize, first: usize, quad: usize, to: &mut [u8]) {
        let (shape, channels) = (self.shape, self.shape.channels);
        let (image, y) = (line / shape.output[0], line % shape.output[0]);
        let start = (first * shape.strides[1]) as isize - shape.before[1];
        let (within, before) = within(start, self.strips.input, shape.input[1]);
        let row = |i: usize| -> Option<&[u8]> {
            let tap = Some(4 * quad + i).filter(|&tap| tap < shape.kernel[0])?;
            let row = position(shape, 0, y, tap).map(|row| (image * shape.input[0] + row) * shape.input[1]);
            let at = row.map(|row| &self.x.bits[(row + within.start) * channels..(row + within.end) * channels]);
            Some(at.unwrap_or(&self.outside[..within.len() * channels]))
        };
        let rows = [row(0), row(1), row(2), row(3)].map(|row| row.map(<[u8]>::as_ptr));
        let (flip, len) = (if self.x.signed { SIGN } else { 0 }, within.len() * channels);
        let (start, end) = (before * channels * 4, (before + within.len()) * channels * 4);
        let code = self.x.zero as u8 ^ flip;
        to[..start].fill(code);
        assert!(end + 4 * V::BYTES <= to.len(), "the strip is long enough");
        // SAFETY: the rows have as many bytes, and `to` also has the bytes written beyond them.
        unsafe {
            match flip {
                0 => interleave::<V, false>(rows, len, to[start..].as_mut_ptr()),
                _ => interleave::<V, true>(rows, len, to[start..].as_mut_ptr()),
            }
        }
        let all = self.strips.input * channels * 4;
        to[end.min(all)..all].fill(code);
    }

    /// Computes the columns of one strip of the output, from `first` on. If the number of taps is known, the function
    /// is inlined, and the weights stay in registers.
    ///
    /// # Safety
    /// As for [`lines`](Task::lines).
    #[inline(always)]
    unsafe fn strip<V: Vector>(&self, together: &[u8], taps: &[usize], line: usize, first: usize) {
        let (shape, width, weights) = (self.shape, 4 * V::LANES, self.weights.data.as_ptr().cast::<u8>());
        let len = (shape.output[1] - first).min(self.strips.columns) * shape.channels;
        let out = (line * shape.output[1] + first) * shape.channels;
        for (block, group) in self.strips.groups.iter().enumerate() {
            // SAFETY: guaranteed by the caller. `Strips` allocated the bytes of all reads, and the weights are adjacent
            // registers.
            unsafe {
                let packed = weights.add(block * taps.len() * 4 * V::BYTES).cast::<[V; 4]>();
                let packed = std::slice::from_raw_parts(packed, taps.len());
                let kept = if let [a, b, c] = packed { Some([*a, *b, *c]) } else { None };
                let weights = kept.as_ref().map_or(packed, |kept| &kept[..]);
                let start = self.finish.start.as_ptr().add(block * width).cast::<[V; 4]>().read_unaligned();
                let mut from = group.from.map(|from| together.as_ptr().wrapping_add(from));
                for at in (group.out..len).step_by(self.strips.step[0]) {
                    let sums = sums(start, from, taps, weights);
                    rows::write(&sums, self.finish, block * width, 0, out + at, group.count.min(len - at));
                    from = from.map(|from| from.wrapping_add(self.strips.step[1]));
                }
            }
        }
    }
}

/// Returns four registers of sums, starting with `start`, over the bytes at each tap.
///
/// # Safety
/// The processor has the features, and every tap has bytes.
#[inline(always)]
unsafe fn sums<V: Vector>(start: [V; 4], from: [*const u8; 4], taps: &[usize], weights: &[[V; 4]]) -> [V; 4] {
    let mut sums = start;
    for (&tap, weights) in taps.iter().zip(weights) {
        for ((sum, from), &weights) in sums.iter_mut().zip(from).zip(weights) {
            // SAFETY: guaranteed by the caller.
            *sum = sum.dot(unsafe { V::load(from.wrapping_add(tap)) }, weights);
        }
    }
    sums
}

/// Interleaves the bytes of four rows to `[len][4]`, followed by arbitrary bytes up to whole blocks. A missing row
/// counts as 0. With `FLIP`, the bytes are `i8`, and 128 is added to them.
///
/// # Safety
/// The processor has the features, the rows have as many bytes, and `to` has the bytes written.
#[inline(always)]
unsafe fn interleave<V: Vector, const FLIP: bool>(rows: [Option<*const u8>; 4], len: usize, to: *mut u8) {
    for at in (0..len).step_by(V::BYTES) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let mut bytes = [V::splat(0); 4];
            for (bytes, row) in bytes.iter_mut().zip(rows) {
                let Some(row) = row else { continue };
                let row = row.add(at);
                let codes = if len - at >= V::BYTES { V::load(row) } else { V::load_some(row, len - at) };
                *bytes = if FLIP { codes.xor(V::splat(i32::from_ne_bytes([SIGN; 4]))) } else { codes }.spread();
            }
            let [a, b, c, d] = bytes;
            let (low, low2) = (a.unpack_low_i8(b), c.unpack_low_i8(d));
            let (high, high2) = (a.unpack_high_i8(b), c.unpack_high_i8(d));
            let to = to.add(4 * at);
            low.unpack_low_i16(low2).store(to);
            low.unpack_high_i16(low2).store(to.add(V::BYTES));
            high.unpack_low_i16(high2).store(to.add(2 * V::BYTES));
            high.unpack_high_i16(high2).store(to.add(3 * V::BYTES));
        }
    }
}
