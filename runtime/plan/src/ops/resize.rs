//! Resizing of tensors along one or two axes.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::resample::{AxisMap, Coordinates, Interpolation, Resized, WHOLE};
use crate::axes;
use crate::bail;
use crate::dtype::{require_dtype, DType, FLOATS};
use crate::error::{Error, Result};
use crate::extent::{count, Extent};
use crate::operator::{Arity, Needs, Operator};
use crate::types::{Dim, TensorType, Type, Types};
use crate::value::{list, Array};

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
        if x.dtype == DType::String && self.coordinates == Coordinates::TfCropAndResize {
            bail!("an extrapolation value is not defined for {}", x.dtype);
        }
        self.check_lists(inputs)?;
        let factors = self.constant_factors(inputs)?;
        let Some(shape) = &x.shape else { return Ok(vec![Type::any(x.dtype)]) };
        let touched = axes::mask(&self.axes(shape.len()), shape.len())?;
        let resized = self.resized(shape, factors.as_ref())?;
        let dim = |((dim, touched), resized): ((&Option<Dim>, bool), Resized)| match touched {
            true => resized.output.map(Dim::Size),
            false => dim.clone(),
        };
        let shape = Some(shape.iter().zip(touched).zip(resized).map(dim).collect());
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape })])
    }

    /// Refuses a resize if more than [`MOST_AXES`] axes are known to change, by their scales or by their sizes before
    /// and after.
    fn check(&self, inputs: &Types, outputs: &[Option<&Type>]) -> Result<()> {
        let y = outputs.first().copied().flatten().map(Type::tensor).transpose()?;
        let (before, after) = (inputs.shape(0)?, y.and_then(|y| y.shape.as_ref()));
        let factors = self.constant_factors(inputs)?;
        let Some(rank) = before.or(after).map(Vec::len) else {
            let scales = factors.iter().flat_map(|factors| factors.scales.iter().flatten());
            return check_changed(scales.filter(|&&scale| scale != 1.0).count());
        };
        let unknown = vec![None; rank];
        let resized = self.resized(before.unwrap_or(&unknown), factors.as_ref())?;
        let stated = |(axis, after): (Resized, &Option<Dim>)| Resized { output: after.known().or(axis.output), ..axis };
        let stated = resized.into_iter().zip(after.unwrap_or(&unknown)).map(stated);
        check_changed(stated.filter(Resized::changes).count())
    }

    fn needs(&self, input: usize) -> Needs {
        Needs::numbers_after_first(input)
    }

    fn shares(&self, input: usize) -> bool {
        input == 0
    }
}

/// Checks that each axis has a scale or a size, if there are any, and two bounds of the region.
fn check_counts(counts: [Option<usize>; 2], bounds: Option<usize>, axes: usize) -> Result<()> {
    for (count, name) in counts.into_iter().zip(["scales", "sizes"]) {
        if let Some(count) = count.filter(|&count| count != axes) {
            bail!("{count} {name} do not fit {axes} axes");
        }
    }
    match bounds {
        Some(bounds) if bounds != 2 * axes => bail!("{bounds} bounds of the region do not fit {axes} axes"),
        _ => Ok(()),
    }
}

/// The maximum number of axes that change. Plans resize lines and images, no volumes.
pub const MOST_AXES: usize = 2;

/// Checks that at most [`MOST_AXES`] axes change.
fn check_changed(count: usize) -> Result<()> {
    match count {
        ..=MOST_AXES => Ok(()),
        _ => Err(Error::Limit {
            message: format!("{count}-D resizing is not supported"),
            help: format!("resize at most {MOST_AXES} axes at a time, with one resize after another"),
        }),
    }
}

/// The numbers in the inputs beside X, if they are present: one for each axis in `axes`, and two for the region.
pub(crate) struct Factors {
    region: Option<Vec<f32>>,
    scales: Option<Vec<f32>>,
    sizes: Option<Vec<usize>>,
}

impl Factors {
    /// The resizing of the axes in `axes`, of sizes `inputs`, as far as it is known.
    fn resized(&self, inputs: &[Option<usize>], policy: SizePolicy) -> Result<Vec<Resized>> {
        let counts = [self.scales.as_ref().map(Vec::len), self.sizes.as_ref().map(Vec::len)];
        check_counts(counts, self.region.as_ref().map(Vec::len), inputs.len())?;
        let axis = |(i, &input): (usize, &Option<usize>)| {
            let mut axis = match (&self.sizes, policy) {
                (Some(sizes), SizePolicy::NotLarger | SizePolicy::NotSmaller) => match policy.scale(sizes, inputs) {
                    Some(scale) => Resized::of(input, Some(scale), None, true)?,
                    None => Resized::unknown(input),
                },
                (sizes, _) => {
                    let scale = self.scales.as_ref().map(|scales| scales[i]);
                    Resized::of(input, scale, sizes.as_ref().map(|sizes| sizes[i]), false)?
                }
            };
            axis.region = self.region.as_ref().map_or(WHOLE, |region| [region[i], region[inputs.len() + i]]);
            axis.check().map(|()| axis)
        };
        inputs.iter().enumerate().map(axis).collect()
    }
}

