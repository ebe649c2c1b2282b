//! GPU kernels: elementwise functions of 8-bit codes, and their means over images.

use bytemuck::{Pod, Zeroable};
use candle_plan_device::{Gpu, Grid, Symbol};

use super::int8::check_single;
use super::launch::{alloc_uninit, count, launch, Params};
use super::shapes::{Dims, Strides};
use super::OnGpu;
use crate::bail;
use crate::broadcast::join;
use crate::error::Result;
use crate::extent::one_element;
use crate::gpu::{gpu_kernel, has_few_dimensions};
use crate::kernel::Call;
use crate::ops::qlinear::is_signed;
use crate::ops::qlinear_elementwise::{scale_name, LookUp, QLinearBinary, QLinearFunction, QLinearGlobalAveragePool};
use crate::value::{Array, Value};

/// A and B broadcast to the `count` elements of Y; the scales and zero points are checked to have one element.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(Pairs in "qlinear_elementwise.cu")]
struct PairsParams {
    a: u64,
    b: u64,
    y: u64,
    a_scale: u64,
    a_zero: u64,
    b_scale: u64,
    b_zero: u64,
    y_scale: u64,
    y_zero: u64,
    count: u32,
    function: u32,
    aligned: u32,
    a_signed: u32,
    b_signed: u32,
    y_signed: u32,
    low: i32,
    high: i32,
    dims: Dims,
    a_strides: Strides,
    b_strides: Strides,
    padding: u32,
}

/// X and Y have `count` elements, and the table has 256.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(LookUp in "qlinear_elementwise.cu")]
struct LookUpParams {
    x: u64,
    table: u64,
    y: u64,
    count: u32,
    padding: u32,
}

/// X has the shape of the kernel's struct; the scale and the zero points are checked.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(Mean in "qlinear_elementwise.cu")]
struct MeanParams {
    x: u64,
    y: u64,
    scale: u64,
    x_zero: u64,
    y_zero: u64,
    images: u32,
    rows: u32,
    channels: u32,
    x_signed: u32,
    y_signed: u32,
    padding: u32,
}

/// Names a kernel of `qlinear_elementwise.cu`.
fn symbol(name: &'static str) -> Symbol {
    Symbol { module: "qlinear_elementwise", name, kind: "" }
}

/// Returns the address of a scale with one element.
pub(super) fn scale(call: &Call, i: usize) -> Result<u64> {
    let scale = call.tensor(i)?;
    one_element(&scale_name(i), scale.dims())?;
    scale.address()
}

/// Returns the address of a zero point with one element.
pub(super) fn zero_point(zero: &Array) -> Result<u64> {
    check_single(zero)?;
    zero.address()
}

gpu_kernel!(QLinearBinary: "qlinear_elementwise" if |self, operands| has_few_dimensions(operands));

impl OnGpu for QLinearBinary {
    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let (a, b, y_zero) = (call.tensor(0)?, call.tensor(1)?, call.tensor(7)?);
        let (dims, broadcast) = join(&[a.dims(), b.dims()])?;
        let y = alloc_uninit(gpu, &dims, y_zero.dtype())?;
        let params = PairsParams {
            a: a.address()?,
            b: b.address()?,
            y: y.address()?,
            a_scale: scale(call, 2)?,
            a_zero: zero_point(call.tensor(3)?)?,
            b_scale: scale(call, 4)?,
            b_zero: zero_point(call.tensor(5)?)?,
            y_scale: scale(call, 6)?,
            y_zero: zero_point(y_zero)?,
            count: count(y.len())?,
            function: match self.function {
                QLinearFunction::Add => 0,
                QLinearFunction::Mul => 1,
            },
            aligned: (a.dims() == b.dims()).into(),
            a_signed: is_signed(a).into(),
            b_signed: is_signed(b).into(),
            y_signed: is_signed(y_zero).into(),
            low: self.low,
            high: self.high,
            dims: Dims::new(&broadcast.dims)?,
            a_strides: Strides::of_operand(&broadcast, 0)?,
            b_strides: Strides::of_operand(&broadcast, 1)?,
            padding: 0,
        };
        launch(gpu, symbol("qlinear_pairs"), Grid::over(params.count), &params)?;
        Ok(vec![y.into()])
    }
}

gpu_kernel!(LookUp: "qlinear_elementwise");

