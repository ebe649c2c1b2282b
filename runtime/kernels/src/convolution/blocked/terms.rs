//! The order of the terms of an output's sum: [some channels](SUMMED) at a time, tap by tap.

use std::ops::Range;

use crate::buffer::{push, with_capacity};
use crate::conv_shape::Shape;

/// The channels whose terms a sum takes tap by tap, before those of the next channels. Every block divides them, so sums
/// have the same order at all levels.
pub(super) const SUMMED: usize = 16;

/// The block of channels of one tap.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tap {
    /// Its offset in the input.
    pub x: u32,
    /// The index of its first term in the weights; the terms of its channels are adjacent.
    pub w: u32,
}

/// Divides channels into those that are summed together. If only single channels of a pixel are contiguous (`unit` is 1),
/// each is summed by itself.
pub(super) fn parts(channels: usize, unit: usize) -> impl Iterator<Item = Range<usize>> {
    let size = if unit == 1 { 1 } else { SUMMED };
    (0..channels).step_by(size).map(move |first| first..channels.min(first + size))
}

/// Returns some rows and columns of a window's taps for all blocks of a group, in the order of the terms. `unit` channels
/// of a pixel are contiguous. `place` returns the offset of a block's pixel, from its distance in rows and columns from the
/// first of these taps.
pub(super) fn taps(
    shape: &Shape,
    unit: usize,
    [rows, columns]: [&Range<usize>; 2],
    place: impl Fn(usize, usize, usize) -> usize,
) -> Vec<Tap> {
    let ([kh, kw], [dy, dx]) = (shape.kernel, shape.dilations);
    let channels = shape.channels / shape.groups;
    let mut taps = with_capacity(channels.div_ceil(unit) * rows.len() * columns.len());
    for part in parts(channels, unit) {
        for (i, j) in rows.clone().flat_map(|i| columns.clone().map(move |j| (i, j))) {
            for first in part.clone().step_by(unit) {
                let x = place(first / unit, (i - rows.start) * dy, (j - columns.start) * dx);
                let w = part.start * kh * kw + (i * kw + j) * part.len() + first - part.start;
                push(&mut taps, Tap { x: x as u32, w: w as u32 });
            }
        }
    }
    taps
}
