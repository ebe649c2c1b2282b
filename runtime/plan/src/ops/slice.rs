//! Slices of tensors.

use std::borrow::Cow;

use candle_plan_descriptors::strided::View;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smallvec::{smallvec, SmallVec};

use crate::axes;
use crate::bail;
use crate::error::{Error, Result};
use crate::extent::{text, Extent};
use crate::operator::{Arity, Needs, Operator};
use crate::types::{Dim, Shape, TensorType, Type, Types};
use crate::value::Array;

/// `Y = X[start : end : step, …]`, with negative and too large bounds as in NumPy. Inputs: `X`, `starts: [n]`,
/// `ends: [n]`, `axes: [n]` (absent: the first `n`) and `steps: [n]` (absent: 1).
///
/// Source: [ONNX Slice](https://onnx.ai/onnx/operators/onnx__Slice.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Slice {}

impl Operator for Slice {
    fn arity(&self) -> Arity {
        Arity::inputs(3..=5)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        let mut lengths = [None; 4];
        for (i, length) in lengths.iter_mut().enumerate() {
            *length = inputs.optional_tensor(i + 1)?.map(axes::length).transpose()?.flatten();
        }
        check_lists(lengths, x.rank())?;
        if let (Some(axes), Some(rank)) = (axes::constant_list(inputs, 3)?, x.rank()) {
            axes::mask(&axes, rank)?;
        }
        check_steps(axes::constant_list(inputs, 4)?.as_deref().unwrap_or_default())?;
        let shape = x.shape.as_ref().map(|shape| self.sliced_shape(shape, inputs)).transpose()?;
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape })])
    }

    fn shares(&self, input: usize) -> bool {
        input == 0
    }

    fn needs(&self, input: usize) -> Needs {
        Needs::numbers_after_first(input)
    }

    fn is_foldable(&self) -> bool {
        true
    }
}

impl Slice {
    /// The range of each dimension. `list` reads the list of an input, if it is present.
    pub(crate) fn ranges<'a>(
        &self,
        dims: &[usize],
        list: impl Fn(usize) -> Result<Option<Cow<'a, [i64]>>>,
    ) -> Result<SmallVec<[Range; 6]>> {
        let whole = |count: usize| Range { start: 0, step: 1, count };
        let range = |(cut, &dim): (Option<Cut>, &usize)| cut.map_or(whole(dim), |cut| cut.range(dim));
        Ok(self.cuts(dims.len(), list)?.into_iter().zip(dims).map(range).collect())
    }

    /// Returns the part that the slice takes of each axis; `None` for an axis that stays whole.
    fn cuts<'a>(
        &self,
        rank: usize,
        list: impl Fn(usize) -> Result<Option<Cow<'a, [i64]>>>,
    ) -> Result<SmallVec<[Option<Cut>; 6]>> {
        let required = |i: usize| list(i)?.ok_or_else(|| Error::op(format!("input {i} is missing")));
        let (starts, ends) = (required(1)?, required(2)?);
        let (axes, steps) = (list(3)?, list(4)?);
        let lengths = [Some(&starts), Some(&ends), axes.as_ref(), steps.as_ref()];
        check_lists(lengths.map(|list| list.map(|list| list.len())), Some(rank))?;
        let axes = axes.unwrap_or_else(|| (0..starts.len() as i64).collect());
        let steps = steps.unwrap_or_else(|| vec![1; starts.len()].into());
        axes::mask(&axes, rank)?;
        check_steps(&steps)?;
        let mut cuts = smallvec![None; rank];
        for (i, &axis) in axes.iter().enumerate() {
            cuts[axes::resolve(axis, rank)?] = Some(Cut { start: starts[i], end: ends[i], step: steps[i] });
        }
        Ok(cuts)
    }

    /// Returns the shape of the result. Its sizes are known only if the lists are constants.
    fn sliced_shape(&self, shape: &Shape, inputs: &Types) -> Result<Shape> {
        if !(1..inputs.len()).all(|i| inputs.is_fixed(i)) {
            return Ok(vec![None; shape.len()]);
        }
        let cuts = self.cuts(shape.len(), |i| Ok(axes::constant_list(inputs, i)?.map(Cow::Owned)))?;
        let size = |(dim, cut): (&Option<Dim>, Option<Cut>)| match cut {
            Some(cut) => dim.known().map(|dim| Dim::Size(cut.range(dim).count)),
            None => dim.clone(),
        };
        Ok(shape.iter().zip(cuts).map(size).collect())
    }
}

/// Checks that no step is 0.
fn check_steps(steps: &[i64]) -> Result<()> {
    if steps.contains(&0) {
        bail!("the step of a slice is 0");
    }
    Ok(())
}

/// Checks the lengths of starts, ends, axes and steps: they are equal, and at most the rank.
fn check_lists(lengths: [Option<usize>; 4], rank: Option<usize>) -> Result<()> {
    let known: SmallVec<[usize; 4]> = lengths.into_iter().flatten().collect();
    if known.iter().any(|&length| length != known[0]) {
        bail!("starts, ends, axes and steps must have one length, found {}", text(&lengths));
    }
    match (known.first(), rank) {
        (Some(&length), Some(rank)) if length > rank => {
            bail!("a slice of {length} axes does not fit a tensor of rank {rank}")
        }
        _ => Ok(()),
    }
}

/// The elements `start, start + step, …` of a dimension, `count` of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Range {
    pub(crate) start: usize,
    pub(crate) step: isize,
    pub(crate) count: usize,
}

/// The part of an axis that a slice takes: `start : end : step`, with a step other than 0.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cut {
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) step: i64,
}

impl Cut {
    /// Returns the elements that the cut takes of a dimension of size `dim`.
    pub(crate) fn range(self, dim: usize) -> Range {
        let size = dim as i64;
        let from_start = |at: i64| if at < 0 { at.saturating_add(size) } else { at };
        let (start, end) = (from_start(self.start), from_start(self.end));
        let (start, distance) = match self.step {
            0.. => (start.clamp(0, size), end.clamp(0, size) - start.clamp(0, size)),
            _ if size == 0 => (0, 0),
            // Unlike in Python, a start before the first element means the first element.
            _ => {
                let start = start.clamp(0, size - 1);
                (start, start - end.clamp(-1, size - 1))
            }
        };
        let count = distance.max(0).unsigned_abs().div_ceil(self.step.unsigned_abs()) as usize;
        // With fewer than two elements, the step has no effect.
        Range {
            start: if count == 0 { 0 } else { start as usize },
            step: if count < 2 { 1 } else { self.step as isize },
            count,
        }
    }
}

/// The elements in `ranges`: a view if they are contiguous, else a copy of their view.
pub(crate) fn sliced(x: &Array, ranges: &[Range], copy: impl FnOnce(&Array, &View) -> Result<Array>) -> Result<Array> {
    let mut view = View::contiguous(x.dims());
    let mut outer = Some(x.clone());
    for (axis, range) in ranges.iter().enumerate() {
        view.offset += range.start * view.strides[axis] as usize;
        view.dims[axis] = range.count;
        view.strides[axis] *= range.step;
        let whole = range.count == x.dims()[axis] && range.step == 1;
        let can_narrow = range.step == 1 && view.dims[..axis].iter().all(|&dim| dim == 1);
        outer = match outer {
            Some(part) if whole => Some(part),
            Some(part) if can_narrow => Some(part.narrow_outer(axis, range.start, range.count)?),
            _ => None,
        };
    }
    match outer {
        Some(part) => Ok(part),
        None => copy(x, &view),
    }
}
