//! Tensors with something put around them, or cut off.

use candle_plan_kernels::pad::{pad, Places};
use candle_plan_kernels::threads::Threads;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::axes;
use crate::bail;
use crate::by_width;
use crate::error::{Error, Result};
use crate::kernel::{Arity, Call, Kernel, Types};
use crate::movable::Movable;
use crate::types::{TensorType, Type};
use crate::value::{element_count, scratch, Array, Value};
use crate::words;

/// `X` with `pads[a]` places before axis `a` and `pads[n + a]` after it; negative numbers cut off. Inputs: `X`,
/// `pads: int64 [2n]`, `value: []` of `X`'s dtype (for mode `constant`; absent: zero), `axes: [n]` (absent: all axes).
///
/// Source: [ONNX Pad](https://onnx.ai/onnx/operators/onnx__Pad.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pad {
    /// What the new places show.
    pub mode: PadMode,
}

/// What padding shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PadMode {
    /// A given value.
    Constant,
    /// The outermost element.
    Edge,
    /// The tensor mirrored at its outermost element, which is not repeated.
    Reflect,
    /// The tensor again, from its other end.
    Wrap,
}

impl Kernel for Pad {
    fn arity(&self) -> Arity {
        Arity::inputs(2..=4)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        if let Some(value) = inputs.optional_tensor(2)?.filter(|value| value.dtype != x.dtype) {
            bail!("a {} tensor cannot be padded with {}", x.dtype, value.dtype);
        }
        let shape = x.rank().map(|rank| vec![None; rank]);
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape })])
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.value(0)?;
        let dims = x.dims()?;
        let places = self.places(call, dims)?;
        let values: Vec<&Value> = [Some(x), call.optional(2)].into_iter().flatten().collect();
        let data = Movable::new(&values)?;
        if matches!(x, Value::Strings(_)) && data.arrays.len() == 1 {
            bail!("strings are padded with a given value only");
        }
        let padded = padded(&data.arrays[0], &places, data.arrays.get(1), call.threads)?;
        Ok(vec![data.restore(padded)?])
    }
}

impl Pad {
    fn places(&self, call: &Call, dims: &[usize]) -> Result<Vec<Places>> {
        let pads = call.tensor(1)?.to_i64()?;
        let axes = match call.optional_tensor(3)? {
            Some(axes) => axes.to_i64()?,
            None => (0..dims.len() as i64).collect(),
        };
        if pads.len() != 2 * axes.len() {
            bail!("{} pads do not give one before and one after each of {} axes", pads.len(), axes.len());
        }
        axes::mask(&axes, dims.len())?;
        let mut places: Vec<Option<Places>> = vec![None; dims.len()];
        for (i, &axis) in axes.iter().enumerate() {
            let axis = axes::resolve(axis, dims.len())?;
            places[axis] = Some(self.mode.places(dims[axis], pads[i], pads[axes.len() + i])?);
        }
        let whole = |(places, &dim): (Option<Places>, &usize)| places.unwrap_or_else(|| Places::all(dim));
        Ok(places.into_iter().zip(dims).map(whole).collect())
    }
}

impl PadMode {
    /// What an axis of size `size` shows with `before` places put before it and `after` after it.
    fn places(self, size: usize, before: i64, after: i64) -> Result<Places> {
        let signed = size as i64;
        let count = before.checked_add(after).and_then(|pads| pads.checked_add(signed));
        let count = count.and_then(|count| usize::try_from(count).ok());
        let Some(count) = count.filter(|&count| element_count(&[count]).is_ok()) else {
            bail!("an axis of size {size} cannot be padded with {before} and {after} places");
        };
        // What is left after cutting is what is repeated.
        let cut = |pad: i64| pad.min(0).saturating_neg();
        let (low, kept) = (cut(before), signed.saturating_sub(cut(before)).saturating_sub(cut(after)));
        if self != PadMode::Constant && kept <= 0 && count > 0 {
            bail!("{size} places cut by {} and {} leave nothing to repeat", cut(before), cut(after));
        }
        let shown = |i: i64| match self {
            PadMode::Constant | PadMode::Edge => i.clamp(0, kept - 1),
            PadMode::Reflect => mirrored(i, kept),
            PadMode::Wrap => i.rem_euclid(kept),
        };
        let inside = |i: i64| i.clamp(0, count as i64) as usize;
        let (start, end) = (inside(before), inside(before.saturating_add(signed)));
        if self != PadMode::Constant {
            scratch::<Option<usize>>(count - (end - start))?;
        }
        let mut places = Places::default();
        let border = |places: &mut Places, from: usize, to: usize| match self {
            PadMode::Constant => places.fill(to - from),
            _ => places.extend((from..to).map(|i| Some((low + shown(i as i64 - before.max(0))) as usize))),
        };
        border(&mut places, 0, start);
        places.forward((start as i64 - before) as usize, end - start);
        border(&mut places, end, count);
        Ok(places)
    }
}

