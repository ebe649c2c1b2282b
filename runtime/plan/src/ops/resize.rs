//! Resizing of tensors along one or two axes.

use candle_plan_kernels::reduce::Number;
use half::{bf16, f16};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::resample::{AxisMap, Coordinates, Interpolation};
use super::sampled::Sampled;
use crate::array::words;
use crate::axes;
use crate::bail;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::extent::count;
use crate::float::Float;
use crate::kernel::Call;
use crate::operator::{Arity, Needs, Operator};
use crate::types::{Dim, TensorType, Type, Types};
use crate::value::{list, with_capacity, Array};

/// Resamples X along `axes`: each element of Y is copied from, or interpolated between, elements of X. Inputs: X, and,
/// each optional and with a number for each of `axes`: `roi [2·axes]` (all starts, then all ends; for
/// `TfCropAndResize`), `scales` (float32) and `sizes` (int64).
///
/// The sizes of Y are `sizes`, or else `⌊size · scale⌋`. The scale of the coordinates is `scales`, or else new size ÷
/// old size. An axis with scale 1 and unchanged size is copied; at most two others are allowed. Coordinates are
/// computed in `f32` (`f64` for float64). Integers are computed in `f64`; linear and cubic results are truncated, or
/// rounded with `antialias`. Source: [ONNX Resize](https://onnx.ai/onnx/operators/onnx__Resize.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Interpolate {
    /// The interpolation of a value at a coordinate.
    pub mode: Interpolation,
    /// The coordinate in X of a position in Y.
    pub coordinates: Coordinates,
    /// Whether the filter widens if an axis shrinks, so that every element of X counts.
    pub antialias: bool,
    /// Whether positions outside X do not count. Otherwise, they count as the outermost position.
    pub exclude_outside: bool,
    /// The value of places outside the region, for `TfCropAndResize`.
    pub extrapolation: f32,
    /// The axes of the inputs' numbers; a negative axis counts from the end; null means all.
    pub axes: Option<Vec<i64>>,
    /// The meaning of `sizes`.
    pub size_policy: SizePolicy,
}

/// The treatment of sizes that change the aspect ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SizePolicy {
    /// Each axis gets its size.
    Stretch,
    /// All axes have the same scale, the largest one that makes no axis larger than its size.
    NotLarger,
    /// All axes have the same scale, the smallest one that makes no axis smaller than its size.
    NotSmaller,
}

impl Operator for Interpolate {
    fn arity(&self) -> Arity {
        Arity::inputs(3..=4)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        let is_nearest = matches!(self.mode, Interpolation::Nearest(_));
        if !is_nearest && matches!(x.dtype, DType::Bool | DType::String | DType::Int64 | DType::Uint64) {
            bail!("{} values cannot be interpolated, only repeated (mode Nearest)", x.dtype);
        }
        if inputs.optional_tensor(2)?.is_none() && inputs.optional_tensor(3)?.is_none() {
            bail!("neither scales nor sizes are given");
        }
        self.check_lists(inputs)?;
        let Some(shape) = &x.shape else { return Ok(vec![Type::any(x.dtype)]) };
        let touched = match &self.axes {
            Some(axes) => axes::mask(axes, shape.len())?,
            None => vec![true; shape.len()].into(),
        };
        let kept = |(dim, touched): (&Option<Dim>, bool)| dim.clone().filter(|_| !touched);
        let shape = Some(shape.iter().zip(touched).map(kept).collect());
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape })])
    }

    fn needs(&self, input: usize) -> Needs {
        if input == 0 {
            Needs::Elements
        } else {
            Needs::Numbers
        }
    }

    fn shares(&self, input: usize) -> bool {
        input == 0
    }
}

