//! CPU kernels: batch, instance, group and local response normalization.

use candle_plan_kernels::float_types::Real;
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::norm::{normalize_channels, normalize_rows, Affine, Center};
use candle_plan_kernels::reduce::Number;
use candle_plan_kernels::scratch::Scratch;
use candle_plan_memory::buffer::{collected, collected_up_to, copied, is_cached};
use half::{bf16, f16};

use super::bounds::is_short;
use super::convert::{is_wide, read_as, read_widened, widened_bytes, Float};
use super::rewrite::rewrite;
use crate::axes;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::kernel::{Call, Kernel};
use crate::operands::norm::channel_dims;
use crate::ops::norm::{group_dims, is_by_channel, BatchNorm, GroupNorm, InstanceNorm, Lrn};
use crate::types::Types;
use crate::value::{Array, Value};

impl Kernel for BatchNorm {
    fn takes(&self, input: usize, dtype: DType) -> bool {
        input == 0 && is_wide(dtype)
    }

    fn scratch(&self, inputs: &Types) -> Option<usize> {
        is_short(inputs.tensor(0).ok()?.size(1)?).then(|| widened_bytes(self, inputs, |_| false))?
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (_, spatial) = channel_dims(call)?;
        let x = call.tensor(0)?;
        let y = dispatch!("BatchNorm", x.dtype(), [f32, f64, f16, bf16], T => {
            let values = |i| read_as::<<T as Float>::Wide>(call.tensor(i)?, call.threads);
            let (mut factor, bias, mean, var) = (values(1)?, values(2)?, values(3)?, values(4)?);
            for (factor, var) in factor.iter_mut().zip(var) {
                *factor = Number::from_f64(factor.to_f64() / (var.to_f64() + self.epsilon).sqrt());
            }
            rewrite::<T>(call, 0, mean.len() * spatial, |threads, x| {
                normalize_channels(Isa::get(), threads, x, spatial, &mean, &factor, &bias);
            })
        })?;
        Ok(vec![y.into()])
    }
}

impl Kernel for InstanceNorm {
    fn takes(&self, input: usize, dtype: DType) -> bool {
        input == 0 && is_wide(dtype)
    }

    fn scratch(&self, inputs: &Types) -> Option<usize> {
        is_short(inputs.tensor(0).ok()?.size(1)?).then(|| widened_bytes(self, inputs, |_| false))?
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let groups = call.tensor(0)?.dims().get(1).copied().unwrap_or(1);
        normalize_groups(call, groups, self.epsilon)
    }
}

impl Kernel for GroupNorm {
    fn takes(&self, input: usize, dtype: DType) -> bool {
        input == 0 && is_wide(dtype)
    }

    fn scratch(&self, inputs: &Types) -> Option<usize> {
        is_short(inputs.tensor(0).ok()?.size(1)?).then(|| widened_bytes(self, inputs, |_| false))?
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        normalize_groups(call, self.groups, self.epsilon)
    }
}

/// Normalizes X (input 0) in groups of channels, with the scale and bias of inputs 1 and 2.
fn normalize_groups(call: &mut Call, groups: usize, epsilon: f64) -> Result<Vec<Value>> {
    let x = call.tensor(0)?;
    let (channels, spatial) = group_dims(x.dims(), groups)?;
    let y = dispatch!("GroupNorm", x.dtype(), [f32, f64, f16, bf16], T => {
        let scale = by_channel(&T::widen(call.read::<T>(1)?), channels, groups)?;
        let bias = by_channel(&T::widen(call.read::<T>(2)?), channels, groups)?;
        let n = channels.checked_div(groups).unwrap_or(0) * spatial;
        rewrite::<T>(call, 0, channels * spatial, |threads, x| {
            let affine = Affine::Channels { scale: &scale, bias: &bias, spatial };
            normalize_rows(Isa::get(), threads, x, n, Center::Mean, epsilon, affine);
        })
    })?;
    Ok(vec![y.into()])
}

