//! CPU kernels: Fourier transforms and mel spectra.

use candle_plan_kernels::scratch::Scratch;
use candle_plan_kernels::threads::Threads;
use rustfft::num_complex::Complex;
use rustfft::{Fft, FftPlanner};

use super::convert::converted;
use crate::bail;
use crate::dtype::DType;
use crate::error::Result;
use crate::extent::known_sizes;
use crate::kernel::{Call, Kernel};
use crate::ops::signal::{size_of_one, Dft, Mel, MelWeightMatrix, Stft};
use crate::types::Types;
use crate::value::{alloc_uninit, list, scratch, with_capacity, Array, Value};

impl Kernel for Dft {
    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        None
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let axis = self.axis(call.optional_tensor(2)?, x.rank())?;
        self.check_parts(Some(x.dims()[x.rank() - 1]))?;
        let length = known_sizes(&[self.length(call.optional_tensor(1)?, &x.dims()[axis])?])?[0];
        let y = self.transform(&converted(x, DType::Float64, call.threads)?, axis, length)?;
        Ok(vec![converted(&y, x.dtype(), call.threads)?.into()])
    }
}

impl Dft {
    fn transform(&self, x: &Array, axis: usize, length: usize) -> Result<Array> {
        let (dims, data) = (x.dims(), x.read::<f64>()?);
        let (size, parts) = (dims[axis], dims[dims.len() - 1]);
        let inner: usize = dims[axis + 1..dims.len() - 1].iter().product();
        let is_real = self.one_sided && self.inverse;
        let kept = self.kept(length);
        let mut out_dims = dims.to_vec();
        out_dims[axis] = kept;
        out_dims[dims.len() - 1] = self.parts();
        let out = alloc_uninit::<f64>(&out_dims)?;
        if out.is_empty() {
            return Array::new(out.fill(0.0), &out_dims);
        }

        let fft = planned(length, self.inverse)?;
        let scale = if self.inverse { 1.0 / length as f64 } else { 1.0 };
        let available = size.min(if is_real { length / 2 + 1 } else { length });
        let mut line = with_capacity::<Complex<f64>>(length)?;
        let mut workspace = Scratch::filled(Complex::default(), fft.get_inplace_scratch_len());
        let mut transform = |i: usize, out: &mut [f64]| {
            let (outer, column) = (i / inner, i % inner);
            let at = |n: usize| complex(&data[((outer * size + n) * inner + column) * parts..][..parts]);
            line.clear();
            line.extend((0..available).map(at));
            line.resize(length, Complex::default());
            if is_real {
                mirror(&mut line);
            }
            fft.process_with_scratch(&mut line, &mut workspace);
            for (k, value) in line[..kept].iter().enumerate() {
                let place = (outer * kept + k) * inner + column;
                match is_real {
                    true => out[place] = value.re * scale,
                    false => out[2 * place..][..2].copy_from_slice(&[value.re * scale, value.im * scale]),
                }
            }
        };
        let lines = dims[..axis].iter().product::<usize>() * inner;
        Array::new(out.overwrite(|out| (0..lines).for_each(|i| transform(i, out))), &out_dims)
    }
}

impl Kernel for Stft {
    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        None
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (x, threads) = (call.tensor(0)?, call.threads);
        let wide = |array: &Array| converted(array, DType::Float64, threads);
        let (signal, window) = (wide(x)?, call.optional_tensor(2)?.map(wide).transpose()?);
        let length = match (call.optional_tensor(3)?, &window) {
            (Some(length), _) => size_of_one("the length", length)?,
            (None, Some(window)) => window.len(),
            (None, None) => x.dims().get(1).copied().unwrap_or(0),
        };
        let frames = [length, size_of_one("the step", call.tensor(1)?)?];
        let y = self.transform(&signal, window.as_ref(), frames, threads)?;
        Ok(vec![converted(&y, x.dtype(), threads)?.into()])
    }
}

impl Stft {
    fn transform(
        &self,
        x: &Array,
        window: Option<&Array>,
        [length, step]: [usize; 2],
        threads: &Threads,
    ) -> Result<Array> {
        let &[batch, size, parts] = x.dims() else { bail!("expected [batch, length, 1 or 2], found {:?}", x.dims()) };
        self.check_parts(Some(parts))?;
        let counts = known_sizes(&self.spectra([Some(length), Some(step)], window.map(Array::len), Some(size))?)?;
        let (frames, kept) = (counts[0], counts[1]);
        let dims = [batch, frames, kept, 2];
        let (data, window) = (x.read::<f64>()?, window.map(Array::read::<f64>).transpose()?);
        let fft = planned(length, false)?;
        let transform = |frame: usize, out: &mut [f64]| {
            let start = frame / frames * size + frame % frames * step;
            let sample = |n: usize| {
                let value = complex(&data[(start + n) * parts..][..parts]);
                window.as_ref().map_or(value, |window| value * window[n])
            };
            let mut line = Scratch::of((0..length).map(sample));
            fft.process_with_scratch(
                &mut line,
                &mut Scratch::filled(Complex::default(), fft.get_inplace_scratch_len()),
            );
            for (out, value) in out.chunks_exact_mut(2).zip(line.iter()) {
                (out[0], out[1]) = (value.re, value.im);
            }
        };
        let out = alloc_uninit(&dims)?.overwrite(|out| threads.for_each_chunk(out, kept * 2, transform));
        Array::new(out, &dims)
    }
}

