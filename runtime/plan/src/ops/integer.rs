//! Products and convolutions of 8-bit integers, summed in `int32`, and the way back to 8 bits.
//!
//! Sums are exact. Where no partial sum can leave the integers that `f32` holds (2²⁴), they are computed in `f32`, which is
//! several times faster; else in `int32`, which wraps.

use candle_plan_kernels::conv::{self, Rows, Shape, Weights};
use candle_plan_kernels::int8;
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::threads::Threads;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::conv::room;
use super::matmul::{infer_product, Product};
use super::qlinear::{is_signed, pack, single};
use super::padding::Padding;
use super::window::{check_bias, infer_window, out_dims, Window};
use super::exact::{broadcast, floats, largest, shifted, whole, whole_elements};
use crate::bail;
use crate::device::{ConvIntegerOnGpu, MatMulIntegerOnGpu, has_few_dimensions, on_device};
use crate::dtype::DType;
use crate::error::Result;
use crate::form::Form;
use crate::kernel::{Arity, Call, Constants, Kernel, Packed, Types};
use crate::types::{TensorType, Type};
use crate::value::{with_room, Array, Value};
use crate::work::Work;

/// `Y = (A − a_zero) · (B − b_zero)` in `int32`, matrices and batches as in `MatMul`.
///
/// Inputs: `A [batch…, M, K]` and `B [batch…, K, N]` of `int8` or `uint8`, then `a_zero` and `b_zero` of their types, which
/// broadcast to them, or absent.
///
/// Source: [ONNX MatMulInteger](https://onnx.ai/onnx/operators/onnx__MatMulInteger.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MatMulInteger {}

/// `Y = conv(X − x_zero, W − w_zero) + B` in `int32`; the padding is `x_zero`.
///
/// Inputs: `X [N, C, H, W]` or `[N, C, W]` and `W [O, C / groups, kernel…]` of `int8` or `uint8`, then, each maybe absent,
/// `x_zero` of one element, `w_zero` of one element or `[O]`, and `B: int32 [O]`.
///
/// Source: [ONNX ConvInteger](https://onnx.ai/onnx/operators/onnx__ConvInteger.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConvInteger {
    /// The step of the window on each spatial axis.
    pub strides: Vec<usize>,
    /// The step inside the window on each spatial axis.
    pub dilations: Vec<usize>,
    /// What surrounds the input.
    pub pads: Padding,
    /// The number of groups.
    pub groups: usize,
}

/// `Y = saturate(round(X · a_scale · b_scale ÷ y_scale) + y_zero)`, ties to even, the factors combined first, in `float32`.
///
/// Inputs: `X: int32`, `a_scale` and `b_scale: float32`, which broadcast to `X`, `y_scale: float32` and `y_zero: int8` or
/// `uint8` of one element. The result has `y_zero`'s type. With
/// [`MatMulInteger`] and [`ConvInteger`] this makes
/// [QLinearMatMul](https://onnx.ai/onnx/operators/onnx__QLinearMatMul.html) and
/// [QLinearConv](https://onnx.ai/onnx/operators/onnx__QLinearConv.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Requantize {}

/// Whole numbers up to here are exact in `f32`.
const EXACT: f64 = (1 << 24) as f64;

impl Kernel for MatMulInteger {
    fn arity(&self) -> Arity {
        Arity::inputs(2..=4)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        check_bytes(inputs)?;
        let shape = match (&inputs.tensor(0)?.shape, &inputs.tensor(1)?.shape) {
            (Some(a), Some(b)) => Some(infer_product(a, b)?),
            _ => None,
        };
        Ok(vec![Type::Tensor(TensorType { dtype: DType::Int32, shape })])
    }

    fn prepack(&self, constants: &Constants) -> Result<Option<Packed>> {
        let zero = constants.tensor(3);
        let zero_given = constants.types.get(3).is_some_and(Option::is_some);
        match constants.tensor(1) {
            Some(b) if (zero.is_some() || !zero_given) && is_one_each(b, zero) => Ok(Some(Box::new(pack(b, zero)?))),
            _ => Ok(None),
        }
    }

