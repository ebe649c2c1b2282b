//! CPU kernels: general matrix products, `α·A·B + β·C`.

use candle_plan_kernels::gemm::{self, Bias, Finish, PackedB, ProductSizes, Right, Term};
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::products;

use super::convert::{converted, read_f32, widened_bytes};
use super::finish::with_finish;
use super::matrices::{form, is_single, matrix, pack, plain};
use super::packed::{HasKernel, Packed};
use super::planned::CpuOperands;
use super::product_forms::{float, is_narrow};
use crate::dispatch;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::form::{Alternative, KernelForm};
use crate::kernel::{Call, Kernel};
use crate::ops::gemm::{steps, Gemm};
use crate::types::Types;
use crate::value::{alloc_uninit, Array, Value};

impl HasKernel for Gemm {
    fn kernel(&self, operands: &CpuOperands) -> Result<Box<dyn Kernel>> {
        let packed = match operands.constants.tensor(1) {
            Some(b) if is_single(b.dtype()) && b.rank() == 2 => {
                let narrow = is_narrow(operands, self.trans_a);
                Some(pack(&read_f32(b)?, self.order(b, self.trans_b), self.trans_b, narrow))
            }
            _ => None,
        };
        Ok(Packed::boxed(self, packed))
    }
}

impl Kernel for Packed<Gemm, Option<PackedB>> {
    fn is_replaced(&self, input: usize) -> bool {
        self.packed.is_some() && input == 1
    }

    fn form(&self) -> KernelForm {
        let (op, packed) = (&self.op, self.packed.as_ref());
        KernelForm::of(packed, |packed: &PackedB| form(std::slice::from_ref(packed))).with(op.epilogue.as_ref())
    }

    fn alternatives(&self, inputs: &Types) -> Vec<Alternative> {
        let (op, packed) = (&self.op, self.packed.as_ref());
        float(packed.map(std::slice::from_ref), inputs, [op.trans_a, op.trans_b])
    }

    fn scratch(&self, inputs: &Types) -> Option<usize> {
        widened_bytes(&self.op, inputs, |i| self.is_replaced(i))
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (op, packed) = (&self.op, self.packed.as_ref());
        let (a, b, c) = (call.tensor(0)?, call.tensor(1)?, call.optional_tensor(2)?);
        let out = match a.dtype() {
            DType::Float32 => op.run_f32(packed, call, a, b, c)?,
            DType::Float16 | DType::Bfloat16 => {
                let widened = |array| converted(array, DType::Float32, call.threads);
                let c = c.map(widened).transpose()?;
                let wide = packed.is_none().then(|| widened(b)).transpose()?;
                let out = op.run_f32(packed, call, &widened(a)?, wide.as_ref().unwrap_or(b), c.as_ref())?;
                converted(&out, a.dtype(), call.threads)?
            }
            dtype => dispatch!("Gemm", dtype, [f64, i32, i64, u32, u64], T => op.run_plain::<T>(call, a, b, c))?,
        };
        Ok(vec![out.into()])
    }
}

/// A number type for the factors α and β: whole numbers for integers, any number for floats.
trait Scale: Term + Element {
    fn factor(value: f32) -> Self;
}

macro_rules! scale {
    ($($T:ident)*) => { $(impl Scale for $T {
        #[allow(clippy::cast_possible_truncation, clippy::cast_lossless, clippy::cast_sign_loss)]
        fn factor(value: f32) -> $T {
            (value as i64) as $T
        }
    })* };
}

scale! { i32 i64 u32 u64 }

impl Scale for f64 {
    fn factor(value: f32) -> f64 {
        f64::from(value)
    }
}

impl Gemm {
    fn run_f32(&self, packed: Option<&PackedB>, call: &Call, a: &Array, b: &Array, c: Option<&Array>) -> Result<Array> {
        let sizes = self.sizes(a, b, c)?;
        let ProductSizes { m, n, k } = sizes;
        let a = a.read::<f32>()?;
        let elements;
        let right = match packed {
            Some(packed) => Right::Packed(packed),
            None => {
                elements = b.read::<f32>()?;
                Right::Plain(matrix(elements, [k, n], self.trans_b))
            }
        };
        let addend = c.map(|c| Ok::<_, Error>((c.read::<f32>()?, steps(c.dims())))).transpose()?;
        let out = alloc_uninit(&[m, n])?;
        let out = with_finish(self.epilogue.as_ref(), call, &[m, n], |finish| {
            let (bias, scaled) = match &addend {
                Some((c, [0, 1])) if self.alpha == 1.0 && self.beta == 1.0 && c.len() == n => (Bias::Columns(c), None),
                None if self.alpha == 1.0 => (Bias::None, None),
                other => (Bias::None, Some(other.as_ref())),
            };
            let scale = |run: &mut [f32], offset: usize| {
                if let Some(addend) = scaled {
                    let addend = addend.map(|(c, steps)| (&c[..], *steps));
                    add_scaled(run, offset, n, addend, |x, c| self.alpha * x + self.beta * c);
                }
                if let Some(finish) = finish {
                    finish(run, offset);
                }
            };
            let scale: Option<Finish> = if scaled.is_some() { Some(&scale) } else { finish };
            let left = matrix(a, [m, k], self.trans_a);
            Ok(out
                .overwrite(|out| products::multiply(Isa::get(), call.threads, sizes, &left, &right, bias, out, scale)))
        })?;
        Array::new(out, &[m, n])
    }

