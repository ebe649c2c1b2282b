//! Tensors made larger or smaller along one or two axes.

use std::borrow::Cow;

use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::lanes::Real;
use candle_plan_kernels::reduce::Number;
use candle_plan_kernels::pad::{pad, Places};
use candle_plan_kernels::resize::{resample, take, Filter};
use candle_plan_kernels::threads::Threads;
use half::slice::HalfFloatSliceExt;
use half::vec::HalfFloatVecExt;
use half::{bf16, f16};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::resample::{AxisMap, Coordinates, Interpolation};
use crate::axes;
use crate::device::{Needs, on_device};
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::kernel::{Arity, Call, Constants, Kernel, Types};
use crate::layout::{Blocked, Image, Layout};
use crate::movable::Movable;
use crate::types::{Dim, TensorType, Type};
use crate::value::{list, room, with_room, Array, Value};
use crate::{bail, by_width, dispatch, words};

/// X resampled along `axes`, each place of Y taken from, or interpolated between, places of X. Inputs: X, and, each
/// optional and with a number for each of `axes`: `roi [2·axes]` (all starts, then all ends; for `TfCropAndResize`),
/// `scales` (float32) and `sizes` (int64).
///
/// Y's sizes are `sizes`, or else `⌊size · scale⌋`; the coordinates' scale is `scales`, or else new size ÷ old size. An
/// axis of scale 1 and unchanged size keeps its places; at most two others are allowed. Coordinates are computed in `f32`
/// (`f64` for float64). Integers are computed in `f64`; linear and cubic results are truncated, with `antialias` rounded.
/// Source: [ONNX Resize](https://onnx.ai/onnx/operators/onnx__Resize.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Interpolate {
    /// How a value is made of the places around a coordinate.
    pub mode: Interpolation,
    /// Where a place of Y lies in X.
    pub coordinates: Coordinates,
    /// Whether, where an axis shrinks, the filter widens so that every place of X counts.
    pub antialias: bool,
    /// Whether places outside X count as nothing, and not as the outermost place.
    pub exclude_outside: bool,
    /// The value of places outside the region, for `TfCropAndResize`.
    pub extrapolation: f32,
    /// The axes that the inputs are for; negative ones count from the end; null: all.
    pub axes: Option<Vec<i64>>,
    /// What `sizes` mean.
    pub size_policy: SizePolicy,
}

/// What becomes of the ratio of the sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SizePolicy {
    /// The sizes are taken as they are.
    Stretch,
    /// All axes have the largest one scale that makes no axis larger than its size.
    NotLarger,
    /// All axes have the smallest one scale that makes no axis smaller than its size.
    NotSmaller,
}

impl Kernel for Interpolate {
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
        let Some(shape) = &x.shape else { return Ok(vec![Type::any(x.dtype)]) };
        let touched = match &self.axes {
            Some(axes) => axes::mask(axes, shape.len())?,
            None => vec![true; shape.len()].into(),
        };
        let kept = |(dim, touched): (&Option<Dim>, bool)| dim.clone().filter(|_| !touched);
        let shape = Some(shape.iter().zip(touched).map(kept).collect());
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape })])
    }

    fn blocked(&self, operands: &Constants, outputs: &[Option<&Type>]) -> Option<Blocked> {
        let (x, y) = (Image::of(operands.types.first().copied().flatten()?)?, Image::of(outputs.first().copied().flatten()?)?);
        let in_plane = self.axes.iter().flatten().all(|&axis| (2..x.rank as i64).contains(&axis));
        let inputs = (0..operands.types.len()).map(|i| if i == 0 { Layout::Blocks } else { Layout::Rows });
        (self.axes.is_some() && in_plane).then(|| Blocked {
            kernel: Box::new(self.clone()),
            rank: x.rank,
            inputs: inputs.collect(),
            outputs: vec![Layout::Blocks],
            gain: -y.wasted(),
        })
    }

    on_device!("resize" by |self, operands, _gpu| {
        let fills = self.coordinates == Coordinates::TfCropAndResize && self.extrapolation != 0.0;
        Ok(operands.dtype(0).filter(|&dtype| !fills || has_number(dtype)).map(|_| self.for_gpu()))
    });

    fn needs(&self, input: usize) -> Needs {
        if input == 0 {
            Needs::Elements
        } else {
            Needs::Numbers
        }
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.value(0)?;
        let maps = self.maps(call, x.dims()?)?;
        let changed = maps.iter().filter(|map| !self.keeps(map)).count();
        if changed == 0 {
            return Ok(vec![x.clone()]);
        }
        if changed > 2 {
            bail!("{changed} axes change: only one-dimensional and two-dimensional interpolation is supported");
        }
        if let Interpolation::Nearest(_) = self.mode {
            return Ok(vec![self.nearest(x, &maps, call.threads)?]);
        }
        let x = x.tensor()?;
        dispatch!("Interpolate", x.dtype(), [f32, f16, bf16, f64, u8, i8, i16, u16, i32, u32], T => {
            Ok(vec![self.weighted::<T>(x, &maps, call.threads)?.into()])
        })
    }

    fn shares(&self, input: usize) -> bool {
        input == 0
    }
}

