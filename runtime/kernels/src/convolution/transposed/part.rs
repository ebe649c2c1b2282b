//! The parts of a transposed convolution. Each part is a plain convolution.

use candle_plan_descriptors::conv::Taps;

use crate::buffer::{collected, collected_up_to, with_capacity};
use crate::conv_shape::Shape;
use crate::scratch::Scratch;

/// Residues that one plain convolution computes: each pair of the residues along both axes. Along an axis, they have the
/// same number of taps, and each residue begins at its own input row. The convolution computes the outputs of all residues
/// for each row that one of them needs. Where another residue has no output, its result is discarded.
#[derive(Debug, Clone)]
pub(super) struct Part {
    /// The residues along each axis.
    pub taps: [Vec<Taps>; 2],
    /// The channels of a pixel of the result: one in rows, those of a block in blocks.
    lanes: usize,
}

impl Part {
    /// Returns the parts of a transposed convolution: one for each pair of residues that has taps, or with `merged` one
    /// for all pairs with the same number of taps. A pixel of the result has `lanes` channels: one in rows, those of a
    /// block in blocks.
    pub fn all(shape: &Shape, merged: bool, lanes: usize) -> Vec<Part> {
        let [rows, columns] = [0, 1].map(|axis| {
            let taps = collected(Taps::all(shape, axis));
            let sides = taps.chunk_by(|a, b| merged && a.count == b.count);
            collected_up_to(taps.len(), sides.map(|side| collected(side.iter().copied())))
        });
        let pairs = rows.iter().flat_map(|y| columns.iter().map(move |x| Part { taps: [y.clone(), x.clone()], lanes }));
        collected_up_to(rows.len() * columns.len(), pairs)
    }

    /// The number of residues.
    pub fn residues(&self) -> usize {
        self.taps[0].len() * self.taps[1].len()
    }

    /// The taps of a residue along both axes.
    pub fn pair(&self, residue: usize) -> [Taps; 2] {
        let [rows, columns] = &self.taps;
        [rows[residue / columns.len()], columns[residue % columns.len()]]
    }

    /// The first input row that the first tap of an output reads, and the number of rows from it to the last one.
    pub fn rows(&self, shape: &Shape, axis: usize) -> (isize, usize) {
        let ranges = self.taps[axis].iter().filter_map(|taps| {
            let (start, count) = (taps.start(shape, axis), taps.outputs(shape, axis).1);
            (count > 0).then_some([start, start + count as isize])
        });
        let all = ranges.reduce(|a, b| [a[0].min(b[0]), a[1].max(b[1])]);
        all.map_or((0, 0), |[first, end]| (first, first.abs_diff(end)))
    }

    /// The output positions of all residues, per plane of the transposed convolution's output.
    pub fn pixels(&self, shape: &Shape) -> usize {
        self.residues() * self.rows(shape, 0).1 * self.rows(shape, 1).1
    }

    /// The plain convolution.
    pub fn shape(&self, shape: &Shape) -> Shape {
        let [y, x] = [0, 1].map(|axis| (self.taps[axis][0], self.rows(shape, axis)));
        let before =
            |(taps, (first, _)): (Taps, (isize, usize))| (taps.count - 1) as isize * taps.dilation as isize - first;
        Shape {
            outputs: shape.groups * self.residues() * self.outputs(shape),
            output: [y.1 .1, x.1 .1],
            kernel: [y.0.count, x.0.count],
            strides: [1, 1],
            dilations: [y.0.dilation, x.0.dilation],
            before: [before(y), before(x)],
            ..shape.clone()
        }
    }

    /// The outputs of one residue in each group of the plain convolution: whole blocks, if several residues are in blocks.
    fn outputs(&self, shape: &Shape) -> usize {
        let outputs = shape.outputs / shape.groups;
        if self.residues() > 1 {
            outputs.next_multiple_of(self.lanes)
        } else {
            outputs
        }
    }

    /// The adjacent planes, or planes of blocks, of one residue in the result of the plain convolution.
    pub fn together(&self, shape: &Shape) -> usize {
        if self.residues() > 1 && self.lanes > 1 {
            self.outputs(shape) / self.lanes
        } else {
            1
        }
    }

    /// The outputs of the plain convolution in order: the group, the residue, and the output of this group (`None` for a
    /// lane that is not used). In rows, the residues of an output are adjacent. In blocks, the outputs of a residue are.
    fn order(&self, shape: &Shape) -> impl Iterator<Item = (usize, usize, Option<usize>)> {
        let (residues, outputs, used) = (self.residues(), self.outputs(shape), shape.outputs / shape.groups);
        let is_in_rows = self.lanes == 1;
        let place = move |i: usize| if is_in_rows { (i % residues, i / residues) } else { (i / outputs, i % outputs) };
        (0..shape.groups).flat_map(move |group| {
            (0..residues * outputs).map(move |i| {
                let (residue, output) = place(i);
                (group, residue, (output < used).then_some(output))
            })
        })
    }

    /// Extracts the weights of the plain convolution from `w` `[C, O / groups, kernel rows, kernel columns]`.
    pub fn weights(&self, shape: &Shape, w: &[f32]) -> Vec<f32> {
        let [kh, kw] = shape.kernel;
        let (channels, outputs) = (shape.channels / shape.groups, shape.outputs / shape.groups);
        let taps = channels * self.taps[0][0].count * self.taps[1][0].count;
        let mut weights = with_capacity(shape.groups * self.residues() * self.outputs(shape) * taps);
        for (group, residue, output) in self.order(shape) {
            let Some(output) = output else {
                weights.resize(weights.len() + taps, 0.0);
                continue;
            };
            let [y, x] = self.pair(residue);
            for channel in group * channels..(group + 1) * channels {
                let window = &w[(channel * outputs + output) * kh * kw..][..kh * kw];
                for i in y.in_order() {
                    weights.extend(x.in_order().map(|j| window[i * kw + j]));
                }
            }
        }
        weights
    }

    /// The bias of the plain convolution.
    pub fn bias(&self, shape: &Shape, bias: &[f32]) -> Scratch<f32> {
        let (outputs, count) = (shape.outputs / shape.groups, self.shape(shape).outputs);
        let each = self.order(shape).map(|(group, _, output)| output.map_or(0.0, |o| bias[group * outputs + o]));
        Scratch::of_up_to(count, each)
    }
}