impl Kernel for MelWeightMatrix {
    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let inputs = [call.tensor(0)?, call.tensor(1)?, call.tensor(2)?, call.tensor(3)?, call.tensor(4)?];
        let mel = Mel::of(inputs)?;
        let (bins, dims) = (mel.bins, mel.dims());
        // Too many bins fail here, before the list of corners.
        let out = alloc_uninit::<f64>(&dims)?;
        let corners = list(mel.corners())?;
        mel.check_corners(corners.iter().copied())?;
        let mut out = out.fill(0.0);
        for (bin, corners) in corners.windows(3).enumerate() {
            triangle([corners[0], corners[1], corners[2]], |place, value| out[place * bins + bin] = value);
        }
        Ok(vec![converted(&Array::new(out, &dims)?, self.dtype, call.threads)?.into()])
    }
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

/// An upper bound for the complex numbers that the planner allocates per element of a transform. For a length with a
/// large prime factor, it pads to more than twice the length. Its allocations cannot fail gracefully, so they are
/// checked first.
const FACTORS: usize = 8;

fn planned(length: usize, inverse: bool) -> Result<std::sync::Arc<dyn Fft<f64>>> {
    scratch::<[Complex<f64>; FACTORS]>(length)?;
    let mut planner = FftPlanner::new();
    Ok(if inverse { planner.plan_fft_inverse(length) } else { planner.plan_fft_forward(length) })
}

/// Makes a complex number from its real part, or from both parts.
fn complex(parts: &[f64]) -> Complex<f64> {
    let part = |i: usize| parts.get(i).copied().unwrap_or(0.0);
    Complex::new(part(0), part(1))
}

/// Completes the spectrum of a real signal from its first half.
fn mirror(line: &mut [Complex<f64>]) {
    for k in line.len() / 2 + 1..line.len() {
        line[k] = line[line.len() - k].conj();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, tensor};

    fn values(y: Result<Value>) -> Vec<f64> {
        y.and_then(|y| Ok(y.tensor()?.read::<f64>()?.to_vec())).expect("a spectrum of float64")
    }

    /// Computes `Y[k] = Σ X[n]·exp(-2πi·kn/N)` directly.
    fn direct(x: &[f64], length: usize) -> Vec<f64> {
        let part = |k: usize, wave: fn(f64) -> f64| -> f64 {
            let angle = |n: usize| -2.0 * std::f64::consts::PI * (k * n % length) as f64 / length as f64;
            x.iter().take(length).enumerate().map(|(n, x)| x * wave(angle(n))).sum()
        };
        (0..length).flat_map(|k| [part(k, f64::cos), part(k, f64::sin)]).collect()
    }

    #[test]
    fn transforms_follow_the_formula_and_their_inverse() {
        let signal = [0.5, -1.0, 2.0, 3.5, 0.25, -0.75, 1.0];
        for length in [1, 4, 7, 8, 11] {
            let inputs = |axis| [Some(tensor(&signal, &[7, 1])), Some(tensor(&[length as i64], &[])), axis];
            let forward = Dft { axis: Some(0), inverse: false, one_sided: false };
            let y = values(run(&forward, &inputs(None)));
            let expected = direct(&signal, length);
            assert!(y.iter().zip(&expected).all(|(y, e)| (y - e).abs() < 1e-12), "{length}: {y:?}, not {expected:?}");
            let half =
                values(run(&Dft { axis: None, one_sided: true, ..forward }, &inputs(Some(tensor(&[-2i64], &[1])))));
            assert_eq!(half, y[..2 * (length / 2 + 1)]);
            let back = Dft { axis: Some(0), inverse: true, one_sided: true };
            let spectrum = [Some(tensor(&half, &[half.len() / 2, 2])), Some(tensor(&[length as i64], &[]))];
            let x = values(run(&back, &spectrum));
            let padded = |n: usize| signal.get(n).copied().unwrap_or(0.0);
            assert!(x.iter().enumerate().all(|(n, x)| (x - padded(n)).abs() < 1e-12), "{length}: {x:?}");
        }
    }

    #[test]
    fn wrong_transforms_are_refused() {
        let x = || Some(tensor(&[1f32, 2., 3., 4.], &[2, 2]));
        let dft = |axis, inverse, one_sided| Dft { axis, inverse, one_sided };
        for (op, inputs) in [
            (dft(Some(1), false, false), vec![x()]),
            (dft(Some(0), false, true), vec![x()]),
            (dft(None, false, false), vec![x()]),
            (dft(Some(0), false, false), vec![x(), Some(tensor(&[0i64], &[]))]),
            (dft(Some(0), false, false), vec![x(), Some(tensor(&[-3i64], &[]))]),
            (dft(Some(0), false, false), vec![Some(tensor(&[1i32, 2], &[2, 1]))]),
        ] {
            assert!(run(&op, &inputs).is_err(), "{op:?}");
        }
    }
}