impl Interpolate {
    /// How the places of each axis of Y lie in X.
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
        let counts = [scales.as_ref().map_or(axes.len(), Vec::len), sizes.as_ref().map_or(axes.len(), Vec::len)];
        if counts != [axes.len(); 2] || roi.len() != 2 * axes.len() {
            bail!("{counts:?} scales and sizes and {} bounds of the region are not for {} axes", roi.len(), axes.len());
        }
        let one = sizes.as_ref().and_then(|sizes| self.size_policy.scale(sizes.iter().zip(&axes).map(|(&size, &axis)| {
            (size, axes::resolve(axis, dims.len()).map_or(1, |axis| dims[axis]))
        })));
        let mut maps: Vec<AxisMap> = dims.iter().map(|&size| AxisMap::identity(size)).collect();
        for (i, &axis) in axes.iter().enumerate() {
            let map = &mut maps[axes::resolve(axis, dims.len())?];
            map.resize(one.or(scales.as_ref().map(|s| s[i])), sizes.as_ref().map(|s| s[i]).filter(|_| one.is_none()), one.is_some())?;
            map.region = [roi[i], roi[axes.len() + i]];
        }
        Ok(maps)
    }

    pub(crate) fn keeps(&self, map: &AxisMap) -> bool {
        let whole = self.coordinates != Coordinates::TfCropAndResize || map.region == [0.0, 1.0];
        map.scale == 1.0 && map.input == map.output && whole
    }

    fn nearest(&self, x: &Value, maps: &[AxisMap], threads: &Threads) -> Result<Value> {
        let data = Movable::new(&[x])?;
        let x = &data.arrays[0];
        let places: Vec<Vec<Option<usize>>> = maps.iter().map(|map| self.places(map)).collect::<Result<_>>()?;
        let dims: Vec<usize> = places.iter().map(Vec::len).collect();
        let taken = by_width!(x.dtype(), W => {
            let source = words::read::<W>(x)?;
            let mut y = words::room::<W>(&dims)?;
            let whole: Option<Vec<Vec<u32>>> =
                places.iter().map(|axis| axis.iter().map(|&place| u32::try_from(place?).ok()).collect()).collect();
            let last = maps.iter().rposition(|map| !self.keeps(map)).unwrap_or(0);
            let before_unchanged = last < 2 || maps[..last - 1].iter().all(|map| self.keeps(map));
            match whole {
                Some(places) if last > 0 && before_unchanged => {
                    let unit = dims[last + 1..].iter().product();
                    let planes = [x.dims()[last - 1], x.dims()[last]];
                    take(Isa::get(), threads, source, planes, unit, [&places[last - 1], &places[last]], &mut y);
                }
                _ => {
                    let fill = self.fill::<W>(x.dtype())?;
                    let places: Vec<Places> = places.iter().map(|axis| axis.iter().copied().collect()).collect();
                    pad(source, x.dims(), &places, fill, &mut y, threads);
                }
            }
            words::array(y, &dims, x.dtype())
        })?;
        data.restore(taken)
    }

    /// The extrapolation value's bits.
    pub(crate) fn fill<W: words::Word>(&self, dtype: DType) -> Result<W> {
        if self.coordinates != Coordinates::TfCropAndResize || self.extrapolation == 0.0 {
            return Ok(bytemuck::Zeroable::zeroed());
        }
        dispatch!("an extrapolation value", dtype, [f32, f16, bf16, f64, u8, i8, i16, u16, i32, u32], T => {
            let value = Array::new(T::narrow(vec![Number::from_f64(f64::from(self.extrapolation))], false), &[1])?;
            let bits = words::read::<W>(&value)?;
            bits.first().copied().ok_or_else(|| Error::op("no value"))
        })
    }

    /// The place that each place of the result shows, or none.
    pub(crate) fn places(&self, map: &AxisMap) -> Result<Vec<Option<usize>>> {
        let Interpolation::Nearest(rounding) = self.mode else { bail!("only mode Nearest takes places") };
        if self.keeps(map) {
            return list((0..map.input).map(Some));
        }
        map.check()?;
        let place = |at: usize| {
            let coordinate = map.coordinate::<f32>(self.coordinates, at);
            let nearest = rounding.round(coordinate, map.scale < 1.0).max(0) as usize;
            (!self.is_outside(map, coordinate)).then_some(nearest.min(map.input - 1))
        };
        list((0..map.output).map(place))
    }

    pub(crate) fn is_outside(&self, map: &AxisMap, coordinate: f64) -> bool {
        self.coordinates == Coordinates::TfCropAndResize && !(0.0..=map.input as f64 - 1.0).contains(&coordinate)
    }

    /// What each place of the result is a sum of along an axis that changes; its coordinates are computed in `f64` if they
    /// are to be `double`.
    pub(crate) fn taps(&self, map: &AxisMap, double: bool) -> Result<AxisTaps> {
        map.check()?;
        let mut taps = with_room(map.output.saturating_mul(self.mode.most_taps(map, self.antialias)))?;
        let mut ends = with_room(map.output.saturating_add(1))?;
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

    fn weighted<T: Sampled>(&self, x: &Array, maps: &[AxisMap], threads: &Threads) -> Result<Array> {
        let filter = |map: &AxisMap| -> Result<Option<Filter<T::Wide>>> {
            if self.keeps(map) {
                return Ok(None);
            }
            let taps = self.taps(map, T::DTYPE == DType::Float64)?;
            let tap = |at: usize, k: usize| {
                let (place, weight) = taps.tap(at, k);
                (place, T::Wide::from_f64(weight))
            };
            Ok(Some(Filter::new(map.input, map.output, taps.count, tap)))
        };
        let dims: Vec<usize> = maps.iter().map(|map| map.output).collect();
        let mut y = room::<T::Wide>(&dims)?;
        let filters = maps.iter().map(filter).collect::<Result<Vec<_>>>()?;
        resample(Isa::get(), threads, &T::widen(x.read::<T>()?), x.dims(), &filters, &mut y);
        if self.coordinates == Coordinates::TfCropAndResize {
            self.extrapolate(maps, &mut y);
        }
        Array::new(T::narrow(y, self.antialias), &dims)
    }

    /// Sets what lies outside the input on any axis.
    fn extrapolate<R: Real>(&self, maps: &[AxisMap], y: &mut [R]) {
        let mut inner = 1;
        for map in maps.iter().rev() {
            let outside = |at: usize| !self.keeps(map) && self.is_outside(map, map.coordinate::<f32>(self.coordinates, at));
            for at in (0..map.output).filter(|&at| outside(at)) {
                for part in y.chunks_exact_mut(map.output * inner) {
                    part[at * inner..(at + 1) * inner].fill(R::from_f64(f64::from(self.extrapolation)));
                }
            }
            inner *= map.output;
        }
    }
}

