//! Object detection: selection of boxes, and pooling of regions.

use std::fmt::Display;
use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bail;
use crate::dtype::DType;
use crate::error::Result;
use crate::extent::{count, fits, text, Extent};
use crate::operator::{Arity, Operator};
use crate::types::{Dim, TensorType, Type, Types};
use crate::value::Array;

/// Selects the boxes that no better box of their class overlaps. The result is `int64 [selected, 3]`: batch, class and
/// box.
///
/// Inputs: `boxes: float32 [B, N, 4]`; `scores: float32 [B, C, N]`; then, optional and of one element each: the maximum
/// number of boxes per class (int64, default 0), the overlap (area of intersection ÷ union) above which the worse box
/// is dropped (default 0), and the score that a box must exceed.
///
/// Source: [ONNX NonMaxSuppression](https://onnx.ai/onnx/operators/onnx__NonMaxSuppression.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NonMaxSuppression {
    /// Whether a box is given by its center, width and height instead of two corners `[y1, x1, y2, x2]`.
    pub centered: bool,
}

impl Operator for NonMaxSuppression {
    fn arity(&self) -> Arity {
        Arity::inputs(2..=5)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let expected = [DType::Float32, DType::Float32, DType::Int64, DType::Float32, DType::Float32];
        for (index, dtype) in expected.into_iter().enumerate() {
            let Some(input) = inputs.optional_tensor(index)? else { continue };
            if input.dtype != dtype || (index < 2 && input.rank().is_some_and(|rank| rank != 3)) {
                bail!(
                    "input {index} must be {dtype}{}, found {}",
                    if index < 2 { " of rank 3" } else { "" },
                    inputs.get(index)?
                );
            }
        }
        if let (Some(boxes), Some(scores)) = (inputs.shape(0)?, inputs.shape(1)?) {
            check_boxes(boxes, scores)?;
        }
        allowed_overlap(inputs.checked(3))?;
        let shape = vec![None, Some(Dim::Size(3))];
        Ok(vec![Type::Tensor(TensorType { dtype: DType::Int64, shape: Some(shape) })])
    }

    fn checks(&self, input: usize) -> bool {
        input == 3
    }
}

/// The overlap above which the worse box is dropped: the element of `input`, if there is one.
///
/// # Errors
/// It is not between 0 and 1.
pub(crate) fn allowed_overlap(input: Option<&Array>) -> Result<f32> {
    let overlap = input.map(Array::read::<f32>).transpose()?.and_then(|read| read.first().copied()).unwrap_or(0.0);
    if !(0.0..=1.0).contains(&overlap) {
        bail!("the overlap {overlap} is not between 0 and 1");
    }
    Ok(overlap)
}

/// Checks that boxes are `[B, N, 4]` and scores `[B, C, N]`.
pub(crate) fn check_boxes(boxes: &[impl Extent], scores: &[impl Extent]) -> Result<()> {
    match (boxes, scores) {
        ([a, m, four], [b, _, n]) if fits(four, &4) && fits(a, b) && fits(m, n) => Ok(()),
        _ => {
            let (boxes, scores) = (text(boxes), text(scores));
            bail!("boxes have shape {boxes} and scores {scores}; they must be [B, N, 4] and [B, C, N]")
        }
    }
}

/// Checks that X is `[N, C, H, W]` and that the regions are `[rois, width]`.
pub(crate) fn check_regions(x: &[impl Extent], rois: &[impl Extent], width: usize) -> Result<()> {
    match (x.len(), rois) {
        (4, [_, numbers]) if fits(numbers, &width) => Ok(()),
        _ => {
            let (x, rois) = (text(x), text(rois));
            bail!("X has shape {x} and rois {rois}; they must be [N, C, H, W] and [rois, {width}]")
        }
    }
}

/// Checks that there is an image number for each region.
pub(crate) fn check_images(images: &[impl Extent], rois: &[impl Extent]) -> Result<()> {
    match (count(images), rois.first().and_then(Extent::known)) {
        (Some(images), Some(rois)) if images != rois => bail!("{images} image numbers do not fit {rois} regions"),
        _ => Ok(()),
    }
}

/// Checks that the images of the regions are in a batch of `batch` images.
pub(crate) fn check_batch(images: &[i64], batch: usize) -> Result<()> {
    match images.iter().enumerate().find(|(_, &image)| !usize::try_from(image).is_ok_and(|image| image < batch)) {
        Some((region, &image)) => bail!("{}", image_out_of_range(image, region, batch)),
        None => Ok(()),
    }
}

/// Returns the error for a region whose image number is out of range.
pub(crate) fn image_out_of_range(image: impl Display, region: usize, batch: usize) -> String {
    format!("image {image} is out of range for a batch of {batch} (region {region})")
}

/// The most samples of a region. A region of a real model has far fewer.
pub(crate) const MOST_SAMPLES: f64 = 1e7;

/// Returns the error for a region with more than [`MOST_SAMPLES`] samples.
pub(crate) fn too_many_samples(samples: f64, region: usize) -> String {
    format!("{samples} samples are too many; at most {MOST_SAMPLES} are possible (region {region})")
}

/// Checks that the images of X `[N, C, H, W]` have pixels, where there are regions.
pub(crate) fn check_pixels(x: &[usize], rois: &[usize]) -> Result<()> {
    match (x, rois) {
        (&[_, _, high, wide], &[count, _]) if (high == 0 || wide == 0) && count > 0 => {
            bail!("an image of {high} × {wide} cannot be sampled")
        }
        _ => Ok(()),
    }
}

