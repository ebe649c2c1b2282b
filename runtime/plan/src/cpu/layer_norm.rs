//! CPU kernels: layer normalization and RMS normalization over the last axes.

use candle_plan_kernels::float_types::Real;
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::norm::{normalize_rows, row_statistics, Affine, Center};
use candle_plan_kernels::reduce::Number;
use candle_plan_kernels::rewrite::Rewrite;
use candle_plan_kernels::scratch::Scratch;
use candle_plan_kernels::threads::Threads;
use candle_plan_memory::buffer::{collected, copied, filled, mapped, with_capacity, CACHED};
use half::{bf16, f16};

use super::convert::{is_wide, read_as, read_widened, widened_bytes, Float};
use super::rewrite::rewrite;
use crate::axes;
use crate::dispatch;
use crate::dtype::{DType, Element};
use crate::error::Result;
use crate::kernel::{Call, Kernel};
use crate::ops::layer_norm::{fitted, target, LayerNorm, RmsNorm};
use crate::types::Types;
use crate::value::{Array, Value};
use crate::work;

impl Kernel for LayerNorm {
    fn takes(&self, input: usize, dtype: DType) -> bool {
        input == 0 && is_wide(dtype)
    }

    fn scratch(&self, inputs: &Types) -> Option<usize> {
        let has_statistics = inputs.outputs > 1;
        (!has_statistics && fits_in_cache(inputs, self.axis)).then(|| widened_bytes(self, inputs, |_| false))?
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let (dims, axis) = (x.dims().to_vec(), axes::resolve(self.axis, x.rank())?);
        let wants_statistics = call.outputs > 1;
        dispatch!("LayerNorm", x.dtype(), [f32, f64, f16, bf16], T => {
            let mut outputs = if wants_statistics { self.statistics::<T>(call, &dims, axis)? } else { Vec::new() };
            let scale = broadcast(&T::widen(call.read::<T>(1)?), call.tensor(1)?.dims(), &dims, axis)?;
            let bias = match call.optional_tensor(2)? {
                Some(bias) => broadcast(&read_widened::<T>(bias)?, bias.dims(), &dims, axis)?,
                None => filled(Number::from_f64(0.0), scale.len()),
            };
            let n = dims[axis..].iter().product();
            let (scale, bias) = of_one_length(scale, bias, n);
            let y = rewrite::<T>(call, 0, scale.len(), |threads, x| {
                let affine = Affine::Elements { scale: &scale, bias: &bias };
                normalize_rows(Isa::get(), threads, x, n, Center::Mean, self.epsilon, affine);
            })?;
            outputs.insert(0, y.into());
            Ok(outputs)
        })
    }
}

impl LayerNorm {
    fn statistics<T: Float>(&self, call: &Call, dims: &[usize], axis: usize) -> Result<Vec<Value>> {
        let x = call.read::<T>(0)?;
        let n = dims[axis..].iter().product();
        let pairs = row_statistics(Isa::get(), call.threads, &T::widen(x), n, Center::Mean, self.epsilon);
        let mut dims = dims.to_vec();
        dims[axis..].fill(1);
        let means = collected(pairs.iter().map(|(mean, _)| f32::from_f64(mean.to_f64())));
        let factors = collected(pairs.iter().map(|(_, factor)| f32::from_f64(factor.to_f64())));
        Ok(vec![Array::new(means, &dims)?.into(), Array::new(factors, &dims)?.into()])
    }
}

impl Kernel for RmsNorm {
    fn takes(&self, input: usize, dtype: DType) -> bool {
        input == 0 && is_wide(dtype)
    }

