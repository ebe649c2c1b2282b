//! CPU kernels: tensors generated from a few numbers.

use candle_plan_kernels::reduce::Number;
use half::{bf16, f16};

use super::bounds::{counted, len};
use super::convert::Float;
use crate::array::words;
use crate::axes;
use crate::bail;
use crate::by_width;
use crate::dispatch;
use crate::error::Result;
use crate::extent::one_element;
use crate::kernel::{Call, Kernel};
use crate::movable::Movable;
use crate::ops::generate::{extent, one_of, EyeLike, Fill, OneHot, Range, Step};
use crate::types::Types;
use crate::value::{with_capacity, Array, Value};

impl Kernel for Fill {
    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        Some(0)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let dims = axes::dims(&axes::numbers(call.tensor(0)?)?)?;
        let data = Movable::new(&[call.value(1)?])?;
        let value = &data.arrays[0];
        one_element("the value to fill with", value.dims())?;
        let filled = by_width!(value.dtype(), W => {
            let element = words::read::<W>(value)?[0];
            words::array(words::alloc_uninit::<W>(&dims)?.fill(element), &dims, value.dtype())
        });
        Ok(vec![data.restore(filled?)?])
    }
}

impl Kernel for Range {
    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        Some(0)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        dispatch!("Range", call.tensor(0)?.dtype(), [f32, f64, f16, bf16, i16, i32, i64], T => range::<T>(call))
    }
}

macro_rules! floats {
    ($($float:ident)*) => {
        $(impl Step for $float {
            fn count(start: Self, limit: Self, delta: Self) -> Option<f64> {
                steps((limit.wide() - start.wide()).to_f64(), delta.wide().to_f64())
            }

            fn at(start: Self, delta: Self, i: usize) -> Self {
                Self::rounded(start.wide() + <Self as Float>::Wide::from_f64(i as f64) * delta.wide())
            }
        })*
    };
}

macro_rules! integers {
    ($($integer:ident)*) => {
        $(impl Step for $integer {
            fn count(start: Self, limit: Self, delta: Self) -> Option<f64> {
                steps((i128::from(limit) - i128::from(start)) as f64, delta as f64)
            }

            fn at(start: Self, delta: Self, i: usize) -> Self {
                start.wrapping_add((i as $integer).wrapping_mul(delta))
            }
        })*
    };
}

floats! { f32 f64 f16 bf16 }

integers! { i16 i32 i64 }

/// Returns the number of steps of length `step` in `distance`, if it is finite.
fn steps(distance: f64, step: f64) -> Option<f64> {
    let count = (distance / step).ceil();
    count.is_finite().then_some(count)
}

fn range<T: Step>(call: &Call) -> Result<Vec<Value>> {
    let (start, delta, count) = extent::<T>([call.tensor(0)?, call.tensor(1)?, call.tensor(2)?])?;
    let mut out = with_capacity::<T>(count)?;
    out.extend((0..count).map(|i| T::at(start, delta, i)));
    Ok(vec![Array::new(out, &[count])?.into()])
}

impl Kernel for EyeLike {
    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        Some(0)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let &[rows, columns] = call.value(0)?.dims()? else { bail!("expected a matrix") };
        let one = one_of(self.dtype)?;
        by_width!(self.dtype, W => {
            let mut out = words::alloc_uninit::<W>(&[rows, columns])?.fill(0);
            for row in 0..rows.min(out.len()) {
                let column = self.k.checked_add(row as i64).and_then(|column| usize::try_from(column).ok());
                if let Some(column) = column.filter(|&column| column < columns) {
                    out[row * columns + column] = one as W;
                }
            }
            Ok(vec![words::array(out, &[rows, columns], self.dtype)?.into()])
        })
    }
}