/// For each place of an axis of the result, the places of the source that it is a sum of, and their weights.
pub(crate) struct AxisTaps {
    /// The most that a place has.
    pub count: usize,
    taps: Vec<(usize, f64)>,
    ends: Vec<usize>,
}

impl AxisTaps {
    /// Summand `k`, below `count`, of a place. Shorter lists are filled up with their last place, which then counts nothing.
    pub fn tap(&self, at: usize, k: usize) -> (usize, f64) {
        let (next, end) = (self.ends[at] + k, self.ends[at + 1]);
        let (place, weight) = self.taps[next.min(end - 1)];
        (place, if next < end { weight } else { 0.0 })
    }
}

impl SizePolicy {
    /// The one scale of all axes, from pairs of wanted and present sizes; none for [`SizePolicy::Stretch`].
    fn scale(self, sizes: impl Iterator<Item = (usize, usize)>) -> Option<f32> {
        let scales = sizes.map(|(size, present)| size as f32 / present as f32);
        match self {
            SizePolicy::Stretch => None,
            SizePolicy::NotLarger => scales.reduce(f32::min),
            SizePolicy::NotSmaller => scales.reduce(f32::max),
        }
    }
}

/// Whether an extrapolation value can be an element.
fn has_number(dtype: DType) -> bool {
    use DType::*;
    matches!(dtype, Float32 | Float16 | Bfloat16 | Float64 | Uint8 | Int8 | Int16 | Uint16 | Int32 | Uint32)
}