/// Place `i` of an axis of `size` elements that goes back and forth for ever.
fn mirrored(i: i64, size: i64) -> i64 {
    let period = (2 * (size - 1)).max(1);
    let forth = i.rem_euclid(period);
    forth.min(period - forth).min(size - 1)
}

/// `X` cut or padded with zeros about its centre, so that axis `axes[i]` has size `shape[i]`, with `shape: int64 [n]` in
/// input 1. An odd place is cut or put at the end.
///
/// Source: [ONNX CenterCropPad](https://onnx.ai/onnx/operators/onnx__CenterCropPad.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CenterCropPad {
    /// The axes; negative ones count from the end; absent: all.
    pub axes: Option<Vec<i64>>,
}

impl Kernel for CenterCropPad {
    fn arity(&self) -> Arity {
        Arity::exact(2, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        inputs.tensor(1)?;
        let Some(shape) = &x.shape else { return Ok(vec![Type::any(x.dtype)]) };
        let touched = match &self.axes {
            Some(axes) => axes::mask(axes, shape.len())?,
            None => vec![true; shape.len()].into(),
        };
        let shape = shape.iter().zip(touched).map(|(dim, touched)| dim.clone().filter(|_| !touched)).collect();
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape: Some(shape) })])
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (x, shape) = (call.tensor(0)?, axes::dims(&call.tensor(1)?.to_i64()?)?);
        let axes = self.axes.clone().unwrap_or_else(|| (0..x.rank() as i64).collect());
        if shape.len() != axes.len() {
            bail!("shape {shape:?} does not give a size for each of {} axes", axes.len());
        }
        axes::mask(&axes, x.rank())?;
        let mut places: Vec<Places> = x.dims().iter().map(|&dim| Places::all(dim)).collect();
        for (&axis, &size) in axes.iter().zip(&shape) {
            let axis = axes::resolve(axis, x.rank())?;
            places[axis] = centered(x.dims()[axis], size)?;
        }
        Ok(vec![padded(x, &places, None, call.threads)?.into()])
    }
}

fn centered(dim: usize, size: usize) -> Result<Places> {
    element_count(&[size])?;
    let (cut, put) = (dim.saturating_sub(size) / 2, size.saturating_sub(dim) / 2);
    let mut places = Places::default();
    places.fill(put);
    places.forward(cut, dim.min(size));
    places.fill(size - places.len());
    Ok(places)
}

/// The elements of `x` at the places of each axis; elsewhere the one element of `value`, or zero.
fn padded(x: &Array, places: &[Places], value: Option<&Array>, threads: &Threads) -> Result<Array> {
    let dims: Vec<usize> = places.iter().map(Places::len).collect();
    by_width!(x.dtype(), W => {
        let fill = match value.map(words::read::<W>).transpose()? {
            None => 0,
            Some(&[value]) => value,
            Some(values) => return Err(Error::op(format!("{} values to pad with, where one is needed", values.len()))),
        };
        let mut out = words::room::<W>(&dims)?;
        pad(words::read::<W>(x)?, x.dims(), places, fill, &mut out, threads);
        words::array(out, &dims, x.dtype())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, tensor};

    #[test]
    fn modes() {
        let cases: [(PadMode, (i64, i64), Option<&[i16]>); 14] = [
            (PadMode::Constant, (2, 1), Some(&[9, 9, 1, 2, 3, 9])),
            (PadMode::Constant, (-1, 2), Some(&[2, 3, 9, 9])),
            (PadMode::Constant, (-1, -2), Some(&[])),
            (PadMode::Constant, (1, -5), None),
            (PadMode::Constant, (2, -4), Some(&[9])),
            (PadMode::Edge, (2, 1), Some(&[1, 1, 1, 2, 3, 3])),
            (PadMode::Edge, (-1, 1), Some(&[2, 3, 3])),
            (PadMode::Reflect, (2, 1), Some(&[3, 2, 1, 2, 3, 2])),
            (PadMode::Reflect, (-1, 1), Some(&[2, 3, 2])),
            (PadMode::Reflect, (4, 0), Some(&[1, 2, 3, 2, 1, 2, 3])),
            (PadMode::Wrap, (2, 4), Some(&[2, 3, 1, 2, 3, 1, 2, 3, 1])),
            (PadMode::Edge, (-3, 1), None),
            (PadMode::Constant, (i64::MAX, 1), None),
            (PadMode::Constant, (i64::MIN, 0), None),
        ];
        for (mode, (before, after), expected) in cases {
            let inputs = [tensor(&[1i16, 2, 3], &[3]), tensor(&[before, after], &[2]), tensor(&[9i16], &[])];
            let y = run(&Pad { mode }, &inputs.map(Some)).ok();
            let y = y.map(|y| y.tensor().expect("a tensor").read::<i16>().expect("int16").to_vec());
            assert_eq!(y.as_deref(), expected, "{mode:?} {before} {after}");
        }
    }
}
