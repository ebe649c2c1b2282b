//! How a row of the output of a convolution channel by channel is cut up.

use num_integer::gcd;

use crate::conv_shape::Shape;

/// Pieces of a row of the output. Each is a number of periods, which are cut into groups of sums alike.
pub(super) struct Strips {
    /// The output's columns in a strip.
    pub columns: usize,
    /// The input's columns that it reads.
    pub input: usize,
    /// The bytes of four interleaved rows of them, and beyond.
    pub quad: usize,
    /// The groups of a period, each with the weights of a block of its own.
    pub groups: Vec<Group>,
    /// From one period to the next: results, and interleaved bytes.
    pub step: [usize; 2],
}

/// Sums in four registers.
pub(super) struct Group {
    /// The first of its results, and their number.
    pub out: usize,
    pub count: usize,
    /// Where each register's interleaved bytes begin.
    pub from: [usize; 4],
}

/// Interleaved bytes that stay in a core's first-level cache.
const CACHED: usize = 28 << 10;

impl Strips {
    /// For registers of `lanes` sums.
    pub fn new(shape: &Shape, lanes: usize) -> Strips {
        let (channels, width, stride) = (shape.channels, 4 * lanes, shape.strides[1]);
        // Where a register never has sums of pixels whose bytes are apart, groups go on from pixel to pixel.
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
        // Groups of the last period may read beyond what is there of it, but no further than it goes.
        let last = columns.next_multiple_of(period) * stride + reach;
        Strips {
            columns,
            input: (columns - 1) * stride + reach + 1,
            quad: (last * channels * 4 + 8 * width).next_multiple_of(64),
            groups: (0..period * channels).step_by(width).map(group).collect(),
            step: [period * channels, period * stride * channels * 4],
        }
    }

    /// Where the bytes of each tap's quad of rows and column begin.
    pub fn taps(&self, shape: &Shape) -> Vec<usize> {
        let column = |j: usize| j * shape.dilations[1] * shape.channels * 4;
        let quads = 0..shape.kernel[0].div_ceil(4);
        quads.flat_map(|quad| (0..shape.kernel[1]).map(move |j| quad * self.quad + column(j))).collect()
    }
}
