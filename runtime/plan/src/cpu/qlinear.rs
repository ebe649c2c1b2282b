//! CPU kernels: convolutions and matrix products from 8-bit codes to 8-bit codes, as single steps.

use candle_plan_kernels::convolution::quantized::{self, Filter};
use candle_plan_kernels::convolution::rows::Shape;
use candle_plan_kernels::int8::{self, Codes, Matrix, Out, Requantize, Taps, Weights};
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::products;
use candle_plan_memory::buffer::collected;

use super::conv_case::one_image;
use super::packed::{HasKernel, Packed};
use super::planned::CpuOperands;
use super::product_forms::integer;
use crate::bail;
use crate::dtype::DType;
use crate::error::Result;
use crate::extent::{one_element, one_or_each};
use crate::form::{Alternative, KernelForm};
use crate::kernel::{Call, Kernel};
use crate::ops::qlinear::{is_signed, QLinearConv, QLinearMatMul, WEIGHTS_ZERO, ZERO};
use crate::ops::window::check_bias;
use crate::size::alloc_uninit;
use crate::types::Types;
use crate::value::{Array, Value};

impl HasKernel for QLinearConv {
    fn kernel(&self, operands: &CpuOperands) -> Result<Box<dyn Kernel>> {
        let constants = &operands.constants;
        let packed = match (constants.tensor(1), constants.tensor(4)) {
            (Some(w), Some(zero)) => Some(self.pack_weights(w, zero)?),
            _ => None,
        };
        Ok(Packed::boxed(self, packed))
    }
}

impl Kernel for Packed<QLinearConv, Option<Filter>> {
    fn is_replaced(&self, input: usize) -> bool {
        self.packed.is_some() && input == 1
    }

    fn form(&self) -> KernelForm {
        KernelForm::of(self.packed.as_ref(), |filter: &Filter| KernelForm::named(filter.form()).packed(filter.bytes()))
    }

    fn alternatives(&self, inputs: &Types) -> Vec<Alternative> {
        let (op, packed) = (&self.op, self.packed.as_ref());
        let found = op.image_shape(inputs).map(|shape| match packed {
            Some(filter) => filter.alternatives(shape.output[0].saturating_mul(shape.output[1])),
            None => quantized::alternatives(Isa::get(), &shape, inputs.tensor(1).is_ok_and(|w| w.dtype == DType::Int8)),
        });
        Alternative::all(found.unwrap_or_default())
    }

    fn scratch(&self, inputs: &Types) -> Option<usize> {
        let (op, packed) = (&self.op, self.packed.as_ref());
        let sizes = |i: usize| inputs.sizes(i).ok().flatten();
        packed?.is_cached(&op.shape(&sizes(0)?, &sizes(1)?).ok()?).then_some(0)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (op, packed) = (&self.op, self.packed.as_ref());
        let (x, w) = (call.tensor(0)?, call.tensor(1)?);
        let shape = op.shape(x.dims(), w.dims())?;
        let packed_here;
        let filter = match packed {
            Some(packed) => packed,
            None => {
                packed_here = op.pack_weights(w, call.tensor(4)?)?;
                &packed_here
            }
        };
        let mut dims = vec![shape.batch];
        dims.extend(&shape.output[4 - x.rank()..]);
        dims.push(shape.outputs);
        let bits = x.bits::<u8>()?;
        let codes = Codes { bits, signed: is_signed(x), zero: single(call.tensor(3)?)? };
        let end = End::new(call, [op.low, op.high], shape.outputs)?;
        let bias = end.bias;
        Ok(vec![end.write(&dims, |out| quantized::conv(call.threads, &shape, filter, codes, bias, out))?])
    }
}

impl HasKernel for QLinearMatMul {
    fn kernel(&self, operands: &CpuOperands) -> Result<Box<dyn Kernel>> {
        let constants = &operands.constants;
        let packed = match (constants.tensor(1), constants.tensor(4)) {
            (Some(b), Some(zero)) => Some(pack(b, Some(zero))?),
            _ => None,
        };
        Ok(Packed::boxed(self, packed))
    }
}

impl Kernel for Packed<QLinearMatMul, Option<Weights>> {
    fn is_replaced(&self, input: usize) -> bool {
        self.packed.is_some() && input == 1
    }

    fn form(&self) -> KernelForm {
        KernelForm::of(self.packed.as_ref(), |b: &Weights| {
            KernelForm::named(format!("int8, {}", b.form())).packed(b.bytes())
        })
    }

    fn alternatives(&self, inputs: &Types) -> Vec<Alternative> {
        integer(inputs, true)
    }

    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        self.packed.as_ref()?.is_cached().then_some(0)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (op, packed) = (&self.op, self.packed.as_ref());
        let (a, b) = (call.tensor(0)?, call.tensor(1)?);
        let packed_here;
        let weights = match packed {
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
        let end = End::new(call, [op.low, op.high], weights.columns())?;
        let bias = end.bias;
        Ok(vec![end.write(&dims, |out| int8::product(call.threads, codes, weights, bias, out))?])
    }
}

/// The conversion of sums to the result.
struct End<'a> {
    scale: &'a [f32],
    /// The zero point and dtype of the result; `None` for `float32`.
    to: Option<(i32, DType)>,
    limits: [i32; 2],
    bias: Option<&'a [i32]>,
}