    fn form(&self, packed: Option<&Packed>) -> Form {
        Form::of(packed, |b: &int8::Weights| Form::named(format!("int8, {}", b.form())).packed(b.bytes()))
    }

    fn work(&self, inputs: &Types, outputs: &[Type]) -> Option<Work> {
        Work::multiplying(inputs, outputs, super::matmul::products(inputs, outputs, false))
    }

    on_device!("integer" by |self, operands, _gpu| Ok(Some(MatMulIntegerOnGpu::new(operands.tensor(1).is_some()))));

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (a, b, zero) = (call.tensor(0)?, call.tensor(1)?, call.optional_tensor(3)?);
        let a_zero = call.optional_tensor(2)?;
        if a.rank() > 1 && a_zero.is_none_or(|zero| zero.len() == 1) && is_one_each(b, zero) {
            return Ok(vec![by_matrix(call, a, a_zero, b, zero)?.into()]);
        }
        let a = shifted(call.tensor(0)?, call.optional_tensor(2)?, call.threads)?;
        let b = shifted(call.tensor(1)?, call.optional_tensor(3)?, call.threads)?;
        let product = Product::new(a.dims(), b.dims())?;
        let exact = largest(&a)? * largest(&b)? * product.depth() as f64 <= EXACT;
        let out = if exact {
            whole(&product.run_f32(call.threads, &a, &b, None, None)?)?
        } else {
            product.run_plain::<i32>(call.threads, &whole(&a)?, &whole(&b)?)?
        };
        Ok(vec![out.into()])
    }
}

/// Whether `b` is a matrix, with one zero point, or one a column.
pub(crate) fn is_one_each(b: &Array, zero: Option<&Array>) -> bool {
    b.rank() == 2 && zero.is_none_or(|zero| zero.len() == 1 || zero.dims() == &b.dims()[1..])
}

/// The product of rows of `a` with a matrix.
fn by_matrix(call: &Call, a: &Array, a_zero: Option<&Array>, b: &Array, zero: Option<&Array>) -> Result<Array> {
    let packed_here;
    let weights = match call.packed::<int8::Weights>() {
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
    let (bits, mut sums) = (a.bits::<u8>()?, room(&dims)?);
    let codes = int8::Codes { bits, signed: is_signed(a), zero: a_zero.map_or(Ok(0), single)? };
    int8::product(call.threads, codes, weights, None, int8::Out::Sums(&mut sums));
    Array::new(sums, &dims)
}

/// Packed weights, and the largest sum of an output's magnitudes.
struct PackedBytes {
    weights: Weights,
    largest_sum: f64,
}

impl Kernel for ConvInteger {
    fn arity(&self) -> Arity {
        Arity::inputs(2..=5)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        check_bytes(inputs)?;
        if let Some(bias) = inputs.optional_tensor(4)?.filter(|bias| bias.dtype != DType::Int32) {
            bail!("B is {}, not int32", bias.dtype);
        }
        let plain = Types { inputs: &inputs.inputs[..2], outputs: 1 };
        Ok(vec![infer_window(&self.window(), &plain, DType::Int32)?])
    }

    fn prepack(&self, constants: &Constants) -> Result<Option<Packed>> {
        let zero = constants.tensor(3);
        let zero_given = constants.types.get(3).is_some_and(Option::is_some);
        match constants.tensor(1) {
            Some(w) if zero.is_some() || !zero_given => Ok(Some(Box::new(self.pack(&self.weights(w, zero)?)?))),
            _ => Ok(None),
        }
    }

    fn form(&self, packed: Option<&Packed>) -> Form {
        Form::of(packed, |PackedBytes { weights, .. }: &PackedBytes| {
            Form::named(format!("{}, as float32", weights.form())).packed(weights.bytes())
        })
    }

    fn work(&self, inputs: &Types, outputs: &[Type]) -> Option<Work> {
        Work::multiplying(inputs, outputs, super::conv::products(inputs, outputs))
    }

    on_device!("qlinear" by |self, operands, _gpu| {
        let is_one = |zero: &Type| zero.tensor().ok()?.sizes().map(|sizes| sizes.iter().product::<usize>() == 1);
        // The processor broadcasts one of several elements.
        let fits = operands.types.get(2).copied().flatten().is_none_or(|zero| is_one(zero) == Some(true));
        Ok(fits.then(|| ConvIntegerOnGpu::new(self, operands.tensor(1).is_some())))
    });

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (x, w, bias) = (call.tensor(0)?, call.tensor(1)?, call.optional_tensor(4)?);
        let shape = self.shape(x.dims(), w.dims())?;
        check_bias(bias.map(Array::dims), shape.outputs)?;
        let packed_here;
        let packed = match call.packed::<PackedBytes>() {
            Some(packed) => packed,
            None => {
                packed_here = self.pack(&self.weights(w, call.optional_tensor(3)?)?)?;
                &packed_here
            }
        };
        let x = shifted(x, call.optional_tensor(2)?, call.threads)?;
        let dims = out_dims(&shape, x.rank());
        let mut sums = if largest(&x)? * packed.largest_sum <= EXACT {
            let mut out = room(&dims)?;
            conv::conv(call.threads, &shape, &packed.weights, None, x.read::<f32>()?, &mut out, None);
            whole_elements(&out)
        } else {
            self.run_whole(call, &shape, &x)?
        };
        if let Some(bias) = bias {
            add_bias(&mut sums, bias.read::<i32>()?, shape.output[0] * shape.output[1]);
        }
        Ok(vec![Array::new(sums, &dims)?.into()])
    }
}

