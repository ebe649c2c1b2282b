//! Normalization by means and variances (of batches, instances and groups), and by neighboring channels.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bail;
use crate::dtype::{require_dtype, FLOATS};
use crate::error::Result;
use crate::extent::{all_fit, count, text};
use crate::operator::{Arity, Operator};
use crate::types::{TensorType, Type, Types};

/// `Y = (X − mean) / √(var + ε) · scale + B`. X `[N, C, …]` with at most two spatial dimensions; scale, B, mean, var
/// `[C]`, or, to normalize each activation on its own, the dimensions of X after the batch; Y as X.
///
/// Source: [ONNX BatchNormalization](https://onnx.ai/onnx/operators/onnx__BatchNormalization.html), inference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BatchNorm {
    /// ε
    pub epsilon: f64,
}

/// `Y = (X − mean) / √(variance + ε) · scale + B`, with mean and variance over the spatial dimensions. X `[N, C, …]`
/// with at most two spatial dimensions; scale, B `[C]`; Y as X.
///
/// Source: [ONNX InstanceNormalization](https://onnx.ai/onnx/operators/onnx__InstanceNormalization.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InstanceNorm {
    /// ε
    pub epsilon: f64,
}

/// `Y = (X − mean) / √(variance + ε) · scale + bias`, with mean and variance over groups of neighboring channels. X
/// `[N, C, …]`; scale, bias `[C]` or with one element per group; Y as X.
///
/// Source: [ONNX GroupNormalization](https://onnx.ai/onnx/operators/onnx__GroupNormalization.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupNorm {
    /// The number of groups, which divides C.
    pub groups: usize,
    /// ε
    pub epsilon: f64,
}

/// `Y = X / (bias + alpha / size · Σ X²)^beta`, with the sum over the `size` channels around each channel: ⌊(size−1)/2⌋
/// before and ⌈(size−1)/2⌉ after it. X `[N, C, …]`; Y as X.
///
/// Source: [ONNX LRN](https://onnx.ai/onnx/operators/onnx__LRN.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lrn {
    /// The number of channels in the sum, not 0.
    pub size: usize,
    /// The factor.
    pub alpha: f64,
    /// The exponent.
    pub beta: f64,
    /// The number to add to the sum.
    pub bias: f64,
}

impl Operator for BatchNorm {
    fn arity(&self) -> Arity {
        Arity { inputs: 5..=5, outputs: 1..=1 }
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = spatial_input(inputs, "batch normalization")?;
        for (i, name) in (1..).zip(["scale", "B", "mean", "var"]) {
            let values = inputs.tensor(i)?;
            require_dtype(name, values.dtype, &FLOATS)?;
            match (&values.shape, &x.shape) {
                (Some(dims), _) if dims.len() == 1 => require_channels(name, values, x)?,
                (Some(dims), Some(image)) if !all_fit(dims, image.get(1..).unwrap_or_default()) => {
                    bail!("{name} of shape {} does not fit X of shape {}", text(dims), text(image))
                }
                _ => {}
            }
        }
        Ok(vec![Type::Tensor(x.clone())])
    }
}

impl Operator for InstanceNorm {
    fn arity(&self) -> Arity {
        Arity { inputs: 3..=3, outputs: 1..=1 }
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = spatial_input(inputs, "instance normalization")?;
        if x.rank().is_some_and(|rank| rank < 2) {
            bail!("X has no channels: it is {:?}", x.shape);
        }
        for (i, name) in [(1, "scale"), (2, "B")] {
            require_dtype(name, inputs.tensor(i)?.dtype, &[x.dtype])?;
            require_channels(name, inputs.tensor(i)?, x)?;
        }
        Ok(vec![Type::Tensor(x.clone())])
    }
}

impl Operator for GroupNorm {
    fn arity(&self) -> Arity {
        Arity { inputs: 3..=3, outputs: 1..=1 }
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        require_dtype("X", x.dtype, &FLOATS)?;
        if x.rank().is_some_and(|rank| rank < 2) {
            bail!("X has no channels: it is {:?}", x.shape);
        }
        for (i, name) in [(1, "scale"), (2, "bias")] {
            let values = inputs.tensor(i)?;
            require_dtype(name, values.dtype, &[x.dtype])?;
            if let (Some(values), Some(channels)) = (values.shape.as_deref().and_then(count), x.size(1)) {
                is_by_channel(values, channels, self.groups)?;
            }
            if values.size(0) != Some(self.groups) {
                require_channels(name, values, x)?;
            }
        }
        if self.groups == 0 {
            bail!("there are 0 groups; at least 1 is needed");
        }
        if let Some(channels) = x.size(1).filter(|channels| channels % self.groups != 0) {
            bail!("{channels} channels do not make {} groups", self.groups);
        }
        Ok(vec![Type::Tensor(x.clone())])
    }
}

/// The number of channels of an X of these dimensions, and the number of elements of each.
///
/// # Errors
/// X has no channels, or they do not form `groups` groups.
pub(crate) fn group_dims(x: &[usize], groups: usize) -> Result<(usize, usize)> {
    let &[_, channels, ref spatial @ ..] = x else { bail!("X {x:?} has no channels") };
    if channels > 0 && channels.checked_rem(groups) != Some(0) {
        bail!("{channels} channels do not make {groups} groups");
    }
    Ok((channels, spatial.iter().product()))
}

/// Whether there is a value for each channel, and not for each group.
///
/// # Errors
/// There is neither.
pub(crate) fn is_by_channel(values: usize, channels: usize, groups: usize) -> Result<bool> {
    if values != channels && values != groups {
        bail!("{values} values do not fit {channels} channels in {groups} groups");
    }
    Ok(values == channels)
}

fn spatial_input<'a>(inputs: &'a Types, operation: &str) -> Result<&'a TensorType> {
    let x = inputs.tensor(0)?;
    require_dtype("X", x.dtype, &FLOATS)?;
    match x.rank() {
        Some(rank @ 5..) => bail!("{operation} over {} spatial dimensions is not supported; at most 2 are", rank - 2),
        _ => Ok(x),
    }
}

fn require_channels(name: &str, values: &TensorType, x: &TensorType) -> Result<()> {
    if let Some(rank) = values.rank().filter(|rank| *rank != 1) {
        bail!("{name} has {rank} dimensions; it must have one, the channels");
    }
    let channels = match x.rank() {
        Some(0) => bail!("X has no channels: it has no dimensions"),
        Some(1) => Some(1),
        _ => x.size(1),
    };
    match (values.size(0), channels) {
        (Some(found), Some(channels)) if found != channels => {
            bail!("{name} has {found} elements for {channels} channels")
        }
        _ => Ok(()),
    }
}

impl Operator for Lrn {
    fn arity(&self) -> Arity {
        Arity::exact(1, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        require_dtype("X", x.dtype, &FLOATS)?;
        if self.size == 0 || x.rank().is_some_and(|rank| rank < 2) {
            bail!("cannot sum over {} channels of {}", self.size, inputs.get(0)?);
        }
        Ok(vec![Type::Tensor(x.clone())])
    }
}
