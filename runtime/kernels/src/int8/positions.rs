//! The input positions that the windows of a convolution read.

use std::ops::Range;

use crate::conv_shape::Shape;

/// The input index along an axis that tap `tap` of output `index` reads; `None` if it is outside.
pub(super) fn position(shape: &Shape, axis: usize, index: usize, tap: usize) -> Option<usize> {
    let forth = index * shape.strides[axis] + tap * shape.dilations[axis];
    forth.checked_add_signed(-shape.before[axis]).filter(|&at| at < shape.input[axis])
}

/// Whether the input of a row of the output fits in memory. It does not for dilations of billions.
pub(super) fn is_compact(shape: &Shape) -> bool {
    /// Far more elements than the windows of a row of a large image have.
    const MOST: usize = 1 << 24;
    let reach = |axis: usize| shape.kernel[axis].saturating_sub(1).saturating_mul(shape.dilations[axis]);
    let columns = shape.output[1].saturating_mul(shape.strides[1]).saturating_add(reach(1));
    reach(0).saturating_add(1).saturating_mul(columns).saturating_mul(shape.channels) <= MOST
}

/// Returns which of `len` positions from `start` on are in `0..size`, and how many positions come before them.
pub(super) fn within(start: isize, len: usize, size: usize) -> (Range<usize>, usize) {
    let end = start.saturating_add_unsigned(len).clamp(0, size as isize) as usize;
    let before = usize::try_from(-start).unwrap_or(0).min(len);
    (start.clamp(0, end as isize) as usize..end, before)
}

/// The columns of the output whose windows are inside the image's columns.
pub(super) fn inside(shape: &Shape) -> Range<usize> {
    let last = shape.kernel[1].saturating_sub(1);
    let is_inside = |x: &usize| [0, last].iter().all(|&tap| position(shape, 1, *x, tap).is_some());
    let first = (0..shape.output[1]).find(is_inside).unwrap_or(shape.output[1]);
    first..(first..shape.output[1]).take_while(is_inside).last().map_or(first, |last| last + 1)
}