fn read_floats(array: &Array) -> Result<Vec<f32>> {
    dispatch!("a scale or region", array.dtype(), [f32, f64, f16, bf16], T => {
        Ok(T::widen(array.read::<T>()?).iter().map(|v| v.to_f64() as f32).collect())
    })
}

/// An element type that is interpolated in another one.
trait Sampled: Element {
    type Wide: Real + Element;
    fn widen(x: &[Self]) -> Cow<'_, [Self::Wide]>;
    /// The results as elements; integers truncate, unless they are to be rounded half up, and saturate.
    fn narrow(y: Vec<Self::Wide>, rounded: bool) -> Vec<Self>;
}

macro_rules! sampled {
    ($($kind:ident in $wide:ident: $widen:expr, $narrow:expr;)*) => {
        $(impl Sampled for $kind {
            type Wide = $wide;

            fn widen(x: &[$kind]) -> Cow<'_, [$wide]> {
                $widen(x)
            }

            fn narrow(y: Vec<$wide>, rounded: bool) -> Vec<$kind> {
                $narrow(y, rounded)
            }
        })*
    };
}

fn from_integers<T: Copy + Into<f64>>(x: &[T]) -> Cow<'_, [f64]> {
    Cow::Owned(x.iter().map(|&v| v.into()).collect())
}

fn whole(v: f64, rounded: bool) -> f64 {
    if rounded {
        (v + 0.5).floor()
    } else {
        v
    }
}

sampled! {
    f32 in f32: Cow::Borrowed, |y, _| y;
    f64 in f64: Cow::Borrowed, |y, _| y;
    f16 in f32: |x: &[f16]| Cow::Owned(x.to_f32_vec()), |y: Vec<f32>, _| Vec::from_f32_slice(&y);
    bf16 in f32: |x: &[bf16]| Cow::Owned(x.to_f32_vec()), |y: Vec<f32>, _| Vec::from_f32_slice(&y);
    u8 in f64: from_integers, |y: Vec<f64>, rounded| y.into_iter().map(|v| whole(v, rounded) as u8).collect();
    i8 in f64: from_integers, |y: Vec<f64>, rounded| y.into_iter().map(|v| whole(v, rounded) as i8).collect();
    u16 in f64: from_integers, |y: Vec<f64>, rounded| y.into_iter().map(|v| whole(v, rounded) as u16).collect();
    i16 in f64: from_integers, |y: Vec<f64>, rounded| y.into_iter().map(|v| whole(v, rounded) as i16).collect();
    u32 in f64: from_integers, |y: Vec<f64>, rounded| y.into_iter().map(|v| whole(v, rounded) as u32).collect();
    i32 in f64: from_integers, |y: Vec<f64>, rounded| y.into_iter().map(|v| whole(v, rounded) as i32).collect();
}

#[cfg(test)]
mod tests {
    use super::super::resample::Rounding;
    use super::*;
    use crate::testing::{run, tensor};

    fn op(mode: Interpolation, coordinates: Coordinates) -> Interpolate {
        Interpolate {
            mode,
            coordinates,
            antialias: false,
            exclude_outside: false,
            extrapolation: 0.0,
            axes: Some(vec![-1]),
            size_policy: SizePolicy::Stretch,
        }
    }

    fn resized(op: &Interpolate, x: Value, scales: Option<&[f32]>, sizes: Option<&[i64]>) -> Result<(Vec<usize>, Vec<f32>)> {
        let scales = scales.map(|scales| tensor(scales, &[scales.len()]));
        let sizes = sizes.map(|sizes| tensor(sizes, &[sizes.len()]));
        let inputs = [Some(x), None, scales, sizes];
        let count = if inputs[3].is_some() { 4 } else { 3 };
        let y = run(op, &inputs[..count])?;
        let y = y.tensor()?;
        let data = y.read::<f32>()?.to_vec();
        Ok((y.dims().to_vec(), data))
    }

