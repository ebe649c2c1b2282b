//! CPU kernels: products and convolutions of 8-bit integers with `int32` sums, and requantization to 8 bits.

use candle_plan_kernels::convolution::rows::{self, Rows, Shape};
use candle_plan_kernels::convolution::{self, integer_alternatives, ConvOperands, Epilogue, IntegerConvCase};
use candle_plan_kernels::int8;
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::products::sums_in_float;
use candle_plan_kernels::threads::Threads;

use super::bounds::len;
use super::conv_case::one_image;
use super::exact::{broadcast, floats, largest, shifted, whole, whole_elements};
use super::packed::{HasKernel, Packed};
use super::planned::CpuOperands;
use super::product_forms::integer;
use super::qlinear::{pack, single};
use crate::bail;
use crate::dtype::DType;
use crate::error::Result;
use crate::extent::{one_element, one_or_each};
use crate::form::{Alternative, KernelForm};
use crate::kernel::{Call, Kernel};
use crate::ops::integer::{is_one_each, ConvInteger, MatMulInteger, Requantize};
use crate::ops::matmul::Product;
use crate::ops::qlinear::{is_signed, WEIGHTS_ZERO};
use crate::ops::window::{check_bias, out_dims};
use crate::types::Types;
use crate::value::{alloc_uninit, list, with_capacity, Array, Value};

/// Whole numbers up to this magnitude are exact in `f32`.
const EXACT: f64 = (1 << 24) as f64;

impl HasKernel for MatMulInteger {
    fn kernel(&self, operands: &CpuOperands) -> Result<Box<dyn Kernel>> {
        let constants = &operands.constants;
        let zero = constants.tensor(3);
        let zero_given = constants.types.get(3).is_some_and(Option::is_some);
        let packed = match constants.tensor(1) {
            Some(b) if (zero.is_some() || !zero_given) && is_one_each(b, zero) => Some(pack(b, zero)?),
            _ => None,
        };
        Ok(Packed::boxed(self, packed))
    }
}

impl Kernel for Packed<MatMulInteger, Option<int8::Weights>> {
    fn form(&self) -> KernelForm {
        KernelForm::of(self.packed.as_ref(), |b: &int8::Weights| {
            KernelForm::named(format!("int8, {}", b.form())).packed(b.bytes())
        })
    }

    fn alternatives(&self, inputs: &Types) -> Vec<Alternative> {
        are_codes(inputs).map(|are_codes| integer(inputs, are_codes)).unwrap_or_default()
    }

    fn scratch(&self, inputs: &Types) -> Option<usize> {
        let packed = self.packed.as_ref();
        let has_rows = inputs.tensor(0).ok()?.rank()? > 1;
        let is_one = inputs.optional(2).is_none() || len(inputs, 2)? == 1;
        (has_rows && is_one && packed?.is_cached()).then_some(0)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let packed = self.packed.as_ref();
        let (a, b, zero) = (call.tensor(0)?, call.tensor(1)?, call.optional_tensor(3)?);
        let a_zero = call.optional_tensor(2)?;
        if a.rank() > 1 && a_zero.is_none_or(|zero| zero.len() == 1) && is_one_each(b, zero) {
            return Ok(vec![by_matrix(packed, call, a, a_zero, b, zero)?.into()]);
        }
        let a = shifted(call.tensor(0)?, call.optional_tensor(2)?, call.threads)?;
        let b = shifted(call.tensor(1)?, call.optional_tensor(3)?, call.threads)?;
        let product = Product::new(a.dims(), b.dims())?;
        let is_exact = largest(&a)? * largest(&b)? * product.depth() as f64 <= EXACT;
        let out = if sums_in_float(Isa::get(), product.sizes, is_exact) {
            whole(&product.run_f32(call.threads, &a, &b, None, None)?)?
        } else {
            product.run_plain::<i32>(call.threads, &whole(&a)?, &whole(&b)?)?
        };
        Ok(vec![out.into()])
    }
}

/// Whether a product multiplies the codes themselves, not their differences from zero points. `None` if a size is unknown.
fn are_codes(inputs: &Types) -> Option<bool> {
    let is_one = |i: usize| inputs.optional(i).map_or(Some(true), |_| Some(len(inputs, i)? == 1));
    let (a, b) = (inputs.tensor(0).ok()?.rank()?, inputs.tensor(1).ok()?.sizes()?);
    let is_each = is_one(3)? || b.len() == 2 && inputs.tensor(3).ok()?.sizes()? == b[1..];
    Some(a > 1 && is_one(2)? && b.len() == 2 && is_each)
}