    fn scratch(&self, inputs: &Types) -> Option<usize> {
        let is_uniform = inputs.tensor(0).ok()?.dtype == inputs.tensor(1).ok()?.dtype;
        (is_uniform && fits_in_cache(inputs, self.axis)).then(|| widened_bytes(self, inputs, |_| false))?
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (x, scale) = (call.tensor(0)?, call.tensor(1)?);
        let (dims, axis) = (x.dims().to_vec(), axes::resolve(self.axis, x.rank())?);
        let dtype = scale.dtype();
        let (scale_dims, n) = (scale.dims().to_vec(), dims[axis..].iter().product());
        let y = dispatch!("RmsNorm", x.dtype(), [f32, f64, f16, bf16], T => {
            if T::DTYPE == dtype {
                let scale = broadcast(&T::widen(call.read::<T>(1)?), &scale_dims, &dims, axis)?;
                let bias = Scratch::filled(Number::from_f64(0.0), scale.len());
                rewrite::<T>(call, 0, scale.len(), |threads, x| self.normalize(threads, x, n, &scale, &bias))
            } else {
                let mut x = read_as::<f64>(x, call.threads)?;
                let scale = broadcast(&read_as::<f64>(scale, call.threads)?, &scale_dims, &dims, axis)?;
                let bias = Scratch::filled(0.0, scale.len());
                self.normalize(call.threads, Rewrite::in_place(&mut x), n, &scale, &bias);
                dispatch!("RmsNorm", dtype, [f32, f64, f16, bf16], V => {
                    Array::new(V::narrow(mapped(x, Number::from_f64)), &dims)
                })
            }
        })?;
        Ok(vec![y.into()])
    }
}

impl RmsNorm {
    fn normalize<R: Real>(&self, threads: &Threads, x: Rewrite<R>, n: usize, scale: &[R], bias: &[R]) {
        let affine = Affine::Elements { scale, bias };
        normalize_rows(Isa::get(), threads, x, n, Center::Zero, self.epsilon, affine);
    }
}

/// Whether the parameters, broadcast to the dimensions from `axis` on, are too small to count as scratch memory.
fn fits_in_cache(inputs: &Types, axis: i64) -> bool {
    let fits = || {
        let dims = inputs.tensor(0).ok()?.sizes()?;
        let row = work::product(&dims[axes::resolve(axis, dims.len()).ok()?..]);
        let given = (1..inputs.len()).filter_map(|i| inputs.optional(i));
        let sizes: Vec<u64> = given.map(|kind| work::count(kind.tensor().ok()?)).collect::<Option<_>>()?;
        Some(row <= (CACHED / size_of::<f64>()) as u64 && sizes.iter().all(|&size| size <= row))
    };
    fits().unwrap_or(false)
}

/// Broadcasts values to the dimensions from `axis` on if they fit there, otherwise to all dimensions.
fn broadcast<R: Real>(values: &[R], from: &[usize], dims: &[usize], axis: usize) -> Result<Vec<R>> {
    let from = fitted(from, dims, axis)?;
    let to = target(from, dims, axis);
    let mut broadcast = copied(values);
    if from == to {
        return Ok(broadcast);
    }
    let mut length = 1;
    for (i, &size) in to.iter().enumerate().rev() {
        // Innermost first: `broadcast` consists of blocks of `length` elements, complete from dimension i + 1 on.
        let own = (i + from.len()).checked_sub(to.len()).map_or(1, |i| from[i]);
        if own == 1 && size != 1 {
            let blocks = broadcast.chunks(length.max(1));
            let mut longer = with_capacity(broadcast.len().saturating_mul(size));
            blocks.for_each(|block| (0..size).for_each(|_| longer.extend_from_slice(block)));
            broadcast = longer;
        }
        length *= size;
    }
    Ok(broadcast)
}