impl Interpolate {
    /// Checks the lengths of the lists in a step's inputs; an empty one counts as absent.
    fn check_lists(&self, inputs: &Types) -> Result<()> {
        let Some(axes) = self.axes.as_ref().map(Vec::len).or(inputs.tensor(0)?.rank()) else { return Ok(()) };
        let length = |i: usize| -> Result<Option<usize>> { Ok(inputs.shape(i)?.and_then(|list| count(list))) };
        let counts = [length(2)?.filter(|&count| count > 0), length(3)?.filter(|&count| count > 0)];
        check_counts(counts, length(1)?.filter(|_| self.coordinates == Coordinates::TfCropAndResize), axes)
    }

    /// Returns the axes, of a tensor of rank `rank`, to which the numbers in the inputs apply.
    fn axes(&self, rank: usize) -> Cow<'_, [i64]> {
        self.axes.as_deref().map_or_else(|| (0..rank as i64).collect(), Cow::Borrowed)
    }

    /// The numbers in the inputs, if scales and sizes are constants. A region that is not constant counts as absent.
    fn constant_factors(&self, inputs: &Types) -> Result<Option<Factors>> {
        let is_fixed = inputs.is_fixed(2) && inputs.is_fixed(3);
        is_fixed.then(|| self.factors(|i| Ok(inputs.constant(i)))).transpose()
    }

    /// The numbers in the inputs. `list` returns an input, if it is present. An empty list counts as absent.
    pub(crate) fn factors<'a>(&self, list: impl Fn(usize) -> Result<Option<&'a Array>>) -> Result<Factors> {
        let given = |i: usize| list(i).map(|list| list.filter(|list| !list.is_empty()));
        let region = list(1)?.filter(|_| self.coordinates == Coordinates::TfCropAndResize);
        Ok(Factors {
            region: region.map(read_floats).transpose()?,
            scales: given(2)?.map(read_floats).transpose()?,
            sizes: given(3)?.map(|sizes| axes::dims(&sizes.to_i64()?)).transpose()?,
        })
    }

    /// The resizing of each axis of a tensor of shape `dims`, as far as it is known. `factors` are the numbers in the
    /// inputs, if they are known.
    pub(crate) fn resized(&self, dims: &[impl Extent], factors: Option<&Factors>) -> Result<Vec<Resized>> {
        let axes = self.axes(dims.len());
        axes::mask(&axes, dims.len())?;
        let places = axes.iter().map(|&axis| axes::resolve(axis, dims.len())).collect::<Result<Vec<_>>>()?;
        let inputs: Vec<Option<usize>> = places.iter().map(|&axis| dims[axis].known()).collect();
        let touched = match factors {
            Some(factors) => factors.resized(&inputs, self.size_policy)?,
            None => inputs.iter().map(|&input| Resized::unknown(input)).collect(),
        };
        let mut resized: Vec<Resized> = dims.iter().map(|dim| Resized::identity(dim.known())).collect();
        for (axis, touched) in places.into_iter().zip(touched) {
            resized[axis] = touched;
        }
        Ok(resized)
    }

    /// The axes that change.
    ///
    /// # Errors
    /// There are more than [`MOST_AXES`].
    pub(crate) fn changed(&self, maps: &[AxisMap]) -> Result<Vec<usize>> {
        let changed: Vec<usize> = (0..maps.len()).filter(|&axis| !maps[axis].keeps()).collect();
        check_changed(changed.len())?;
        Ok(changed)
    }
}

impl SizePolicy {
    /// Returns the common scale of all axes, which have the sizes `inputs`; `None` if the axes have no common scale, or
    /// if a size that it depends on is unknown.
    fn scale(self, sizes: &[usize], inputs: &[Option<usize>]) -> Option<f32> {
        let scales = sizes.iter().zip(inputs).map(|(&size, input)| input.map(|input| size as f32 / input as f32));
        let scales: Vec<f32> = scales.collect::<Option<_>>()?;
        match self {
            SizePolicy::Stretch => None,
            SizePolicy::NotLarger => scales.into_iter().reduce(f32::min),
            SizePolicy::NotSmaller => scales.into_iter().reduce(f32::max),
        }
    }
}

fn read_floats(array: &Array) -> Result<Vec<f32>> {
    require_dtype("a scale or region", array.dtype(), &FLOATS)?;
    list(array.to_f64()?.into_iter().map(|value| value as f32))
}

#[cfg(test)]
impl Interpolate {
    /// A resize of `axes` to the sizes or by the scales of its inputs, with the defaults of ONNX otherwise.
    pub(crate) fn plain(mode: Interpolation, coordinates: Coordinates, axes: &[i64]) -> Interpolate {
        Interpolate {
            mode,
            coordinates,
            antialias: false,
            exclude_outside: false,
            extrapolation: 0.0,
            axes: Some(axes.to_vec()),
            size_policy: SizePolicy::Stretch,
        }
    }
}