/// Multiplies rows of `a` by a matrix.
fn by_matrix(
    packed: Option<&int8::Weights>,
    call: &Call,
    a: &Array,
    a_zero: Option<&Array>,
    b: &Array,
    zero: Option<&Array>,
) -> Result<Array> {
    let packed_here;
    let weights = match packed {
        Some(packed) => packed,
        None => {
            packed_here = pack(b, zero)?;
            &packed_here
        }
    };
    let mut dims = a.dims().to_vec();
    if dims.pop() != Some(weights.rows()) {
        bail!("{:?} times {:?} is no product of matrices", a.dims(), b.dims());
    }
    dims.push(weights.columns());
    let (bits, sums) = (a.bits::<u8>()?, alloc_uninit(&dims)?);
    let codes = int8::Codes { bits, signed: is_signed(a), zero: a_zero.map_or(Ok(0), single)? };
    let sums = sums.overwrite(|sums| int8::product(call.threads, codes, weights, None, int8::Out::Sums(sums)));
    Array::new(sums, &dims)
}

/// Packed weights, and the largest sum of the magnitudes of one output's weights.
pub(super) struct PackedBytes {
    weights: Rows,
    largest_sum: f64,
}

impl HasKernel for ConvInteger {
    fn kernel(&self, operands: &CpuOperands) -> Result<Box<dyn Kernel>> {
        let constants = &operands.constants;
        let zero = constants.tensor(3);
        let zero_given = constants.types.get(3).is_some_and(Option::is_some);
        let packed = match constants.tensor(1) {
            Some(w) if zero.is_some() || !zero_given => Some(self.pack_weights(&self.weights(w, zero)?)?),
            _ => None,
        };
        Ok(Packed::boxed(self, packed))
    }
}

impl Kernel for Packed<ConvInteger, Option<PackedBytes>> {
    fn form(&self) -> KernelForm {
        KernelForm::of(self.packed.as_ref(), |PackedBytes { weights, .. }: &PackedBytes| {
            KernelForm::named(convolution::AS_FLOATS).packed(weights.bytes())
        })
    }

    fn alternatives(&self, inputs: &Types) -> Vec<Alternative> {
        let op = &self.op;
        let shape = one_image(inputs).and_then(|[x, w]| op.shape(&x, &w).ok());
        let case = shape.map(|shape| IntegerConvCase::new(Isa::get(), &shape, true));
        Alternative::all(case.map(|case| integer_alternatives(&case)).unwrap_or_default())
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (op, packed) = (&self.op, self.packed.as_ref());
        let (x, w, bias) = (call.tensor(0)?, call.tensor(1)?, call.optional_tensor(4)?);
        let shape = op.shape(x.dims(), w.dims())?;
        check_bias(bias.map(Array::dims), Some(shape.outputs))?;
        let packed_here;
        let packed = match packed {
            Some(packed) => packed,
            None => {
                packed_here = op.pack_weights(&op.weights(w, call.optional_tensor(3)?)?)?;
                &packed_here
            }
        };
        let x = shifted(x, call.optional_tensor(2)?, call.threads)?;
        let dims = out_dims(&shape, x.rank());
        let is_exact = largest(&x)? * packed.largest_sum <= EXACT;
        let mut sums = if convolution::sums_in_float(&IntegerConvCase::new(Isa::get(), &shape, is_exact)) {
            let (x, epilogue) = (x.read::<f32>()?, Epilogue::NONE);
            let out = alloc_uninit(&dims)?.overwrite(|out| {
                let operands = ConvOperands { shape: &shape, bias: None, x, out, epilogue };
                rows::conv(call.threads, &packed.weights, operands);
            });
            whole_elements(&out)
        } else {
            op.run_whole(call, &shape, &x)?
        };
        if let Some(bias) = bias {
            add_bias(&mut sums, bias.read::<i32>()?, shape.output[0] * shape.output[1]);
        }
        Ok(vec![Array::new(sums, &dims)?.into()])
    }
}

