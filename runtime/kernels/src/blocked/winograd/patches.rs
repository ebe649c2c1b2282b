//! Transforms tiles of the image, and transforms products to tiles of the output.

use std::ops::Range;

use super::super::addend::Addend;
use super::super::form::{self, Tile};
use super::Squares;
use crate::isa::Level;
use crate::vector::Vector;

/// Some tiles of one image. The stride of their transformed values from position to position is `step`.
pub(super) struct Patches<'a> {
    pub work: &'a Squares<'a>,
    pub image: usize,
    pub tiles: Range<usize>,
    pub step: usize,
}

/// Pixels of the largest input patch, and channels of the largest block.
const PATCH: usize = 36;
const MOST: usize = Level::Avx512.block();

impl Patches<'_> {
    /// Transforms one block of channels `[H, W, B]`.
    #[inline(always)]
    pub fn input<V: Vector>(&self, x: &[f32], out: &mut [f32]) {
        match self.work.tile {
            Tile::Two => self.input_of::<V, 2>(x, out),
            Tile::Four => self.input_of::<V, 4>(x, out),
        }
    }

    #[inline(always)]
    fn input_of<V: Vector, const M: usize>(&self, x: &[f32], out: &mut [f32]) {
        let [height, width] = self.work.convolution.shape.input.map(|size| size as isize);
        let mut edge = [0.0; PATCH * MOST];
        assert!(out.len() >= ((M + 2) * (M + 2) - 1) * self.step + self.tiles.len() * V::BLOCK);
        for (i, tile) in self.tiles.clone().enumerate() {
            let at = [tile / self.work.columns(), tile % self.work.columns()];
            let [top, left] = [0, 1].map(|a| (at[a] * M) as isize - self.work.convolution.shape.before[a]);
            let size = (M + 2) as isize;
            let inside = top >= 0 && left >= 0 && top + size <= height && left + size <= width;
            let (patch, row) = if inside {
                (&x[(top * width + left) as usize * V::BLOCK..], width as usize * V::BLOCK)
            } else {
                copy_patch::<V>(x, [height, width], [top, left], M + 2, &mut edge);
                (&edge[..], (M + 2) * V::BLOCK)
            };
            assert!(patch.len() >= (M + 1) * row + (M + 2) * V::BLOCK);
            for lane in (0..V::BLOCK).step_by(V::LANES) {
                // SAFETY: asserted above.
                unsafe {
                    input_patch::<V, M>(
                        patch.as_ptr().add(lane),
                        row,
                        out.as_mut_ptr().add(i * V::BLOCK + lane),
                        self.step,
                    )
                };
            }
        }
    }

    /// Transforms the products of one block of outputs, adds the bias and the residual, and stores the part of each tile inside the
    /// output.
    #[inline(always)]
    pub fn output<V: Vector>(&self, block: usize, products: &[f32]) {
        match self.work.tile {
            Tile::Two => self.output_of::<V, 2>(block, products),
            Tile::Four => self.output_of::<V, 4>(block, products),
        }
    }

    #[inline(always)]
    fn output_of<V: Vector, const M: usize>(&self, block: usize, products: &[f32]) {
        let convolution = self.work.convolution;
        let [height, width] = convolution.shape.output;
        let (bias, limits) =
            (convolution.bias(self.image, block).map(|bias| &bias[..V::BLOCK]), convolution.epilogue.limits);
        assert!(products.len() >= ((M + 2) * (M + 2) - 1) * self.step + self.tiles.len() * V::BLOCK);
        for (i, tile) in self.tiles.clone().enumerate() {
            let [y, x] = [tile / self.work.columns() * M, tile % self.work.columns() * M];
            let size = [(height - y).min(M), (width - x).min(M)];
            let out = convolution.at(self.image, block, y * width + x);
            let residual = convolution.residual(self.image, block, y * width + x);
            for lane in (0..V::BLOCK).step_by(V::LANES) {
                // SAFETY: asserted above. The tile's pixels are inside the output and belong to this task.
                unsafe {
                    let bias = bias.map_or(V::splat(0.0), |bias| V::load(bias.as_ptr().add(lane)));
                    let from = products.as_ptr().add(i * V::BLOCK + lane);
                    let to = (out.add(lane), residual.from(lane));
                    output_patch::<V, M>(from, self.step, bias, limits, to, width * V::BLOCK, size);
                }
            }
        }
    }
}

/// Copies the patch at `corner`, with zeros outside the image.
#[inline(always)]
fn copy_patch<V: Vector>(x: &[f32], [height, width]: [isize; 2], corner: [isize; 2], size: usize, out: &mut [f32]) {
    for (i, out) in out[..size * size * V::BLOCK].chunks_exact_mut(V::BLOCK).enumerate() {
        let [y, x_] = [corner[0] + (i / size) as isize, corner[1] + (i % size) as isize];
        match (0..height).contains(&y) && (0..width).contains(&x_) {
            true => out.copy_from_slice(&x[(y * width + x_) as usize * V::BLOCK..][..V::BLOCK]),
            false => out.fill(0.0),
        }
    }
}

/// # Safety
/// A patch of `(M + 2)²` pixels with row stride `row` can be read, and its positions with stride `step` can be written.
#[inline(always)]
unsafe fn input_patch<V: Vector, const M: usize>(x: *const f32, row: usize, out: *mut f32, step: usize) {
    let mut columns = [[V::splat(0.0); 6]; 6];
    for (j, column) in columns.iter_mut().enumerate().take(M + 2) {
        let mut pixels = [V::splat(0.0); 6];
        for (i, pixel) in pixels.iter_mut().enumerate().take(M + 2) {
            // SAFETY: guaranteed by the caller.
            *pixel = unsafe { V::load(x.add(i * row + j * V::BLOCK)) };
        }
        *column = form::input::<V, M>(pixels);
    }
    for i in 0..M + 2 {
        let line = form::input::<V, M>(row_of(&columns, i));
        for (j, value) in line.iter().enumerate().take(M + 2) {
            // SAFETY: guaranteed by the caller.
            unsafe { value.store(out.add((i * (M + 2) + j) * step)) };
        }
    }
}

/// # Safety
/// `(M + 2)²` positions with stride `step` can be read, and `size` pixels with row stride `row` can be written; those of
/// the residual can be read.
#[inline(always)]
unsafe fn output_patch<V: Vector, const M: usize>(
    products: *const f32,
    step: usize,
    bias: V,
    limits: [f32; 2],
    (out, residual): (*mut f32, Addend),
    row: usize,
    [height, width]: [usize; 2],
) {
    let mut columns = [[V::splat(0.0); 4]; 6];
    for (j, column) in columns.iter_mut().enumerate().take(M + 2) {
        let mut values = [V::splat(0.0); 6];
        for (i, value) in values.iter_mut().enumerate().take(M + 2) {
            // SAFETY: guaranteed by the caller.
            *value = unsafe { V::load(products.add((i * (M + 2) + j) * step)) };
        }
        *column = form::output::<V, M>(values);
    }
    for i in 0..height.min(M) {
        let line = form::output::<V, M>(row_of(&columns, i));
        for (j, value) in line.iter().enumerate().take(M) {
            if j < width {
                // SAFETY: guaranteed by the caller.
                unsafe {
                    let place = i * row + j * V::BLOCK;
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
