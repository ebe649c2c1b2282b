//! Elements and rows picked by index.

use candle_plan_kernels::indexed::{gather_rows, gather_runs};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::views::shape_of_rank;
use crate::axes;
use crate::bail;
use crate::by_width;
use crate::error::{Error, Result};
use crate::kernel::{Arity, Call, Kernel, Types};
use crate::movable::Movable;
use crate::types::{TensorType, Type};
use crate::value::{Array, Value};
use crate::work::Work;
use crate::words;

/// Rows of `axis` of `X`, in the order and shape of `indices`:
/// `Y[…, i₀, …, iₖ, …] = X[…, indices[i₀, …, iₖ], …]`. A negative index counts from the end.
///
/// Source: [ONNX Gather](https://onnx.ai/onnx/operators/onnx__Gather.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gather {
    /// The axis; a negative one counts from the end.
    pub axis: i64,
}

impl Kernel for Gather {
    fn arity(&self) -> Arity {
        Arity::exact(2, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let (x, indices) = (inputs.tensor(0)?, index_type(inputs, 1)?);
        let axis = x.rank().map(|rank| axes::resolve(self.axis, rank)).transpose()?;
        let shape = x.shape.as_ref().zip(indices.shape.as_ref()).zip(axis).map(|((x, indices), axis)| {
            x[..axis].iter().chain(indices).chain(&x[axis + 1..]).cloned().collect()
        });
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape })])
    }

    fn shares(&self, input: usize) -> bool {
        input == 0
    }

    fn work(&self, _inputs: &Types, outputs: &[Type]) -> Option<Work> {
        Work::picking(outputs)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let data = Movable::new(&[call.value(0)?])?;
        let (x, indices) = (&data.arrays[0], call.tensor(1)?);
        let axis = axes::resolve(self.axis, x.rank())?;
        let rows = resolved(&indices.to_i64()?, x.dims()[axis], axis)?;
        let dims = [&x.dims()[..axis], indices.dims(), &x.dims()[axis + 1..]].concat();
        if let (&[row], true) = (&rows[..], x.dims()[..axis].iter().all(|&dim| dim == 1)) {
            return Ok(vec![data.restore(x.narrow_outer(axis, row, 1)?.reshape(&dims)?)?]);
        }
        let gathered = by_width!(x.dtype(), W => {
            let mut out = words::room::<W>(&dims)?;
            let run = x.dims()[axis + 1..].iter().product();
            gather_rows(&words::read::<W>(x)?, x.dims()[axis], run, &rows, &mut out, call.threads);
            words::array(out, &dims, x.dtype())
        });
        Ok(vec![data.restore(gathered?)?])
    }
}

/// For each element of `indices`, the element of `X` at the same place but for `axis`, where the index says:
/// `Y[i₀, …] = X[i₀, …, indices[i₀, …], …]`. A negative index counts from the end.
///
/// Source: [ONNX GatherElements](https://onnx.ai/onnx/operators/onnx__GatherElements.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GatherElements {
    /// The axis; a negative one counts from the end.
    pub axis: i64,
}

impl Kernel for GatherElements {
    fn arity(&self) -> Arity {
        Arity::exact(2, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let (x, indices) = (inputs.tensor(0)?, index_type(inputs, 1)?);
        let ranks = (x.rank(), indices.rank());
        if let (Some(data), Some(index)) = ranks {
            axes::resolve(self.axis, data)?;
            if data != index {
                bail!("indices of rank {index} do not fit a tensor of rank {data}");
            }
        }
        let shape = indices.shape.clone().or_else(|| shape_of_rank(ranks.0));
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape })])
    }

    fn work(&self, _inputs: &Types, outputs: &[Type]) -> Option<Work> {
        Work::picking(outputs)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let data = Movable::new(&[call.value(0)?])?;
        let indices = call.tensor(1)?;
        let places = element_places(data.arrays[0].dims(), indices, self.axis)?;
        Ok(vec![data.restore(runs(&data.arrays[0], &places, 1, indices.dims(), call)?)?])
    }
}

/// For each vector of `indices [.., k]`, the part of `X` that its numbers lead to along the `k` dimensions after the first
/// `batch_dims`, which `X` and `indices` share: `Y[b, i] = X[b, indices[b, i, 0], …, indices[b, i, k - 1]]`.
///
/// Source: [ONNX GatherND](https://onnx.ai/onnx/operators/onnx__GatherND.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GatherNd {
    /// The number of leading dimensions that `X` and `indices` share.
    pub batch_dims: usize,
}

