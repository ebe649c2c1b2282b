//! Dimensions as values.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::device::{Needs, on_device};
use crate::dtype::DType;
use crate::error::Result;
use crate::kernel::{Arity, Call, Kernel, Types};
use crate::types::{TensorType, Type};
use crate::value::{Array, Value};

/// The dimensions `start .. end` of `X`, as `int64 [n]`; the range is cut to the dimensions that there are.
///
/// Source: [ONNX Shape](https://onnx.ai/onnx/operators/onnx__Shape.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    /// The first dimension; a negative one counts from the end.
    pub start: i64,
    /// One past the last dimension; a negative one counts from the end; absent: all the rest.
    pub end: Option<i64>,
}

impl Shape {
    fn range(&self, rank: usize) -> std::ops::Range<usize> {
        let place = |at: i64| (if at < 0 { at.saturating_add(rank as i64) } else { at }).clamp(0, rank as i64) as usize;
        let (start, end) = (place(self.start), self.end.map_or(rank, place));
        start..end.max(start)
    }
}

impl Kernel for Shape {
    fn arity(&self) -> Arity {
        Arity::exact(1, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        Ok(vec![match inputs.tensor(0)?.rank() {
            Some(rank) => Type::Tensor(TensorType::sized(DType::Int64, &[self.range(rank).len()])),
            None => Type::ranked(DType::Int64, 1),
        }])
    }

    on_device!(Host);

    fn needs(&self, _: usize) -> Needs {
        Needs::Dims
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let dims = call.value(0)?.dims()?;
        let dims: Vec<i64> = dims[self.range(dims.len())].iter().map(|&dim| dim as i64).collect();
        let count = dims.len();
        Ok(vec![Array::new(dims, &[count])?.into()])
    }
}

/// The number of `X`'s elements, as `int64 []`. Source: [ONNX Size](https://onnx.ai/onnx/operators/onnx__Size.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Size {}

impl Kernel for Size {
    fn arity(&self) -> Arity {
        Arity::exact(1, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        inputs.tensor(0)?;
        Ok(vec![Type::ranked(DType::Int64, 0)])
    }

    on_device!(Host);

    fn needs(&self, _: usize) -> Needs {
        Needs::Dims
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let count: usize = call.value(0)?.dims()?.iter().product();
        Ok(vec![Array::scalar(count as i64).into()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, tensor};

    fn numbers(kernel: &dyn Kernel) -> Vec<i64> {
        let output = run(kernel, &[Some(tensor(&[0u8; 24], &[2, 3, 4]))]).expect("any tensor has a shape");
        output.tensor().expect("a tensor").to_i64().expect("integers")
    }

    #[test]
    fn ranges_are_cut() {
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
