//! Operators of classical machine learning.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bail;
use crate::dtype::DType;
use crate::error::Result;
use crate::extent::{count, Extent};
use crate::operator::{Arity, Operator};
use crate::types::{TensorType, Type, Types};

/// Replaces each element of `X` by the value of its key: `Y[i] = values[k]` for the last `k` with `keys[k] = X[i]`, or
/// the default if there is none. A NaN equals a NaN.
///
/// Inputs: `X`, `keys [K]` of the same dtype, `values [K]`, and the default, one element of the values' dtype.
///
/// Source: [ONNX LabelEncoder](https://onnx.ai/onnx/operators/onnx_aionnxml_LabelEncoder.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LabelEncoder {}

impl LabelEncoder {
    /// Checks that there is a value for each key.
    pub(crate) fn check(keys: &[impl Extent], values: &[impl Extent]) -> Result<()> {
        match count(keys).zip(count(values)) {
            Some((keys, values)) if keys != values => bail!("{keys} keys do not fit {values} values"),
            _ => Ok(()),
        }
    }
}

impl Operator for LabelEncoder {
    fn arity(&self) -> Arity {
        Arity::exact(4, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let (x, keys) = (inputs.tensor(0)?, inputs.tensor(1)?);
        let (values, default) = (inputs.tensor(2)?, inputs.tensor(3)?);
        let is_key = !x.dtype.is_small_float() && x.dtype != DType::Uint64;
        if !is_key || x.dtype != keys.dtype || values.dtype != default.dtype {
            let given = [x, keys, values, default].map(|input| input.dtype.to_string());
            bail!("the keys must have X's type, and the default that of the values, found {}", given.join(", "));
        }
        if let (Some(keys), Some(values)) = (&keys.shape, &values.shape) {
            LabelEncoder::check(keys, values)?;
        }
        inputs.one_element(3, "the default")?;
        let shape = x.shape.clone();
        Ok(vec![Type::Tensor(TensorType { dtype: values.dtype, shape })])
    }
}
