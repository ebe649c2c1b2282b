//! CPU kernels: scatters elements and rows by index.

use candle_plan_kernels::gather_scatter::{combine_runs, scatter_runs};
use half::{bf16, f16};

use super::bounds::counted;
use super::convert::Float;
use super::packed::{HasKernel, Packed};
use super::places::{self, element_places, starts_bytes, vector_places};
use super::planned::CpuOperands;
use crate::array::words;
use crate::axes;
use crate::by_width;
use crate::dispatch;
use crate::dtype::{Bool, DType, Element};
use crate::error::Result;
use crate::kernel::{Call, Kernel};
use crate::movable::Movable;
use crate::ops::places::{vector_parts, Places};
use crate::ops::scatter::{
    check_elements, check_parts, check_places, Combination, ScatterElements, ScatterNd, TensorScatter,
};
use crate::types::Types;
use crate::value::{list, Array, Value};

/// Implements the kernel of an operator that writes updates at places. `$places` finds the places of indices in a tensor
/// of some dimensions, and `$check` checks the dimensions of the updates, after those of the tensor and the indices.
macro_rules! scatter {
    ($op:ident, $places:expr, $check:expr) => {
        impl HasKernel for $op {
            fn kernel(&self, operands: &CpuOperands) -> Result<Box<dyn Kernel>> {
                let packed = places::pack(&operands.constants, |dims, indices| $places(self, dims, indices))?;
                Ok(Packed::boxed(self, packed))
            }
        }

        impl Kernel for Packed<$op, Option<places::KnownPlaces>> {
            fn takes(&self, input: usize, dtype: DType) -> bool {
                input == 0 && dtype != DType::String
            }

            fn scratch(&self, inputs: &Types) -> Option<usize> {
                starts_bytes(self.packed.as_ref(), inputs.tensor(1).ok()?)
            }

            fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
                let (op, packed) = (&self.op, self.packed.as_ref());
                let target = Target::new(call, 2)?;
                let (dims, indices) = (target.array().dims(), call.tensor(1)?);
                let places = places::places(packed, call, dims, |dims, indices| $places(op, dims, indices))?;
                $check(dims, indices.dims(), target.updates().dims())?;
                target.write(&places, op.reduction)
            }
        }
    };
}

scatter!(
    ScatterElements,
    |op: &ScatterElements, dims: &[usize], indices: &Array| element_places(dims, indices, op.axis),
    |_, indices: &[usize], updates: &[usize]| check_elements(updates, indices)
);
scatter!(
    ScatterNd,
    |_, dims: &[usize], indices: &Array| vector_places(dims, indices, 0),
    |dims: &[usize], indices: &[usize], updates: &[usize]| check_parts(updates, &vector_parts(dims, indices, 0)?)
);

impl Kernel for TensorScatter {
    fn takes(&self, input: usize, dtype: DType) -> bool {
        input == 0 && dtype != DType::String
    }

    fn scratch(&self, inputs: &Types) -> Option<usize> {
        let dims = inputs.sizes(1).ok().flatten()?;
        let axis = axes::resolve(self.axis, dims.len()).ok()?;
        let rows = dims[..=axis].iter().copied().fold(1, usize::saturating_mul);
        Some(counted::<i64>(*dims.first()?).saturating_add(counted::<usize>(rows)))
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let target = Target::new(call, 1)?;
        let (dims, new) = (target.array().dims(), target.updates().dims());
        let axis = self.fitting_axis(dims, new)?;
        let first = match call.optional_tensor(2)? {
            Some(first) => first.to_i64()?,
            None => list(std::iter::repeat_n(0, dims[0]))?,
        };
        check_places(first.len(), dims)?;
        let places = self.places(dims, axis, new[axis], &first)?;
        target.write(&places, Combination::None)
    }
}

/// A tensor to write into, and the updates.
struct Target(Movable);

