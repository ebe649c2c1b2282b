//! Spectra of signals.

use half::{bf16, f16};
use rustfft::num_complex::Complex;
use rustfft::{Fft, FftNum, FftPlanner};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::axes;
use crate::bail;
use crate::dispatch;
use crate::dtype::{DType, Element};
use crate::error::Result;
use crate::kernel::{Arity, Call, Kernel, Types};
use crate::types::{Dim, TensorType, Type};
use crate::value::{element_count, Array, Value};

/// The discrete Fourier transform along `axis` of `X [.., 1]` (real) or `[.., 2]` (complex):
/// `Y[k] = Σₙ X[n]·exp(∓2πi·kn/N)`, divided by `N` where `inverse`. The signal is cut, or padded with zeros, to the length
/// `N` in input 1 (absent: its own). float16 and bfloat16 are computed in float32.
///
/// `Y [.., 2]` has length `N`; where `one_sided`, the first `⌊N/2⌋ + 1` elements only, and the inverse takes these and gives
/// the real signal `[.., 1]` (`N` absent: twice the length of `X`, less 2).
///
/// Source: [ONNX DFT](https://onnx.ai/onnx/operators/onnx__DFT.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dft {
    /// The axis, not the last one; a negative one counts from the end.
    pub axis: i64,
    /// Whether the transform goes back from a spectrum.
    pub inverse: bool,
    /// Whether half of the spectrum stands for all of it.
    pub one_sided: bool,
}

impl Kernel for Dft {
    fn arity(&self) -> Arity {
        Arity::inputs(1..=2)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        check_float(x)?;
        let mut shape = x.shape.clone();
        if let Some(shape) = &mut shape {
            let last = shape.len().saturating_sub(1);
            self.signal_axis(shape.len())?;
            self.check_parts(x.size(last))?;
            shape[last] = Some(Dim::Size(if self.one_sided && self.inverse { 1 } else { 2 }));
            let axis = self.signal_axis(shape.len())?;
            let plain = inputs.optional(1).is_none() && !self.one_sided;
            shape[axis] = shape[axis].take().filter(|_| plain);
        }
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape })])
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let axis = self.signal_axis(x.rank())?;
        let (size, parts) = (x.dims()[axis], x.dims()[x.rank() - 1]);
        self.check_parts(Some(parts))?;
        let length = match call.optional_tensor(1)? {
            Some(length) => one(length)?,
            None if self.one_sided && self.inverse => (2 * size).saturating_sub(2),
            None => size,
        };
        if length == 0 {
            bail!("a transform of length 0");
        }
        element_count(&[length, 2, 8])?;
        dispatch!("DFT", x.dtype(), [f32, f64, f16, bf16], T => self.transform::<T>(x, axis, length))
    }
}

impl Dft {
    fn signal_axis(&self, rank: usize) -> Result<usize> {
        match axes::resolve(self.axis, rank)? {
            axis if axis + 1 == rank => bail!("the last axis holds real and imaginary parts"),
            axis => Ok(axis),
        }
    }

    fn check_parts(&self, parts: Option<usize>) -> Result<()> {
        match parts {
            Some(2) if self.one_sided && !self.inverse => bail!("half of the spectrum stands for that of a real signal only"),
            Some(1) if self.one_sided && self.inverse => bail!("the spectrum of a real signal is complex"),
            None | Some(1 | 2) => Ok(()),
            Some(parts) => bail!("the last axis holds real and imaginary parts, not {parts} numbers"),
        }
    }

    fn transform<T: Sample>(&self, x: &Array, axis: usize, length: usize) -> Result<Vec<Value>> {
        let (dims, data) = (x.dims(), x.read::<T>()?);
        let (size, parts) = (dims[axis], dims[dims.len() - 1]);
        let inner: usize = dims[axis + 1..dims.len() - 1].iter().product();
        let real = self.one_sided && self.inverse;
        let kept = if self.one_sided && !self.inverse { length / 2 + 1 } else { length };
        let mut out_dims = dims.to_vec();
        out_dims[axis] = kept;
        out_dims[dims.len() - 1] = if real { 1 } else { 2 };

        let fft = planned::<T::Wide>(length, self.inverse);
        let scale = if self.inverse { 1.0 / length as f64 } else { 1.0 };
        let mut out = vec![T::narrow(T::Wide::default(), scale); element_count(&out_dims)?];
        let mut line = vec![Complex::new(T::Wide::default(), T::Wide::default()); length];
        for i in 0..dims[..axis].iter().product::<usize>() * inner {
            let (outer, column) = (i / inner, i % inner);
            let at = |n: usize| complex::<T>(&data[((outer * size + n) * inner + column) * parts..][..parts]);
            let given = if real { size.min(length / 2 + 1) } else { size.min(length) };
            line.fill(Complex::new(T::Wide::default(), T::Wide::default()));
            line.iter_mut().zip(0..given).for_each(|(value, n)| *value = at(n));
            if real {
                mirror(&mut line);
            }
            fft.process(&mut line);
            for (k, value) in line[..kept].iter().enumerate() {
                let place = (outer * kept + k) * inner + column;
                if real {
                    out[place] = T::narrow(value.re, scale);
                } else {
                    out[2 * place] = T::narrow(value.re, scale);
                    out[2 * place + 1] = T::narrow(value.im, scale);
                }
            }
        }
        Ok(vec![Array::new(out, &out_dims)?.into()])
    }
}

