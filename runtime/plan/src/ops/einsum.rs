//! Sums of products over named axes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bail;
use crate::error::Result;
use crate::operator::{Arity, Operator};
use crate::types::{Dim, TensorType, Type, Types};

/// The product of the inputs' elements, summed over the axes that the equation's result does not name.
///
/// An equation such as `ij,jk->ik` has a term for each input and one for the result. A term has a letter for each axis,
/// and `...` for leading axes that broadcast. Without `->`, the result has the broadcast axes, then the letters that
/// occur once, in alphabetical order. A letter that occurs twice in a term selects the diagonal. Axes of one element
/// broadcast. `float16` and `bfloat16` are computed in `float32` and rounded once; integers wrap around.
///
/// Source: [ONNX Einsum](https://onnx.ai/onnx/operators/onnx__Einsum.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Einsum {
    /// The equation.
    pub equation: String,
}

impl Operator for Einsum {
    fn arity(&self) -> Arity {
        Arity::inputs(1..=usize::MAX)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let all: Vec<&TensorType> = (0..inputs.len()).map(|i| inputs.tensor(i)).collect::<Result<_>>()?;
        let Some(first) = all.first() else { bail!("there are no inputs") };
        if !(first.dtype.is_int() || crate::dtype::FLOATS.contains(&first.dtype)) {
            bail!("Einsum is not defined for {}", first.dtype);
        }
        if let Some(other) = all.iter().find(|other| other.dtype != first.dtype) {
            bail!("the inputs must have one type, found {} and {}", first.dtype, other.dtype);
        }
        let ranks: Option<Vec<usize>> = all.iter().map(|tensor| tensor.rank()).collect();
        let Some(ranks) = ranks else { return Ok(vec![Type::any(first.dtype)]) };
        let terms = Terms::parse(&self.equation, &ranks)?;
        let named: Vec<(Axis, Option<Dim>)> = terms
            .inputs
            .iter()
            .zip(&all)
            .flat_map(|(axes, tensor)| axes.iter().copied().zip(tensor.shape.iter().flatten().cloned()))
            .collect();
        let size = |axis: &Axis| joined(named.iter().filter(|(a, _)| a == axis).map(|(_, dim)| dim));
        named.iter().try_for_each(|(axis, _)| size(axis).map(drop))?;
        let shape = terms.output.iter().map(size).collect::<Result<_>>()?;
        Ok(vec![Type::Tensor(TensorType { dtype: first.dtype, shape: Some(shape) })])
    }

    /// A product is a new tensor, but the result of one operand may be a view of it.
    fn shares(&self, _: usize) -> bool {
        !self.equation.contains(',')
    }
}

/// A letter, or an axis of `...`, counted from the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Axis {
    Broadcast(std::cmp::Reverse<usize>),
    Letter(char),
}

pub(crate) struct Terms {
    pub(crate) inputs: Vec<Vec<Axis>>,
    pub(crate) output: Vec<Axis>,
}

impl Terms {
    pub(crate) fn parse(equation: &str, ranks: &[usize]) -> Result<Terms> {
        let equation: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
        let (left, right) = match equation.split_once("->") {
            Some((left, right)) => (left, Some(right)),
            None => (&equation[..], None),
        };
        let terms: Vec<&str> = left.split(',').collect();
        if terms.len() != ranks.len() {
            bail!("the equation {equation:?} has {} terms for {} inputs", terms.len(), ranks.len());
        }
        let inputs: Vec<Vec<Axis>> =
            terms.iter().zip(ranks).map(|(term, &rank)| term_axes(term, rank)).collect::<Result<_>>()?;
        let mut all: Vec<Axis> = inputs.iter().flatten().copied().collect();
        let dots =
            all.iter().map(|axis| if let Axis::Broadcast(place) = axis { place.0 + 1 } else { 0 }).max().unwrap_or(0);
        let output = match right {
            Some(term) => {
                let letters = term.replace("...", "").chars().count();
                let dots = if term.contains("...") { dots } else { 0 };
                term_axes(term, letters + dots)?
            }
            None => {
                all.sort_unstable();
                let once = |axis: &Axis| all.iter().filter(|other| *other == axis).count() == 1;
                let mut output: Vec<Axis> =
                    all.iter().copied().filter(|axis| matches!(axis, Axis::Broadcast(_)) || once(axis)).collect();
                output.dedup();
                output
            }
        };
        let misplaced = output.iter().enumerate().find(|(i, axis)| !all.contains(axis) || output[..*i].contains(axis));
        match misplaced {
            Some(_) => bail!("the result of {equation:?} names an axis twice, or one that no input has"),
            None => Ok(Terms { inputs, output }),
        }
    }
}

/// The axes of a term for a tensor of this rank.
fn term_axes(term: &str, rank: usize) -> Result<Vec<Axis>> {
    let (before, after) = term.split_once("...").unwrap_or((term, ""));
    let letters = before.chars().count() + after.chars().count();
    if before.chars().chain(after.chars()).any(|c| !c.is_ascii_alphabetic()) {
        bail!("the term {term:?} of the equation must consist of letters and at most one '...'");
    }
    let dots = rank.checked_sub(letters).filter(|&dots| dots == 0 || term.contains("..."));
    let Some(dots) = dots else { bail!("the term {term:?} of the equation does not fit an input of rank {rank}") };
    let broadcast = (0..dots).rev().map(|i| Axis::Broadcast(std::cmp::Reverse(i)));
    Ok(before.chars().map(Axis::Letter).chain(broadcast).chain(after.chars().map(Axis::Letter)).collect())
}

/// The size of an axis from its sizes in two terms.
pub(crate) fn joined_size(x: usize, y: usize) -> Result<usize> {
    match (x, y) {
        (1, size) | (size, 1) => Ok(size),
        (x, y) if x == y => Ok(x),
        (x, y) => bail!("an axis has sizes {x} and {y}"),
    }
}

/// The size of an axis from its sizes in all terms that name it.
fn joined<'a>(sizes: impl Iterator<Item = &'a Option<Dim>>) -> Result<Option<Dim>> {
    let mut size = Some(Dim::Size(1));
    for other in sizes {
        size = match (size, other.clone()) {
            (Some(Dim::Size(1)), other) => other,
            (size, Some(Dim::Size(1))) => size,
            (Some(Dim::Size(x)), Some(Dim::Size(y))) => Some(Dim::Size(joined_size(x, y)?)),
            (Some(Dim::Size(x)), _) | (_, Some(Dim::Size(x))) => Some(Dim::Size(x)),
            (x, y) => x.filter(|x| y.as_ref() == Some(x)),
        };
    }
    Ok(size)
}