impl Target {
    /// Returns input 0, taken over if it dies here, and input `updates`.
    fn new(call: &mut Call, updates: usize) -> Result<Target> {
        let taken = call.take(0).map(Value::from);
        let target = match &taken {
            Some(value) => value,
            None => call.value(0)?,
        };
        Ok(Target(Movable::new(&[target, call.value(updates)?])?))
    }

    fn array(&self) -> &Array {
        &self.0.arrays[0]
    }

    fn updates(&self) -> &Array {
        &self.0.arrays[1]
    }

    /// Writes a run of updates at each place. All places are inside the tensor.
    fn write(mut self, places: &Places, reduction: Combination) -> Result<Vec<Value>> {
        let (mut result, starts, run) = (self.0.arrays.remove(0), &places.starts, places.run);
        let (dtype, updates) = (result.dtype(), &self.0.arrays[0]);
        if reduction == Combination::None {
            by_width!(dtype, W => {
                let updates = words::read::<W>(updates)?;
                words::update::<W>(&mut result, |data| scatter_runs(data, starts, run, updates))
            })?;
        } else {
            dispatch!("a reduction", dtype, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, Bool], T => {
                let updates = updates.read::<T>()?;
                result.update::<T>(|data| {
                    match reduction {
                        Combination::Add => combine_runs(data, starts, run, updates, Reduce::add),
                        Combination::Mul => combine_runs(data, starts, run, updates, Reduce::mul),
                        Combination::Min => combine_runs(data, starts, run, updates, Reduce::min),
                        _ => combine_runs(data, starts, run, updates, Reduce::max),
                    }
                    Ok(())
                })
            })?;
        }
        Ok(vec![self.0.restore(result)?])
    }
}

