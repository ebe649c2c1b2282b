//! The form of convolutions with few output positions: the product of the windows, as rows of a matrix, and the weights.

use super::source::{copied, Part, Source};
use super::{check, Weights};
use crate::buffer::collected;
use crate::conv_shape::Shape;
use crate::convolution::form::{ConvCase, ConvForm, ConvOperands, Epilogue, ImageLayout, PackedConv};
use crate::form::Form;
use crate::gemm::{Bias, Finish, Format, Matrix, PackedB, ProductCase, ProductSizes, Right};
use crate::isa::Isa;
use crate::products::{multiply, planner, prefers_half};
use crate::scratch::Scratch;
use crate::threads::Threads;
use crate::transpose::{transpose, Plane};

/// The product of a matrix of windows and the weights.
#[derive(Debug)]
pub(crate) struct WindowProductForm;

/// The most output positions of an image. With more of them, forms on blocks are faster for most sizes.
const MOST: usize = 8;
/// The time of a product, relative to the time that the same cost stands for in the other forms. These read their weights
/// more slowly.
const RATE: f64 = 0.8;
/// The cost of copying an element of a window.
const COPY: f64 = 2.0;
/// The cost of moving an element of the result.
const MOVE: f64 = 0.5;
/// The cost of starting the product of another group.
const START: f64 = 700.0;

impl Form<ConvCase> for WindowProductForm {
    fn name(&self, _: &ConvCase) -> String {
        "as a matrix product, in rows".to_string()
    }

    fn fits(&self, case: &ConvCase) -> bool {
        case.shape.pixels() <= MOST
    }

    fn cost(&self, case: &ConvCase) -> f64 {
        let (isa, shape) = (case.isa(), &case.shape);
        let [n, k, positions] = [shape.outputs / shape.groups, shape.taps(), shape.pixels()];
        let b = PackedB::case_of(isa, n, Format::Float32);
        let case =
            ProductCase { isa, sizes: ProductSizes { m: shape.batch.saturating_mul(positions), n, k }, a: [k, 1], b };
        let product = planner::cost(&case);
        // The outputs of one position are in order.
        let moved = if positions > 1 { n * positions } else { 0 };
        let copies = COPY * copied(shape) as f64 + MOVE * moved as f64;
        let groups = shape.groups as f64;
        groups * (RATE * product / shape.batch.max(1) as f64 + copies) + START * (groups - 1.0)
    }
}

impl ConvForm for WindowProductForm {
    fn layouts(&self) -> [ImageLayout; 2] {
        [ImageLayout::Rows; 2]
    }

    fn pack(&self, case: &ConvCase, w: &[f32]) -> Box<dyn PackedConv> {
        Box::new(Product::new(case.isa(), &case.shape, w))
    }
}

/// The weights of each group, as the right operand `[taps, outputs]` of a product.
#[derive(Debug)]
struct Product {
    isa: Isa,
    outputs: usize,
    taps: usize,
    groups: Vec<PackedB>,
}

/// Elements of the matrices of a part that fit in the L2 cache, and the least positions of a part: the weights are
/// read once for each part.
const BUDGET: usize = 1 << 17;
const LEAST: usize = 32;
/// Elements of the result that are worth several threads.
const SPLIT: usize = 1 << 16;

#[derive(Default)]
struct Buffers {
    windows: Scratch<f32>,
    rows: Scratch<f32>,
}

impl Product {
    fn new(isa: Isa, shape: &Shape, w: &[f32]) -> Product {
        let (outputs, taps) = (shape.outputs / shape.groups, shape.taps());
        assert_eq!(w.len(), shape.outputs * taps, "{shape:?}");
        let pack = |group: usize| {
            let b = Matrix { data: &w[group * outputs * taps..][..outputs * taps], row: 1, column: taps };
            let new = if prefers_half(shape.batch.saturating_mul(shape.pixels())) {
                PackedB::narrowest
            } else {
                PackedB::new
            };
            new(isa, &Threads::serial(), taps, outputs, &b)
        };
        Product { isa, outputs, taps, groups: collected((0..shape.groups).map(pack)) }
    }

    /// The most positions of a part.
    fn limit(&self) -> usize {
        (BUDGET / (self.taps + self.outputs).max(1)).max(LEAST)
    }

