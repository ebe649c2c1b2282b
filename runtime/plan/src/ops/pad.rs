//! Padding and cropping.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::axes;
use crate::bail;
use crate::dtype::DType;
use crate::error::Result;
use crate::extent::{count, Extent};
use crate::operator::{Arity, Needs, Operator};
use crate::types::{Dim, Shape, TensorType, Type, Types};
use crate::value::{element_count, Array};

/// Adds `pads[a]` elements before axis `a` of `X` and `pads[n + a]` after it; negative numbers remove elements. Inputs:
/// `X`, `pads: int64 [2n]`, `value: []` of the dtype of `X` (for mode `constant`; absent: zero), `axes: [n]` (absent:
/// all axes).
///
/// Source: [ONNX Pad](https://onnx.ai/onnx/operators/onnx__Pad.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pad {
    /// The values of the new elements.
    pub mode: PadMode,
}

/// The values of the elements that padding adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PadMode {
    /// A given value.
    Constant,
    /// The outermost element.
    Edge,
    /// The tensor mirrored at its outermost element, which is not repeated.
    Reflect,
    /// The tensor repeated, from its other end.
    Wrap,
}

impl Operator for Pad {
    fn arity(&self) -> Arity {
        Arity::inputs(2..=4)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        let has_value = self.mode == PadMode::Constant && inputs.optional(2).is_some();
        if x.dtype == DType::String && !has_value {
            bail!("strings are padded with a given value only");
        }
        if let Some(value) = inputs.optional_tensor(2)?.filter(|value| value.dtype != x.dtype) {
            bail!("a {} tensor cannot be padded with {}", x.dtype, value.dtype);
        }
        inputs.one_element(2, "the value to pad with")?;
        let axes = match inputs.optional_tensor(3)? {
            Some(axes) => axes.shape.as_deref().and_then(count),
            None => x.rank(),
        };
        check_pads(inputs.shape(1)?.and_then(|pads| count(pads)), axes)?;
        if let (Some(axes), Some(rank)) = (axes, x.rank().filter(|&rank| axes.is_some_and(|axes| axes > rank))) {
            bail!("{axes} axes are padded, and X has {rank}");
        }
        let shape = x.shape.as_ref().map(|shape| self.padded_shape(shape, inputs)).transpose()?;
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape })])
    }

    fn needs(&self, input: usize) -> Needs {
        Needs::numbers_after_first(input)
    }
}

impl Pad {
    /// The shape of the result, where pads and axes are constants.
    fn padded_shape(&self, shape: &Shape, inputs: &Types) -> Result<Shape> {
        if let Some(axes) = inputs.constant(3) {
            axes::mask(&axes.to_i64()?, shape.len())?;
        }
        let Some(pads) = inputs.constant(1).filter(|_| inputs.is_fixed(3)) else { return Ok(vec![None; shape.len()]) };
        let pads = pads_by_axis(pads, inputs.constant(3), shape.len())?;
        let size = |(dim, pads): (&Option<Dim>, [i64; 2])| match (dim.known(), pads) {
            (Some(size), pads) => Ok(Some(Dim::Size(self.mode.window(size, pads)?.count))),
            (None, [0, 0]) => Ok(dim.clone()),
            (None, _) => Ok(None),
        };
        shape.iter().zip(pads).map(size).collect()
    }
}

/// Returns the numbers of elements to add before and after each axis of a tensor of rank `rank`.
pub(crate) fn pads_by_axis(pads: &Array, axes: Option<&Array>, rank: usize) -> Result<Vec<[i64; 2]>> {
    let pads = pads.to_i64()?;
    let axes = axes.map_or_else(|| Ok((0..rank as i64).collect()), Array::to_i64)?;
    check_pads(Some(pads.len()), Some(axes.len()))?;
    axes::mask(&axes, rank)?;
    let mut by_axis = vec![[0, 0]; rank];
    for (i, &axis) in axes.iter().enumerate() {
        by_axis[axes::resolve(axis, rank)?] = [pads[i], pads[axes.len() + i]];
    }
    Ok(by_axis)
}

/// Checks that there are two pads for each axis.
fn check_pads(pads: Option<usize>, axes: Option<usize>) -> Result<()> {
    match (pads, axes) {
        (Some(pads), Some(axes)) if pads != 2 * axes => {
            bail!("{pads} pads do not give one before and one after each of {axes} axes")
        }
        _ => Ok(()),
    }
}

