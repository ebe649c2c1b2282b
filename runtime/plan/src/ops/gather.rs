//! Elements and rows picked by index.

use candle_plan_kernels::indexed::gather_runs;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::places::{self, element_places, row_places, vector_places, Places};
use super::views::shape_of_rank;
use crate::axes;
use crate::bail;
use crate::by_width;
use crate::device::{has_few_dimensions, on_device, takes_indices};
use crate::error::Result;
use crate::kernel::{Arity, Call, Constants, Kernel, Packed, Types};
use crate::movable::Movable;
use crate::types::{TensorType, Type};
use crate::value::{Array, Value};
use crate::words;
use crate::work::Work;

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
        let shape = x
            .shape
            .as_ref()
            .zip(indices.shape.as_ref())
            .zip(axis)
            .map(|((x, indices), axis)| x[..axis].iter().chain(indices).chain(&x[axis + 1..]).cloned().collect());
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape })])
    }

    fn shares(&self, input: usize) -> bool {
        input == 0
    }

    on_device!("gather" if |self, operands| takes_indices(operands, 1));

    fn fault(&self) -> &'static str {
        "an index is beyond its axis"
    }

    fn work(&self, _inputs: &Types, outputs: &[Type]) -> Option<Work> {
        Work::picking(outputs)
    }

    fn prepack(&self, constants: &Constants) -> Result<Option<Packed>> {
        places::prepack(constants, |dims, indices| row_places(dims, indices, self.axis))
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let data = Movable::new(&[call.value(0)?])?;
        let (x, indices) = (&data.arrays[0], call.tensor(1)?);
        let axis = axes::resolve(self.axis, x.rank())?;
        let rows = places::places(call, x.dims(), |dims, indices| row_places(dims, indices, self.axis))?;
        let dims = [&x.dims()[..axis], indices.dims(), &x.dims()[axis + 1..]].concat();
        let gathered = match view(x, axis, &rows)? {
            Some(view) => view.reshape(&dims)?,
            None => runs(x, x.dims()[axis..].iter().product(), &rows, &dims, call)?,
        };
        Ok(vec![data.restore(gathered)?])
    }
}

/// The rows that one run holds, without a copy where they stand together.
fn view(x: &Array, axis: usize, rows: &Places) -> Result<Option<Array>> {
    let (outer, inner) = x.dims().split_at(axis);
    let row: usize = inner[1..].iter().product();
    let &[start] = &rows.starts[..] else { return Ok(None) };
    if rows.run == row * inner[0] {
        return Ok(Some(x.clone()));
    }
    if row == 0 || outer.iter().any(|&dim| dim != 1) {
        return Ok(None);
    }
    x.narrow_outer(axis, start / row, rows.run / row).map(Some)
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

    on_device!("gather" if |self, operands| takes_indices(operands, 1) && has_few_dimensions(operands));

    fn fault(&self) -> &'static str {
        "an index is beyond its axis"
    }

    fn work(&self, _inputs: &Types, outputs: &[Type]) -> Option<Work> {
        Work::picking(outputs)
    }

    fn prepack(&self, constants: &Constants) -> Result<Option<Packed>> {
        places::prepack(constants, |dims, indices| element_places(dims, indices, self.axis))
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let data = Movable::new(&[call.value(0)?])?;
        let (x, indices) = (&data.arrays[0], call.tensor(1)?);
        let places = places::places(call, x.dims(), |dims, indices| element_places(dims, indices, self.axis))?;
        Ok(vec![data.restore(runs(x, x.len(), &places, indices.dims(), call)?)?])
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
                None => bail!(
                    "{depth} indices after {} batch dimensions are too many for rank {}",
                    self.batch_dims,
                    x.len()
                ),
            },
            _ => None,
        };
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape })])
    }

    on_device!("gather" if |self, operands| takes_indices(operands, 1) && has_few_dimensions(operands));

    fn fault(&self) -> &'static str {
        "an index is beyond its axis"
    }

    fn work(&self, _inputs: &Types, outputs: &[Type]) -> Option<Work> {
        Work::picking(outputs)
    }

    fn prepack(&self, constants: &Constants) -> Result<Option<Packed>> {
        places::prepack(constants, |dims, indices| vector_places(dims, indices, self.batch_dims))
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let data = Movable::new(&[call.value(0)?])?;
        let (x, indices) = (&data.arrays[0], call.tensor(1)?);
        let places = places::places(call, x.dims(), |dims, indices| vector_places(dims, indices, self.batch_dims))?;
        let Some((depth, outer)) = indices.dims().split_last() else { bail!("indices have no dimensions") };
        let dims = [outer, &x.dims()[self.batch_dims + depth..]].concat();
        Ok(vec![data.restore(runs(x, x.len(), &places, &dims, call)?)?])
    }
}

/// The elements at the places in each block of `block` elements, as a tensor of shape `dims`.
pub(super) fn runs(x: &Array, block: usize, places: &Places, dims: &[usize], call: &Call) -> Result<Array> {
    by_width!(x.dtype(), W => {
        let mut out = words::room::<W>(dims)?;
        gather_runs(words::read::<W>(x)?, block, &places.starts, places.run, &mut out, call.threads);
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
        check(&Gather { axis: 1 }, &[2, 3], (&[0, 1, 1, 2], &[2, 2]), Some((&[2, 2, 2], &[0, 1, 1, 2, 3, 4, 4, 5])));
        check(&Gather { axis: 1 }, &[2, 3], (&[0, 1, 2], &[3, 1]), Some((&[2, 3, 1], &[0, 1, 2, 3, 4, 5])));
        check(&Gather { axis: 0 }, &[3, 2], (&[1, 2], &[2]), Some((&[2, 2], &[2, 3, 4, 5])));
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
        check(&op(1), &[2, 3], (&[1, 2, 0, 1], &[2, 2]), Some((&[2, 2], &[1, 2, 3, 4])));
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
