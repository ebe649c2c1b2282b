//! Tensors joined along an axis, and taken apart.

use candle_plan_kernels::blocked::BLOCK;
use candle_plan_kernels::broadcast::Dims;
use candle_plan_kernels::concat::{concat, Part};
use candle_plan_kernels::strided::View;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::axes;
use crate::bail;
use crate::by_width;
use crate::device::{Needs, on_device};
use crate::error::{Error, Result};
use crate::kernel::{Arity, Call, Constants, Kernel, Packed, Types};
use crate::layout::{Blocked, Image, Layout};
use crate::movable::{copy_view, Movable};
use crate::types::{Dim, Shape, TensorType, Type};
use crate::value::{Array, Value};
use crate::words;

/// The inputs, equal in all dimensions but `axis`, one after the other along `axis`.
///
/// Source: [ONNX Concat](https://onnx.ai/onnx/operators/onnx__Concat.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Concat {
    /// The axis; a negative one counts from the end.
    pub axis: i64,
}

impl Kernel for Concat {
    fn arity(&self) -> Arity {
        Arity::inputs(1..=usize::MAX)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let all: Vec<&TensorType> = (0..inputs.len()).map(|i| inputs.tensor(i)).collect::<Result<_>>()?;
        let Some((first, rest)) = all.split_first() else { bail!("nothing to join") };
        let mut shape = first.shape.clone();
        let axis = shape.as_ref().map(|shape| axes::resolve(self.axis, shape.len())).transpose()?;
        for other in rest {
            if other.dtype != first.dtype {
                bail!("{} and {} do not mix", first.dtype, other.dtype);
            }
            shape = match (shape, &other.shape, axis) {
                (Some(shape), Some(other), Some(axis)) => Some(joined_shape(shape, other, axis)?),
                _ => None,
            };
        }
        Ok(vec![Type::Tensor(TensorType {
            dtype: first.dtype,
            shape: shape.or(first.rank().map(|rank| vec![None; rank])),
        })])
    }

    fn blocked(&self, operands: &Constants, outputs: &[Option<&Type>]) -> Option<Blocked> {
        let image = Image::of(outputs.first().copied().flatten()?)?;
        let parts = operands.types.iter().map(|kind| Image::of(kind.as_ref()?)).collect::<Option<Vec<_>>>()?;
        let (_, before) = parts.split_last()?;
        let is_whole = before.iter().all(|part| part.channels.is_multiple_of(BLOCK));
        let fits = self.axis == 1 && is_whole || self.axis > 1;
        fits.then(|| Blocked {
            kernel: Box::new(self.clone()),
            rank: image.rank,
            inputs: vec![Layout::Blocks; parts.len()],
            outputs: vec![Layout::Blocks],
            gain: -image.wasted(),
        })
    }

    on_device!("copy");

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let values: SmallVec<[&Value; 4]> = (0..call.len()).map(|i| call.value(i)).collect::<Result<_>>()?;
        let data = Movable::new(&values)?;
        let arrays: SmallVec<[&Array; 4]> = data.arrays.iter().collect();
        Ok(vec![data.restore(joined(&arrays, self.axis, call)?)?])
    }
}

/// `X` cut along `axis` into as many parts as there are outputs: of the sizes in input 1, `split: int64 [outputs]`, or,
/// when it is absent, of equal sizes, the last one maybe smaller.
///
/// Source: [ONNX Split](https://onnx.ai/onnx/operators/onnx__Split.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Split {
    /// The axis; a negative one counts from the end.
    pub axis: i64,
}

impl Kernel for Split {
    fn arity(&self) -> Arity {
        Arity { inputs: 1..=2, outputs: 1..=usize::MAX }
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        let axis = x.rank().map(|rank| axes::resolve(self.axis, rank)).transpose()?;
        let equal = match (axis.and_then(|axis| x.size(axis)), inputs.optional(1)) {
            (Some(size), None) => {
                equal_parts(size, inputs.outputs)?.into_iter().map(|part| Some(Dim::Size(part))).collect()
            }
            _ => vec![None; inputs.outputs],
        };
        let part = |size: Option<Dim>| {
            let mut shape = x.shape.clone();
            if let Some(dim) = shape.as_mut().zip(axis).and_then(|(shape, axis)| shape.get_mut(axis)) {
                *dim = size;
            }
            Type::Tensor(TensorType { dtype: x.dtype, shape })
        };
        Ok(equal.into_iter().map(part).collect())
    }

