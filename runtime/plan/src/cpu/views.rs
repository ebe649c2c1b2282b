//! CPU kernels: views of the same elements with other dimensions.

use super::lists::{list, Lists};
use super::packed::{HasKernel, Packed};
use super::planned::CpuOperands;
use crate::axes;
use crate::error::Result;
use crate::extent::known_sizes;
use crate::kernel::{Call, Kernel};
use crate::movable::reshape;
use crate::ops::views::{squeezed, unsqueezed, Flatten, Reshape, Squeeze, Unsqueeze};
use crate::types::Types;
use crate::value::Value;

impl HasKernel for Reshape {
    fn kernel(&self, operands: &CpuOperands) -> Result<Box<dyn Kernel>> {
        Ok(Packed::boxed(self, Lists::of(&operands.constants)))
    }
}

impl Kernel for Packed<Reshape, Lists> {
    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        Some(0)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (op, packed) = (&self.op, &self.packed);
        let value = call.value(0)?;
        let dims = op.target(value.dims()?, &list(packed, call, 1)?)?;
        Ok(vec![reshape(value, &known_sizes(&dims)?)?])
    }
}

impl Kernel for Flatten {
    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        Some(0)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let value = call.value(0)?;
        let (rows, columns) = value.dims()?.split_at(self.split(value.dims()?.len())?);
        Ok(vec![reshape(value, &[rows.iter().product(), columns.iter().product()])?])
    }
}

impl Kernel for Squeeze {
    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        Some(0)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let value = call.value(0)?;
        let dims = value.dims()?;
        let dims = match (&self.axes, call.optional_tensor(1)?) {
            (Some(axes), _) => squeezed(dims, axes)?,
            (None, Some(axes)) => squeezed(dims, &axes::numbers(axes)?)?,
            (None, None) => dims.iter().copied().filter(|&dim| dim != 1).collect(),
        };
        Ok(vec![reshape(value, &dims)?])
    }
}

impl Kernel for Unsqueeze {
    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        Some(0)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let value = call.value(0)?;
        let dims = match &self.axes {
            Some(axes) => unsqueezed(value.dims()?, axes, 1)?,
            None => unsqueezed(value.dims()?, &axes::numbers(call.tensor(1)?)?, 1)?,
        };
        Ok(vec![reshape(value, &dims)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, tensor, Tested};

    fn dims_of(kernel: &dyn Tested, dims: &[usize], second: Option<&[i64]>) -> Option<Vec<usize>> {
        let x = tensor(&vec![1.5f32; dims.iter().product()], dims);
        let mut inputs = vec![Some(x)];
        inputs.extend(second.map(|values| Some(tensor(values, &[values.len()]))));
        run(kernel, &inputs).ok().map(|value| value.dims().expect("a tensor").to_vec())
    }

    #[test]
    fn reshapes() {
        let cases: [(&[usize], &[i64], bool, Option<&[usize]>); 12] = [
            (&[2, 3, 4], &[4, 6], false, Some(&[4, 6])),
            (&[2, 3, 4], &[0, -1], false, Some(&[2, 12])),
            (&[2, 3, 4], &[-1, 0, 2], false, Some(&[4, 3, 2])),
            (&[2, 3, 4], &[24, 1, 1, 1], false, Some(&[24, 1, 1, 1])),
            (&[], &[1, 1], false, Some(&[1, 1])),
            (&[1], &[], false, Some(&[])),
            (&[0, 3], &[3, 0], true, Some(&[3, 0])),
            (&[0, 3], &[0, -1], false, None),
            (&[2, 3], &[-1, -1], false, None),
            (&[2, 3], &[4], false, None),
            (&[2, 3], &[2, 3, 0], false, None),
            (&[2, 3], &[i64::MAX, i64::MAX, 4], false, None),
        ];
        for (dims, shape, allow_zero, expected) in cases {
            assert_eq!(
                dims_of(&Reshape { allow_zero }, dims, Some(shape)).as_deref(),
                expected,
                "{dims:?} as {shape:?}"
            );
        }
    }

    #[test]
    fn flattens() {
        for (axis, expected) in
            [(0, Some([1, 24])), (1, Some([2, 12])), (3, Some([24, 1])), (-1, Some([6, 4])), (4, None), (-4, None)]
        {
            assert_eq!(dims_of(&Flatten { axis }, &[2, 3, 4], None), expected.map(Vec::from), "axis {axis}");
        }
        assert_eq!(dims_of(&Flatten { axis: 0 }, &[], None), Some(vec![1, 1]));
    }

    #[test]
    fn squeezes_and_unsqueezes() {
        let squeeze = |axes: Option<&[i64]>| Squeeze { axes: axes.map(<[i64]>::to_vec) };
        assert_eq!(dims_of(&squeeze(Some(&[0, -1])), &[1, 3, 1, 1], None), Some(vec![3, 1]));
        assert_eq!(dims_of(&squeeze(None), &[1, 3, 1, 0], None), Some(vec![3, 0]));
        assert_eq!(dims_of(&squeeze(None), &[1, 3, 1], Some(&[2])), Some(vec![1, 3]));
        assert_eq!(dims_of(&squeeze(Some(&[1])), &[1, 3, 1], None), None);
        assert_eq!(dims_of(&squeeze(Some(&[0, -3])), &[1, 3, 1], None), None);
        let unsqueeze = |axes: Option<&[i64]>| Unsqueeze { axes: axes.map(<[i64]>::to_vec) };
        assert_eq!(dims_of(&unsqueeze(Some(&[-1, 0])), &[2, 3], None), Some(vec![1, 2, 3, 1]));
        assert_eq!(dims_of(&unsqueeze(None), &[2, 3], Some(&[1, 2])), Some(vec![2, 1, 1, 3]));
        assert_eq!(dims_of(&unsqueeze(Some(&[3])), &[2, 3], None), None);
        assert_eq!(dims_of(&unsqueeze(Some(&[1, 1])), &[2, 3], None), None);
    }
}
