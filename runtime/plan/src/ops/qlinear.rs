//! Convolutions and products of 8-bit codes that give codes again, each a step of its own.
//!
//! A code stands for `(code − zero) · scale`. Sums are exact as long as 32 bits hold them (beyond, they wrap; the compiler
//! makes no such step of floating-point operators); they are multiplied with the scales of the operands over the result's,
//! which the compiler has put together, and rounded once, as onnxruntime does.

use candle_plan_kernels::buffer::collected;
use candle_plan_kernels::conv::Shape;
use candle_plan_kernels::int8::{self, Codes, Filter, Matrix, Out, Requantize, Taps, Weights};
use candle_plan_kernels::isa::Isa;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::window::{check_bias, infer_window, Window};
use super::padding::Padding;
use crate::bail;
use crate::device::{QLinearOnGpu, on_device};
use crate::dtype::DType;
use crate::error::Result;
use crate::form::Form;
use crate::kernel::{Arity, Call, Constants, Kernel, Packed, Types};
use crate::size::room;
use crate::types::{Dim, TensorType, Type};
use crate::value::{Array, Value};
use crate::work::Work;

/// `Y = clamp(round((conv(X − x_zero, W − w_zero) + B) · scale) + y_zero, low, high)`, ties to even; without `y_zero`,
/// `Y = (conv(X − x_zero, W − w_zero) + B) · scale` in `float32`. Outside, `X` is `x_zero`.
///
/// Inputs: `X [N, H, W, C]` or `[N, W, C]`, channels last, and `W [O, C / groups, kernel…]` of `int8` or `uint8`; `scale:
/// float32`, one or `[O]`; `x_zero`, one, and `w_zero`, one or `[O]`, of their types; `y_zero`, one of `int8` or `uint8`, which
/// is the result's type, or absent; `B: int32 [O]`, or absent. `Y [N, H', W', O]`.
///
/// Source: [ONNX QLinearConv](https://onnx.ai/onnx/operators/onnx__QLinearConv.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QLinearConv {
    /// The step of the window on each spatial axis.
    pub strides: Vec<usize>,
    /// The step inside the window on each spatial axis.
    pub dilations: Vec<usize>,
    /// What surrounds the input.
    pub pads: Padding,
    /// The number of groups.
    pub groups: usize,
    /// The smallest code of the result.
    pub low: i32,
    /// The largest code of the result.
    pub high: i32,
}

/// `Y = clamp(round(((A − a_zero) · (B − b_zero) + C) · scale) + y_zero, low, high)`, ties to even; without `y_zero`,
/// `Y = ((A − a_zero) · (B − b_zero) + C) · scale` in `float32`.
///
/// Inputs: `A [batch…, M, K]` and `B [K, N]` of `int8` or `uint8`; `scale: float32`, one or `[N]`; `a_zero`, one, and
/// `b_zero`, one or `[N]`, of their types; `y_zero`, one of `int8` or `uint8`, which is the result's type, or absent;
/// `C: int32 [N]`, or absent.
///
/// Source: [ONNX QLinearMatMul](https://onnx.ai/onnx/operators/onnx__QLinearMatMul.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QLinearMatMul {
    /// The smallest code of the result.
    pub low: i32,
    /// The largest code of the result.
    pub high: i32,
}

impl Kernel for QLinearConv {
    fn arity(&self) -> Arity {
        Arity::inputs(5..=7)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let dtype = check(inputs, self.low, self.high)?;
        let (x, w) = (inputs.tensor(0)?, inputs.get(1)?);
        let first = Type::Tensor(TensorType { dtype: x.dtype, shape: x.shape.as_deref().map(channels_second) });
        let y = infer_window(&self.window(), &Types { inputs: &[Some(&first), Some(w)], outputs: 1 }, dtype)?;
        let shape = y.tensor()?.shape.as_deref().map(channels_last);
        Ok(vec![Type::Tensor(TensorType { dtype, shape })])
    }

    fn prepack(&self, constants: &Constants) -> Result<Option<Packed>> {
        match (constants.tensor(1), constants.tensor(4)) {
            (Some(w), Some(zero)) => Ok(Some(Box::new(self.pack(w, zero)?))),
            _ => Ok(None),
        }
    }

    fn is_replaced(&self, input: usize) -> bool {
        input == 1
    }

    fn form(&self, packed: Option<&Packed>) -> Form {
        Form::of(packed, |filter: &Filter| Form::named(filter.form()).packed(filter.bytes()))
    }

    fn work(&self, inputs: &Types, outputs: &[Type]) -> Option<Work> {
        Work::multiplying(inputs, outputs, super::conv::products(inputs, outputs))
    }

