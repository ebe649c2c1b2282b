//! CPU kernels: non-maximum suppression, and pooling of regions.

use std::ops::Range;

use candle_plan_kernels::scratch::Scratch;
use candle_plan_memory::buffer::{collected, push};

use super::convert::converted;
use crate::bail;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::{Call, Kernel};
use crate::ops::detection::{
    allowed_overlap, check_batch, check_boxes, check_images, check_pixels, check_regions, greatest, image_out_of_range,
    too_many_samples, MaxRoiPool, NonMaxSuppression, RoiAlign, Sample, MOST_SAMPLES,
};
use crate::value::{alloc_uninit, element_count, list, with_capacity, Array, Value};

impl Kernel for NonMaxSuppression {
    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (boxes, scores) = (call.tensor(0)?, call.tensor(1)?);
        check_boxes(boxes.dims(), scores.dims())?;
        let &[batches, classes, count] = scores.dims() else { bail!("scores have three dimensions") };
        let most = call.optional_tensor(2)?.map(|most| most.to_i64()).transpose()?;
        let most = most.and_then(|most| most.first().copied()).unwrap_or(0).max(0) as usize;
        let overlap = allowed_overlap(call.optional_tensor(3)?)?;
        let least = call.optional_tensor(4)?.map(Array::read::<f32>).transpose()?;
        let least = least.and_then(|least| least.first().copied());
        let corners = self.corners(boxes.read::<f32>()?);
        let scores = scores.read::<f32>()?;
        let mut selected = Vec::new();
        let rows = if count > 0 { batches * classes } else { 0 };
        for row in 0..rows {
            let (batch, class) = (row / classes, row % classes);
            let scores = &scores[row * count..][..count];
            for &index in &*suppress(&corners[batch * count..][..count], scores, most, overlap, least) {
                [batch, class, index].into_iter().for_each(|number| push(&mut selected, number as i64));
            }
        }
        let rows = selected.len() / 3;
        Ok(vec![Array::new(selected, &[rows, 3])?.into()])
    }
}

impl NonMaxSuppression {
    /// Returns the boxes as `[low y, low x, high y, high x]`.
    fn corners(&self, boxes: &[f32]) -> Scratch<[f32; 4]> {
        let corner = |b: &[f32]| match self.centered {
            true => [b[1] - b[3] / 2.0, b[0] - b[2] / 2.0, b[1] + b[3] / 2.0, b[0] + b[2] / 2.0],
            false => [b[0].min(b[2]), b[1].min(b[3]), b[0].max(b[2]), b[1].max(b[3])],
        };
        Scratch::of(boxes.chunks_exact(4).map(corner))
    }
}

/// Returns the indices of the selected boxes, best first.
fn suppress(boxes: &[[f32; 4]], scores: &[f32], most: usize, overlap: f32, least: Option<f32>) -> Scratch<usize> {
    let is_enough = |&i: &usize| least.is_none_or(|least| scores[i] > least);
    let mut order = Scratch::of_up_to(boxes.len(), (0..boxes.len()).filter(is_enough));
    order.sort_unstable_by(|&a, &b| scores[b].total_cmp(&scores[a]).then(a.cmp(&b)));
    let mut kept = 0; // the kept ones move to the front
    for i in 0..order.len() {
        if kept >= most {
            break;
        }
        let (best, index) = (&order[..kept], order[i]);
        if !best.iter().any(|&better| intersection_over_union(&boxes[better], &boxes[index]) > overlap) {
            order[kept] = index;
            kept += 1;
        }
    }
    order.truncate(kept);
    order
}

fn intersection_over_union(a: &[f32; 4], b: &[f32; 4]) -> f32 {
    let (height, width) = (a[2].min(b[2]) - a[0].max(b[0]), a[3].min(b[3]) - a[1].max(b[1]));
    let area = |c: &[f32; 4]| (c[2] - c[0]) * (c[3] - c[1]);
    let intersection = height.max(0.0) * width.max(0.0);
    if intersection <= 0.0 || area(a) <= 0.0 || area(b) <= 0.0 {
        return 0.0;
    }
    intersection / (area(a) + area(b) - intersection)
}

