//! CPU kernels: samples images at the points of a grid.

use candle_plan_kernels::float_types::Real;
use candle_plan_kernels::sample::{sample, Taps, NOWHERE};
use candle_plan_kernels::scratch::Scratch;
use candle_plan_kernels::threads::Threads;

use super::convert::converted;
use crate::array::words;
use crate::bail;
use crate::by_width;
use crate::dtype::{DType, Element};
use crate::error::Result;
use crate::kernel::{Call, Kernel};
use crate::movable::Movable;
use crate::ops::grid_sample::{check_grid, GridSample, Outside, Sampling};
use crate::types::Types;
use crate::value::{alloc_uninit, element_count, Array, Value};

impl Kernel for GridSample {
    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        None
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (x, grid) = (call.value(0)?, call.tensor(1)?);
        check_grid(x.dims()?, grid.dims())?;
        let (&[batch, channels, high, wide], &[_, rows, columns, _]) = (x.dims()?, grid.dims()) else {
            bail!("images and points have four dimensions");
        };
        element_count(&[high, wide])?;
        element_count(&[channels, rows, columns])?;
        if high * wide >= NOWHERE as usize {
            bail!("an image of {high} × {wide} pixels is too large");
        }
        if high * wide == 0 && self.outside != Outside::Zeros && batch * channels * rows * columns > 0 {
            bail!("an image of {high} × {wide} pixels cannot be sampled");
        }
        let points = self.points(grid, [high, wide], call.threads)?;
        let size = Size { dims: [batch, channels, rows, columns], image: [high, wide] };
        let is_double = self.mode != Sampling::Nearest && x.tensor()?.dtype() == DType::Float64;
        Ok(vec![match (self.mode, is_double) {
            (Sampling::Nearest, _) => self.nearest(x, &points, &size, call.threads)?,
            (Sampling::Linear, false) => self.weighted::<f32, 2, 4>(x.tensor()?, &points, &size, call.threads)?,
            (Sampling::Linear, true) => self.weighted::<f64, 2, 4>(x.tensor()?, &points, &size, call.threads)?,
            (Sampling::Cubic, false) => self.weighted::<f32, 4, 16>(x.tensor()?, &points, &size, call.threads)?,
            (Sampling::Cubic, true) => self.weighted::<f64, 4, 16>(x.tensor()?, &points, &size, call.threads)?,
        }])
    }
}

/// The dimensions of the result, and the height and width of an image.
struct Size {
    dims: [usize; 4],
    image: [usize; 2],
}

/// The number of points that a thread takes at once.
const BLOCK: usize = 1 << 12;

impl GridSample {
    /// Converts the points of the grid to pixels, `[y, x]`.
    fn points(&self, grid: &Array, size: [usize; 2], threads: &Threads) -> Result<Scratch<[f64; 2]>> {
        let [high, wide] = size;
        let mut points = Scratch::filled([0.0; 2], grid.len() / 2);
        if grid.dtype() == DType::Float64 {
            let grid = grid.read::<f64>()?;
            for (point, p) in points.iter_mut().zip(grid.chunks_exact(2)) {
                *point = [self.pixel(p[1], high), self.pixel(p[0], wide)];
            }
            return Ok(points);
        }
        let grid = converted(grid, DType::Float32, threads)?;
        let grid = grid.read::<f32>()?;
        threads.for_each_chunk(&mut points, BLOCK, |block, points| {
            for (point, p) in points.iter_mut().zip(grid[2 * block * BLOCK..].chunks_exact(2)) {
                *point = [f64::from(self.pixel(p[1], high)), f64::from(self.pixel(p[0], wide))];
            }
        });
        Ok(points)
    }

    /// Converts a coordinate from -1 to 1 to pixels.
    fn pixel<R: Real>(&self, at: R, size: usize) -> R {
        let (size, half) = (R::from_f64(size as f64), R::from_f64(0.5));
        match self.align_corners {
            true => (at + R::ONE) * half * (size - R::ONE),
            false => ((at + R::ONE) * size - R::ONE) * half,
        }
    }