    on_device!("qlinear" by |self, operands, _gpu| Ok(Some(QLinearOnGpu::new(self.clone(), operands.tensor(1).is_some()))));

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (x, w) = (call.tensor(0)?, call.tensor(1)?);
        let shape = self.shape(x.dims(), w.dims())?;
        let packed_here;
        let filter = match call.packed::<Filter>() {
            Some(packed) => packed,
            None => {
                packed_here = self.pack(w, call.tensor(4)?)?;
                &packed_here
            }
        };
        let mut dims = vec![shape.batch];
        dims.extend(&shape.output[4 - x.rank()..]);
        dims.push(shape.outputs);
        let bits = x.bits::<u8>()?;
        let codes = Codes { bits, signed: is_signed(x), zero: single(call.tensor(3)?)? };
        let end = End::new(call, [self.low, self.high], shape.outputs)?;
        let bias = end.bias;
        Ok(vec![end.write(&dims, |out| int8::conv(call.threads, &shape, filter, codes, bias, out))?])
    }
}

impl QLinearConv {
    fn window(&self) -> Window<'_> {
        Window { strides: &self.strides, dilations: &self.dilations, pads: &self.pads, groups: self.groups }
    }

    /// The sizes of a convolution of inputs of these dimensions.
    pub(crate) fn shape(&self, x: &[usize], w: &[usize]) -> Result<Shape> {
        self.window().shape(&channels_second(x), w)
    }

    fn pack(&self, w: &Array, zero: &Array) -> Result<Filter> {
        let outputs = w.dims().first().copied().unwrap_or(0);
        let zeros = numbers(zero)?;
        if self.groups == 0 || !outputs.is_multiple_of(self.groups) || (zeros.len() != 1 && zeros.len() != outputs) {
            bail!("weights of shape {:?} with {} zero points do not make {} groups", w.dims(), zeros.len(), self.groups);
        }
        let kernel = match w.dims() {
            [_, _, columns] => [1, *columns],
            [_, _, rows, columns] => [*rows, *columns],
            dims => bail!("weights of shape {dims:?} have no window of one or two axes"),
        };
        let (groups, bits, signed) = (self.groups, w.bits::<u8>()?, is_signed(w));
        Ok(Filter::new(Isa::get(), &Taps { groups, outputs, kernel, bits, signed, zeros: &zeros }))
    }
}

impl Kernel for QLinearMatMul {
    fn arity(&self) -> Arity {
        Arity::inputs(5..=7)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let dtype = check(inputs, self.low, self.high)?;
        let (a, b) = (inputs.tensor(0)?, inputs.tensor(1)?);
        if a.rank().is_some_and(|rank| rank < 2) || b.rank().is_some_and(|rank| rank != 2) {
            bail!("A has rank {:?} and B rank {:?}; A needs at least 2, and B must be a matrix", a.rank(), b.rank());
        }
        if let (Some(shape), Some(depth)) = (&a.shape, b.size(0)) {
            if matches!(shape.last(), Some(Some(Dim::Size(size))) if *size != depth) {
                bail!("rows of {:?} elements times columns of {depth}", shape.last());
            }
        }
        let shape = a.shape.clone().map(|mut shape| {
            shape.pop();
            shape.push(b.size(1).map(Dim::Size));
            shape
        });
        Ok(vec![Type::Tensor(TensorType { dtype, shape })])
    }

    fn prepack(&self, constants: &Constants) -> Result<Option<Packed>> {
        match (constants.tensor(1), constants.tensor(4)) {
            (Some(b), Some(zero)) => Ok(Some(Box::new(pack(b, Some(zero))?))),
            _ => Ok(None),
        }
    }

    fn is_replaced(&self, input: usize) -> bool {
        input == 1
    }

    fn form(&self, packed: Option<&Packed>) -> Form {
        Form::of(packed, |b: &Weights| Form::named(format!("int8, {}", b.form())).packed(b.bytes()))
    }

    fn work(&self, inputs: &Types, outputs: &[Type]) -> Option<Work> {
        Work::multiplying(inputs, outputs, super::matmul::products(inputs, outputs, false))
    }

    on_device!("qlinear" by |self, operands, _gpu| Ok(Some(QLinearOnGpu::new(self.clone(), operands.tensor(1).is_some()))));

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (a, b) = (call.tensor(0)?, call.tensor(1)?);
        let packed_here;
        let weights = match call.packed::<Weights>() {
            Some(packed) => packed,
            None => {
                packed_here = pack(b, Some(call.tensor(4)?))?;
                &packed_here
            }
        };
        let mut dims = a.dims().to_vec();
        if dims.len() < 2 || dims.pop() != Some(weights.rows()) {
            bail!("{:?} times {:?} is no product of matrices", a.dims(), b.dims());
        }
        dims.push(weights.columns());
        let bits = a.bits::<u8>()?;
        let codes = Codes { bits, signed: is_signed(a), zero: single(call.tensor(3)?)? };
        let end = End::new(call, [self.low, self.high], weights.columns())?;
        let bias = end.bias;
        Ok(vec![end.write(&dims, |out| int8::product(call.threads, codes, weights, bias, out))?])
    }
}