impl Kernel for RoiAlign {
    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (x, rois, images) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?);
        check_regions(x.dims(), rois.dims(), 4)?;
        check_images(images.dims(), rois.dims())?;
        check_pixels(x.dims(), rois.dims())?;
        let (&[batch, channels, high, wide], &[count, _]) = (x.dims(), rois.dims()) else {
            bail!("images have four dimensions, and regions two");
        };
        let images = images.to_i64()?;
        check_batch(&images, batch)?;
        let (data, boxes) =
            (converted(x, DType::Float64, call.threads)?, converted(rois, DType::Float64, call.threads)?);
        let (data, boxes) = (data.read::<f64>()?, boxes.read::<f64>()?);
        let dims = [count, channels, self.height, self.width];
        let mut out = with_capacity(element_count(&dims)?)?;
        for (i, (region, &image)) in boxes.chunks_exact(4).zip(&images).enumerate() {
            let bins = self.bins((i, region), high, wide)?;
            for channel in 0..channels {
                let plane = (image as usize * channels + channel) * high * wide;
                out.extend(bins.iter().map(|bin| self.value(bin, &data[plane..plane + high * wide])));
            }
        }
        Ok(vec![converted(&Array::new(out, &dims)?, x.dtype(), call.threads)?.into()])
    }
}

impl RoiAlign {
    /// The samples of each bin of region `i`, row by row.
    fn bins(&self, (i, region): (usize, &[f64]), high: usize, wide: usize) -> Result<Vec<Vec<Sample>>> {
        let shift = if self.half_pixel { 0.5 } else { 0.0 };
        let start = |i: usize| region[i] * f64::from(self.scale) - shift;
        let length = |i: usize| {
            let length = start(i + 2) - start(i);
            if self.half_pixel {
                length
            } else {
                length.max(1.0)
            }
        };
        let (step_y, step_x) = (length(1) / self.height as f64, length(0) / self.width as f64);
        let grid = |step: f64| if self.samples > 0 { self.samples as f64 } else { step.ceil().max(0.0) };
        let (rows, columns) = (grid(step_y), grid(step_x));
        let samples = rows * columns * (self.height * self.width) as f64;
        if samples > MOST_SAMPLES {
            return Err(Error::Op(too_many_samples(samples, i)));
        }
        let (rows, columns) = (rows as usize, columns as usize);
        let mut bins = with_capacity(element_count(&[self.height, self.width])?)?;
        for bin in 0..self.height * self.width {
            let (y, x) = ((bin / self.width) as f64, (bin % self.width) as f64);
            let sample = |i: usize| {
                let (row, column) = ((i / columns) as f64 + 0.5, (i % columns) as f64 + 0.5);
                let y = start(1) + y * step_y + row * step_y / rows as f64;
                let x = start(0) + x * step_x + column * step_x / columns as f64;
                corners(y, x, high, wide)
            };
            bins.push(list((0..rows * columns).map(sample))?);
        }
        Ok(bins)
    }
}

/// Returns the pixels around a point with bilinear weights. The weights are 0 for a point more than a pixel outside.
fn corners(y: f64, x: f64, high: usize, wide: usize) -> Sample {
    if !(-1.0..=high as f64).contains(&y) || !(-1.0..=wide as f64).contains(&x) {
        return [(0, 0.0); 4];
    }
    let side = |at: f64, size: usize| {
        let low = (at.max(0.0) as usize).min(size - 1);
        let part = if low == size - 1 { 0.0 } else { at.max(0.0) - low as f64 };
        (low, (low + 1).min(size - 1), part)
    };
    let ((top, bottom, down), (left, right, across)) = (side(y, high), side(x, wide));
    [
        (top * wide + left, (1.0 - down) * (1.0 - across)),
        (top * wide + right, (1.0 - down) * across),
        (bottom * wide + left, down * (1.0 - across)),
        (bottom * wide + right, down * across),
    ]
}

