//! Divides a row of the output of a depthwise convolution into strips.

use num_integer::gcd;

use crate::buffer::{collected, collected_up_to};
use crate::conv_shape::Shape;

/// The strips of a row of the output. Each strip consists of periods, which are divided into groups of sums in the same
/// way.
pub(super) struct Strips {
    /// The output's columns per strip.
    pub columns: usize,
    /// The input's columns that a strip reads.
    pub input: usize,
    /// The bytes of four interleaved rows of these columns, plus padding for reads beyond them.
    pub quad: usize,
    /// The groups of a period; each has the weights of a separate block.
    pub groups: Vec<Group>,
    /// The strides of periods: in results, and in interleaved bytes.
    pub step: [usize; 2],
}

/// The sums in four registers.
pub(super) struct Group {
    /// The first of the group's results, and their number.
    pub out: usize,
    pub count: usize,
    /// The offset of each register's interleaved bytes.
    pub from: [usize; 4],
}

/// Interleaved bytes that fit in the L1 cache.
const CACHED: usize = 28 << 10;

impl Strips {
    /// Creates the strips for registers of `lanes` sums.
    pub fn new(shape: &Shape, lanes: usize) -> Strips {
        let (channels, width, stride) = (shape.channels, 4 * lanes, shape.strides[1]);
        // If no register holds sums of pixels whose bytes are not adjacent, groups continue across pixels.
        let runs_on = stride == 1 || channels.is_multiple_of(lanes);
        let period = if runs_on { width / gcd(channels, width) } else { 1 };
        let most = CACHED / (4 * channels * stride).max(1) / period;
        let periods = shape.output[1].div_ceil(period).max(1);
        let columns = shape.output[1].min(periods.div_ceil(periods.div_ceil(most.max(1))) * period).max(1);
        let group = |out: usize| {
            let from = [0, 1, 2, 3].map(|v| out + v * lanes);
            let from = from.map(|at| (at / channels * stride * channels + at % channels) * 4);
            Group { out, count: width.min(period * channels - out), from }
        };
        let reach = (shape.kernel[1] - 1) * shape.dilations[1];
        // Groups of the last period may read beyond its end, but not beyond a whole period.
        let last = columns.next_multiple_of(period) * stride + reach;
        Strips {
            columns,
            input: (columns - 1) * stride + reach + 1,
            quad: (last * channels * 4 + 8 * width).next_multiple_of(64),
            groups: collected((0..period * channels).step_by(width).map(group)),
            step: [period * channels, period * stride * channels * 4],
        }
    }

    /// The offset of the bytes for each tap's quad of rows and column.
    pub fn taps(&self, shape: &Shape) -> Vec<usize> {
        let column = |j: usize| j * shape.dilations[1] * shape.channels * 4;
        let quads = 0..shape.kernel[0].div_ceil(4);
        let count = quads.len() * shape.kernel[1];
        collected_up_to(count, quads.flat_map(|quad| (0..shape.kernel[1]).map(move |j| quad * self.quad + column(j))))
    }
}