impl Kernel for GatherNd {
    fn arity(&self) -> Arity {
        Arity::exact(2, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let (x, indices) = (inputs.tensor(0)?, index_type(inputs, 1)?);
        let depth = indices.rank().and_then(|rank| indices.size(rank.checked_sub(1)?));
        let shape = match (&x.shape, &indices.shape, depth) {
            (Some(x), Some(indices), Some(depth)) => match x.get(self.batch_dims.saturating_add(depth)..) {
                Some(rest) => Some(indices[..indices.len() - 1].iter().chain(rest).cloned().collect()),
                None => bail!("{depth} indices after {} batch dimensions are too many for rank {}", self.batch_dims, x.len()),
            },
            _ => None,
        };
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape })])
    }

    fn work(&self, _inputs: &Types, outputs: &[Type]) -> Option<Work> {
        Work::picking(outputs)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let data = Movable::new(&[call.value(0)?])?;
        let (x, indices) = (&data.arrays[0], call.tensor(1)?);
        let (places, depth) = vector_places(x.dims(), indices, self.batch_dims)?;
        let rest = &x.dims()[self.batch_dims + depth..];
        let dims = [&indices.dims()[..indices.rank() - 1], rest].concat();
        Ok(vec![data.restore(runs(x, &places, rest.iter().product(), &dims, call)?)?])
    }
}

/// The runs of `run` elements that begin at `places`, as a tensor of shape `dims`.
pub(super) fn runs(x: &Array, places: &[usize], run: usize, dims: &[usize], call: &Call) -> Result<Array> {
    by_width!(x.dtype(), W => {
        let mut out = words::room::<W>(dims)?;
        gather_runs(&words::read::<W>(x)?, places, run, &mut out, call.threads);
        words::array(out, dims, x.dtype())
    })
}

/// Input `i`, which must hold indices.
pub(super) fn index_type<'a>(inputs: &'a Types, i: usize) -> Result<&'a TensorType> {
    let indices = inputs.tensor(i)?;
    if !indices.dtype.is_int() {
        bail!("indices are integers, not {}", indices.dtype);
    }
    Ok(indices)
}

/// Indices into an axis of size `size`, counted from the start.
fn resolved(indices: &[i64], size: usize, axis: usize) -> Result<Vec<usize>> {
    indices.iter().map(|&index| resolve(index, size, axis)).collect()
}

fn resolve(index: i64, size: usize, axis: usize) -> Result<usize> {
    let from_start = if index < 0 { index.checked_add(size as i64) } else { Some(index) };
    from_start
        .and_then(|index| usize::try_from(index).ok())
        .filter(|&index| index < size)
        .ok_or_else(|| Error::op(format!("index {index} is out of range for axis {axis} of size {size}")))
}

/// Where the elements stand in a tensor of shape `dims` that `indices` picks along an axis.
pub(super) fn element_places(dims: &[usize], indices: &Array, axis: i64) -> Result<Vec<usize>> {
    let axis = axes::resolve(axis, dims.len())?;
    let fits = |(i, (&own, &size)): (usize, (&usize, &usize))| i == axis || own <= size;
    if indices.rank() != dims.len() || !indices.dims().iter().zip(dims).enumerate().all(fits) {
        bail!("indices of shape {:?} do not fit a tensor of shape {dims:?}", indices.dims());
    }
    let inner: usize = dims[axis + 1..].iter().product();
    let mut counter = Counter::new(indices.dims(), dims, axis);
    let place = |&index: &i64| Ok(counter.next() + resolve(index, dims[axis], axis)? * inner);
    indices.to_i64()?.iter().map(place).collect()
}

/// Walks through a tensor of indices in order, and says where each place stands in a tensor of shape `within`, with index 0
/// on `axis`.
struct Counter<'a> {
    dims: &'a [usize],
    strides: Vec<usize>,
    at: Vec<usize>,
    place: usize,
}

impl<'a> Counter<'a> {
    fn new(dims: &'a [usize], within: &[usize], axis: usize) -> Counter<'a> {
        let stride = |i: usize| if i == axis { 0 } else { within[i + 1..].iter().product() };
        Counter { dims, strides: (0..dims.len()).map(stride).collect(), at: vec![0; dims.len()], place: 0 }
    }

    /// The place of the current element; moves on to the next.
    fn next(&mut self) -> usize {
        let place = self.place;
        for axis in (0..self.dims.len()).rev() {
            self.at[axis] += 1;
            self.place += self.strides[axis];
            if self.at[axis] < self.dims[axis] {
                break;
            }
            self.place -= self.strides[axis] * self.dims[axis];
            self.at[axis] = 0;
        }
        place
    }
}

/// Where the parts begin in a tensor of shape `dims` that the vectors of `indices` lead to, and how long the vectors are.
pub(super) fn vector_places(dims: &[usize], indices: &Array, batch_dims: usize) -> Result<(Vec<usize>, usize)> {
    let Some((&depth, outer)) = indices.dims().split_last() else { bail!("indices have no dimensions") };
    let shared = dims.get(..batch_dims).zip(outer.get(..batch_dims)).filter(|(mine, theirs)| mine == theirs);
    let (Some((batch, _)), Some(inner)) = (shared, batch_dims.checked_add(depth).and_then(|skip| dims.get(skip..))) else {
        bail!("indices of shape {:?} do not fit a tensor of shape {dims:?} with {batch_dims} batch dimensions", indices.dims());
    };
    let picked = &dims[batch_dims..batch_dims + depth];
    let (batches, count) = (batch.iter().product::<usize>(), outer.iter().product::<usize>());
    let (part, per_batch) = (inner.iter().product::<usize>(), picked.iter().product::<usize>());
    let indices = indices.to_i64()?;
    let place = |i: usize| {
        let vector = indices[i * depth..][..depth].iter().zip(picked).enumerate();
        let batch = i / (count / batches);
        let row = vector.into_iter().try_fold(0, |row, (axis, (&index, &size))| {
            Ok::<_, Error>(row * size + resolve(index, size, batch_dims + axis)?)
        })?;
        Ok((batch * per_batch + row) * part)
    };
    Ok(((0..count).map(place).collect::<Result<_>>()?, depth))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, tensor};