impl ConvInteger {
    fn window(&self) -> Window<'_> {
        Window { strides: &self.strides, dilations: &self.dilations, pads: &self.pads, groups: self.groups }
    }

    /// The sizes of a convolution of inputs of these dimensions.
    pub(crate) fn shape(&self, x: &[usize], w: &[usize]) -> Result<Shape> {
        self.window().shape(x, w)
    }

    /// The weights less their zero points, as `float32`.
    fn weights(&self, w: &Array, zero: Option<&Array>) -> Result<Array> {
        let serial = Threads::serial();
        match zero.filter(|zero| zero.len() != 1) {
            None => shifted(w, zero, &serial),
            Some(zero) => {
                let mut dims = vec![1; w.rank()];
                dims[0] = w.dims()[0];
                shifted(w, Some(&zero.reshape(&dims)?), &serial)
            }
        }
    }

    fn pack(&self, w: &Array) -> Result<PackedBytes> {
        let outputs = w.dims().first().copied().unwrap_or(0);
        if self.groups == 0 || !outputs.is_multiple_of(self.groups) {
            bail!("{outputs} outputs do not make {} groups", self.groups);
        }
        let taps = w.dims()[1..].iter().product::<usize>();
        let data = w.read::<f32>()?;
        let magnitude = |w: &[f32]| w.iter().map(|w| f64::from(w.abs())).sum::<f64>();
        let largest_sum = data.chunks(taps.max(1)).map(magnitude).fold(0.0, f64::max);
        let weights = Weights::Rows(Rows::new(Isa::get(), self.groups, outputs / self.groups, taps, data));
        Ok(PackedBytes { weights, largest_sum })
    }

    fn run_whole(&self, call: &Call, shape: &Shape, x: &Array) -> Result<Vec<i32>> {
        let w = whole(&self.weights(call.tensor(1)?, call.optional_tensor(3)?)?)?;
        let mut out = room(&out_dims(shape, x.rank()))?;
        conv::conv_plain(call.threads, shape, w.read::<i32>()?, None, whole(x)?.read::<i32>()?, &mut out);
        Ok(out)
    }
}