    fn run_plain<T: Scale>(&self, call: &Call, a: &Array, b: &Array, c: Option<&Array>) -> Result<Array> {
        let ProductSizes { m, n, k } = self.sizes(a, b, c)?;
        let (a, b) = (a.read::<T>()?, b.read::<T>()?);
        let c = c.map(|c| Ok::<_, Error>((c.read::<T>()?, steps(c.dims())))).transpose()?;
        let (left, right) = (plain(a, [m, k], self.trans_a), plain(b, [k, n], self.trans_b));
        let product = |out: &mut [T]| gemm::product(call.threads, n, k, &left, &right, out);
        let mut out = alloc_uninit(&[m, n])?.overwrite(product);
        let (alpha, beta) = (T::factor(self.alpha), T::factor(self.beta));
        let addend = c.as_ref().map(|(c, steps)| (&c[..], *steps));
        if addend.is_some() || self.alpha != 1.0 {
            add_scaled(&mut out, 0, n, addend, |x, c| T::ZERO.add_product(alpha, x).add_product(beta, c));
        }
        Array::new(out, &[m, n])
    }
}

/// Combines the elements of an `[m, n]` result from `offset` on with those of an addend. `steps` are the addend's
/// strides; without an addend, it is zero.
fn add_scaled<T: Term>(
    run: &mut [T],
    offset: usize,
    n: usize,
    addend: Option<(&[T], [usize; 2])>,
    combine: impl Fn(T, T) -> T,
) {
    for (i, x) in run.iter_mut().enumerate() {
        let (row, column) = ((offset + i) / n, (offset + i) % n);
        let c = addend.map_or(T::ZERO, |(c, steps)| c[row * steps[0] + column * steps[1]]);
        *x = combine(*x, c);
    }
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;
    use crate::testing::{run, tensor};

    fn gemm(alpha: f32, beta: f32, trans_a: bool, trans_b: bool) -> Gemm {
        Gemm { alpha, beta, trans_a, trans_b, epilogue: None }
    }

    /// Tests with `[[1, 2, 3], [4, 5, 6]] · [[1, 0], [0, 1], [1, 1]] = [[4, 5], [10, 11]]`.
    #[test]
    fn transposes_factors_and_addends_in_every_type() {
        macro_rules! check {
            ($($T:ty: $from:expr;)*) => {$({
                let tensor = |x: &[u8], dims: &[usize]| {
                    Some(tensor(&x.iter().map(|&x| $from(x)).collect::<Vec<$T>>(), dims))
                };
                let a = [(tensor(&[1, 2, 3, 4, 5, 6], &[2, 3]), false), (tensor(&[1, 4, 2, 5, 3, 6], &[3, 2]), true)];
                let b = [(tensor(&[1, 0, 0, 1, 1, 1], &[3, 2]), false), (tensor(&[1, 0, 1, 0, 1, 1], &[2, 3]), true)];
                let c: [(Option<Value>, [u8; 4]); 6] = [
                    (None, [0, 0, 0, 0]),
                    (tensor(&[7], &[]), [7; 4]),
                    (tensor(&[7, 8], &[2]), [7, 8, 7, 8]),
                    (tensor(&[7, 8], &[1, 2]), [7, 8, 7, 8]),
                    (tensor(&[7, 8], &[2, 1]), [7, 7, 8, 8]),
                    (tensor(&[7, 8, 9, 1], &[2, 2]), [7, 8, 9, 1]),
                ];
                let operands = a.iter().flat_map(|a| b.iter().map(move |b| (a, b)));
                for (((a, trans_a), (b, trans_b)), (c, addend)) in
                    operands.flat_map(|operands| c.iter().map(move |c| (operands, c)))
                {
                    for (alpha, beta) in [(1u8, 1u8), (2, 1), (1, 3), (2, 0)] {
                        let op = gemm(f32::from(alpha), f32::from(beta), *trans_a, *trans_b);
                        let out = run(&op, &[a.clone(), b.clone(), c.clone()]).unwrap();
                        let y: Vec<$T> = [4, 5, 10, 11].iter().zip(addend).map(|(&y, c)| $from(alpha * y + beta * c)).collect();
                        assert_eq!(&out.tensor().unwrap().read::<$T>().unwrap()[..], y, "{op:?} {c:?}");
                    }
                }
            })*};
        }
        check! { f32: f32::from; f64: f64::from; f16: f16::from; i32: i32::from; u64: u64::from; }
    }

    #[test]
    fn wrong_shapes_and_factors_are_refused() {
        let f = |dims: &[usize]| Some(tensor(&vec![1f32; dims.iter().product()], dims));
        let i = |dims: &[usize]| Some(tensor(&vec![1i32; dims.iter().product()], dims));
        for (op, inputs, expected) in [
            (gemm(1., 1., true, false), vec![f(&[2, 3]), f(&[3, 2])], "2 columns"),
            (gemm(1., 1., false, false), vec![f(&[2, 3, 1]), f(&[3, 2])], "must be a matrix"),
            (gemm(1., 1., false, false), vec![f(&[2, 3]), f(&[3, 2]), f(&[3])], "broadcast"),
            (gemm(0.5, 1., false, false), vec![i(&[2, 3]), i(&[3, 2])], "whole"),
        ] {
            let error = run(&op, &inputs).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