impl OnGpu for LookUp {
    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let (x, table) = (call.tensor(0)?, call.tensor(1)?);
        LookUp::check_table(table.dims())?;
        let y = alloc_uninit(gpu, x.dims(), table.dtype())?;
        let (x, table, count) = (x.address()?, table.address()?, count(x.len())?);
        let params = LookUpParams { x, table, y: y.address()?, count, padding: 0 };
        launch(gpu, symbol("look_up_codes"), Grid::over(count), &params)?;
        Ok(vec![y.into()])
    }
}

gpu_kernel!(QLinearGlobalAveragePool: "qlinear_elementwise");

impl OnGpu for QLinearGlobalAveragePool {
    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        /// The channels per block.
        const WIDTH: u32 = 32;
        let (x, x_zero, y_zero) = (call.tensor(0)?, call.tensor(2)?, call.tensor(3)?);
        QLinearGlobalAveragePool::check_images(x.dims())?;
        let &[images, .., channels] = x.dims() else { bail!("images have channels") };
        let last = x.rank() - 1;
        let mut dims = x.dims().to_vec();
        dims[1..last].fill(1);
        let y = alloc_uninit(gpu, &dims, y_zero.dtype())?;
        count(x.len())?;
        let params = MeanParams {
            x: x.address()?,
            y: y.address()?,
            scale: scale(call, 1)?,
            x_zero: zero_point(x_zero)?,
            y_zero: zero_point(y_zero)?,
            images: count(images)?,
            rows: count(x.dims()[1..last].iter().product())?,
            channels: count(channels)?,
            x_signed: is_signed(x).into(),
            y_signed: is_signed(y_zero).into(),
            padding: 0,
        };
        let pieces = count(images.saturating_mul(channels.div_ceil(WIDTH as usize)))?;
        launch(gpu, symbol("qlinear_mean"), Grid::blocks(pieces), &params)?;
        Ok(vec![y.into()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, tensor};

    fn one<T: crate::dtype::Element>(x: T) -> Option<Value> {
        Some(tensor(&[x], &[]))
    }

    #[test]
    fn pairs_of_every_type_broadcast() {
        let bytes = |count: usize, step: usize| (0..count).map(|i| (i * step % 256) as u8).collect::<Vec<_>>();
        let signed =
            |count: usize, step: usize| bytes(count, step).into_iter().map(u8::cast_signed).collect::<Vec<_>>();
        let shapes: [[&[usize]; 2]; 4] = [[&[700], &[700]], [&[3, 1, 50], &[4, 1]], [&[2, 0], &[1]], [&[], &[2, 3]]];
        for function in [QLinearFunction::Add, QLinearFunction::Mul] {
            for [a, b] in shapes {
                let (m, n): (usize, usize) = (a.iter().product(), b.iter().product());
                let scales = [one(0.37f32), one(0.011f32), one(0.125f32)];
                for (a, a_zero) in [(tensor(&bytes(m, 31), a), one(100u8)), (tensor(&signed(m, 31), a), one(-3i8))] {
                    for (b, b_zero) in [(tensor(&bytes(n, 7), b), one(1u8)), (tensor(&signed(n, 7), b), one(-128i8))] {
                        for (y_zero, low, high) in [(one(128u8), 0, 255), (one(-20i8), -128, 100)] {
                            let [a_scale, b_scale, y_scale] = scales.clone();
                            let (a, b) = (Some(a.clone()), Some(b.clone()));
                            let inputs =
                                [a, b, a_scale, a_zero.clone(), b_scale, b_zero.clone(), y_scale, y_zero.clone()];
                            run(&QLinearBinary { function, low, high }, &inputs).expect("codes");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn means_of_images_of_all_sizes() {
        for dims in [&[2usize, 5, 7, 33][..], &[1, 300, 3], &[3, 65], &[1, 1, 1, 1], &[0, 2, 3]] {
            let count: usize = dims.iter().product();
            let x: Vec<i8> = (0..count).map(|i| ((i * 91) % 256) as u8 as i8).collect();
            for scale in [0.9f32, 0.01, f32::NAN] {
                let inputs = [Some(tensor(&x, dims)), one(scale), one(-7i8), one(3u8)];
                run(&QLinearGlobalAveragePool {}, &inputs).expect("means");
            }
        }
    }
}