    fn shares(&self, input: usize) -> bool {
        input == 0
    }

    on_device!("copy");

    fn needs(&self, input: usize) -> Needs {
        match input {
            0 => Needs::Elements,
            _ => Needs::Numbers,
        }
    }

    fn prepack(&self, constants: &Constants) -> Result<Option<Packed>> {
        Ok(Some(axes::read_lists(constants)))
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let data = Movable::new(&[call.value(0)?])?;
        let x = &data.arrays[0];
        let (axis, sizes) = self.parts(x.dims(), call)?;
        let mut start = 0;
        let part = |size: usize| {
            let part = part_of(x, axis, start, size, call)?;
            start += size;
            data.restore(part)
        };
        sizes.into_iter().map(part).collect()
    }
}

impl Split {
    /// The axis that is cut of a tensor of shape `dims`, and the parts' sizes.
    pub(crate) fn parts(&self, dims: &[usize], call: &Call) -> Result<(usize, Vec<usize>)> {
        let axis = axes::resolve(self.axis, dims.len())?;
        let sizes = match axes::optional_list(call, 1)? {
            Some(sizes) => axes::dims(&sizes)?,
            None => equal_parts(dims[axis], call.outputs)?,
        };
        if sizes.len() != call.outputs || sum(&sizes) != Some(dims[axis]) {
            bail!("sizes {sizes:?} do not make {} parts of axis {axis} of {dims:?}", call.outputs);
        }
        Ok((axis, sizes))
    }
}

/// The axis along which tensors are joined, and the dimensions that they make.
///
/// # Errors
/// Their dimensions differ beside `axis`.
pub(crate) fn joined_dims(arrays: &[&Array], axis: i64) -> Result<(usize, Dims)> {
    let Some(first) = arrays.first() else { bail!("nothing to join") };
    let axis = axes::resolve(axis, first.rank())?;
    let mut dims = Dims::from_slice(first.dims());
    for other in &arrays[1..] {
        let is_same = |(i, (a, b)): (usize, (&usize, &usize))| i == axis || a == b;
        if other.rank() != dims.len() || !dims.iter().zip(other.dims()).enumerate().all(is_same) {
            bail!("{:?} and {:?} differ beside axis {axis}", first.dims(), other.dims());
        }
        dims[axis] = dims[axis].checked_add(other.dims()[axis]).ok_or_else(|| Error::op("the parts are too many"))?;
    }
    Ok((axis, dims))
}

/// Tensors of one dtype joined along an axis.
///
/// # Errors
/// Their dimensions differ beside `axis`.
pub(super) fn joined(arrays: &[&Array], axis: i64, call: &Call) -> Result<Array> {
    let Some(first) = arrays.first() else { bail!("nothing to join") };
    let (axis, dims) = joined_dims(arrays, axis)?;
    by_width!(first.dtype(), W => {
        let mut out = words::room::<W>(&dims)?;
        let data: SmallVec<[&[W]; 4]> = arrays.iter().map(|array| words::read(array)).collect::<Result<_>>()?;
        let run = |array: &Array| array.dims()[axis..].iter().product();
        let parts: SmallVec<[Part<W>; 4]> = data.iter().zip(arrays).map(|(data, array)| Part { data, run: run(array) }).collect();
        concat(&parts, &mut out, call.threads);
        words::array(out, &dims, first.dtype())
    })
}

/// `size` rows of an axis; a view where they stand together.
pub(super) fn part_of(x: &Array, axis: usize, start: usize, size: usize, call: &Call) -> Result<Array> {
    match place_of(x.dims(), axis, start, size) {
        None => x.narrow_outer(axis, start, size),
        Some(view) => copy_view(x, &view, call.threads),
    }
}

/// Where `size` rows of an axis stand in a tensor of shape `dims`; `None` where they stand together.
pub(crate) fn place_of(dims: &[usize], axis: usize, start: usize, size: usize) -> Option<View> {
    let mut view = View::contiguous(dims);
    view.offset = start * view.strides[axis] as usize;
    view.dims[axis] = size;
    dims[..axis].iter().any(|&dim| dim != 1).then_some(view)
}

