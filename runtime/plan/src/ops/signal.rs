//! Spectra of signals.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::axes;
use crate::bail;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::extent::{at_most, count, fits, one_element, size_text, Extent};
use crate::operator::{Arity, Needs, Operator};
use crate::types::{Dim, TensorType, Type, Types};
use crate::value::{element_count, Array};

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
        let Some(shape) = &x.shape else { return Ok(vec![Type::any(x.dtype)]) };
        let rank = shape.len();
        if rank < 2 {
            bail!("a signal has an axis before its real and imaginary parts, found {}", inputs.get(0)?);
        }
        inputs.one_element(1, "the length")?;
        inputs.one_element(2, "axis")?;
        self.check_parts(x.size(rank.saturating_sub(1)))?;
        let is_known = self.axis.is_some() || inputs.is_fixed(2);
        let axis = is_known.then(|| self.axis(inputs.constant(2), rank)).transpose()?;
        let transformed = axis.map(|axis| self.transformed(&shape[axis], inputs)).transpose()?.flatten();
        let changes = inputs.optional(1).is_some() || self.one_sided;
        let dim = |(at, dim): (usize, &Option<Dim>)| match axis {
            _ if at + 1 == rank => Some(Dim::Size(self.parts())),
            Some(axis) if axis != at => dim.clone(),
            _ => transformed.clone().or_else(|| dim.clone().filter(|_| !changes)),
        };
        let shape = Some(shape.iter().enumerate().map(dim).collect());
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape })])
    }

    fn needs(&self, input: usize) -> Needs {
        Needs::numbers_after_first(input)
    }
}

impl Dft {
    /// Returns the axis of a signal of rank `rank`. An input, `given`, may state the axis.
    pub(crate) fn axis(&self, given: Option<&Array>, rank: usize) -> Result<usize> {
        match (self.axis, given) {
            (Some(axis), _) => signal_axis(axis, rank),
            (None, Some(axis)) => signal_axis(axes::number("axis", axis)?, rank),
            (None, None) => bail!("no axis is given"),
        }
    }

    /// Returns the length `N` of a transform of an axis of size `size`, as far as it is known. An input, `given`, may
    /// state it.
    pub(crate) fn length(&self, given: Option<&Array>, size: &impl Extent) -> Result<Option<usize>> {
        let length = match given {
            Some(length) => Some(size_of_one("the length", length)?),
            None if self.one_sided && self.inverse => size.known().map(|size| (2 * size).saturating_sub(2)),
            None => size.known(),
        };
        if length == Some(0) {
            bail!("the length of a transform must be at least 1");
        }
        element_count(&[length.unwrap_or(1), 2, 8])?;
        Ok(length)
    }

    /// The number of elements of a transform of this length in the result.
    pub(crate) fn kept(&self, length: usize) -> usize {
        if self.one_sided && !self.inverse {
            length / 2 + 1
        } else {
            length
        }
    }

    /// The size of the last axis of the result.
    pub(crate) fn parts(&self) -> usize {
        if self.one_sided && self.inverse {
            1
        } else {
            2
        }
    }

    /// Returns the size of the result's axis, if the signal's axis has size `size`.
    fn transformed(&self, size: &Option<Dim>, inputs: &Types) -> Result<Option<Dim>> {
        if !inputs.is_fixed(1) {
            return Ok(None);
        }
        Ok(self.length(inputs.constant(1), size)?.map(|length| Dim::Size(self.kept(length))))
    }

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
/// `window: [length]` (absent: ones), `length: []` (absent: the window's length, or `L`).
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
        let window = inputs.shape(2)?.and_then(|window| count(window));
        let length = match (inputs.optional(3), inputs.optional(2)) {
            (Some(_), _) => inputs.constant(3).map(|length| size_of_one("the length", length)).transpose()?,
            (None, Some(_)) => window,
            (None, None) => x.size(1),
        };
        let step = inputs.constant(1).map(|step| size_of_one("the step", step)).transpose()?;
        let [frames, kept] = self.spectra([length, step], window, x.size(1))?.map(|size| size.map(Dim::Size));
        let batch = x.shape.as_ref().and_then(|shape| shape[0].clone());
        let shape = Some(vec![batch, frames, kept, Some(Dim::Size(2))]);
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape })])
    }

    fn needs(&self, input: usize) -> Needs {
        match input {
            0 | 2 => Needs::Elements,
            _ => Needs::Numbers,
        }
    }
}

