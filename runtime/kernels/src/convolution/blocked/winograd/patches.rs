//! Transforms tiles of the image, and transforms products to tiles of the output.

use std::ops::Range;

use super::super::addend::Addend;
use super::super::conv::Convolution;
use super::super::transforms::{self, Tile, Tiling};
use crate::blocking::Blocking;
use crate::vector::Vector;

/// A pixel outside the image.
static ZEROS: [f32; Blocking::MOST] = [0.0; Blocking::MOST];

/// A convolution in square tiles of outputs. Tiles are numbered row by row: by residue down, and by group across.
pub(super) struct Squares<'a> {
    pub convolution: &'a Convolution<'a>,
    pub tile: Tile,
    pub axes: [Tiling; 2],
}

/// Some tiles of one image. The stride of their transformed values from position to position is `step`.
pub(super) struct Patches<'a> {
    pub work: &'a Squares<'a>,
    /// The tiles in a row.
    pub columns: usize,
    pub image: usize,
    pub tiles: Range<usize>,
    pub step: usize,
}

impl Patches<'_> {
    /// The row and the column of each tile's first output.
    #[inline(always)]
    fn firsts(&self) -> impl Iterator<Item = [usize; 2]> + '_ {
        let [down, across] = &self.work.axes;
        let [mut row, mut column] = [self.tiles.start / self.columns, self.tiles.start % self.columns];
        self.tiles.clone().map(move |_| {
            let first = [down.by_residue(row), across.by_group(column)];
            [row, column] = if column + 1 == self.columns { [row + 1, 0] } else { [row, column + 1] };
            first
        })
    }

    /// Transforms one block of channels `[H, W, B]`.
    #[inline(always)]
    pub fn input<V: Vector, const BLOCK: usize>(&self, x: &[f32], out: &mut [f32]) {
        match self.work.tile {
            Tile::Two => self.input_of::<V, BLOCK, 2>(x, out),
            Tile::Four => self.input_of::<V, BLOCK, 4>(x, out),
        }
    }

    #[inline(always)]
    fn input_of<V: Vector, const BLOCK: usize, const M: usize>(&self, x: &[f32], out: &mut [f32]) {
        let shape = self.work.convolution.shape;
        let size = shape.input.map(|size| size as isize);
        assert!(x.len() >= shape.input[0] * shape.input[1] * BLOCK);
        assert!(out.len() >= ((M + 2) * (M + 2) - 1) * self.step + self.tiles.len() * BLOCK);
        for (i, first) in self.firsts().enumerate() {
            let corner = [0, 1].map(|a| first[a] as isize - shape.before[a]);
            let last = [0, 1].map(|a| corner[a] + (shape.dilations[a] * (M + 1)) as isize);
            let is_inside = (0..2).all(|a| corner[a] >= 0 && last[a] < size[a]);
            for lane in (0..BLOCK).step_by(V::LANES) {
                // SAFETY: asserted above.
                unsafe {
                    let (x, out) = (x.as_ptr().add(lane), out.as_mut_ptr().add(i * BLOCK + lane));
                    match is_inside {
                        true => input_patch::<V, BLOCK, M, false>(x, size, corner, shape.dilations, out, self.step),
                        false => input_patch::<V, BLOCK, M, true>(x, size, corner, shape.dilations, out, self.step),
                    }
                };
            }
        }
    }

    /// Transforms the products of one block of outputs, adds the bias and the residual, and stores the part of each tile inside the
    /// output.
    #[inline(always)]
    pub fn output<V: Vector, const BLOCK: usize>(&self, block: usize, products: &[f32]) {
        match self.work.tile {
            Tile::Two => self.output_of::<V, BLOCK, 2>(block, products),
            Tile::Four => self.output_of::<V, BLOCK, 4>(block, products),
        }
    }

    #[inline(always)]
    fn output_of<V: Vector, const BLOCK: usize, const M: usize>(&self, block: usize, products: &[f32]) {
        let convolution = self.work.convolution;
        let (width, [down, across]) = (convolution.shape.output[1], &self.work.axes);
        let strides = [down.dilation * width, across.dilation].map(|pixels| pixels * BLOCK);
        let (bias, limits) =
            (convolution.bias(self.image, block).map(|bias| &bias[..BLOCK]), convolution.epilogue.limits);
        assert!(products.len() >= ((M + 2) * (M + 2) - 1) * self.step + self.tiles.len() * BLOCK);
        let (out, residual) = (convolution.at(self.image, block, 0), convolution.residual(self.image, block, 0));
        for (i, [y, x]) in self.firsts().enumerate() {
            let (size, pixel) = ([down.outputs(y), across.outputs(x)], (y * width + x) * BLOCK);
            for lane in (0..BLOCK).step_by(V::LANES) {
                // SAFETY: asserted above. The tile's pixels are inside the output and belong to this task.
                unsafe {
                    let bias = bias.map_or(V::splat(0.0), |bias| V::load(bias.as_ptr().add(lane)));
                    let from = products.as_ptr().add(i * BLOCK + lane);
                    let to = (out.add(pixel + lane), residual.from(pixel + lane));
                    output_patch::<V, M>(from, self.step, bias, limits, to, strides, size);
                }
            }
        }
    }
}