    /// Returns the index of a pixel on an axis of `size` pixels, or `None` if the pixel is zero.
    fn place(&self, at: f64, size: usize) -> Option<usize> {
        let last = size as f64 - 1.0;
        match self.outside {
            Outside::Zeros if !(0.0..=last).contains(&at) => None,
            Outside::Reflection => Some(self.reflected(at, last).clamp(0.0, last.max(0.0)) as usize),
            _ => Some(at.clamp(0.0, last.max(0.0)) as usize),
        }
    }

    /// Mirrors a whole coordinate until it is on the axis.
    fn reflected(&self, at: f64, last: f64) -> f64 {
        let (low, high) = if self.align_corners { (0.0, last) } else { (-0.5, last + 0.5) };
        let (overshoot, range) = ((low - at).max(at - high), high - low);
        if overshoot <= 0.0 || range <= 0.0 {
            return at;
        }
        let rest = overshoot % range;
        let is_even = (overshoot / range).floor() % 2.0 == 0.0;
        if (at < low) == is_even {
            low + rest
        } else {
            high - rest
        }
    }

    /// Returns the `K · K = N` pixels around a point and their weights.
    pub(super) fn taps<R: Real, const K: usize, const N: usize>(
        &self,
        [y, x]: [f64; 2],
        [high, wide]: [usize; 2],
    ) -> Taps<R, N> {
        let ((rows, down), (columns, across)) = (self.line::<K>(y, high), self.line::<K>(x, wide));
        let place = |i: usize| Some(rows[i / K]? * wide + columns[i % K]?);
        Taps {
            places: std::array::from_fn(|i| place(i).map_or(NOWHERE, |place| place as u32)),
            weights: std::array::from_fn(|i| R::from_f64(down[i / K] * across[i % K])),
        }
    }

    /// Returns the indices of the `K` pixels around a point along an axis, and their weights.
    fn line<const K: usize>(&self, at: f64, size: usize) -> ([Option<usize>; K], [f64; K]) {
        let low = at.floor();
        let part = at - low;
        let step = |k: usize| k as f64 - (K / 2 - 1) as f64;
        let weight = |d: f64| if K == 4 { cubic(d) } else { 1.0 - d };
        (
            std::array::from_fn(|k| self.place(low + step(k), size)),
            std::array::from_fn(|k| weight((part - step(k)).abs())),
        )
    }

    fn weighted<R: Real + Element, const K: usize, const N: usize>(
        &self,
        x: &Array,
        points: &[[f64; 2]],
        size: &Size,
        threads: &Threads,
    ) -> Result<Value> {
        let (x, dtype) = (converted(x, R::DTYPE, threads)?, x.dtype());
        let (x, y) = (x.read::<R>()?, alloc_uninit::<R>(&size.dims)?);
        let taps = |point| self.taps::<R, K, N>(point, size.image);
        let y = y.overwrite(|y| planes(x, y, points, size, threads, (Taps::NOTHING, taps), sample::<R, N>));
        Ok(converted(&Array::new(y, &size.dims)?, dtype, threads)?.into())
    }

    fn nearest(&self, x: &Value, points: &[[f64; 2]], size: &Size, threads: &Threads) -> Result<Value> {
        let data = Movable::new(&[x])?;
        let x = &data.arrays[0];
        let [high, wide] = size.image;
        let place = |[y, x]: [f64; 2]| {
            let (row, column) = (self.place(y.round_ties_even(), high), self.place(x.round_ties_even(), wide));
            row.zip(column).map(|(row, column)| row * wide + column)
        };
        data.restore(by_width!(x.dtype(), W => {
            let y = words::alloc_uninit::<W>(&size.dims)?;
            let take = |image: &[W], places: &[Option<usize>], out: &mut [W]| {
                for (out, place) in out.iter_mut().zip(places) {
                    *out = place.and_then(|place| image.get(place)).copied().unwrap_or_else(bytemuck::Zeroable::zeroed);
                }
            };
            let source = words::read::<W>(x)?;
            let y = y.overwrite(|y| planes(source, y, points, size, threads, (None, place), take));
            words::array(y, &size.dims, x.dtype())
        })?)
    }
}