/// Each region of interest, resampled to `[height, width]`: `[rois, C, height, width]`.
///
/// Inputs: `X: [N, C, H, W]`; `rois: [rois, 4]`, with `x1, y1, x2, y2`; `int64 [rois]`, the number of each region's
/// image. A bin of the result is the mean or the maximum of bilinear samples on a regular grid.
///
/// Source: [ONNX RoiAlign](https://onnx.ai/onnx/operators/onnx__RoiAlign.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoiAlign {
    /// The height of the result.
    pub height: usize,
    /// The width of the result.
    pub width: usize,
    /// The factor of the coordinates.
    pub scale: f32,
    /// The number of samples along each side of a bin; 0 means one per pixel, rounded up.
    pub samples: usize,
    /// Whether pixel centers lie at halves. If not, a region is at least one pixel wide.
    pub half_pixel: bool,
    /// Whether a bin is the maximum of its samples' weighted corners instead of the mean.
    pub greatest: bool,
}

impl Operator for RoiAlign {
    fn arity(&self) -> Arity {
        Arity::exact(3, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let (x, rois, images) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        if !matches!(x.dtype, DType::Float32 | DType::Float64 | DType::Float16 | DType::Bfloat16)
            || rois.dtype != x.dtype
        {
            bail!("X and rois must be of one float type, found {} and {}", x.dtype, rois.dtype);
        }
        if images.dtype != DType::Int64 {
            bail!("the images' numbers must be int64, not {}", images.dtype);
        }
        if [(x, 4), (rois, 2), (images, 1)].iter().any(|(input, rank)| input.rank().is_some_and(|found| found != *rank))
        {
            bail!("expected X [N, C, H, W], rois [rois, 4] and images [rois]");
        }
        if let (Some(x), Some(rois)) = (&x.shape, &rois.shape) {
            check_regions(x, rois, 4)?;
            images.shape.as_ref().map_or(Ok(()), |images| check_images(images, rois))?;
        }
        if let Some((images, batch)) = inputs.checked(2).zip(x.size(0)) {
            check_batch(&images.to_i64()?, batch)?;
        }
        let dim = |input: &TensorType, axis: usize| input.shape.as_ref().and_then(|shape| shape[axis].clone());
        let shape = vec![dim(rois, 0), dim(x, 1), Some(Dim::Size(self.height)), Some(Dim::Size(self.width))];
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape: Some(shape) })])
    }

    fn checks(&self, input: usize) -> bool {
        input == 2
    }
}

/// A sample: four pixels of a plane and their weights.
pub(crate) type Sample = [(usize, f64); 4];

impl RoiAlign {
    pub(crate) fn value(&self, bin: &[Sample], plane: &[f64]) -> f64 {
        let part = |&(at, weight): &(usize, f64)| plane[at] * weight;
        if self.greatest {
            let all = bin.iter().map(|sample| sample.iter().map(part).fold(f64::NEG_INFINITY, f64::max));
            return all.reduce(f64::max).unwrap_or(0.0);
        }
        let sum: f64 = bin.iter().flat_map(|sample| sample.iter().map(part)).sum();
        sum / bin.len().max(1) as f64
    }
}

/// The maximum of each of `height × width` bins of each region of interest: `[rois, C, height, width]`. A bin without
/// pixels is 0.
///
/// Inputs: `X: [N, C, H, W]` and `rois: [rois, 5]`, with an image number and `x1, y1, x2, y2`. Corners are rounded to
/// whole pixels, halves away from zero, and belong to the region. A pixel may belong to several bins. Computed in
/// float32.
///
/// Source: [ONNX MaxRoiPool](https://onnx.ai/onnx/operators/onnx__MaxRoiPool.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MaxRoiPool {
    /// The height of the result.
    pub height: usize,
    /// The width of the result.
    pub width: usize,
    /// The factor of the coordinates.
    pub scale: f32,
}

impl Operator for MaxRoiPool {
    fn arity(&self) -> Arity {
        Arity::exact(2, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let (x, rois) = (inputs.tensor(0)?, inputs.tensor(1)?);
        if !x.dtype.is_float() || x.dtype.is_small_float() || rois.dtype != x.dtype {
            bail!("X and rois must be of one float type, found {} and {}", x.dtype, rois.dtype);
        }
        if x.rank().is_some_and(|rank| rank != 4) || rois.rank().is_some_and(|rank| rank != 2) {
            bail!("expected X [N, C, H, W] and rois [rois, 5], found {} and {}", inputs.get(0)?, inputs.get(1)?);
        }
        if let (Some(x), Some(rois)) = (&x.shape, &rois.shape) {
            check_regions(x, rois, 5)?;
        }
        let dim = |input: &TensorType, axis: usize| input.shape.as_ref().and_then(|shape| shape[axis].clone());
        let shape = vec![dim(rois, 0), dim(x, 1), Some(Dim::Size(self.height)), Some(Dim::Size(self.width))];
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape: Some(shape) })])
    }
}

/// The maximum pixel of a rectangle; 0 if it has no pixels.
pub(crate) fn greatest(plane: &[f64], wide: usize, rows: &Range<usize>, columns: &Range<usize>) -> f64 {
    if rows.is_empty() || columns.is_empty() {
        return 0.0;
    }
    let mut greatest = f64::NEG_INFINITY;
    for row in rows.clone() {
        for &pixel in &plane[row * wide + columns.start..row * wide + columns.end] {
            greatest = if pixel > greatest { pixel } else { greatest };
        }
    }
    greatest
}