/// Returns one value per channel, from one per channel or one per group.
fn by_channel<R: Real>(values: &[R], channels: usize, groups: usize) -> Result<Vec<R>> {
    if is_by_channel(values.len(), channels, groups)? {
        Ok(copied(values))
    } else {
        Ok(collected_up_to(channels, values.iter().flat_map(|&v| std::iter::repeat_n(v, channels / groups))))
    }
}

impl Kernel for Lrn {
    fn scratch(&self, inputs: &Types) -> Option<usize> {
        let [_, _, spatial] = axes::split(&inputs.sizes(0).ok()??, 1).ok()?;
        is_cached::<f64>(spatial).then(|| widened_bytes(self, inputs, |_| false))?
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let split = axes::split(x.dims(), 1)?;
        let y = dispatch!("Lrn", x.dtype(), [f32, f64, f16, bf16], T => {
            let y = self.normalize(call, &read_widened::<T>(x)?, split);
            Array::new(T::narrow(y), x.dims())
        })?;
        Ok(vec![y.into()])
    }
}

impl Lrn {
    fn normalize<R: Real>(&self, call: &Call, x: &[R], [_, channels, spatial]: [usize; 3]) -> Vec<R> {
        let mut y = collected(x.iter().copied());
        let (before, after) = ((self.size - 1) / 2, self.size / 2);
        let (bias, factor) = (R::from_f64(self.bias), R::from_f64(self.alpha / self.size as f64));
        let power = R::from_f64(-self.beta);
        call.threads.for_each_chunk(&mut y, spatial, |plane, y| {
            let (batch, channel) = (plane / channels, plane % channels);
            let mut sums = Scratch::filled(R::ZERO, y.len());
            for c in channel.saturating_sub(before)..channels.min(channel.saturating_add(after) + 1) {
                let start = (batch * channels + c) * spatial;
                for (sum, &v) in sums.iter_mut().zip(&x[start..start + spatial]) {
                    *sum += v * v;
                }
            }
            for (y, &sum) in y.iter_mut().zip(sums.iter()) {
                *y = *y * (bias + factor * sum).powf(power);
            }
        });
        y
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, tensor};

    fn values(len: usize, offset: f32) -> Vec<f32> {
        (0..len).map(|i| (i * 7919 % 101) as f32 / 32.0 + offset).collect()
    }