/// Transforms the patch of `(M + 2)²` pixels at `[top, left]`, which have the distances `[down, across]`. Some of them are
/// outside the image only if `EDGE` is set.
///
/// # Safety
/// The image `[height, width, B]` can be read, and the positions with stride `step` can be written.
#[inline(always)]
unsafe fn input_patch<V: Vector, const BLOCK: usize, const M: usize, const EDGE: bool>(
    x: *const f32,
    [height, width]: [isize; 2],
    [top, left]: [isize; 2],
    [down, across]: [usize; 2],
    out: *mut f32,
    step: usize,
) {
    let x = x.wrapping_offset((top * width + left) * BLOCK as isize);
    let (row, column) = (down * width as usize * BLOCK, across * BLOCK);
    let mut columns = [[V::splat(0.0); 6]; 6];
    for (j, transformed) in columns.iter_mut().enumerate().take(M + 2) {
        let mut pixels = [V::splat(0.0); 6];
        for (i, pixel) in pixels.iter_mut().enumerate().take(M + 2) {
            let [y, x_] = [top + (i * down) as isize, left + (j * across) as isize];
            let is_inside = !EDGE || (0..height).contains(&y) && (0..width).contains(&x_);
            // SAFETY: guaranteed by the caller.
            *pixel = unsafe { load_inside(is_inside, x.wrapping_add(i * row + j * column)) };
        }
        *transformed = transforms::input::<V, M>(pixels);
    }
    for i in 0..M + 2 {
        let line = transforms::input::<V, M>(row_of(&columns, i));
        for (j, value) in line.iter().enumerate().take(M + 2) {
            // SAFETY: guaranteed by the caller.
            unsafe { value.store(out.add((i * (M + 2) + j) * step)) };
        }
    }
}

/// # Safety
/// `(M + 2)²` positions with stride `step` can be read, and `size` pixels with these strides of rows and columns can be
/// written; those of the residual can be read.
#[inline(always)]
unsafe fn output_patch<V: Vector, const M: usize>(
    products: *const f32,
    step: usize,
    bias: V,
    limits: [f32; 2],
    (out, residual): (*mut f32, Addend),
    [row, column]: [usize; 2],
    [height, width]: [usize; 2],
) {
    let mut columns = [[V::splat(0.0); 4]; 6];
    for (j, transformed) in columns.iter_mut().enumerate().take(M + 2) {
        let mut values = [V::splat(0.0); 6];
        for (i, value) in values.iter_mut().enumerate().take(M + 2) {
            // SAFETY: guaranteed by the caller.
            *value = unsafe { V::load(products.add((i * (M + 2) + j) * step)) };
        }
        *transformed = transforms::output::<V, M>(values);
    }
    for i in 0..height.min(M) {
        let line = transforms::output::<V, M>(row_of(&columns, i));
        for (j, value) in line.iter().enumerate().take(M) {
            if j < width {
                // SAFETY: guaranteed by the caller.
                unsafe {
                    let place = i * row + j * column;
                    residual.add_to(bias + *value, place).within(limits).store(out.add(place));
                }
            }
        }
    }
}

/// Returns row `i` of columns. The elements are listed so that all of them stay in registers in an unrolled loop.
#[inline(always)]
fn row_of<V: Vector, const R: usize>(columns: &[[V; R]; 6], i: usize) -> [V; 6] {
    let [a, b, c, d, e, f] = columns;
    [a[i], b[i], c[i], d[i], e[i], f[i]]
}

/// Loads a vector of a pixel's channels; zeros if the pixel is outside the image.
///
/// # Safety
/// A pixel inside the image can be read.
#[inline(always)]
unsafe fn load_inside<V: Vector>(is_inside: bool, pixel: *const f32) -> V {
    // A choice of addresses takes less time than a branch or a masked load.
    let from = if is_inside { pixel } else { ZEROS.as_ptr() };
    // SAFETY: no vector is longer than the zeros, and the caller guarantees the pixel.
    unsafe { V::load(from) }
}