impl Stft {
    /// Returns the number of frames in a signal of size `size`, and the number of elements that are kept of each
    /// spectrum, as far as they are known. Frames have length `length`, and begin at multiples of `step`. `window` is
    /// the size of the window, if there is one.
    pub(crate) fn spectra(
        &self,
        [length, step]: [Option<usize>; 2],
        window: Option<usize>,
        size: Option<usize>,
    ) -> Result<[Option<usize>; 2]> {
        let fits_all = at_most(&window, &size) && at_most(&length, &size) && fits(&window, &length);
        if step == Some(0) || length == Some(0) || !fits_all {
            let windows = window.map_or_else(String::new, |window| format!(" with a window of {window}"));
            let [length, step, size] = [length, step, size].map(|size| size_text(&size));
            bail!("frames of {length} every {step}{windows} do not fit a signal of {size}");
        }
        let frames = |length: usize| Some((size? - length) / step? + 1);
        let kept = |length: usize| if self.one_sided { length / 2 + 1 } else { length };
        Ok([length.and_then(frames), length.map(kept)])
    }

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
        check_float(&TensorType::any(self.dtype))?;
        let [Some(bins), Some(length), Some(rate), Some(lower), Some(upper)] =
            [0, 1, 2, 3, 4].map(|i| inputs.constant(i))
        else {
            return Ok(vec![Type::ranked(self.dtype, 2)]);
        };
        let mel = Mel::of([bins, length, rate, lower, upper])?;
        if mel.bins <= FEW_BINS {
            mel.check_corners(mel.corners())?;
        }
        Ok(vec![Type::Tensor(TensorType::sized(self.dtype, &mel.dims()))])
    }

    fn needs(&self, _: usize) -> Needs {
        Needs::Numbers
    }
}

/// The most bins whose corners are checked before a run: the time grows with their number.
const FEW_BINS: usize = 1 << 16;

/// The names of the inputs of [`MelWeightMatrix`].
const MEL: [&str; 5] = ["bins", "dft_length", "sample_rate", "lower", "upper"];

/// The values of the inputs of [`MelWeightMatrix`].
pub(crate) struct Mel {
    pub bins: usize,
    length: usize,
    rate: usize,
    lower: f32,
    upper: f32,
}

impl Mel {
    /// Reads the inputs.
    ///
    /// # Errors
    /// An input is not a single number, is not a valid size or frequency, or the matrix is too large.
    pub(crate) fn of(inputs: [&Array; 5]) -> Result<Mel> {
        let [bins, length, rate] = [0, 1, 2].map(|i| size_of_one(MEL[i], inputs[i]));
        let [lower, upper] = [3, 4].map(|i| frequency(MEL[i], inputs[i]));
        let (bins, length) = (bins?, length?);
        element_count(&[length.saturating_mul(2), bins.saturating_add(2)])?;
        Ok(Mel { bins, length, rate: rate?, lower: lower?, upper: upper? })
    }

    /// The dimensions of the matrix.
    pub(crate) fn dims(&self) -> [usize; 2] {
        [self.length / 2 + 1, self.bins]
    }

    /// Returns the index in the spectrum of each corner of the triangles. The computation is in float32, as in
    /// onnxruntime, because rounding may decide the index of a corner.
    pub(crate) fn corners(&self) -> impl ExactSizeIterator<Item = usize> + '_ {
        let mel = |hertz: f32| 2595.0 * (1.0 + hertz / 700.0).log10();
        let hertz = |mel: f32| 700.0 * (10f32.powf(mel / 2595.0) - 1.0);
        let (low, step) = (mel(self.lower), (mel(self.upper) - mel(self.lower)) / (self.bins + 2) as f32);
        let scaled = move |i: usize| (self.length + 1) as f32 * hertz(low + step * i as f32) / self.rate as f32;
        (0..self.bins + 2).map(move |i| scaled(i).floor() as usize)
    }

    /// Checks that the corners lie in the spectrum.
    ///
    /// # Errors
    /// There is no sample rate, or a corner lies above half of it.
    pub(crate) fn check_corners(&self, mut corners: impl Iterator<Item = usize>) -> Result<()> {
        if self.rate == 0 || corners.any(|corner| corner >= self.dims()[0]) {
            let Mel { rate, lower, upper, .. } = self;
            bail!("frequencies from {lower} to {upper} Hz are not all below half the sample rate {rate}");
        }
        Ok(())
    }
}

/// Returns the size that an input holds. Errors call the input `name`.
pub(crate) fn size_of_one(name: &str, array: &Array) -> Result<usize> {
    let size = axes::number(name, array)?;
    usize::try_from(size).map_err(|_| Error::op(format!("{name} is {size}, which is not a size")))
}

/// Returns the frequency that an input holds. Errors call the input `name`.
fn frequency(name: &str, array: &Array) -> Result<f32> {
    one_element(name, array.dims())?;
    match array.to_f64()?[0] as f32 {
        hertz if hertz.is_finite() && hertz >= 0.0 => Ok(hertz),
        other => bail!("{name} is {other}, which is not a frequency"),
    }
}

fn signal_axis(axis: i64, rank: usize) -> Result<usize> {
    match axes::resolve(axis, rank)? {
        axis if axis + 1 == rank => bail!("the last axis holds real and imaginary parts"),
        axis => Ok(axis),
    }
}

fn check_float(x: &TensorType) -> Result<()> {
    match x.dtype.is_float() && !x.dtype.is_small_float() {
        true => Ok(()),
        false => bail!("a signal must have floating-point elements, not {}", x.dtype),
    }
}