fn joined_shape(mut shape: Shape, other: &Shape, axis: usize) -> Result<Shape> {
    if shape.len() != other.len() {
        bail!("tensors of ranks {} and {} do not join", shape.len(), other.len());
    }
    for (i, (mine, theirs)) in shape.iter_mut().zip(other).enumerate() {
        *mine = match (mine.take(), theirs) {
            (Some(Dim::Size(a)), Some(Dim::Size(b))) if i == axis => a.checked_add(*b).map(Dim::Size),
            (_, _) if i == axis => None,
            (Some(Dim::Size(a)), Some(Dim::Size(b))) if a != *b => bail!("sizes {a} and {b} differ on axis {i}"),
            (Some(Dim::Size(a)), _) => Some(Dim::Size(a)),
            (mine, theirs) => theirs.clone().or(mine),
        };
    }
    Ok(shape)
}

/// The sizes of `parts` parts, all equal but the last.
fn equal_parts(size: usize, parts: usize) -> Result<Vec<usize>> {
    let most = size.div_ceil(parts.max(1));
    match size.checked_sub(most * parts.saturating_sub(1)) {
        Some(last) if parts > 0 => Ok((1..parts).map(|_| most).chain([last]).collect()),
        _ => Err(Error::op(format!("{size} rows do not make {parts} parts of equal size"))),
    }
}

fn sum(sizes: &[usize]) -> Option<usize> {
    sizes.iter().try_fold(0usize, |sum, &size| sum.checked_add(size))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, run_outputs, tensor};

    fn numbers(dims: &[usize], from: u16) -> Value {
        let count = dims.iter().product::<usize>() as u16;
        tensor(&(from..from + count).collect::<Vec<_>>(), dims)
    }

    fn seen(value: &Value) -> (Vec<usize>, Vec<u16>) {
        let array = value.tensor().expect("a tensor");
        (array.dims().to_vec(), array.read::<u16>().expect("uint16").to_vec())
    }

    #[test]
    fn joins() {
        let (a, b) = (numbers(&[2, 2], 0), numbers(&[2, 1], 10));
        let y = run(&Concat { axis: -1 }, &[Some(a.clone()), Some(b.clone()), Some(a.clone())]).expect("2 rows each");
        assert_eq!(seen(&y), (vec![2, 5], vec![0, 1, 10, 0, 1, 2, 3, 11, 2, 3]));
        let y = run(&Concat { axis: 0 }, &[Some(a.clone()), Some(numbers(&[0, 2], 0)), Some(numbers(&[1, 2], 7))]);
        assert_eq!(seen(&y.expect("2 columns each")), (vec![3, 2], vec![0, 1, 2, 3, 7, 8]));
        for (axis, other) in [(0, &b), (2, &a), (-3, &a), (0, &numbers(&[2], 0)), (0, &tensor(&[0i16; 2], &[1, 2]))] {
            assert!(run(&Concat { axis }, &[Some(a.clone()), Some(other.clone())]).is_err());
        }
    }

    #[test]
    fn splits() {
        let x = numbers(&[2, 5], 0);
        let parts = run_outputs(&Split { axis: 1 }, &[Some(x.clone())], 3).expect("2, 2 and 1");
        assert_eq!(seen(&parts[1]), (vec![2, 2], vec![2, 3, 7, 8]));
        assert_eq!(seen(&parts[2]), (vec![2, 1], vec![4, 9]));
        let split = |sizes: &[i64]| {
            run_outputs(&Split { axis: -2 }, &[Some(x.clone()), Some(tensor(sizes, &[sizes.len()]))], 2)
        };
        assert_eq!(seen(&split(&[2, 0]).expect("two rows")[1]), (vec![0, 5], vec![]));
        for sizes in [&[1, 2][..], &[3, -1], &[2], &[i64::MAX, i64::MAX]] {
            assert!(split(sizes).is_err(), "{sizes:?}");
        }
        assert!(run_outputs(&Split { axis: 1 }, &[Some(x)], 4).is_err());
    }
}