    #[test]
    fn coordinates_say_where_a_place_lies() {
        use Coordinates::*;
        let x = || tensor(&[0f32, 10.0, 20.0, 30.0], &[1, 4]);
        let cases: [(Coordinates, &[f32]); 5] = [
            (Asymmetric, &[0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 30.0]),
            (HalfPixel, &[0.0, 2.5, 7.5, 12.5, 17.5, 22.5, 27.5, 30.0]),
            (PytorchHalfPixel, &[0.0, 2.5, 7.5, 12.5, 17.5, 22.5, 27.5, 30.0]),
            (HalfPixelSymmetric, &[0.0, 2.5, 7.5, 12.5, 17.5, 22.5, 27.5, 30.0]),
            (TfHalfPixelForNn, &[2.5, 7.5, 12.5, 17.5, 22.5, 27.5, 30.0, 30.0]),
        ];
        for (coordinates, expected) in cases {
            let (_, y) = resized(&op(Interpolation::Linear, coordinates), x(), Some(&[2.0]), None).unwrap();
            assert_eq!(y, expected, "{coordinates:?}");
        }
        let (dims, y) = resized(&op(Interpolation::Linear, AlignCorners), x(), None, Some(&[7])).unwrap();
        assert_eq!((dims, y), (vec![1, 7], vec![0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0]));
        let (_, y) = resized(&op(Interpolation::Linear, PytorchHalfPixel), x(), None, Some(&[1])).unwrap();
        assert_eq!(y, [0.0]);
    }

    #[test]
    fn a_scale_is_used_itself() {
        let x = tensor(&(0..10).map(|i| i as f32).collect::<Vec<_>>(), &[10]);
        let floor = op(Interpolation::Nearest(Rounding::Floor), Coordinates::Asymmetric);
        let (dims, y) = resized(&floor, x.clone(), Some(&[1.55]), None).unwrap();
        assert_eq!((dims[0], y[14]), (15, 9.0));
        let (dims, y) = resized(&floor, x, None, Some(&[15])).unwrap();
        assert_eq!((dims[0], y[14]), (15, 9.0));
        // Given both, the size is the size and the scale is in the formula.
        let both = resized(&floor, tensor(&[0f32, 1.0, 2.0], &[3]), Some(&[2.0]), Some(&[4])).unwrap();
        assert_eq!(both, (vec![4], vec![0.0, 0.0, 1.0, 1.0]));
    }

    #[test]
    fn nearest_takes_any_axes_and_types() {
        let mut nearest = op(Interpolation::Nearest(Rounding::RoundPreferFloor), Coordinates::HalfPixel);
        nearest.axes = Some(vec![0, 2]);
        let y = run(&nearest, &[Some(tensor(&[1i64, 2, 3, 4], &[2, 1, 2])), None, Some(tensor(&[2f32, 2.0], &[2]))]);
        let y = y.unwrap();
        assert_eq!(y.tensor().unwrap().dims(), [4, 1, 4]);
        let expected = [1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4];
        assert_eq!(y.tensor().unwrap().read::<i64>().unwrap().to_vec(), expected);
    }

    #[test]
    fn integers_truncate_exactly() {
        let x = tensor(&[7u8; 5], &[5]);
        let y = run(&op(Interpolation::Linear, Coordinates::HalfPixel), &[Some(x), None, Some(tensor(&[1.7f32], &[1]))]);
        assert_eq!(y.unwrap().tensor().unwrap().read::<u8>().unwrap().to_vec(), [7; 8]);
    }

    #[test]
    fn what_lies_outside_the_region_is_extrapolated() {
        for mode in [Interpolation::Linear, Interpolation::Nearest(Rounding::Floor)] {
            let crop = Interpolate { extrapolation: 9.5, ..op(mode, Coordinates::TfCropAndResize) };
            let x = tensor(&[0f32, 1.0, 2.0], &[3]);
            let inputs = [Some(x), Some(tensor(&[-0.5f32, 1.0], &[2])), None, Some(tensor(&[4i64], &[1]))];
            let y = run(&crop, &inputs).unwrap();
            assert_eq!(y.tensor().unwrap().read::<f32>().unwrap().to_vec(), [9.5, 0.0, 1.0, 2.0], "{:?}", crop.mode);
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let all = Interpolate { axes: None, ..op(Interpolation::Linear, Coordinates::HalfPixel) };
        let cube = || tensor(&[0f32; 8], &[2, 2, 2]);
        assert!(resized(&all, cube(), Some(&[2.0; 3]), None).is_err_and(|e| e.to_string().contains("3 axes")));
        assert!(resized(&all, cube(), Some(&[2.0; 2]), None).is_err());
        assert!(resized(&all, cube(), Some(&[1.0, 1.0, -1.0]), None).is_err());
        assert!(resized(&all, cube(), Some(&[1.0, 1.0, f32::INFINITY]), None).is_err());
        assert!(resized(&all, tensor(&[0f32; 0], &[1, 0]), None, Some(&[1, 3])).is_err());
        assert!(resized(&all, cube(), None, Some(&[2, 2, -4])).is_err());
        assert!(run(&all, &[Some(tensor(&[1i64], &[1])), None, Some(tensor(&[2f32], &[1]))]).is_err());
    }
}