/// Checks that each axis has a scale or a size, if there are any, and two bounds of the region.
fn check_counts(counts: [Option<usize>; 2], bounds: Option<usize>, axes: usize) -> Result<()> {
    for (count, name) in counts.into_iter().zip(["scales", "sizes"]) {
        if let Some(count) = count.filter(|&count| count != axes) {
            bail!("{count} {name} are not for {axes} axes");
        }
    }
    match bounds {
        Some(bounds) if bounds != 2 * axes => bail!("{bounds} bounds of the region are not for {axes} axes"),
        _ => Ok(()),
    }
}

/// The maximum number of axes that change: there are kernels for one and two.
pub const MOST_AXES: usize = 2;

impl Interpolate {
    /// Checks the lengths of the lists in a step's inputs; an empty one counts as absent.
    fn check_lists(&self, inputs: &Types) -> Result<()> {
        let Some(axes) = self.axes.as_ref().map(Vec::len).or(inputs.tensor(0)?.rank()) else { return Ok(()) };
        let length = |i: usize| -> Result<Option<usize>> { Ok(inputs.shape(i)?.and_then(|list| count(list))) };
        let counts = [length(2)?.filter(|&count| count > 0), length(3)?.filter(|&count| count > 0)];
        check_counts(counts, length(1)?.filter(|_| self.coordinates == Coordinates::TfCropAndResize), axes)
    }

    /// The resizing of each axis of X.
    pub(crate) fn maps(&self, call: &Call, dims: &[usize]) -> Result<Vec<AxisMap>> {
        let axes = self.axes.clone().unwrap_or_else(|| (0..dims.len() as i64).collect());
        axes::mask(&axes, dims.len())?;
        let scales = call.optional_tensor(2)?.filter(|scales| !scales.is_empty()).map(read_floats).transpose()?;
        let sizes = call.optional_tensor(3)?.filter(|sizes| !sizes.is_empty()).map(Array::to_i64).transpose()?;
        let sizes = sizes.map(|sizes| axes::dims(&sizes)).transpose()?;
        let roi = match call.optional_tensor(1)?.filter(|_| self.coordinates == Coordinates::TfCropAndResize) {
            Some(roi) => read_floats(roi)?,
            None => [vec![0.0; axes.len()], vec![1.0; axes.len()]].concat(),
        };
        let counts = [scales.as_ref().map(Vec::len), sizes.as_ref().map(Vec::len)];
        check_counts(counts, Some(roi.len()), axes.len())?;
        let one = sizes.as_ref().and_then(|sizes| {
            self.size_policy.scale(
                sizes
                    .iter()
                    .zip(&axes)
                    .map(|(&size, &axis)| (size, axes::resolve(axis, dims.len()).map_or(1, |axis| dims[axis]))),
            )
        });
        let mut maps: Vec<AxisMap> = dims.iter().map(|&size| AxisMap::identity(size)).collect();
        for (i, &axis) in axes.iter().enumerate() {
            let map = &mut maps[axes::resolve(axis, dims.len())?];
            map.resize(
                one.or(scales.as_ref().map(|s| s[i])),
                sizes.as_ref().map(|s| s[i]).filter(|_| one.is_none()),
                one.is_some(),
            )?;
            map.region = [roi[i], roi[axes.len() + i]];
        }
        Ok(maps)
    }

    /// The axes that change.
    ///
    /// # Errors
    /// There are more than [`MOST_AXES`].
    pub(crate) fn changed(&self, maps: &[AxisMap]) -> Result<Vec<usize>> {
        let changed: Vec<usize> = (0..maps.len()).filter(|&axis| !self.keeps(&maps[axis])).collect();
        if changed.len() > MOST_AXES {
            bail!("{} axes change: Resize is supported for at most {MOST_AXES} axes", changed.len());
        }
        Ok(changed)
    }

    pub(crate) fn keeps(&self, map: &AxisMap) -> bool {
        let whole = self.coordinates != Coordinates::TfCropAndResize || map.region == [0.0, 1.0];
        map.scale == 1.0 && map.input == map.output && whole
    }

