//! GPU kernels: pooling of regions.

use bytemuck::{Pod, Zeroable};
use candle_plan_device::{Fault, Gpu, Grid, Mirror, Report, Symbol};

use super::launch::{alloc_uninit, count, kind, launch, Params};
use super::OnGpu;
use crate::bail;
use crate::error::Result;
use crate::gpu::gpu_kernel;
use crate::kernel::Call;
use crate::ops::detection::{
    check_images, check_pixels, check_regions, image_out_of_range, too_many_samples, MaxRoiPool, RoiAlign,
};
use crate::value::{Array, Value};

/// X, the regions and Y have the shapes that `sizes` states. The kernel checks the image numbers.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(RoiAlign in "detection.cu")]
struct RoiAlignParams {
    x: u64,
    regions: u64,
    images: u64,
    y: u64,
    fault: Fault,
    sizes: Sizes,
    samples: u32,
    scale: f32,
    half_pixel: u32,
    greatest: u32,
    padding: u32,
}

/// X, the regions and Y have the shapes that `sizes` states. The kernel checks the image numbers.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(MaxRoiPool in "detection.cu")]
struct MaxRoiPoolParams {
    x: u64,
    regions: u64,
    y: u64,
    fault: Fault,
    sizes: Sizes,
    scale: f32,
}

/// The sizes of `X [batch, channels, high, wide]`, and of `count` regions of `rows × columns` bins.
#[derive(Clone, Copy, Pod, Zeroable, Mirror)]
#[repr(C)]
#[kernel(Sizes in "detection.cu")]
struct Sizes {
    batch: u32,
    channels: u32,
    high: u32,
    wide: u32,
    count: u32,
    rows: u32,
    columns: u32,
}

/// The channels that a thread reads for a bin, as `CHANNELS` in `detection.cu`.
const CHANNELS: usize = 8;
/// A bit of the place that `RoiAlign` reports: the region has too many samples. As `OF_SAMPLES` in `detection.cu`.
const OF_SAMPLES: usize = 1 << 31;

impl Sizes {
    /// Reads the sizes of `X` and of regions of `width` numbers each.
    fn new(x: &Array, regions: &Array, width: usize, [rows, columns]: [usize; 2]) -> Result<Sizes> {
        check_regions(x.dims(), regions.dims(), width)?;
        let (&[batch, channels, high, wide], &[regions_count, _]) = (x.dims(), regions.dims()) else {
            bail!("images have four dimensions, and regions two");
        };
        let [batch, channels, high, wide] = [batch, channels, high, wide].map(count);
        count(x.len().max(regions.len()))?;
        Ok(Sizes {
            batch: batch?,
            channels: channels?,
            high: high?,
            wide: wide?,
            count: count(regions_count)?,
            rows: count(rows)?,
            columns: count(columns)?,
        })
    }

    fn dims(&self) -> [usize; 4] {
        [self.count, self.channels, self.rows, self.columns].map(|size| size as usize)
    }
}

gpu_kernel!(RoiAlign: "detection");

impl OnGpu for RoiAlign {
    fn fault(&self, report: &Report) -> String {
        let region = report.place & !OF_SAMPLES;
        match report.place == region {
            true => image_out_of_range(report.value, region, report.bound(0)),
            false => too_many_samples(f64::from_bits(report.value as u64), region),
        }
    }

    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let (x, regions, images) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?);
        let sizes = Sizes::new(x, regions, 4, [self.height, self.width])?;
        check_images(images.dims(), regions.dims())?;
        check_pixels(x.dims(), regions.dims())?;
        let y = alloc_uninit(gpu, &sizes.dims(), x.dtype())?;
        count(y.len())?;
        let params = RoiAlignParams {
            x: x.address()?,
            regions: regions.address()?,
            images: images.address()?,
            y: y.address()?,
            fault: gpu.fault(&[x.dims()[0]])?,
            sizes,
            samples: count(self.samples)?,
            scale: self.scale,
            half_pixel: self.half_pixel.into(),
            greatest: self.greatest.into(),
            padding: 0,
        };
        let [regions, channels, rows, columns] = sizes.dims();
        // The product cannot exceed the number of elements of Y.
        let pieces = if y.is_empty() { 0 } else { regions * channels.div_ceil(CHANNELS) * rows * columns };
        let symbol = Symbol { module: "detection", name: "roi_align", kind: kind(x.dtype())? };
        launch(gpu, symbol, Grid::over(count(pieces)?), &params)?;
        Ok(vec![y.into()])
    }
}

gpu_kernel!(MaxRoiPool: "detection");

