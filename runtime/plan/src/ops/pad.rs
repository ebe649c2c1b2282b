//! Tensors with something put around them, or cut off.

use candle_plan_kernels::pad::{pad, Places};
use candle_plan_kernels::threads::Threads;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::axes;
use crate::bail;
use crate::by_width;
use crate::device::{Needs, has_few_dimensions, on_device};
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

    on_device!("pad" if |self, operands| has_few_dimensions(operands));

    fn needs(&self, input: usize) -> Needs {
        match input {
            0 => Needs::Elements,
            _ => Needs::Numbers,
        }
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.value(0)?;
        let windows = self.windows(call, x.dims()?)?;
        let places = windows.iter().map(|window| window.places(self.mode)).collect::<Result<Vec<_>>>()?;
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
    /// What each axis of a tensor of shape `dims` shows.
    pub(crate) fn windows(&self, call: &Call, dims: &[usize]) -> Result<Vec<Window>> {
        let pads = call.tensor(1)?.to_i64()?;
        let axes = match call.optional_tensor(3)? {
            Some(axes) => axes.to_i64()?,
            None => (0..dims.len() as i64).collect(),
        };
        if pads.len() != 2 * axes.len() {
            bail!("{} pads do not give one before and one after each of {} axes", pads.len(), axes.len());
        }
        axes::mask(&axes, dims.len())?;
        let mut windows: Vec<Window> = dims.iter().map(|&dim| Window::whole(dim)).collect();
        for (i, &axis) in axes.iter().enumerate() {
            let axis = axes::resolve(axis, dims.len())?;
            windows[axis] = self.mode.window(dims[axis], pads[i], pads[axes.len() + i])?;
        }
        Ok(windows)
    }
}

impl PadMode {
    /// What an axis of size `size` shows with `before` places put before it and `after` after it.
    fn window(self, size: usize, before: i64, after: i64) -> Result<Window> {
        let signed = size as i64;
        let count = before.checked_add(after).and_then(|pads| pads.checked_add(signed));
        let count = count.and_then(|count| usize::try_from(count).ok());
        let Some(count) = count.filter(|&count| element_count(&[count]).is_ok()) else {
            bail!("an axis of size {size} cannot be padded with {before} and {after} places");
        };
        // What is left after cutting is what is repeated.
        let cut = |pad: i64| pad.min(0).saturating_neg();
        let kept = signed.saturating_sub(cut(before)).saturating_sub(cut(after));
        if self != PadMode::Constant && kept <= 0 && count > 0 {
            bail!("{size} places cut by {} and {} leave nothing to repeat", cut(before), cut(after));
        }
        let before_them = (before.max(0) as usize).min(count);
        Ok(match kept {
            1.. => Window { count, before: before_them, first: cut(before) as usize, kept: kept as usize },
            _ => Window { count, before: before_them, first: 0, kept: 0 },
        })
    }
}

/// What an axis of a result shows of the source's: `kept` places from `first` on, and what the mode says `before` and after
/// them, `count` in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub count: usize,
    pub before: usize,
    pub first: usize,
    pub kept: usize,
}

impl Window {
    /// All places of an axis of size `size`.
    pub fn whole(size: usize) -> Window {
        Window { count: size, before: 0, first: 0, kept: size }
    }

    fn places(self, mode: PadMode) -> Result<Places> {
        let Window { count, before, first, kept } = self;
        let shown = |i: i64| match mode {
            PadMode::Constant | PadMode::Edge => i.clamp(0, kept as i64 - 1),
            PadMode::Reflect => mirrored(i, kept as i64),
            PadMode::Wrap => i.rem_euclid(kept as i64),
        };
        if mode != PadMode::Constant {
            scratch::<Option<usize>>(count - kept)?;
        }
        let mut places = Places::default();
        let border = |places: &mut Places, from: usize, to: usize| match mode {
            PadMode::Constant => places.fill(to - from),
            _ => places.extend((from..to).map(|i| Some(first + shown(i as i64 - before as i64) as usize))),
        };
        border(&mut places, 0, before);
        places.forward(first, kept);
        border(&mut places, before + kept, count);
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

    on_device!("pad" if |self, operands| has_few_dimensions(operands));

    fn needs(&self, input: usize) -> Needs {
        match input {
            0 => Needs::Elements,
            _ => Needs::Numbers,
        }
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let windows = self.windows(call, x.dims())?;
        let places = windows.iter().map(|window| window.places(PadMode::Constant)).collect::<Result<Vec<_>>>()?;
        Ok(vec![padded(x, &places, None, call.threads)?.into()])
    }
}

impl CenterCropPad {
    /// What each axis of a tensor of shape `dims` shows.
    pub(crate) fn windows(&self, call: &Call, dims: &[usize]) -> Result<Vec<Window>> {
        let shape = axes::dims(&call.tensor(1)?.to_i64()?)?;
        let axes = self.axes.clone().unwrap_or_else(|| (0..dims.len() as i64).collect());
        if shape.len() != axes.len() {
            bail!("shape {shape:?} does not give a size for each of {} axes", axes.len());
        }
        axes::mask(&axes, dims.len())?;
        let mut windows: Vec<Window> = dims.iter().map(|&dim| Window::whole(dim)).collect();
        for (&axis, &size) in axes.iter().zip(&shape) {
            let axis = axes::resolve(axis, dims.len())?;
            element_count(&[size])?;
            let dim = dims[axis];
            let (cut, put) = (dim.saturating_sub(size) / 2, size.saturating_sub(dim) / 2);
            windows[axis] = Window { count: size, before: put, first: cut, kept: dim.min(size) };
        }
        Ok(windows)
    }
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