impl<'a> End<'a> {
    /// Reads the operands of the conversion for `outputs` outputs.
    fn new(call: &'a Call, limits: [i32; 2], outputs: usize) -> Result<End<'a>> {
        let (scale, bias) = (call.read::<f32>(2)?, call.optional_tensor(6)?);
        one_or_each("the scale", call.tensor(2)?.dims(), Some(outputs))?;
        check_bias(bias.map(Array::dims), Some(outputs))?;
        let to = call.optional_tensor(5)?.map(|zero| single(zero).map(|code| (code, zero.dtype()))).transpose()?;
        Ok(End { scale, to, limits, bias: bias.map(Array::read::<i32>).transpose()? })
    }

    /// Returns the result that `run` writes.
    fn write(&self, dims: &[usize], run: impl FnOnce(Out)) -> Result<Value> {
        let [low, high] = self.limits;
        let Some((zero, dtype)) = self.to else {
            let out = alloc_uninit(dims)?.overwrite(|out| run(Out::Floats(out, self.scale)));
            return Ok(Array::new(out, dims)?.into());
        };
        let to = Requantize { scale: self.scale, zero, low, high };
        let out = alloc_uninit(dims)?.overwrite(|out| run(Out::Codes(out, to)));
        Ok(Array::new(out, dims)?.reinterpret(dtype)?.into())
    }
}

impl QLinearConv {
    /// The sizes of the convolution of one image, if the sizes of the image and of the weights are known.
    fn image_shape(&self, inputs: &Types) -> Option<Shape> {
        let [x, w] = one_image(inputs)?;
        self.shape(&x, &w).ok()
    }

    fn pack_weights(&self, w: &Array, zero: &Array) -> Result<Filter> {
        let outputs = w.dims().first().copied().unwrap_or(0);
        let zeros = numbers(zero)?;
        one_or_each(WEIGHTS_ZERO, zero.dims(), Some(outputs))?;
        if self.groups == 0 || !outputs.is_multiple_of(self.groups) {
            bail!("weights of shape {:?} do not make {} groups", w.dims(), self.groups);
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

/// Packs a matrix of codes. Without a zero point, it is 0.
pub(super) fn pack(b: &Array, zero: Option<&Array>) -> Result<Weights> {
    let &[k, n] = b.dims() else { bail!("B has shape {:?}; it must be a matrix", b.dims()) };
    let zeros = zero.map_or(Ok(vec![0]), numbers)?;
    one_or_each(WEIGHTS_ZERO, zero.map_or(&[][..], Array::dims), Some(n))?;
    let matrix = Matrix { bits: b.bits::<u8>()?, signed: is_signed(b), zeros: &zeros, row: n, column: 1 };
    Ok(products::pack_int8(Isa::get(), k, n, &matrix))
}

/// Returns the elements of an `int8` or `uint8` tensor, as `i32`.
fn numbers(codes: &Array) -> Result<Vec<i32>> {
    let number = |&bits: &u8| if is_signed(codes) { i32::from(bits.cast_signed()) } else { i32::from(bits) };
    Ok(collected(codes.bits::<u8>()?.iter().map(number)))
}

/// Returns the element of an `int8` or `uint8` tensor that has only one.
pub(super) fn single(codes: &Array) -> Result<i32> {
    one_element(ZERO, codes.dims())?;
    Ok(numbers(codes)?[0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::padding::Padding;
    use crate::testing::{run, tensor, Tested};

    fn conv(pads: [usize; 2], groups: usize, low: i32, high: i32) -> QLinearConv {
        QLinearConv { strides: vec![1], dilations: vec![1], pads: Padding::Explicit(vec![pads]), groups, low, high }
    }

    #[test]
    fn convolutions_have_their_channels_last_and_pad_with_the_zero_point() {
        // [N, W, C] = [1, 3, 2]; minus the zero point: (1, 2), (3, 4), (5, 6)
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
    fn wrong_shapes_and_limits_are_refused() {
        let u = |len: usize, dims: &[usize]| Some(tensor(&vec![1u8; len], dims));
        let f = |len: usize| Some(tensor(&vec![1f32; len], &[len]));
        let one = u(1, &[]);
        for (kernel, inputs, expected) in [
            (&conv([0; 2], 1, 0, 256) as &dyn Tested, [u(2, &[1, 1, 2]), u(2, &[1, 2, 1]), f(1)], "codes from"),
            (&conv([0; 2], 1, 0, 255), [u(2, &[1, 1, 2]), u(3, &[1, 3, 1]), f(1)], "channels"),
            (&conv([0; 2], 1, 0, 255), [u(2, &[1, 1, 2]), u(2, &[1, 2, 1]), f(2)], "the scale has shape [2]"),
            (&conv([0; 2], 1, 0, 255), [f(2), u(2, &[1, 2, 1]), f(1)], "float32"),
            (&QLinearMatMul { low: 0, high: 255 }, [u(2, &[1, 2]), u(3, &[3, 1]), f(1)], "does not multiply"),
            (&QLinearMatMul { low: 0, high: 255 }, [u(2, &[1, 2]), u(2, &[1, 2, 1]), f(1)], "matrix"),
        ] {
            let inputs: Vec<_> = inputs.into_iter().chain([one.clone(), one.clone(), one.clone()]).collect();
            let error = run(kernel, &inputs).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
