//! The choice of kernels for a convolution.

use candle_plan_descriptors::conv::Shape;
use num_integer::gcd;

use crate::dtype::DType;

/// The form of a convolution: its kernel, and the parts of its sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Matrix products: for 1 × 1 windows with stride 1, of one image or one group.
    Product,
    /// One thread per output.
    Direct,
    /// Tiles, with the depth split into parts.
    Tiles { tile: Tile, parts: usize },
}

/// The outputs and windows that a block computes at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tile {
    Small,
    Medium,
    Large,
}

/// The number of blocks that keeps a GPU busy.
const ENOUGH: usize = 256;

/// The fewest terms of a sum per part, and the largest number of parts.
const PART: usize = 128;

const MOST_PARTS: usize = 32;

/// Fewer than `FEW` outputs per group leave most of a tile unused. Then one thread computes each output if sums have at
/// most `SHORT` terms or there are at least `MANY` sums.
const FEW: usize = 16;

const SHORT: usize = 64;

const MANY: usize = 1 << 18;

impl Tile {
    /// Returns the outputs of a tile, as `OUTPUTS` in `conv.cu`.
    pub fn outputs(self) -> usize {
        match self {
            Tile::Small => 32,
            Tile::Medium => 64,
            Tile::Large => 128,
        }
    }

    /// Returns the windows of a tile, as `WINDOWS` in `conv.cu`.
    pub fn windows(self) -> usize {
        match self {
            Tile::Small => 32,
            Tile::Medium | Tile::Large => 64,
        }
    }

    /// Whether there is a kernel for a dtype. Large tiles have no room for the widest dtype.
    pub fn takes(self, dtype: DType) -> bool {
        self != Tile::Large || dtype != DType::Float64
    }

    /// Returns the kernel's name.
    pub fn name(self) -> &'static str {
        match self {
            Tile::Small => "conv_small",
            Tile::Medium => "conv_medium",
            Tile::Large => "conv_large",
        }
    }
}

impl Form {
    /// Chooses the form that is estimated to be fastest.
    pub fn of(shape: &Shape, transposed: bool, dtype: DType) -> Form {
        let outputs = shape.outputs / shape.groups;
        if !transposed && Form::is_product(shape) {
            return Form::Product;
        }
        let depth = Form::depth(shape, transposed);
        let pixels = shape.output[0] * shape.output[1];
        if outputs < FEW && (depth <= SHORT || shape.batch * shape.outputs * pixels >= MANY) {
            return Form::Direct;
        }
        let blocks = |tile: Tile| Form::blocks(shape, transposed, tile);
        let parts = |tile: Tile| Form::parts(shape, transposed, tile);
        let computed = |tile: Tile| blocks(tile) * tile.outputs() * tile.windows();
        let is_good = |tile: Tile| {
            let is_whole = computed(tile) <= computed(Tile::Small) / 3 * 4;
            tile.takes(dtype) && blocks(tile) * parts(tile) >= ENOUGH && is_whole
        };
        let tile = [Tile::Large, Tile::Medium].into_iter().find(|&tile| is_good(tile)).unwrap_or(Tile::Small);
        Form::Tiles { tile, parts: parts(tile) }
    }

    /// Returns the number of terms of a sum.
    fn depth(shape: &Shape, transposed: bool) -> usize {
        let taps = |a: usize| {
            let apart = if transposed { shape.strides[a] / gcd(shape.strides[a], shape.dilations[a]) } else { 1 };
            shape.kernel[a].div_ceil(apart)
        };
        shape.channels / shape.groups * taps(0) * taps(1)
    }

    /// Returns the number of blocks of a tile, with one part.
    fn blocks(shape: &Shape, transposed: bool, tile: Tile) -> usize {
        let [rows, columns] = Form::remainders(shape, transposed);
        let (pieces, windows) = (shape.groups * rows * columns, shape.batch * Form::most_windows(shape, transposed));
        (shape.outputs / shape.groups).div_ceil(tile.outputs()) * windows.div_ceil(tile.windows()) * pieces
    }

    /// Returns how many parts of the depth give a tile enough blocks.
    pub fn parts(shape: &Shape, transposed: bool, tile: Tile) -> usize {
        let wanted = ENOUGH.div_ceil(Form::blocks(shape, transposed, tile).max(1));
        wanted.min(Form::depth(shape, transposed) / PART).clamp(1, MOST_PARTS)
    }

    /// Whether a convolution that is not transposed can be computed as matrix products.
    pub fn is_product(shape: &Shape) -> bool {
        let (channels, outputs) = (shape.channels / shape.groups, shape.outputs / shape.groups);
        let is_one = shape.groups == 1 || shape.batch == 1 && outputs >= FEW && channels >= FEW;
        let is_point = shape.kernel == [1, 1] && shape.strides == [1, 1] && shape.before == [0, 0];
        is_one && is_point && shape.output == shape.input && channels > 0
    }

    /// Returns the remainders of output positions by the strides of a transposed convolution. Each has its own windows.
    pub fn remainders(shape: &Shape, transposed: bool) -> [usize; 2] {
        [0, 1].map(|a| if transposed { shape.strides[a].min(shape.output[a]) } else { 1 })
    }

    /// Returns the number of windows over one image, for the remainder that has the most.
    pub fn most_windows(shape: &Shape, transposed: bool) -> usize {
        let windows = |a: usize| if transposed { shape.output[a].div_ceil(shape.strides[a]) } else { shape.output[a] };
        windows(0).saturating_mul(windows(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a convolution of images of `size × size`.
    fn shape([batch, channels, outputs, groups]: [usize; 4], size: usize, kernel: usize) -> Shape {
        Shape {
            batch,
            channels,
            outputs,
            groups,
            input: [size; 2],
            output: [size; 2],
            kernel: [kernel; 2],
            strides: [1; 2],
            dilations: [1; 2],
            before: [(kernel / 2) as isize; 2],
        }
    }

    #[test]
    fn layers_of_networks() {
        for (numbers, size, kernel, form) in [
            ([1, 64, 256, 1], 56, 1, Form::Product),
            ([1, 64, 64, 1], 56, 3, Form::Tiles { tile: Tile::Small, parts: 2 }),
            ([1, 128, 128, 1], 28, 3, Form::Tiles { tile: Tile::Small, parts: 3 }),
            ([1, 256, 256, 1], 14, 3, Form::Tiles { tile: Tile::Medium, parts: 16 }),
            ([1, 512, 512, 1], 7, 3, Form::Tiles { tile: Tile::Medium, parts: 32 }),
            ([32, 64, 64, 1], 56, 3, Form::Tiles { tile: Tile::Medium, parts: 1 }),
            ([32, 256, 256, 1], 28, 3, Form::Tiles { tile: Tile::Large, parts: 1 }),
            ([1, 96, 96, 96], 56, 3, Form::Direct),
            ([1, 128, 128, 32], 56, 3, Form::Direct),
            ([2, 64, 64, 2], 28, 1, Form::Tiles { tile: Tile::Small, parts: 1 }),
        ] {
            assert_eq!(
                Form::of(&shape(numbers, size, kernel), false, DType::Float32),
                form,
                "{numbers:?} {size} {kernel}"
            );
        }
    }
}