/// The spectra of frames of a signal `X [B, L, 1]` (real) or `[B, L, 2]` (complex): frame `f` is
/// `X[f·step ..][..length]`, multiplied by the window; `Y [B, frames, length, 2]`, or the first `⌊length/2⌋ + 1` elements of
/// each spectrum where `one_sided`. Inputs: `X`, `step: []`, `window: [length]` (absent: ones), `length: []` (absent: the
/// window's, or `L`).
///
/// Source: [ONNX STFT](https://onnx.ai/onnx/operators/onnx__STFT.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stft {
    /// Whether half of a spectrum stands for all of it; the signal is real then.
    pub one_sided: bool,
}

impl Kernel for Stft {
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
        let batch = x.shape.as_ref().and_then(|shape| shape[0].clone());
        let shape = Some(vec![batch, None, None, Some(Dim::Size(2))]);
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape })])
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        dispatch!("STFT", call.tensor(0)?.dtype(), [f32, f64, f16, bf16], T => self.transform::<T>(call))
    }
}

impl Stft {
    fn check_parts(&self, parts: Option<usize>) -> Result<()> {
        match parts {
            Some(2) if self.one_sided => bail!("half of the spectrum stands for that of a real signal only"),
            None | Some(1 | 2) => Ok(()),
            Some(parts) => bail!("the last axis holds real and imaginary parts, not {parts} numbers"),
        }
    }

    fn transform<T: Sample>(&self, call: &Call) -> Result<Vec<Value>> {
        let (x, step, window) = (call.tensor(0)?, one(call.tensor(1)?)?, call.optional_tensor(2)?);
        let &[batch, size, parts] = x.dims() else { bail!("expected [batch, length, 1 or 2], found {:?}", x.dims()) };
        self.check_parts(Some(parts))?;
        let length = match call.optional_tensor(3)? {
            Some(length) => one(length)?,
            None => window.map_or(size, Array::len),
        };
        if step == 0 || length == 0 || length > size || window.is_some_and(|window| window.len() != length) {
            bail!("frames of {length} every {step} with a window of {:?} do not fit a signal of {size}", window.map(Array::len));
        }
        let (frames, kept) = ((size - length) / step + 1, if self.one_sided { length / 2 + 1 } else { length });
        let dims = [batch, frames, kept, 2];
        let (data, window) = (x.read::<T>()?, window.map(Array::read::<T>).transpose()?);
        let fft = planned::<T::Wide>(length, false);
        let mut out = vec![T::narrow(T::Wide::default(), 1.0); element_count(&dims)?];
        call.threads.for_each_chunk(&mut out, kept * 2, |frame, out| {
            let start = frame / frames * size + frame % frames * step;
            let sample = |n: usize| {
                let value = complex::<T>(&data[(start + n) * parts..][..parts]);
                window.as_ref().map_or(value, |window| value * window[n].widen())
            };
            let mut line: Vec<Complex<T::Wide>> = (0..length).map(sample).collect();
            fft.process(&mut line);
            for (out, value) in out.chunks_exact_mut(2).zip(&line) {
                (out[0], out[1]) = (T::narrow(value.re, 1.0), T::narrow(value.im, 1.0));
            }
        });
        Ok(vec![Array::new(out, &dims)?.into()])
    }
}

/// The matrix `[⌊dft_length/2⌋ + 1, bins]` that sums a spectrum into triangles whose corners are equally spaced on the mel
/// scale, `mel(f) = 2595·log₁₀(1 + f/700)`. Inputs, one element each: `bins`, `dft_length`, `sample_rate`, and the `lower` and
/// `upper` edge in hertz.
///
/// Source: [ONNX MelWeightMatrix](https://onnx.ai/onnx/operators/onnx__MelWeightMatrix.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MelWeightMatrix {
    /// The element type of the result: a floating-point one.
    pub dtype: DType,
}

