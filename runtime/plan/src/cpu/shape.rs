//! CPU kernels: dimensions as tensors.

use crate::error::Result;
use crate::kernel::{Call, Kernel};
use crate::ops::shape::{Shape, Size};
use crate::types::Types;
use crate::value::{Array, Value};

impl Kernel for Shape {
    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        Some(0)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let dims = call.value(0)?.dims()?;
        let dims: Vec<i64> = dims[self.range(dims.len())].iter().map(|&dim| dim as i64).collect();
        let count = dims.len();
        Ok(vec![Array::new(dims, &[count])?.into()])
    }
}

impl Kernel for Size {
    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        Some(0)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let count: usize = call.value(0)?.dims()?.iter().product();
        Ok(vec![Array::scalar(count as i64).into()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, tensor, Tested};

    fn numbers(kernel: &dyn Tested) -> Vec<i64> {
        let output = run(kernel, &[Some(tensor(&[0u8; 24], &[2, 3, 4]))]).expect("any tensor has a shape");
        output.tensor().expect("a tensor").to_i64().expect("integers")
    }

    #[test]
    fn ranges_are_clamped() {
        let cases: [(i64, Option<i64>, &[i64]); 7] = [
            (0, None, &[2, 3, 4]),
            (-1, None, &[4]),
            (1, Some(-1), &[3]),
            (-9, Some(2), &[2, 3]),
            (0, Some(9), &[2, 3, 4]),
            (2, Some(1), &[]),
            (i64::MIN, Some(i64::MAX), &[2, 3, 4]),
        ];
        for (start, end, expected) in cases {
            assert_eq!(numbers(&Shape { start, end }), expected, "{start} .. {end:?}");
        }
        assert_eq!(numbers(&Size {}), [24]);
    }
}