    /// The bits of the extrapolation value.
    pub(crate) fn fill<W: words::Word>(&self, dtype: DType) -> Result<W> {
        if self.coordinates != Coordinates::TfCropAndResize || self.extrapolation == 0.0 {
            return Ok(bytemuck::Zeroable::zeroed());
        }
        dispatch!("an extrapolation value", dtype, [f32, f16, bf16, f64, u8, i8, i16, u16, i32, u32], T => {
            let value = Array::new(<T as Sampled>::narrow(vec![Number::from_f64(f64::from(self.extrapolation))], false), &[1])?;
            let bits = words::read::<W>(&value)?;
            bits.first().copied().ok_or_else(|| Error::op("no value"))
        })
    }

    /// The source position for each position of the result; `None` outside the region.
    pub(crate) fn places(&self, map: &AxisMap) -> Result<Vec<Option<usize>>> {
        let Interpolation::Nearest(rounding) = self.mode else { bail!("only mode Nearest selects positions") };
        if self.keeps(map) {
            return list((0..map.input).map(Some));
        }
        map.check()?;
        let position = |at: usize| {
            let coordinate = map.coordinate::<f32>(self.coordinates, at);
            let nearest = rounding.round(coordinate, map.scale < 1.0).max(0) as usize;
            (!self.is_outside(map, coordinate)).then_some(nearest.min(map.input - 1))
        };
        list((0..map.output).map(position))
    }

    pub(crate) fn is_outside(&self, map: &AxisMap, coordinate: f64) -> bool {
        self.coordinates == Coordinates::TfCropAndResize && !(0.0..=map.input as f64 - 1.0).contains(&coordinate)
    }

    /// The source positions and weights for each position of an axis that changes. With `double`, coordinates are
    /// computed in `f64`.
    pub(crate) fn taps(&self, map: &AxisMap, double: bool) -> Result<AxisTaps> {
        map.check()?;
        let mut taps = with_capacity(map.output.saturating_mul(self.mode.most_taps(map, self.antialias)))?;
        let mut ends = with_capacity(map.output.saturating_add(1))?;
        ends.push(0);
        for at in 0..map.output {
            let at = match double {
                true => map.coordinate::<f64>(self.coordinates, at),
                false => map.coordinate::<f32>(self.coordinates, at),
            };
            self.mode.taps(at, map, self.antialias, self.exclude_outside, &mut taps);
            ends.push(taps.len());
        }
        let count = ends.windows(2).map(|ends| ends[1] - ends[0]).max().unwrap_or(0);
        Ok(AxisTaps { count, taps, ends })
    }
}

/// The source positions that each position of a resized axis sums up, and their weights.
pub(crate) struct AxisTaps {
    /// The maximum number of source positions for one position.
    pub count: usize,
    taps: Vec<(usize, f64)>,
    ends: Vec<usize>,
}

impl AxisTaps {
    /// Source position and weight `k`, below `count`, for position `at`. Shorter lists continue with their last
    /// position and weight 0.
    pub fn tap(&self, at: usize, k: usize) -> (usize, f64) {
        let (next, end) = (self.ends[at] + k, self.ends[at + 1]);
        let (position, weight) = self.taps[next.min(end - 1)];
        (position, if next < end { weight } else { 0.0 })
    }
}

impl SizePolicy {
    /// The common scale of all axes, from pairs of requested and present sizes; `None` for [`SizePolicy::Stretch`].
    fn scale(self, sizes: impl Iterator<Item = (usize, usize)>) -> Option<f32> {
        let scales = sizes.map(|(size, present)| size as f32 / present as f32);
        match self {
            SizePolicy::Stretch => None,
            SizePolicy::NotLarger => scales.reduce(f32::min),
            SizePolicy::NotSmaller => scales.reduce(f32::max),
        }
    }
}

fn read_floats(array: &Array) -> Result<Vec<f32>> {
    dispatch!("a scale or region", array.dtype(), [f32, f64, f16, bf16], T => {
        Ok(<T as Float>::widen(array.read::<T>()?).iter().map(|v| v.to_f64() as f32).collect())
    })
}
