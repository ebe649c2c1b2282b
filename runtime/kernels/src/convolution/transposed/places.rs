//! The places of the residues' results in the output of a transposed convolution.

use super::part::Part;
use crate::buffer::push;
use crate::conv_shape::Shape;
use crate::gemm::Finish;
use crate::threads::Threads;

/// Elements of the output that a task moves and finishes. They fit in the L2 cache.
const TASK: usize = 1 << 15;
/// The most residues that are moved together.
const TOGETHER: usize = 4;

/// The places of all results. A pixel is an element of a result in rows, or a block of channels.
pub(super) struct Places {
    /// The planes of an image in the output.
    planes: usize,
    /// The rows and columns of the output, and its strides.
    output: [usize; 2],
    strides: [usize; 2],
    /// Sorted by their rows and columns.
    sources: Vec<Source>,
    /// Whether the residues cover the output.
    is_covered: bool,
}

/// The result of one pair of residues.
struct Source {
    /// The first row of the output.
    line: usize,
    /// The first column of the output, and the number of columns.
    column: usize,
    count: usize,
    /// Where the results of the part begin, the number of its residues, and which of them this is.
    part: usize,
    residues: usize,
    residue: usize,
    /// The adjacent planes of this residue.
    together: usize,
    /// The size of a plane of the part, the length of its rows, and where in a plane the first row of the output is.
    plane: usize,
    row: usize,
    first: usize,
}

impl Source {
    /// Where the pixels of this residue begin for a plane of the output.
    fn start(&self, plane: usize) -> usize {
        let (group, place) = (plane / self.together, plane % self.together);
        let plane = (group * self.residues + self.residue) * self.together + place;
        self.part + plane * self.plane + self.first
    }
}

impl Places {
    /// The places for parts whose results, `[N, planes of each residue…, rows, columns]`, follow each other. `planes` is
    /// the number of planes of an image in the output.
    pub fn new(shape: &Shape, parts: &[Part], planes: usize) -> Places {
        let (output, strides) = (shape.output, shape.strides);
        let mut places = Places { planes, output, strides, sources: Vec::new(), is_covered: false };
        let (mut covered, mut pixels) = (0, 0);
        for part in parts {
            let [(top, height), (left, width)] = [0, 1].map(|axis| part.rows(shape, axis));
            for residue in 0..part.residues() {
                let [y, x] = part.pair(residue);
                let ((line, rows), (column, count)) = (y.outputs(shape, 0), x.outputs(shape, 1));
                if rows == 0 || count == 0 {
                    continue;
                }
                let [down, across] = [y.start(shape, 0).abs_diff(top), x.start(shape, 1).abs_diff(left)];
                let source = Source {
                    line,
                    column,
                    count,
                    part: pixels,
                    residues: part.residues(),
                    residue,
                    together: part.together(shape),
                    plane: height * width,
                    row: width,
                    first: down * width + across,
                };
                push(&mut places.sources, source);
                covered += rows * count;
            }
            pixels += shape.batch * planes * part.pixels(shape);
        }
        places.sources.sort_unstable_by_key(|source| (source.line, source.column));
        places.is_covered = covered == shape.pixels();
        places
    }

    /// Moves all results, whose pixels have `LANES` channels, to the output. Channel `i` of an image is `value(i)` where it
    /// has no result. Then calls `finish` on runs of whole rows, with their offsets in elements of the output.
    pub fn run<const LANES: usize>(
        &self,
        threads: &Threads,
        results: &[f32],
        value: impl Fn(usize) -> f32 + Sync,
        out: &mut [f32],
        finish: Option<Finish>,
    ) {
        let ((parts, _), (out, _)) = (results.as_chunks::<LANES>(), out.as_chunks_mut::<LANES>());
        let [height, width] = self.output;
        let rows = (TASK / (width * LANES)).max(1);
        threads.for_each_chunk(out, rows * width, |task, mut out| {
            let mut row = task * rows;
            while !out.is_empty() {
                let (plane, y) = (row / height, row % height);
                let count = (height - y).min(out.len() / width);
                let (run, rest) = out.split_at_mut(count * width);
                if !self.is_covered {
                    let first = plane % self.planes * LANES;
                    run.fill(std::array::from_fn(|lane| value(first + lane)));
                }
                self.rows(parts, plane, y, run);
                if let Some(finish) = finish {
                    finish(run.as_flattened_mut(), row * width * LANES);
                }
                (out, row) = (rest, row + count);
            }
        });
    }

    /// Writes the rows of a plane from row `from` on.
    fn rows<P: Copy>(&self, parts: &[P], plane: usize, from: usize, out: &mut [P]) {
        for sources in self.sources.chunk_by(|a, b| a.line == b.line) {
            let line = sources[0].line;
            let skipped = from.saturating_sub(line).div_ceil(self.strides[0]);
            let to = Rows { places: self, plane, skipped, first: line + skipped * self.strides[0] - from };
            for sources in sources.chunks(TOGETHER) {
                let are_adjacent = sources.windows(2).all(|pair| pair[1].column == pair[0].column + 1);
                match sources {
                    [a, b] if are_adjacent => to.write([a, b], parts, out),
                    [a, b, c] if are_adjacent => to.write([a, b, c], parts, out),
                    [a, b, c, d] if are_adjacent => to.write([a, b, c, d], parts, out),
                    _ => sources.iter().for_each(|source| to.write([source], parts, out)),
                }
            }
        }
    }
}

/// Some rows of one residue in a plane.
struct Rows<'a> {
    places: &'a Places,
    plane: usize,
    /// The number of earlier rows of this residue.
    skipped: usize,
    /// The first row.
    first: usize,
}

impl Rows<'_> {
    /// Writes the rows of adjacent columns.
    fn write<P: Copy, const N: usize>(&self, sources: [&Source; N], parts: &[P], out: &mut [P]) {
        let ([stride, step], width) = (self.places.strides, self.places.output[1]);
        let starts = sources.map(|source| source.start(self.plane) + self.skipped * source.row);
        let rows = out.chunks_exact_mut(width).skip(self.first).step_by(stride);
        for (y, out) in rows.enumerate() {
            let row = |j: usize| &parts[starts[j] + y * sources[j].row..][..sources[j].count];
            weave(std::array::from_fn::<_, N, _>(row), step, &mut out[sources[0].column..]);
        }
    }
}

/// `out[i · step + j] = rows[j][i]`
#[inline(always)]
fn weave<P: Copy, const N: usize>(rows: [&[P]; N], step: usize, out: &mut [P]) {
    let count = rows.iter().map(|row| row.len()).min().unwrap_or(0);
    // With iterators, the loops check no bounds, and vectorize.
    match (&rows[..], step) {
        ([a], 1) => out[..count].copy_from_slice(a),
        ([a, b], 2) => {
            for (out, (a, b)) in out.chunks_exact_mut(2).zip(a.iter().zip(*b)) {
                (out[0], out[1]) = (*a, *b);
            }
        }
        ([a, b, c, d], 4) => {
            for (out, ((a, b), (c, d))) in out.chunks_exact_mut(4).zip(a.iter().zip(*b).zip(c.iter().zip(*d))) {
                (out[0], out[1], out[2], out[3]) = (*a, *b, *c, *d);
            }
        }
        _ => {
            for (i, out) in out.chunks_mut(step).take(count).enumerate() {
                let pixels: [P; N] = std::array::from_fn(|j| rows[j][i]);
                out[..N].copy_from_slice(&pixels);
            }
        }
    }
    for (j, row) in rows.into_iter().enumerate() {
        (count..row.len()).for_each(|i| out[i * step + j] = row[i]);
    }
}