impl ConvInteger {
    /// Returns the weights minus their zero points, as `float32`.
    fn weights(&self, w: &Array, zero: Option<&Array>) -> Result<Array> {
        let serial = Threads::serial();
        let dims = zero.map_or(&[][..], Array::dims);
        one_or_each(WEIGHTS_ZERO, dims, w.dims().first().copied())?;
        match zero.filter(|zero| zero.len() != 1) {
            None => shifted(w, zero, &serial),
            Some(zero) => {
                let mut dims = vec![1; w.rank()];
                dims[0] = w.dims()[0];
                shifted(w, Some(&zero.reshape(&dims)?), &serial)
            }
        }
    }

    fn pack_weights(&self, w: &Array) -> Result<PackedBytes> {
        let outputs = w.dims().first().copied().unwrap_or(0);
        if self.groups == 0 || !outputs.is_multiple_of(self.groups) {
            bail!("{outputs} outputs do not make {} groups", self.groups);
        }
        let taps = w.dims()[1..].iter().product::<usize>();
        let data = w.read::<f32>()?;
        let magnitude = |w: &[f32]| w.iter().map(|w| f64::from(w.abs())).sum::<f64>();
        let largest_sum = data.chunks(taps.max(1)).map(magnitude).fold(0.0, f64::max);
        let weights = Rows::new(Isa::get(), self.groups, outputs / self.groups, taps, data);
        Ok(PackedBytes { weights, largest_sum })
    }

    fn run_whole(&self, call: &Call, shape: &Shape, x: &Array) -> Result<Vec<i32>> {
        let w = whole(&self.weights(call.tensor(1)?, call.optional_tensor(3)?)?)?;
        let (out, x) = (alloc_uninit(&out_dims(shape, x.rank()))?, whole(x)?);
        let (x, w) = (x.read::<i32>()?, w.read::<i32>()?);
        Ok(out.overwrite(|out| rows::conv_plain(call.threads, shape, w, None, x, out)))
    }
}

fn add_bias(sums: &mut [i32], bias: &[i32], plane: usize) {
    for (plane, bias) in sums.chunks_mut(plane.max(1)).zip(bias.iter().cycle()) {
        plane.iter_mut().for_each(|sum| *sum = sum.wrapping_add(*bias));
    }
}

impl Kernel for Requantize {
    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (x, zero) = (call.tensor(0)?, call.tensor(4)?);
        let [a, b, y] = [1, 2, 3].map(|i| call.tensor(i));
        let (a, b, y) = (a?, b?, y?);
        one_element("the result's scale", y.dims())?;
        one_element("the result's zero point", zero.dims())?;
        let y_scale = y.read::<f32>()?[0];
        let zero_point = floats(zero)?[0];
        let inner = shared(x.dims(), a.dims()).min(shared(x.dims(), b.dims()));
        let outer = &x.dims()[..x.rank() - inner];
        let run: usize = x.dims()[x.rank() - inner..].iter().product();
        let [a, b] = [a, b].map(|scale| factors(scale, outer, inner, call.threads));
        let scales = list(a?.into_iter().zip(b?).map(|(a, b)| a * b / y_scale))?;
        let x_data = x.read::<i32>()?;
        let runs = x_data.chunks(run.max(1)).zip(scales);
        let out = if zero.dtype() == DType::Int8 {
            let code = |x: f32| (x + zero_point).clamp(-128.0, 127.0) as i8;
            Array::new(requantized(runs, x.len(), code)?, x.dims())?
        } else {
            let code = |x: f32| (x + zero_point).clamp(0.0, 255.0) as u8;
            Array::new(requantized(runs, x.len(), code)?, x.dims())?
        };
        Ok(vec![out.into()])
    }
}

/// Scales and rounds runs of sums; each run has one scale.
fn requantized<'a, T>(
    runs: impl Iterator<Item = (&'a [i32], f32)>,
    len: usize,
    code: impl Fn(f32) -> T,
) -> Result<Vec<T>> {
    let mut out = with_capacity(len)?;
    for (run, scale) in runs {
        out.extend(run.iter().map(|&x| code((x as f32 * scale).round_ties_even())));
    }
    Ok(out)
}

/// Returns how many of the last axes of `dims` share one scale.
fn shared(dims: &[usize], scale: &[usize]) -> usize {
    let ones = scale.iter().rev().take_while(|&&size| size == 1).count();
    if ones == scale.len() {
        dims.len()
    } else {
        ones.min(dims.len())
    }
}

