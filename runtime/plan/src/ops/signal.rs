//! Spectra of signals.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::axes;
use crate::bail;
use crate::dtype::DType;
use crate::error::Result;
use crate::extent::count;
use crate::operator::{Arity, Operator};
use crate::types::{Dim, TensorType, Type, Types};

/// The discrete Fourier transform along `axis` of `X [.., 1]` (real) or `[.., 2]` (complex):
/// `Y[k] = Σₙ X[n]·exp(∓2πi·kn/N)`, divided by `N` with `inverse`. The signal is truncated, or padded with zeros, to
/// the length `N` in input 1 (absent: its own length). Computed in float64.
///
/// `Y [.., 2]` has length `N`, or, with `one_sided`, only the first `⌊N/2⌋ + 1` elements. The one-sided inverse takes
/// these elements and returns the real signal `[.., 1]` (`N` absent: twice the length of `X`, minus 2).
///
/// Source: [ONNX DFT](https://onnx.ai/onnx/operators/onnx__DFT.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dft {
    /// The axis, not the last one; a negative axis counts from the end. `null` means that input 2, one integer, is the
    /// axis.
    pub axis: Option<i64>,
    /// Whether this is the inverse transform.
    pub inverse: bool,
    /// Whether half of the spectrum represents all of it.
    pub one_sided: bool,
}

impl Operator for Dft {
    fn arity(&self) -> Arity {
        Arity::inputs(1..=3)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        check_float(x)?;
        let mut shape = x.shape.clone();
        if let Some(shape) = &mut shape {
            let rank = shape.len();
            let axis = self.axis.map(|axis| signal_axis(axis, rank)).transpose()?;
            inputs.one_element(1, "the length")?;
            inputs.one_element(2, "axis")?;
            self.check_parts(x.size(rank.saturating_sub(1)))?;
            let changes = inputs.optional(1).is_some() || self.one_sided;
            for (at, dim) in shape.iter_mut().enumerate() {
                if at + 1 == rank {
                    *dim = Some(Dim::Size(if self.one_sided && self.inverse { 1 } else { 2 }));
                } else if changes && axis.is_none_or(|axis| axis == at) {
                    *dim = None;
                }
            }
        }
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape })])
    }
}

impl Dft {
    pub(crate) fn check_parts(&self, parts: Option<usize>) -> Result<()> {
        match parts {
            Some(2) if self.one_sided && !self.inverse => {
                bail!("half of a spectrum represents all of it only for a real signal")
            }
            Some(1) if self.one_sided && self.inverse => bail!("the spectrum of a real signal is complex"),
            None | Some(1 | 2) => Ok(()),
            Some(parts) => bail!("the last axis holds real and imaginary parts, not {parts} numbers"),
        }
    }
}

/// The spectra of the frames of a signal `X [B, L, 1]` (real) or `[B, L, 2]` (complex). Frame `f` is
/// `X[f·step ..][..length]`, multiplied by the window. The result is `Y [B, frames, length, 2]`, or, with `one_sided`,
/// the first `⌊length/2⌋ + 1` elements of each spectrum. Computed in float64. Inputs: `X`, `step: []`,
/// `window: [length]` (absent: ones), `length: []` (absent: that of the window, or `L`).
///
/// Source: [ONNX STFT](https://onnx.ai/onnx/operators/onnx__STFT.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stft {
    /// Whether half of a spectrum represents all of it; the signal must then be real.
    pub one_sided: bool,
}

impl Operator for Stft {
    fn arity(&self) -> Arity {
        Arity::inputs(2..=4)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        check_float(x)?;
        inputs.tensor(1)?;
        if let Some(window) = inputs.optional_tensor(2)?.filter(|window| window.dtype != x.dtype) {
            bail!("a {} window does not fit a {} signal", window.dtype, x.dtype);
        }
        if x.rank().is_some_and(|rank| rank != 3) {
            bail!("expected [batch, length, 1 or 2], found {}", inputs.get(0)?);
        }
        self.check_parts(x.size(2))?;
        inputs.one_element(1, "the step")?;
        inputs.one_element(3, "the length")?;
        check_window(inputs.shape(2)?.and_then(|window| count(window)), x.size(1))?;
        let batch = x.shape.as_ref().and_then(|shape| shape[0].clone());
        let shape = Some(vec![batch, None, None, Some(Dim::Size(2))]);
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape })])
    }
}

impl Stft {
    pub(crate) fn check_parts(&self, parts: Option<usize>) -> Result<()> {
        match parts {
            Some(2) if self.one_sided => bail!("half of a spectrum represents all of it only for a real signal"),
            None | Some(1 | 2) => Ok(()),
            Some(parts) => bail!("the last axis holds real and imaginary parts, not {parts} numbers"),
        }
    }
}

/// The matrix `[⌊dft_length/2⌋ + 1, bins]` that sums a spectrum into triangles. Their corners have equal distances on
/// the mel scale, `mel(f) = 2595·log₁₀(1 + f/700)`. Inputs, of one element each: `bins`, `dft_length`, `sample_rate`,
/// and the `lower` and `upper` edge in hertz.
///
/// Source: [ONNX MelWeightMatrix](https://onnx.ai/onnx/operators/onnx__MelWeightMatrix.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MelWeightMatrix {
    /// The element type of the result, a floating-point type.
    pub dtype: DType,
}

impl Operator for MelWeightMatrix {
    fn arity(&self) -> Arity {
        Arity::exact(5, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        (0..5).try_for_each(|i| inputs.tensor(i).map(|_| ()))?;
        (0..5).zip(MEL).try_for_each(|(i, name)| inputs.one_element(i, name))?;
        let ranked = TensorType::ranked(self.dtype, 2);
        check_float(&ranked)?;
        Ok(vec![Type::Tensor(ranked)])
    }
}

/// The names of the inputs of [`MelWeightMatrix`].
pub(crate) const MEL: [&str; 5] = ["bins", "dft_length", "sample_rate", "lower", "upper"];

/// Checks that a window of `window` elements fits a signal of `size` elements, if both are known.
pub(crate) fn check_window(window: Option<usize>, size: Option<usize>) -> Result<()> {
    match (window, size) {
        (Some(window), Some(size)) if window > size => bail!("a window of {window} does not fit a signal of {size}"),
        _ => Ok(()),
    }
}

pub(crate) fn signal_axis(axis: i64, rank: usize) -> Result<usize> {
    match axes::resolve(axis, rank)? {
        axis if axis + 1 == rank => bail!("the last axis holds real and imaginary parts"),
        axis => Ok(axis),
    }
}

fn check_float(x: &TensorType) -> Result<()> {
    match x.dtype.is_float() && !x.dtype.is_small_float() {
        true => Ok(()),
        false => bail!("a signal is of floating-point numbers, not {}", x.dtype),
    }
}