/// A matrix of codes, packed; without a zero point, that is 0.
pub(super) fn pack(b: &Array, zero: Option<&Array>) -> Result<Weights> {
    let &[k, n] = b.dims() else { bail!("B has shape {:?}; it must be a matrix", b.dims()) };
    let zeros = zero.map_or(Ok(vec![0]), numbers)?;
    if zeros.len() != 1 && zeros.len() != n {
        bail!("{} zero points for {n} columns", zeros.len());
    }
    let matrix = Matrix { bits: b.bits::<u8>()?, signed: is_signed(b), zeros: &zeros, row: n, column: 1 };
    Ok(Weights::new(Isa::get(), k, n, &matrix))
}

/// How sums become the result.
struct End<'a> {
    scale: &'a [f32],
    /// The zero point and type of the result; `None`: numbers.
    to: Option<(i32, DType)>,
    limits: [i32; 2],
    bias: Option<&'a [i32]>,
}

impl<'a> End<'a> {
    fn new(call: &'a Call, limits: [i32; 2], outputs: usize) -> Result<End<'a>> {
        let (scale, bias) = (call.read::<f32>(2)?, call.optional_tensor(6)?);
        if scale.len() != 1 && scale.len() != outputs {
            bail!("{} scales for {outputs} outputs", scale.len());
        }
        check_bias(bias.map(Array::dims), outputs)?;
        let to = call.optional_tensor(5)?.map(|zero| single(zero).map(|code| (code, zero.dtype()))).transpose()?;
        Ok(End { scale, to, limits, bias: bias.map(Array::read::<i32>).transpose()? })
    }

    /// The result, written by `run`.
    fn write(&self, dims: &[usize], run: impl FnOnce(Out)) -> Result<Value> {
        let [low, high] = self.limits;
        let Some((zero, dtype)) = self.to else {
            let mut out = room::<f32>(dims)?;
            run(Out::Floats(&mut out, self.scale));
            return Ok(Array::new(out, dims)?.into());
        };
        let mut out = room::<u8>(dims)?;
        run(Out::Codes(&mut out, Requantize { scale: self.scale, zero, low, high }));
        Ok(Array::new(out, dims)?.reinterpret(dtype)?.into())
    }
}

/// Checks the dtypes and the limits of the result; gives its dtype.
fn check(inputs: &Types, low: i32, high: i32) -> Result<DType> {
    for i in 0..2 {
        let dtype = check_codes(inputs, i)?;
        let zero = inputs.tensor(i + 3)?.dtype;
        if zero != dtype {
            bail!("the zero point of input {i} is {zero}, not {dtype}");
        }
    }
    let scale = inputs.tensor(2)?.dtype;
    if scale != DType::Float32 {
        bail!("the scale is {scale}, not float32");
    }
    if let Some(bias) = inputs.optional_tensor(6)?.filter(|bias| bias.dtype != DType::Int32) {
        bail!("the bias is {}, not int32", bias.dtype);
    }
    if inputs.optional(5).is_none() {
        return Ok(DType::Float32);
    }
    let dtype = check_codes(inputs, 5)?;
    check_limits(dtype, low, high)?;
    Ok(dtype)
}

/// Checks that codes of a dtype can lie between `low` and `high`.
pub(super) fn check_limits(dtype: DType, low: i32, high: i32) -> Result<()> {
    let range = if dtype == DType::Int8 { -128..=127 } else { 0..=255 };
    if low > high || !range.contains(&low) || !range.contains(&high) {
        bail!("codes from {low} to {high} are not of {dtype}");
    }
    Ok(())
}

/// The dtype of an input of codes.
pub(super) fn check_codes(inputs: &Types, i: usize) -> Result<DType> {
    match inputs.tensor(i)?.dtype {
        dtype @ (DType::Int8 | DType::Uint8) => Ok(dtype),
        dtype => bail!("input {i} is {dtype}; allowed are int8, uint8"),
    }
}

/// Whether codes are `int8`.
pub(crate) fn is_signed(codes: &Array) -> bool {
    codes.dtype() == DType::Int8
}

/// The elements of `int8` or `uint8`.
fn numbers(codes: &Array) -> Result<Vec<i32>> {
    let number = |&bits: &u8| if is_signed(codes) { i32::from(bits.cast_signed()) } else { i32::from(bits) };
    Ok(collected(codes.bits::<u8>()?.iter().map(number)))
}

/// The one element of `int8` or `uint8`.
pub(super) fn single(codes: &Array) -> Result<i32> {
    match numbers(codes)?[..] {
        [one] => Ok(one),
        _ => bail!("a zero point of shape {:?} is not one number", codes.dims()),
    }
}

/// `[N, C, …]` from `[N, …, C]`.
fn channels_second<T: Clone>(dims: &[T]) -> Vec<T> {
    let mut dims = dims.to_vec();
    if let [_, _, ..] = dims[..] {
        dims[1..].rotate_right(1);
    }
    dims
}

/// `[N, …, C]` from `[N, C, …]`.
fn channels_last<T: Clone>(dims: &[T]) -> Vec<T> {
    let mut dims = dims.to_vec();
    if let [_, _, ..] = dims[..] {
        dims[1..].rotate_left(1);
    }
    dims
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, tensor};