    /// Computes the outputs of one group at the positions of a part.
    fn part(
        &self,
        threads: &Threads,
        group: usize,
        part: Part,
        source: &Source,
        to: &mut Target,
        scratch: &mut Buffers,
    ) {
        let ProductSizes { m, n, k } = ProductSizes { m: part.len(), n: self.outputs, k: self.taps };
        let first = group * n;
        let bias = to.bias.map_or(Bias::None, |bias| Bias::Columns(&bias[first..][..n]));
        let a = match k {
            0 => Matrix::contiguous(&[], 0),
            _ => source.windows(threads, part, &mut scratch.windows),
        };
        let compute = |out: &mut [f32], finish: Option<Finish>| {
            multiply(
                self.isa,
                threads,
                ProductSizes { m, n, k },
                &a,
                &Right::Packed(&self.groups[group]),
                bias,
                out,
                finish,
            );
        };
        if to.is_matrix() {
            let first = part.images[0] * to.shape.outputs + first;
            let (epilogue, out) = (to.epilogue, &mut to.out[first..][..m * n]);
            let finish = |run: &mut [f32], offset: usize| epilogue.apply(run, first + offset);
            return compute(out, epilogue.is_some().then_some(&finish));
        }
        let rows = scratch.rows.overwrite(m * n, |rows| compute(rows, None));
        to.scatter(self.isa, threads, part, [first, n], rows);
    }
}

/// The result of a convolution, and the last steps that change its elements.
struct Target<'a> {
    shape: &'a Shape,
    bias: Option<&'a [f32]>,
    out: &'a mut [f32],
    epilogue: Epilogue<'a>,
}

impl Target<'_> {
    /// Whether the products of a group are consecutive in the result, position by position.
    fn is_matrix(&self) -> bool {
        self.shape.pixels() == 1 && (self.shape.groups == 1 || self.shape.batch == 1)
    }

    /// Moves `rows` `[images, positions, outputs]`, the products of outputs `first .. first + n`, to their planes.
    fn scatter(&mut self, isa: Isa, threads: &Threads, part: Part, [first, n]: [usize; 2], rows: &[f32]) {
        let ([image, images], [at, count]) = (part.images, part.positions);
        let (plane, epilogue) = (self.shape.pixels(), self.epilogue);
        let size = self.shape.outputs * plane;
        let serial = Threads::serial();
        let threads = if rows.len() > SPLIT { threads } else { &serial };
        threads.for_each_chunk(&mut self.out[image * size..][..images * size], size, |i, out| {
            let (out, rows) = (&mut out[first * plane..][..n * plane], &rows[i * count * n..][..count * n]);
            let moved = Plane { rows: n, columns: count, from: n, to: plane };
            transpose::<u32>(bytemuck::cast_slice(rows), bytemuck::cast_slice_mut(&mut out[at..]), moved, isa);
            let offset = (image + i) * size + first * plane;
            if count == plane {
                return epilogue.apply(out, offset);
            }
            for (output, out) in out.chunks_exact_mut(plane).enumerate() {
                epilogue.apply(&mut out[at..][..count], offset + output * plane + at);
            }
        });
    }
}

impl PackedConv for Product {
    fn run(&self, threads: &Threads, operands: ConvOperands) {
        let weights = Weights { groups: self.groups.len(), outputs: self.outputs, taps: self.taps };
        check(&operands, weights);
        let ConvOperands { shape, bias, x, out, epilogue } = operands;
        if out.is_empty() {
            return;
        }
        let mut scratch = Buffers::default();
        let mut to = Target { shape, bias, out, epilogue };
        for group in 0..self.groups.len() {
            let source = Source::new(shape, group, x);
            for part in Part::all(shape, self.limit()) {
                self.part(threads, group, part, &source, &mut to, &mut scratch);
            }
        }
    }

    fn bytes(&self) -> usize {
        self.groups.iter().map(PackedB::bytes).sum()
    }

    fn scratch(&self, shape: &Shape) -> Option<usize> {
        let part = self.limit().min(shape.batch.saturating_mul(shape.pixels()));
        Some(part.saturating_mul(self.taps + self.outputs))
    }
}