impl Kernel for OneHot {
    fn scratch(&self, inputs: &Types) -> Option<usize> {
        Some(counted::<[i64; 2]>(len(inputs, 0)?))
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let indices = call.tensor(0)?;
        let (dims, axis) = self.dims(indices, call.tensor(1)?)?;
        let depth = dims[axis] as i64;
        let inner: usize = dims[axis + 1..].iter().product();
        let data = Movable::new(&[call.value(2)?])?;
        OneHot::check_values(data.arrays[0].dims())?;
        let hot = by_width!(data.arrays[0].dtype(), W => {
            let values = words::read::<W>(&data.arrays[0])?;
            let (off, on) = (values[0], values[1]);
            let mut out = words::alloc_uninit::<W>(&dims)?.fill(off);
            for (i, index) in indices.to_truncated()?.into_iter().enumerate() {
                let class = if index < 0 { index.saturating_add(depth) } else { index };
                if (0..depth).contains(&class) {
                    out[(i / inner * depth as usize + class as usize) * inner + i % inner] = on;
                }
            }
            words::array(out, &dims, data.arrays[0].dtype())
        });
        Ok(vec![data.restore(hot?)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::dtype::Element;
    use crate::testing::{run, tensor, Tested};

    fn found<T: Element>(kernel: &dyn Tested, inputs: &[Value]) -> Option<(Vec<usize>, Vec<T>)> {
        let inputs: Vec<Option<Value>> = inputs.iter().cloned().map(Some).collect();
        let y = run(kernel, &inputs).ok()?;
        let y = y.tensor().expect("a tensor");
        let data = y.read::<T>().expect("its dtype").to_vec();
        Some((y.dims().to_vec(), data))
    }

    #[test]
    fn fills() {
        let fill = |dims: &[i64]| found::<i16>(&Fill {}, &[tensor(dims, &[dims.len()]), tensor(&[7i16], &[1])]);
        assert_eq!(fill(&[2, 1]), Some((vec![2, 1], vec![7, 7])));
        assert_eq!(fill(&[]), Some((vec![], vec![7])));
        assert_eq!(fill(&[3, 0]), Some((vec![3, 0], vec![])));
        assert_eq!(fill(&[-1]), None);
        assert_eq!(fill(&[1 << 50, 1 << 50]), None);
        assert_eq!(fill(&[1 << 58]), None);
    }

    fn range_of<T: Element>(numbers: [T; 3]) -> Option<Vec<T>> {
        found(&Range {}, &numbers.map(|number| tensor(&[number], &[]))).map(|(_, data)| data)
    }

    #[test]
    fn ranges() {
        assert_eq!(range_of([0i64, 5, 2]), Some(vec![0, 2, 4]));
        assert_eq!(range_of([10i32, 4, -2]), Some(vec![10, 8, 6]));
        assert_eq!(range_of([1i16, 1, 1]), Some(vec![]));
        assert_eq!(range_of([0f32, 1.0, 0.25]), Some(vec![0.0, 0.25, 0.5, 0.75]));
        assert_eq!(range_of([1f64, 0.0, -0.5]), Some(vec![1.0, 0.5]));
        assert_eq!(range_of([0i64, 5, 0]), None);
        assert_eq!(range_of([0f32, f32::INFINITY, 1.0]), None);
        assert_eq!(range_of([i64::MIN, i64::MAX, 1]), None);
        assert_eq!(range_of([i64::MAX - 1, i64::MIN, 5]), Some(vec![]));
    }

    #[test]
    fn identities() {
        let eye = |k| found::<f16>(&EyeLike { dtype: DType::Float16, k }, &[tensor(&[0u8; 6], &[2, 3])]);
        let bits = |bits: [u8; 6]| Some((vec![2, 3], bits.map(|bit| f16::from_f32(bit.into())).to_vec()));
        assert_eq!(eye(0), bits([1, 0, 0, 0, 1, 0]));
        assert_eq!(eye(-1), bits([0, 0, 0, 1, 0, 0]));
        assert_eq!(eye(2), bits([0, 0, 1, 0, 0, 0]));
        assert_eq!(eye(i64::MAX), bits([0; 6]));
    }

    #[test]
    fn one_hot() {
        let hot = |axis, depth: f32| {
            let indices = tensor(&[0.0f32, -1.0, 5.0, 1.9], &[2, 2]);
            found::<i8>(&OneHot { axis }, &[indices, tensor(&[depth], &[1]), tensor(&[3i8, 4], &[2])])
        };
        assert_eq!(hot(-1, 3.0), Some((vec![2, 2, 3], vec![4, 3, 3, 3, 3, 4, 3, 3, 3, 3, 4, 3])));
        assert_eq!(hot(0, 2.0), Some((vec![2, 2, 2], vec![4, 3, 3, 3, 3, 4, 3, 4])));
        assert_eq!(hot(1, 0.0), Some((vec![2, 0, 2], vec![])));
        assert_eq!(hot(3, 2.0), None);
        assert_eq!(hot(0, -2.0), None);
    }
}