/// Returns the scale of each run: broadcasts the scales to `outer`. Their last `inner` axes have size 1.
fn factors(scale: &Array, outer: &[usize], inner: usize, threads: &Threads) -> Result<Vec<f32>> {
    let rank = scale.rank().saturating_sub(inner);
    let scale = scale.reshape(&scale.dims()[..rank])?;
    broadcast(&scale, outer, threads)?.into_elements()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::padding::Padding;
    use crate::testing::{run, tensor, Tested};

    fn sums(kernel: &dyn Tested, inputs: &[Option<Value>]) -> Vec<i32> {
        run(kernel, inputs).unwrap().tensor().unwrap().read::<i32>().unwrap().to_vec()
    }

    #[test]
    fn products_are_exact_for_any_depth() {
        for k in [1, 3, 500] {
            let a: Vec<u8> = (0..2 * k).map(|i| 255 - (i % 7) as u8).collect();
            let b: Vec<i8> = (0..k * 3).map(|i| -128 + (i % 5) as i8).collect();
            let (a_zero, b_zero) = ([3u8, 250], [0i8, -1, 100]);
            let term = |i: usize, j: usize, d: usize| {
                (i32::from(a[i * k + d]) - i32::from(a_zero[i])) * (i32::from(b[d * 3 + j]) - i32::from(b_zero[j]))
            };
            let expected: Vec<i32> = (0..6).map(|place| (0..k).map(|d| term(place / 3, place % 3, d)).sum()).collect();
            let inputs = [
                Some(tensor(&a, &[2, k])),
                Some(tensor(&b, &[k, 3])),
                Some(tensor(&a_zero, &[2, 1])),
                Some(tensor(&b_zero, &[3])),
            ];
            assert_eq!(sums(&MatMulInteger {}, &inputs), expected, "{k}");
        }
    }

    #[test]
    fn convolutions_pad_with_the_zero_point() {
        let pads = Padding::Explicit(vec![[1, 0]]);
        let conv = ConvInteger { strides: vec![1], dilations: vec![1], pads, groups: 1 };
        for (channels, w_zero) in [(1, vec![2u8]), (1, vec![2, 0]), (400, vec![2, 0])] {
            let x = Some(tensor(&vec![255u8; channels * 2], &[1, channels, 2]));
            let w = Some(tensor(&vec![200u8; 2 * channels * 2], &[2, channels, 2]));
            let zero = |o: usize| i32::from(w_zero[o.min(w_zero.len() - 1)]);
            let sum = |o: usize, taps: i32| channels as i32 * 245 * (200 - zero(o)) * taps + [7, -7][o];
            let expected = [sum(0, 1), sum(0, 2), sum(1, 1), sum(1, 2)];
            let (x_zero, bias) = (Some(tensor(&[10u8], &[])), Some(tensor(&[7i32, -7], &[2])));
            let w_zero = Some(tensor(&w_zero, &[w_zero.len()]));
            assert_eq!(sums(&conv, &[x, w, x_zero, w_zero, bias]), expected, "{channels}");
        }
    }

    #[test]
    fn sums_are_scaled_rounded_to_even_and_saturated() {
        let x = Some(tensor(&[1i32, 2, 3, 5, -1000, 1000], &[1, 2, 3]));
        let scale = |x: &[f32], dims: &[usize]| Some(tensor(x, dims));
        for (a, b, zero, expected) in [
            (scale(&[1.], &[]), scale(&[1.], &[1]), 0, [0, 1, 2, 2, -128, 127]),
            (scale(&[2., 4.], &[2, 1]), scale(&[1.], &[]), 1, [2, 3, 4, 11, -128, 127]),
            (scale(&[1.], &[]), scale(&[2., 4., 0.], &[3]), -1, [0, 3, -1, 4, -128, -1]),
        ] {
            let inputs = [x.clone(), a, b, scale(&[2.], &[]), Some(tensor(&[zero as i8], &[]))];
            let out = run(&Requantize {}, &inputs).unwrap();
            assert_eq!(out.tensor().unwrap().read::<i8>().unwrap(), expected, "{zero}");
        }
    }

    #[test]
    fn other_types_are_refused() {
        let byte = Some(tensor(&[1u8], &[1, 1]));
        for inputs in [
            [Some(tensor(&[1i32], &[1, 1])), byte.clone(), None],
            [byte.clone(), byte.clone(), Some(tensor(&[1i8], &[1]))],
        ] {
            assert!(run(&MatMulInteger {}, &inputs).is_err());
        }
    }
}