impl Kernel for MelWeightMatrix {
    fn arity(&self) -> Arity {
        Arity::exact(5, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        (0..5).try_for_each(|i| inputs.tensor(i).map(|_| ()))?;
        let ranked = TensorType::ranked(self.dtype, 2);
        check_float(&ranked)?;
        Ok(vec![Type::Tensor(ranked)])
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (bins, length, rate) = (one(call.tensor(0)?)?, one(call.tensor(1)?)?, one(call.tensor(2)?)?);
        let (lower, upper) = (frequency(call.tensor(3)?)?, frequency(call.tensor(4)?)?);
        let dims = [length / 2 + 1, bins];
        element_count(&[length.saturating_mul(2), bins.saturating_add(2)])?;
        let corners = mel_corners(bins, length, rate, lower, upper);
        if rate == 0 || corners.iter().any(|&corner| corner >= dims[0]) {
            bail!("frequencies from {lower} to {upper} Hz are not all below half the sample rate {rate}");
        }
        dispatch!("MelWeightMatrix", self.dtype, [f32, f64, f16, bf16], T => {
            let mut out = vec![T::number(0.0); element_count(&dims)?];
            for (bin, corners) in corners.windows(3).enumerate() {
                triangle([corners[0], corners[1], corners[2]], |place, value| out[place * bins + bin] = T::number(value));
            }
            Ok(vec![Array::new(out, &dims)?.into()])
        })
    }
}

/// The places in the spectrum of the triangles' corners. Computed in float32, as onnxruntime does: a corner may stand on a
/// border.
fn mel_corners(bins: usize, length: usize, rate: usize, lower: f32, upper: f32) -> Vec<usize> {
    let mel = |hertz: f32| 2595.0 * (1.0 + hertz / 700.0).log10();
    let hertz = |mel: f32| 700.0 * (10f32.powf(mel / 2595.0) - 1.0);
    let (low, step) = (mel(lower), (mel(upper) - mel(lower)) / (bins + 2) as f32);
    let place = |i: usize| ((length + 1) as f32 * hertz(low + step * i as f32) / rate as f32).floor() as usize;
    (0..bins + 2).map(place).collect()
}

/// A triangle of height 1 over the places of its corners.
fn triangle([left, top, right]: [usize; 3], mut set: impl FnMut(usize, f64)) {
    let rise = top.saturating_sub(left);
    match rise {
        0 => set(top, 1.0),
        _ => (left..=top).for_each(|place| set(place, (place - left) as f64 / rise as f64)),
    }
    let fall = right.saturating_sub(top);
    (top..right).for_each(|place| set(place, (right - place) as f64 / fall as f64));
}

/// A number of a signal, and the type that its spectrum is computed in.
trait Sample: Element {
    type Wide: FftNum + Default;
    fn widen(self) -> Self::Wide;
    fn narrow(value: Self::Wide, scale: f64) -> Self;
    fn number(value: f64) -> Self;
}

macro_rules! samples {
    ($($sample:ty as $wide:ty: $widen:expr, $narrow:expr;)*) => {
        $(impl Sample for $sample {
            type Wide = $wide;

            fn widen(self) -> $wide {
                $widen(self)
            }

            fn narrow(value: $wide, scale: f64) -> Self {
                $narrow(value * scale as $wide)
            }

            fn number(value: f64) -> Self {
                $narrow(value as $wide)
            }
        })*
    };
}

samples! {
    f32 as f32: |value| value, |value| value;
    f64 as f64: |value| value, |value| value;
    f16 as f32: f16::to_f32, f16::from_f32;
    bf16 as f32: bf16::to_f32, bf16::from_f32;
}

fn check_float(x: &TensorType) -> Result<()> {
    match x.dtype.is_float() && !x.dtype.is_small_float() {
        true => Ok(()),
        false => bail!("a signal is of floating-point numbers, not {}", x.dtype),
    }
}

fn planned<W: FftNum>(length: usize, inverse: bool) -> std::sync::Arc<dyn Fft<W>> {
    let mut planner = FftPlanner::new();
    if inverse {
        planner.plan_fft_inverse(length)
    } else {
        planner.plan_fft_forward(length)
    }
}

/// A number given by its real part, or by both parts.
fn complex<T: Sample>(parts: &[T]) -> Complex<T::Wide> {
    let part = |i: usize| parts.get(i).map_or(T::Wide::default(), |part| part.widen());
    Complex::new(part(0), part(1))
}

/// Completes the spectrum of a real signal from its first half.
fn mirror<W: FftNum>(line: &mut [Complex<W>]) {
    for k in line.len() / 2 + 1..line.len() {
        line[k] = line[line.len() - k].conj();
    }
}

/// The one size that a tensor holds.
fn one(array: &Array) -> Result<usize> {
    match axes::dims(&array.to_i64()?)?[..] {
        [size] => Ok(size),
        ref sizes => bail!("{} sizes where one is needed", sizes.len()),
    }
}

/// The one frequency that a tensor holds.
fn frequency(array: &Array) -> Result<f32> {
    let values: Vec<f32> = dispatch!("a frequency", array.dtype(), [f32, f64, f16, bf16], T => {
        Ok(array.read::<T>()?.iter().map(|&value| value.widen() as f32).collect())
    })?;
    match values[..] {
        [hertz] if hertz.is_finite() && hertz >= 0.0 => Ok(hertz),
        _ => bail!("{values:?} is not a frequency"),
    }
}