impl Kernel for MaxRoiPool {
    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (x, rois) = (call.tensor(0)?, call.tensor(1)?);
        check_regions(x.dims(), rois.dims(), 5)?;
        let (&[batch, channels, high, wide], &[count, _]) = (x.dims(), rois.dims()) else {
            bail!("images have four dimensions, and regions two");
        };
        let (data, boxes) =
            (converted(x, DType::Float64, call.threads)?, converted(rois, DType::Float64, call.threads)?);
        let (data, boxes) = (data.read::<f64>()?, boxes.read::<f64>()?);
        let dims = [count, channels, self.height, self.width];
        let out = alloc_uninit::<f64>(&dims)?;
        let (planes, bins) = (element_count(&[high, wide])?, element_count(&[self.height, self.width])?);
        let values = element_count(&[channels, bins])?;
        let is_absent = |(_, r): &(usize, &[f64])| !(0.0..batch as f64).contains(&r[0]) || r[0].fract() != 0.0;
        if let Some((region, numbers)) = boxes.chunks_exact(5).enumerate().find(is_absent) {
            return Err(Error::Op(image_out_of_range(numbers[0], region, batch)));
        }
        let pool = |i: usize, out: &mut [f64]| {
            let region = &boxes[5 * i..][..5];
            let (rows, columns) = (self.bins(region, 2, self.height, high), self.bins(region, 1, self.width, wide));
            for (i, out) in out.iter_mut().enumerate() {
                let plane = &data[(region[0] as usize * channels + i / bins) * planes..][..planes];
                *out = greatest(plane, wide, &rows[i % bins / self.width], &columns[i % self.width]);
            }
        };
        let out = out.overwrite(|out| call.threads.for_each_chunk(out, values, pool));
        Ok(vec![converted(&Array::new(out, &dims)?, x.dtype(), call.threads)?.into()])
    }
}

impl MaxRoiPool {
    /// Returns the pixels of each bin along one axis. `region[from]` is the first pixel and `region[from + 2]` the last
    /// one.
    fn bins(&self, region: &[f64], from: usize, count: usize, size: usize) -> Vec<Range<usize>> {
        let corner = |i: usize| (region[i] as f32 * self.scale).round();
        let start = corner(from);
        let step = (corner(from + 2) - start + 1.0).max(1.0) / count as f32;
        let inside = |place: f32| (place + start).clamp(0.0, size as f32) as usize;
        let bin = |i: usize| {
            let begin = inside((i as f32 * step).floor());
            begin..inside(((i + 1) as f32 * step).ceil()).max(begin)
        };
        collected((0..count).map(bin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, tensor};

    #[test]
    fn worse_overlapping_boxes_are_dropped() {
        let boxes = tensor(&[0f32, 0., 1., 1., 0., 0.1, 1., 1.1, 0., 10., 1., 11.], &[1, 3, 4]);
        let scores = tensor(&[0.9f32, 0.75, 0.6], &[1, 1, 3]);
        let inputs = [Some(boxes), Some(scores), Some(tensor(&[3i64], &[1])), Some(tensor(&[0.5f32], &[1]))];
        let kept = run(&NonMaxSuppression { centered: false }, &inputs).expect("boxes");
        assert_eq!(*kept.tensor().and_then(|kept| kept.read::<i64>()).expect("int64"), [0, 0, 0, 0, 0, 2]);
    }

    #[test]
    fn a_whole_image_is_its_own_mean() {
        let x = tensor(&[1f32, 2., 3., 4.], &[1, 1, 2, 2]);
        let op = RoiAlign { height: 1, width: 1, scale: 1.0, samples: 2, half_pixel: true, greatest: false };
        let roi = tensor(&[0f32, 0., 2., 2.], &[1, 4]);
        let mean = run(&op, &[Some(x.clone()), Some(roi.clone()), Some(tensor(&[0i64], &[1]))]).expect("a region");
        assert_eq!(*mean.tensor().and_then(|mean| mean.read::<f32>()).expect("f32"), [2.5]);
        assert!(run(&op, &[Some(x), Some(roi), Some(tensor(&[1i64], &[1]))]).is_err());
    }
    #[test]
    fn regions_belong_to_an_image() {
        let x = tensor(&[1f32, 2., 3., 4.], &[1, 1, 2, 2]);
        let op = MaxRoiPool { height: 1, width: 2, scale: 1.0 };
        let pooled = |region: [f32; 5]| run(&op, &[Some(x.clone()), Some(tensor(&region, &[1, 5]))]);
        let y = pooled([0., 0., 0., 1., 0.]).expect("a region");
        assert_eq!(*y.tensor().and_then(|y| y.read::<f32>()).expect("float32"), [1., 2.]);
        let y = pooled([0., 5., 5., f32::NAN, f32::INFINITY]).expect("a region beside the image");
        assert_eq!(*y.tensor().and_then(|y| y.read::<f32>()).expect("float32"), [0., 0.]);
        assert!([1.0, -1.0, 0.5, f32::NAN].iter().all(|&image| pooled([image, 0., 0., 1., 1.]).is_err()));
    }
}
