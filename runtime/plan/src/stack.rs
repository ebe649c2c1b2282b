//! Stacks tensors along a new axis and slices them, for the outputs and inputs of loops.

use candle_plan_descriptors::strided::View;
use candle_plan_kernels::concat::{concat, Part};
use candle_plan_kernels::threads::Threads;

use crate::array::words;
use crate::bail;
use crate::by_width;
use crate::error::Result;
use crate::movable::{copy_view, Movable};
use crate::value::{list, try_list, Array, Value};

/// Stacks tensors of equal dtype and shape along a new axis `axis`.
///
/// # Errors
/// The list is empty, the tensors differ, or the axis is out of range.
pub fn stack(items: &[Value], axis: usize, threads: &Threads) -> Result<Value> {
    let movable = Movable::new(&list(items.iter())?)?;
    let Some(first) = movable.arrays.first() else { bail!("nothing to stack") };
    if let Some(other) = movable.arrays.iter().find(|array| array.dims() != first.dims()) {
        bail!("iterations give different shapes: {:?} and {:?}", first.dims(), other.dims());
    }
    if axis > first.rank() {
        bail!("axis {axis} is out of range for stacking tensors of shape {:?}", first.dims());
    }
    let mut dims = first.dims().to_vec();
    dims.insert(axis, movable.arrays.len());
    let run = first.dims()[axis..].iter().product();
    let stacked = by_width!(first.dtype(), W => {
        let parts = try_list(movable.arrays.iter().map(|array| Ok(Part { data: words::read::<W>(array)?, run })))?;
        let out = words::alloc_uninit::<W>(&dims)?.overwrite(|out| concat(&parts, out, threads));
        words::array(out, &dims, first.dtype())
    })?;
    movable.restore(stacked)
}

/// Slice `index` of `value` along `axis`, without that axis.
///
/// # Errors
/// The axis or the index is out of range.
pub fn slice(value: &Value, axis: usize, index: usize, threads: &Threads) -> Result<Value> {
    let movable = Movable::new(&[value])?;
    let array = &movable.arrays[0];
    if array.dims().get(axis).is_none_or(|&size| index >= size) {
        bail!("there is no slice {index} along axis {axis} of {}", value.describe());
    }
    if axis == 0 {
        return movable.restore(array.narrow_outer(0, index, 1)?.reshape(&array.dims()[1..])?);
    }
    let mut view = View::contiguous(array.dims());
    view.offset = index * view.strides[axis].unsigned_abs();
    view.dims.remove(axis);
    view.strides.remove(axis);
    movable.restore(copy_view(array, &view, threads)?)
}

/// An empty stack, which zero iterations give: a tensor of the dimensions `dims` with a dimension of size 0 at `axis`.
///
/// # Errors
/// `axis` is out of range.
pub fn empty(dtype: crate::dtype::DType, dims: &[usize], axis: usize) -> Result<Value> {
    if axis > dims.len() {
        bail!("axis {axis} is out of range for stacking tensors of shape {dims:?}");
    }
    let mut dims = dims.to_vec();
    dims.insert(axis, 0);
    if dtype == crate::dtype::DType::String {
        return Ok(Value::Strings(crate::value::Strings { dims, data: Vec::new().into() }));
    }
    let array = by_width!(dtype, W => words::array(Vec::<W>::new(), &dims, dtype))?;
    Ok(Array::into(array))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::tensor;

    #[test]
    fn slices_are_what_was_stacked() {
        let threads = Threads::serial();
        let items: Vec<Value> = (0..3).map(|i| tensor(&[i as f32, 10. + i as f32], &[2, 1])).collect();
        for axis in 0..=2 {
            let stacked = stack(&items, axis, &threads).expect("equal shapes stack");
            for (i, item) in items.iter().enumerate() {
                let back = slice(&stacked, axis, i, &threads).expect("a slice for each");
                let (Value::Tensor(back), Value::Tensor(item)) = (back, item) else { panic!("not tensors") };
                assert_eq!(back.dims(), item.dims());
                assert_eq!(*back.read::<f32>().expect("f32"), *item.read::<f32>().expect("f32"), "axis {axis}");
            }
            assert!(slice(&stacked, axis, 3, &threads).is_err());
        }
        assert!(stack(&items, 3, &threads).is_err() && stack(&[], 0, &threads).is_err());
        assert!(stack(&[tensor(&[1f32], &[1]), tensor(&[1f32], &[1, 1])], 0, &threads).is_err());
    }
}