impl OnGpu for MaxRoiPool {
    fn fault(&self, report: &Report) -> String {
        image_out_of_range(f64::from_bits(report.value as u64), report.place, report.bound(0))
    }

    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let (x, regions) = (call.tensor(0)?, call.tensor(1)?);
        let sizes = Sizes::new(x, regions, 5, [self.height, self.width])?;
        let y = alloc_uninit(gpu, &sizes.dims(), x.dtype())?;
        let params = MaxRoiPoolParams {
            x: x.address()?,
            regions: regions.address()?,
            y: y.address()?,
            fault: gpu.fault(&[x.dims()[0]])?,
            sizes,
            scale: self.scale,
        };
        let symbol = Symbol { module: "detection", name: "roi_pool", kind: kind(x.dtype())? };
        launch(gpu, symbol, Grid::over(count(y.len())?), &params)?;
        Ok(vec![y.into()])
    }
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::*;
    use crate::testing::{fault, run, tensor};

    const DIMS: [usize; 4] = [2, 11, 9, 7];

    fn pixels() -> Vec<f32> {
        (0..DIMS.iter().product()).map(|i| ((i * 37) % 101) as f32 - 50.0).collect()
    }

    /// Regions inside the image, across its borders, outside, reversed, and empty.
    const REGIONS: [[f32; 4]; 7] = [
        [0.0, 0.0, 6.0, 8.0],
        [1.3, 2.7, 5.1, 7.9],
        [-3.0, -2.0, 4.0, 3.5],
        [5.0, 6.0, 12.0, 30.0],
        [40.0, 40.0, 50.0, 50.0],
        [5.0, 5.0, 2.0, 1.0],
        [3.0, 3.0, 3.0, 3.0],
    ];

    #[test]
    fn regions_are_sampled_and_pooled_in_every_type() {
        let regions: Vec<f32> = REGIONS.concat();
        let numbered: Vec<f32> =
            REGIONS.iter().zip(0..).flat_map(|(r, i)| [(i % 2) as f32, r[0], r[1], r[2], r[3]]).collect();
        let images = tensor(&[0i64, 1, 0, 1, 1, 0, 1], &[7]);
        let both = |x: Value, rois: Value, numbered: Value| {
            for (samples, half_pixel, greatest, scale) in
                [(0, true, false, 1.0), (2, false, false, 0.5), (3, true, true, 0.9), (0, false, true, 1.1)]
            {
                let op = RoiAlign { height: 3, width: 5, scale, samples, half_pixel, greatest };
                run(&op, &[Some(x.clone()), Some(rois.clone()), Some(images.clone())]).expect("regions");
                let op = MaxRoiPool { height: 3, width: 5, scale };
                run(&op, &[Some(x.clone()), Some(numbered.clone())]).expect("regions");
            }
        };
        macro_rules! of {
            ($from:expr) => {{
                let all = |x: &[f32], dims: &[usize]| tensor(&x.iter().map(|&x| $from(x)).collect::<Vec<_>>(), dims);
                both(all(&pixels(), &DIMS), all(&regions, &[7, 4]), all(&numbered, &[7, 5]));
            }};
        }
        of!(f32::from);
        of!(f64::from);
        of!(f16::from_f32);
        of!(bf16::from_f32);
        let none = tensor::<f32>(&[], &[0, 4]);
        let op = RoiAlign { height: 3, width: 5, scale: 1.0, samples: 2, half_pixel: true, greatest: false };
        run(&op, &[Some(tensor(&pixels(), &DIMS)), Some(none), Some(tensor::<i64>(&[], &[0]))]).expect("no regions");
    }

    #[test]
    fn missing_images_are_faults() {
        let x = tensor(&pixels(), &DIMS);
        let align = RoiAlign { height: 2, width: 2, scale: 1.0, samples: 0, half_pixel: true, greatest: false };
        let region = |far: f32| tensor(&[0.0, 0.0, far, far], &[1, 4]);
        for (image, far, expected) in [(0i64, 4.0, false), (2, 4.0, true), (-1, 4.0, true), (0, 1e5, true)] {
            let inputs = [x.clone(), region(far), tensor(&[image], &[1])];
            assert_eq!(fault(&align, &inputs), expected, "{image} {far}");
        }
        let pool = MaxRoiPool { height: 2, width: 2, scale: 1.0 };
        for (image, expected) in [(1.0f32, false), (2.0, true), (-1.0, true), (0.5, true), (f32::NAN, true)] {
            let inputs = [x.clone(), tensor(&[image, 0.0, 0.0, 3.0, 3.0], &[1, 5])];
            assert_eq!(fault(&pool, &inputs), expected, "{image}");
        }
    }
}