fn add_bias(sums: &mut [i32], bias: &[i32], plane: usize) {
    for (plane, bias) in sums.chunks_mut(plane.max(1)).zip(bias.iter().cycle()) {
        plane.iter_mut().for_each(|sum| *sum = sum.wrapping_add(*bias));
    }
}

/// Checks that the first two inputs are bytes, and that the zero points after them have their types.
fn check_bytes(inputs: &Types) -> Result<()> {
    for i in 0..2 {
        let dtype = inputs.tensor(i)?.dtype;
        if !matches!(dtype, DType::Int8 | DType::Uint8) {
            bail!("input {i} is {dtype}; allowed are int8, uint8");
        }
        if let Some(zero) = inputs.optional_tensor(i + 2)?.filter(|zero| zero.dtype != dtype) {
            bail!("the zero point of input {i} is {}, not {dtype}", zero.dtype);
        }
    }
    Ok(())
}

impl Kernel for Requantize {
    fn arity(&self) -> Arity {
        Arity::inputs(5..=5)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        for (i, expected) in [(0, DType::Int32), (1, DType::Float32), (2, DType::Float32), (3, DType::Float32)] {
            let dtype = inputs.tensor(i)?.dtype;
            if dtype != expected {
                bail!("input {i} is {dtype}, not {expected}");
            }
        }
        let to = inputs.tensor(4)?.dtype;
        if !matches!(to, DType::Int8 | DType::Uint8) {
            bail!("the result would be {to}; allowed are int8, uint8");
        }
        Ok(vec![Type::Tensor(TensorType { dtype: to, shape: x.shape.clone() })])
    }

    on_device!("integer" if |self, operands| has_few_dimensions(operands));

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (x, zero) = (call.tensor(0)?, call.tensor(4)?);
        let [a, b, y] = [1, 2, 3].map(|i| call.tensor(i));
        let (a, b, y) = (a?, b?, y?);
        if y.len() != 1 || zero.len() != 1 {
            bail!("the result's scale {:?} and zero point {:?} are not of one element", y.dims(), zero.dims());
        }
        let y_scale = y.read::<f32>()?[0];
        let zero_point = floats(zero)?[0];
        let inner = shared(x.dims(), a.dims()).min(shared(x.dims(), b.dims()));
        let outer = &x.dims()[..x.rank() - inner];
        let run: usize = x.dims()[x.rank() - inner..].iter().product();
        let [a, b] = [a, b].map(|scale| factors(scale, outer, inner, call.threads));
        let scales: Vec<f32> = a?.iter().zip(b?).map(|(a, b)| a * b / y_scale).collect();
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

/// Runs of sums that share a scale, scaled and rounded.
fn requantized<'a, T>(runs: impl Iterator<Item = (&'a [i32], f32)>, len: usize, code: impl Fn(f32) -> T) -> Result<Vec<T>> {
    let mut out = with_room(len)?;
    for (run, scale) in runs {
        out.extend(run.iter().map(|&x| code((x as f32 * scale).round_ties_even())));
    }
    Ok(out)
}

/// How many of the last axes of `dims` share each of the scales.
fn shared(dims: &[usize], scale: &[usize]) -> usize {
    let ones = scale.iter().rev().take_while(|&&size| size == 1).count();
    if ones == scale.len() {
        dims.len()
    } else {
        ones.min(dims.len())
    }
}

/// The scale of each run: broadcast to `outer`, its last `inner` axes being of one element.
fn factors(scale: &Array, outer: &[usize], inner: usize, threads: &Threads) -> Result<Vec<f32>> {
    let rank = scale.rank().saturating_sub(inner);
    let scale = scale.reshape(&scale.dims()[..rank])?;
    Ok(broadcast(&scale, outer, threads)?.read::<f32>()?.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, tensor};

    fn sums(kernel: &dyn Kernel, inputs: &[Option<Value>]) -> Vec<i32> {
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
            let expected: Vec<i32> =
                (0..6).map(|place| (0..k).map(|d| term(place / 3, place % 3, d)).sum()).collect();
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