/// Repeats the shorter of the two, one row of `n` elements, to the length of the other.
fn of_one_length<R: Real>(scale: Vec<R>, bias: Vec<R>, n: usize) -> (Vec<R>, Vec<R>) {
    let rows = scale.len().max(bias.len()) / n.max(1);
    let repeat = |v: Vec<R>| {
        if v.len() >= rows * n {
            return v;
        }
        let mut longer = with_capacity(v.len() * rows);
        (0..rows).for_each(|_| longer.extend_from_slice(&v));
        longer
    };
    (repeat(scale), repeat(bias))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::testing::{run, run_outputs, tensor};

    fn values(len: usize) -> Vec<f32> {
        (0..len).map(|i| (i * 7919 % 101) as f32 / 16.0 - 3.0).collect()
    }

    /// Returns the mean and `1 / √(variance + ε)` of each row.
    fn statistics(x: &[f32], n: usize, center: bool) -> Vec<(f64, f64)> {
        let of = |row: &[f32]| {
            let mean = if center { row.iter().map(|&v| f64::from(v)).sum::<f64>() / n as f64 } else { 0.0 };
            let square = row.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / n as f64;
            (mean, 1.0 / (square + 1e-5).sqrt())
        };
        x.chunks(n).map(of).collect()
    }

    fn close(found: &Value, expected: &[f64], tolerance: f64, case: &str) {
        let found: Vec<f64> = found.tensor().expect("a tensor").to_f64().expect("floats");
        assert_eq!(found.len(), expected.len(), "{case}");
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() <= tolerance, "{case}: {found} {expected}");
        }
    }

    #[test]
    fn scales_broadcast_to_the_input() {
        let (dims, x) = ([2, 3, 4], values(24));
        // The scale's dimensions, and the index in the scale for element i of X.
        type Case = (i64, usize, &'static [usize], fn(usize) -> usize);
        let cases: [Case; 7] = [
            (-1, 4, &[4], |i| i % 4),
            (2, 4, &[1, 1, 4], |i| i % 4),
            (1, 12, &[3, 4], |i| i % 12),
            (-2, 12, &[3, 1], |i| i / 4 % 3),
            (0, 24, &[2, 1, 4], |i| i / 12 * 4 + i % 4),
            (-1, 4, &[2, 1, 1], |i| i / 12),
            (-1, 4, &[], |_| 0),
        ];
        for (axis, n, scale_dims, place) in cases {
            let scale = values(scale_dims.iter().product());
            let bias = values(4);
            for center in [true, false] {
                let statistics = statistics(&x, n, center);
                let expected: Vec<f64> = (0..24)
                    .map(|i| {
                        let (mean, factor) = statistics[i / n];
                        let bias = if center { f64::from(bias[i % 4]) } else { 0.0 };
                        (f64::from(x[i]) - mean) * factor * f64::from(scale[place(i)]) + bias
                    })
                    .collect();
                let (x, scale) = (Some(tensor(&x, &dims)), Some(tensor(&scale, scale_dims)));
                let found = if center {
                    run(&LayerNorm { axis, epsilon: 1e-5 }, &[x, scale, Some(tensor(&bias, &[4]))])
                } else {
                    run(&RmsNorm { axis, epsilon: 1e-5 }, &[x, scale])
                };
                close(&found.expect("runs"), &expected, 1e-5, &format!("axis {axis} scale {scale_dims:?} {center}"));
            }
        }
        let op = LayerNorm { axis: -1, epsilon: 1e-5 };
        assert!(run(&op, &[Some(tensor(&x, &dims)), Some(tensor(&[1f32; 3], &[3]))]).is_err());
    }

    #[test]
    fn statistics_are_outputs() {
        let x = values(24);
        let inputs = [Some(tensor(&x, &[2, 3, 4])), Some(tensor(&[1f32; 12], &[3, 4]))];
        let found = run_outputs(&LayerNorm { axis: 1, epsilon: 1e-5 }, &inputs, 3).expect("runs");
        let expected = statistics(&x, 12, true);
        close(&found[1], &expected.iter().map(|s| s.0).collect::<Vec<_>>(), 1e-6, "mean");
        close(&found[2], &expected.iter().map(|s| s.1).collect::<Vec<_>>(), 1e-6, "factor");
        assert_eq!(found[1].tensor().expect("a tensor").dims(), [2, 1, 1]);
    }

    #[test]
    fn the_result_has_the_dtype_of_the_scale() {
        let x: Vec<f16> = values(8).into_iter().map(f16::from_f32).collect();
        let wide: Vec<f32> = x.iter().map(|v| v.to_f32()).collect();
        let factors = statistics(&wide, 4, false);
        let expected: Vec<f64> = (0..8).map(|i| f64::from(wide[i]) * factors[i / 4].1).collect();
        let inputs = [Some(tensor(&x, &[2, 4])), Some(tensor(&[1f32; 4], &[4]))];
        let found = run(&RmsNorm { axis: -1, epsilon: 1e-5 }, &inputs).expect("runs");
        assert_eq!(found.tensor().expect("a tensor").dtype(), DType::Float32);
        close(&found, &expected, 1e-6, "float16 by float32");
    }
}