/// Calls `read(plane, places, out)` for each plane of `x`, with one `place(point)` per point. `nothing` initializes the
/// places.
fn planes<T: Send + Sync, P: Copy + Send + Sync>(
    x: &[T],
    y: &mut [T],
    points: &[[f64; 2]],
    size: &Size,
    threads: &Threads,
    (nothing, place): (P, impl Fn([f64; 2]) -> P + Sync),
    read: impl Fn(&[T], &[P], &mut [T]) + Sync,
) {
    let [_, channels, rows, columns] = size.dims;
    let (count, pixels) = (rows * columns, size.image[0] * size.image[1]);
    if y.is_empty() {
        return;
    }
    let mut places = Scratch::filled(nothing, count);
    for (image, (points, y)) in points.chunks_exact(count).zip(y.chunks_exact_mut(channels * count)).enumerate() {
        threads.for_each_chunk(&mut places, BLOCK, |block, places| {
            places.iter_mut().zip(&points[block * BLOCK..]).for_each(|(to, &point)| *to = place(point));
        });
        threads.for_each_chunk(y, count, |channel, out| {
            read(&x[(image * channels + channel) * pixels..][..pixels], &places, out);
        });
    }
}

/// The weight of cubic convolution at a distance of `d` pixels.
fn cubic(d: f64) -> f64 {
    const A: f64 = -0.75;
    match d {
        d if d <= 1.0 => ((A + 2.0) * d - (A + 3.0)) * d * d + 1.0,
        _ => ((A * d - 5.0 * A) * d + 8.0 * A) * d - 4.0 * A,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, tensor};

    #[test]
    fn points_inside_and_outside() {
        let x = tensor(&[1f32, 2., 3., 4., 5., 6.], &[1, 1, 2, 3]);
        let grid = tensor(&[-1f32, -1., 0., 0., 1., 1., 2., 1., f32::INFINITY, 0.], &[1, 1, 5, 2]);
        for (mode, outside, expected) in [
            (Sampling::Nearest, Outside::Zeros, [1., 2., 6., 0., 0.]),
            (Sampling::Nearest, Outside::Border, [1., 2., 6., 6., 3.]),
            (Sampling::Nearest, Outside::Reflection, [1., 2., 6., 5., f32::NAN]),
            (Sampling::Linear, Outside::Zeros, [1., 3.5, 6., 0., f32::NAN]),
            (Sampling::Linear, Outside::Border, [1., 3.5, 6., 6., f32::NAN]),
            (Sampling::Cubic, Outside::Border, [1., 3.5, 6., 6., f32::NAN]),
        ] {
            let op = GridSample { mode, outside, align_corners: true };
            let y = run(&op, &[Some(x.clone()), Some(grid.clone())]).expect("an image and its grid");
            let y = y.tensor().and_then(|y| Ok(y.read::<f32>()?.to_vec())).expect("float32");
            let same = |(y, expected): (&f32, &f32)| expected.is_nan() || (y - expected).abs() < 1e-6;
            assert!(y.iter().zip(&expected).all(same), "{op:?}: {y:?}, not {expected:?}");
        }
    }

    #[test]
    fn images_without_pixels() {
        let (x, grid) = (tensor::<f32>(&[], &[1, 1, 0, 3]), tensor(&[0f32; 2], &[1, 1, 1, 2]));
        let op = |outside| GridSample { mode: Sampling::Linear, outside, align_corners: false };
        assert!(run(&op(Outside::Border), &[Some(x.clone()), Some(grid.clone())]).is_err());
        let y = run(&op(Outside::Zeros), &[Some(x), Some(grid)]).expect("zeros");
        assert_eq!(*y.tensor().and_then(|y| y.read::<f32>()).expect("float32"), [0.0]);
    }
}