    fn conv(pads: [usize; 2], groups: usize, low: i32, high: i32) -> QLinearConv {
        QLinearConv { strides: vec![1], dilations: vec![1], pads: Padding::Explicit(vec![pads]), groups, low, high }
    }

    #[test]
    fn convolutions_have_their_channels_last_and_pad_with_the_zero_point() {
        // [N, W, C] = [1, 3, 2]; less the zero point: (1, 2), (3, 4), (5, 6)
        let x = Some(tensor(&[11u8, 12, 13, 14, 15, 16], &[1, 3, 2]));
        let w = Some(tensor(&[1i8, 2, 3, 4, -1, 0, 0, 1], &[2, 2, 2]));
        let one = |x: f32| Some(tensor(&[x], &[]));
        let zeros = (Some(tensor(&[10u8], &[])), Some(tensor(&[0i8, 0], &[2])));
        let (y_zero, bias) = (Some(tensor(&[100u8], &[])), Some(tensor(&[0i32, 3], &[2])));
        let sums = [10, 5, 29, 6, 49, 6];
        let inputs = [x.clone(), w.clone(), one(1.0), zeros.0.clone(), zeros.1.clone(), y_zero, bias.clone()];
        let y = run(&conv([1, 0], 1, 0, 140), &inputs).unwrap();
        let expected = sums.map(|sum: i32| u8::try_from((100 + sum).min(140)).unwrap());
        assert_eq!(y.tensor().unwrap().read::<u8>().unwrap(), expected);
        let inputs = [x, w, one(0.5), zeros.0, zeros.1, None, bias];
        let y = run(&conv([1, 0], 1, 0, 0), &inputs).unwrap();
        assert_eq!(y.tensor().unwrap().read::<f32>().unwrap(), sums.map(|sum| sum as f32 * 0.5));
    }

    #[test]
    fn products_are_rounded_to_even_and_saturate() {
        let a = Some(tensor(&[1i8, 2, 3, 4], &[2, 2]));
        let b = Some(tensor(&[128u8, 129, 130, 0], &[2, 2]));
        let scale = Some(tensor(&[0.5f32, 10.0], &[2]));
        let (a_zero, b_zero) = (Some(tensor(&[0i8], &[])), Some(tensor(&[128u8], &[])));
        let y_zero = Some(tensor(&[1i8], &[]));
        let op = QLinearMatMul { low: -128, high: 127 };
        let y = run(&op, &[a, b, scale, a_zero, b_zero, y_zero]).unwrap();
        assert_eq!(y.tensor().unwrap().read::<i8>().unwrap(), [3, -128, 5, -128]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let u = |len: usize, dims: &[usize]| Some(tensor(&vec![1u8; len], dims));
        let f = |len: usize| Some(tensor(&vec![1f32; len], &[len]));
        let one = u(1, &[]);
        for (kernel, inputs, expected) in [
            (&conv([0; 2], 1, 0, 256) as &dyn Kernel, [u(2, &[1, 1, 2]), u(2, &[1, 2, 1]), f(1)], "codes from"),
            (&conv([0; 2], 1, 0, 255), [u(2, &[1, 1, 2]), u(3, &[1, 3, 1]), f(1)], "channels"),
            (&conv([0; 2], 1, 0, 255), [u(2, &[1, 1, 2]), u(2, &[1, 2, 1]), f(2)], "2 scales"),
            (&conv([0; 2], 1, 0, 255), [f(2), u(2, &[1, 2, 1]), f(1)], "float32"),
            (&QLinearMatMul { low: 0, high: 255 }, [u(2, &[1, 2]), u(3, &[3, 1]), f(1)], "times"),
            (&QLinearMatMul { low: 0, high: 255 }, [u(2, &[1, 2]), u(2, &[1, 2, 1]), f(1)], "matrix"),
        ] {
            let inputs: Vec<_> = inputs.into_iter().chain([one.clone(), one.clone(), one.clone()]).collect();
            let error = run(kernel, &inputs).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