    fn close(found: &Value, expected: &[f64], tolerance: f64, case: &str) {
        let found: Vec<f64> = found.tensor().expect("a tensor").to_f64().expect("floats");
        assert_eq!(found.len(), expected.len(), "{case}");
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() <= tolerance, "{case}: {found} {expected}");
        }
    }

    fn f32_of(values: &[f32], dims: &[usize]) -> Option<Value> {
        Some(tensor(values, dims))
    }

    #[test]
    fn batches_are_normalized_by_given_statistics() {
        let op = BatchNorm { epsilon: 1e-3 };
        // The dimensions of X, the dimensions of its channels, and the number of elements per channel.
        let cases: [(&[usize], &[usize], usize); 5] = [
            (&[2, 3, 2, 2], &[3], 4),
            (&[4, 3], &[3], 1),
            (&[2, 3, 5], &[3], 5),
            (&[2, 3, 2], &[3, 2], 1),
            (&[4], &[1], 1),
        ];
        for (dims, channels, spatial) in cases {
            let (len, count) = (dims.iter().product::<usize>(), channels.iter().product::<usize>());
            let x = values(len, -1.0);
            let parameters = [0.5, -0.25, 1.0, 2.0].map(|offset| values(count, offset));
            let expected: Vec<f64> = (0..len)
                .map(|i| {
                    let [scale, bias, mean, var] =
                        [0, 1, 2, 3].map(|k: usize| f64::from(parameters[k][i / spatial % count]));
                    (f64::from(x[i]) - mean) / (var + 1e-3).sqrt() * scale + bias
                })
                .collect();
            let mut inputs = vec![f32_of(&x, dims)];
            inputs.extend(parameters.iter().map(|values| f32_of(values, channels)));
            close(&run(&op, &inputs).expect("runs"), &expected, 1e-5, &format!("{dims:?} {channels:?}"));
        }
        let one = || f32_of(&[1.0], &[1]);
        let refused = run(&op, &[f32_of(&[1.0], &[1; 5]), one(), one(), one(), one()]);
        assert!(refused.is_err_and(|error| error.to_string().contains("3 spatial dimensions")));
        assert!(run(&op, &[f32_of(&[1.0; 6], &[2, 3]), one(), one(), one(), one()]).is_err());
    }

    #[test]
    fn mixed_precisions_are_computed_in_f32() {
        let x = Some(tensor(&[f16::from_f32(3.0), f16::from_f32(-1.0)], &[1, 2]));
        let parameters = |values: [f32; 2]| f32_of(&values, &[2]);
        let inputs =
            [x, parameters([2.0, 1.0]), parameters([1.0, 0.0]), parameters([1.0, 0.0]), parameters([4.0, 1.0])];
        let y = run(&BatchNorm { epsilon: 0.0 }, &inputs).expect("runs");
        assert_eq!(*y.tensor().unwrap().read::<f16>().unwrap(), [3.0, -1.0].map(f16::from_f32));
    }

    #[test]
    fn groups_are_normalized_by_their_own_statistics() {
        let (channels, spatial) = (6, 4);
        let x = values(2 * channels * spatial, -1.0);
        for (groups, own_scale) in [(1, 6), (2, 6), (2, 2), (3, 3), (6, 6)] {
            let n = channels / groups * spatial;
            let (scale, bias) = (values(own_scale, 1.0), values(own_scale, -2.0));
            let expected: Vec<f64> = (0..x.len())
                .map(|i| {
                    let group: Vec<f64> = x[i / n * n..i / n * n + n].iter().map(|&v| f64::from(v)).collect();
                    let mean = group.iter().sum::<f64>() / n as f64;
                    let variance = group.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n as f64;
                    let c = i / spatial % channels * own_scale / channels;
                    (f64::from(x[i]) - mean) / (variance + 1e-5).sqrt() * f64::from(scale[c]) + f64::from(bias[c])
                })
                .collect();
            let inputs = [f32_of(&x, &[2, channels, 2, 2]), f32_of(&scale, &[own_scale]), f32_of(&bias, &[own_scale])];
            let op = GroupNorm { groups, epsilon: 1e-5 };
            close(&run(&op, &inputs).expect("runs"), &expected, 2e-5, &format!("{op:?}"));
            if groups == channels {
                close(&run(&InstanceNorm { epsilon: 1e-5 }, &inputs).expect("runs"), &expected, 2e-5, "instances");
            }
        }
        let uneven = [f32_of(&x, &[2, 6, 4]), f32_of(&[1.0; 6], &[6]), f32_of(&[1.0; 6], &[6])];
        for groups in [0, 4] {
            assert!(run(&GroupNorm { groups, epsilon: 1e-5 }, &uneven).is_err());
        }
    }

    #[test]
    fn neighboring_channels_share_their_squares() {
        let x = values(2 * 5 * 3, -1.0);
        for (size, before, after) in [(1, 0, 0), (2, 0, 1), (3, 1, 1), (4, 1, 2), (20, 9, 10)] {
            let op = Lrn { size, alpha: 0.5, beta: 0.75, bias: 1.5 };
            let expected: Vec<f64> = (0..30)
                .map(|i: usize| {
                    let c = i / 3 % 5;
                    let window = (0..5).filter(|&k| k + before >= c && k <= c + after);
                    let squares: f64 = window.map(|k| f64::from(x[i + 3 * k - 3 * c]).powi(2)).sum();
                    f64::from(x[i]) / (1.5 + 0.5 / size as f64 * squares).powf(0.75)
                })
                .collect();
            close(&run(&op, &[f32_of(&x, &[2, 5, 3])]).expect("runs"), &expected, 1e-5, &format!("{op:?}"));
        }
    }
}