    fn check(kernel: &dyn Kernel, dims: &[usize], indices: (&[i64], &[usize]), expected: Option<(&[usize], &[u32])>) {
        let count = dims.iter().product::<usize>() as u32;
        let x = tensor(&(0..count).collect::<Vec<_>>(), dims);
        let found = run(kernel, &[Some(x), Some(tensor(indices.0, indices.1))]).ok().map(|y| {
            let y = y.tensor().expect("a tensor");
            (y.dims().to_vec(), y.read::<u32>().expect("uint32").to_vec())
        });
        let expected = expected.map(|(dims, data)| (dims.to_vec(), data.to_vec()));
        assert_eq!(found, expected, "{kernel:?} {dims:?} {indices:?}");
    }

    #[test]
    fn rows() {
        check(&Gather { axis: 0 }, &[3, 2], (&[2, -3, 2], &[3]), Some((&[3, 2], &[4, 5, 0, 1, 4, 5])));
        check(&Gather { axis: -1 }, &[2, 3], (&[0, 2], &[1, 2]), Some((&[2, 1, 2], &[0, 2, 3, 5])));
        check(&Gather { axis: 0 }, &[3, 2], (&[1], &[]), Some((&[2], &[2, 3])));
        check(&Gather { axis: 1 }, &[1, 3, 2], (&[-1], &[1]), Some((&[1, 1, 2], &[4, 5])));
        check(&Gather { axis: 0 }, &[3], (&[], &[0, 4]), Some((&[0, 4], &[])));
        check(&Gather { axis: 1 }, &[3, 0], (&[0], &[1]), None);
        check(&Gather { axis: 0 }, &[3], (&[3], &[1]), None);
        check(&Gather { axis: 0 }, &[3], (&[-4], &[]), None);
        check(&Gather { axis: 1 }, &[3], (&[0], &[]), None);
    }

    #[test]
    fn elements() {
        let op = |axis| GatherElements { axis };
        check(&op(1), &[2, 3], (&[2, 0, -1, 1], &[2, 2]), Some((&[2, 2], &[2, 0, 5, 4])));
        check(&op(0), &[3, 3], (&[1, 2, 0, 2, 0, 0], &[2, 3]), Some((&[2, 3], &[3, 7, 2, 6, 1, 2])));
        check(&op(-2), &[2, 2, 2], (&[1, 0, 0, 1], &[2, 1, 2]), Some((&[2, 1, 2], &[2, 1, 4, 7])));
        check(&op(0), &[3, 3], (&[3], &[1, 1]), None);
        check(&op(0), &[2, 2], (&[0, 0, 0], &[1, 3]), None);
        check(&op(0), &[2, 2], (&[0], &[1]), None);
    }

    #[test]
    fn vectors() {
        let op = |batch_dims| GatherNd { batch_dims };
        check(&op(0), &[2, 2], (&[0, 0, 1, -1], &[2, 2]), Some((&[2], &[0, 3])));
        check(&op(0), &[2, 2, 2], (&[0, 1, 1, 0], &[2, 1, 2]), Some((&[2, 1, 2], &[2, 3, 4, 5])));
        check(&op(1), &[2, 2, 2], (&[1, 0], &[2, 1]), Some((&[2, 2], &[2, 3, 4, 5])));
        check(&op(1), &[2, 3], (&[2, 0, 0, 1], &[2, 2, 1]), Some((&[2, 2], &[2, 0, 3, 4])));
        check(&op(0), &[2, 2], (&[], &[3, 0]), Some((&[3, 2, 2], &[0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3])));
        check(&op(1), &[0, 2], (&[], &[0, 1]), Some((&[0], &[])));
        check(&op(0), &[2, 2], (&[0, 0, 0], &[1, 3]), None);
        check(&op(1), &[2, 2], (&[0, 0, 0], &[3, 1]), None);
        check(&op(0), &[2, 2], (&[0, 2], &[2]), None);
    }
}