impl PadMode {
    /// Returns the window that remains of an axis of size `size` after `before` elements are added before it and
    /// `after` elements after it. Negative numbers remove elements.
    pub(crate) fn window(self, size: usize, [before, after]: [i64; 2]) -> Result<Window> {
        let signed = size as i64;
        let count = before.checked_add(after).and_then(|pads| pads.checked_add(signed));
        let count = count.and_then(|count| usize::try_from(count).ok());
        let Some(count) = count.filter(|&count| element_count(&[count]).is_ok()) else {
            bail!("an axis of size {size} cannot be padded with {before} and {after} elements");
        };
        // Only the elements that remain after cropping are repeated.
        let cut = |pad: i64| pad.min(0).saturating_neg();
        let kept = signed.saturating_sub(cut(before)).saturating_sub(cut(after));
        if self != PadMode::Constant && kept <= 0 && count > 0 {
            bail!("{size} elements cropped by {} and {} leave nothing to repeat", cut(before), cut(after));
        }
        let padding_before = (before.max(0) as usize).min(count);
        Ok(match kept {
            1.. => Window { count, before: padding_before, first: cut(before) as usize, kept: kept as usize },
            _ => Window { count, before: padding_before, first: 0, kept: 0 },
        })
    }
}

/// The elements of one axis of a result: `before` elements of padding, `kept` elements of the source from `first` on,
/// and more padding, `count` elements in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub count: usize,
    pub before: usize,
    pub first: usize,
    pub kept: usize,
}

impl Window {
    /// The window of a whole axis of size `size`.
    pub fn whole(size: usize) -> Window {
        Window { count: size, before: 0, first: 0, kept: size }
    }
}

/// Crops `X` or pads it with zeros around its center, so that axis `axes[i]` has size `shape[i]`. Input 1 is
/// `shape: int64 [n]`. If the number of elements to remove or to add is odd, the extra one is at the end.
///
/// Source: [ONNX CenterCropPad](https://onnx.ai/onnx/operators/onnx__CenterCropPad.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CenterCropPad {
    /// The axes; a negative axis counts from the end; absent means all.
    pub axes: Option<Vec<i64>>,
}

impl Operator for CenterCropPad {
    fn arity(&self) -> Arity {
        Arity::exact(2, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        if x.dtype == DType::String {
            bail!("a string tensor cannot be cropped or padded around its center");
        }
        let given = inputs.tensor(1)?.shape.as_deref().and_then(count);
        check_sizes(given, self.axes.as_ref().map(Vec::len).or(x.rank()))?;
        let Some(shape) = &x.shape else { return Ok(vec![Type::any(x.dtype)]) };
        let shape = match inputs.constant(1) {
            Some(sizes) => {
                let sizes = self.sizes_by_axis(sizes, shape.len())?;
                shape.iter().zip(sizes).map(|(dim, size)| size.map(Dim::Size).or_else(|| dim.clone())).collect()
            }
            None => {
                let touched = axes::mask(&self.axes(shape.len()), shape.len())?;
                shape.iter().zip(touched).map(|(dim, touched)| dim.clone().filter(|_| !touched)).collect()
            }
        };
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape: Some(shape) })])
    }

    fn needs(&self, input: usize) -> Needs {
        Needs::numbers_after_first(input)
    }
}

impl CenterCropPad {
    /// The new size of each axis of a tensor of rank `rank`; `None` for an axis that stays as it is.
    pub(crate) fn sizes_by_axis(&self, sizes: &Array, rank: usize) -> Result<Vec<Option<usize>>> {
        let (sizes, axes) = (axes::dims(&sizes.to_i64()?)?, self.axes(rank));
        check_sizes(Some(sizes.len()), Some(axes.len()))?;
        axes::mask(&axes, rank)?;
        let mut by_axis = vec![None; rank];
        for (&axis, &size) in axes.iter().zip(&sizes) {
            element_count(&[size])?;
            by_axis[axes::resolve(axis, rank)?] = Some(size);
        }
        Ok(by_axis)
    }

    /// The axes of a tensor of rank `rank` that get new sizes.
    fn axes(&self, rank: usize) -> Cow<'_, [i64]> {
        self.axes.as_deref().map_or_else(|| (0..rank as i64).collect(), Cow::Borrowed)
    }
}

/// Checks that there is a size for each axis.
fn check_sizes(sizes: Option<usize>, axes: Option<usize>) -> Result<()> {
    match (sizes, axes) {
        (Some(sizes), Some(axes)) if sizes != axes => bail!("{sizes} sizes do not fit {axes} axes"),
        _ => Ok(()),
    }
}