/// The reductions of two elements.
trait Reduce: Element + PartialOrd {
    fn add(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;

    fn min(self, other: Self) -> Self {
        if self < other {
            self
        } else {
            other
        }
    }

    fn max(self, other: Self) -> Self {
        if self > other {
            self
        } else {
            other
        }
    }
}

macro_rules! reduce {
    ($($element:ty)+: $a:ident, $b:ident, $add:expr, $mul:expr) => {
        $(impl Reduce for $element {
            fn add(self, other: Self) -> Self {
                let ($a, $b) = (self, other);
                $add
            }

            fn mul(self, other: Self) -> Self {
                let ($a, $b) = (self, other);
                $mul
            }
        })+
    };
}

reduce!(f32 f64 f16 bf16: a, b, Self::rounded(a.wide() + b.wide()), Self::rounded(a.wide() * b.wide()));

reduce!(i8 i16 i32 i64 u8 u16 u32 u64: a, b, a.wrapping_add(b), a.wrapping_mul(b));

reduce!(Bool: a, b, Bool(a.0 | b.0), Bool(a.0 & b.0));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, tensor, Tested};

    fn found<T: Element>(kernel: &dyn Tested, inputs: &[Value]) -> Option<Vec<T>> {
        let inputs: Vec<Option<Value>> = inputs.iter().cloned().map(Some).collect();
        run(kernel, &inputs).ok().map(|y| y.tensor().expect("a tensor").read::<T>().expect("its dtype").to_vec())
    }

    #[test]
    fn elements() {
        let x = tensor(&[1i32, 2, 3, 4, 5, 6], &[2, 3]);
        let inputs = |indices: &[i64], dims: &[usize]| {
            let updates: Vec<i32> = (10..).take(indices.len()).collect();
            [x.clone(), tensor(indices, dims), tensor(&updates, dims)]
        };
        let op = |axis, reduction| ScatterElements { axis, reduction };
        let cases: [(i64, Combination, &[i64], &[usize], Option<[i32; 6]>); 8] = [
            (1, Combination::None, &[2, 0, -1, 1], &[2, 2], Some([11, 2, 10, 4, 13, 12])),
            (0, Combination::None, &[1, 0, 1], &[1, 3], Some([1, 11, 3, 10, 5, 12])),
            (-1, Combination::Add, &[0, 0, 0], &[1, 3], Some([34, 2, 3, 4, 5, 6])),
            (1, Combination::Mul, &[2], &[1, 1], Some([1, 2, 30, 4, 5, 6])),
            (1, Combination::Min, &[0, 1], &[1, 2], Some([1, 2, 3, 4, 5, 6])),
            (1, Combination::Max, &[0, 1], &[1, 2], Some([10, 11, 3, 4, 5, 6])),
            (1, Combination::None, &[3], &[1, 1], None),
            (0, Combination::None, &[0], &[1], None),
        ];
        for (axis, reduction, indices, dims, expected) in cases {
            let y = found::<i32>(&op(axis, reduction), &inputs(indices, dims));
            assert_eq!(y, expected.map(Vec::from), "{axis} {reduction:?} {indices:?}");
        }
        let misfit = [x.clone(), tensor(&[0i64], &[1, 1]), tensor(&[1i32, 2], &[1, 2])];
        assert_eq!(found::<i32>(&op(0, Combination::None), &misfit), None);
    }

    #[test]
    fn parts() {
        let x = tensor(&[1f32, 2.0, 3.0, 4.0], &[2, 2]);
        let op = |reduction| ScatterNd { reduction };
        let rows = [x.clone(), tensor(&[-1i64, 1], &[2, 1]), tensor(&[5f32, 6.0, 7.0, 8.0], &[2, 2])];
        assert_eq!(found::<f32>(&op(Combination::None), &rows), Some(vec![1.0, 2.0, 7.0, 8.0]));
        assert_eq!(found::<f32>(&op(Combination::Add), &rows), Some(vec![1.0, 2.0, 15.0, 18.0]));
        let points = [x.clone(), tensor(&[0i64, 1, 1, 0], &[2, 2]), tensor(&[f32::NAN, 9.0], &[2])];
        assert_eq!(found::<f32>(&op(Combination::Max), &points).map(|y| (y[1].is_nan(), y[2])), Some((true, 9.0)));
        let slice = [
            tensor(&[0u8; 6], &[2, 3]),
            tensor(&[0i64, 1, 0, 2, 1, 1, 1, 2], &[2, 2, 2]),
            tensor(&[1u8, 2, 3, 4], &[2, 2]),
        ];
        assert_eq!(found::<u8>(&op(Combination::None), &slice), Some(vec![0, 1, 2, 0, 3, 4]));
        assert_eq!(found::<u8>(&op(Combination::Max), &slice), Some(vec![0, 1, 2, 0, 3, 4]));
        let bad = [x.clone(), tensor(&[0i64, 2], &[1, 2]), tensor(&[0f32], &[1])];
        assert_eq!(found::<f32>(&op(Combination::None), &bad), None);
        let misfit = [x, tensor(&[0i64], &[1, 1]), tensor(&[0f32], &[1])];
        assert_eq!(found::<f32>(&op(Combination::None), &misfit), None);
    }

    #[test]
    fn caches() {
        let cache = tensor(&[0u8; 6], &[2, 3, 1]);
        let inputs = |first: &[i64]| [cache.clone(), tensor(&[1u8, 2, 3, 4], &[2, 2, 1]), tensor(first, &[2])];
        let op = |circular| TensorScatter { axis: -2, circular };
        assert_eq!(found::<u8>(&op(false), &inputs(&[1, 0])), Some(vec![0, 1, 2, 3, 4, 0]));
        assert_eq!(found::<u8>(&op(true), &inputs(&[2, 4])), Some(vec![2, 0, 1, 0, 3, 4]));
        assert_eq!(found::<u8>(&op(false), &inputs(&[2, 0])), None);
        assert_eq!(found::<u8>(&op(false), &inputs(&[0, -1])), None);
        assert_eq!(found::<u8>(&TensorScatter { axis: 0, circular: true }, &inputs(&[0, 0])), None);
    }
}
