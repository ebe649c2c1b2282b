//! CPU kernels: elementwise functions of 8-bit codes, and their means over images.

use candle_plan_kernels::int8::{binary, look_up, mean, Codes, Function, Quantize};
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::threads::Threads;

use super::bounds::{counted, is_short, len, output_len};
use super::exact::broadcast;
use super::qlinear::single;
use crate::broadcast::join;
use crate::error::{Error, Result};
use crate::extent::one_element;
use crate::kernel::{Call, Kernel};
use crate::ops::qlinear::is_signed;
use crate::ops::qlinear_elementwise::{scale_name, LookUp, QLinearBinary, QLinearFunction, QLinearGlobalAveragePool};
use crate::size::alloc_uninit;
use crate::types::Types;
use crate::value::{Array, Value};

impl Kernel for QLinearBinary {
    fn scratch(&self, inputs: &Types) -> Option<usize> {
        let y = output_len(self, inputs)?;
        let expanded = |i: usize| Some(if len(inputs, i)? == y { 0 } else { counted::<u8>(y) });
        Some(expanded(0)?.saturating_add(expanded(1)?))
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (a, b, y_zero) = (call.tensor(0)?, call.tensor(1)?, call.tensor(7)?);
        let (dims, _) = join(&[a.dims(), b.dims()])?;
        let [a, b] = [expanded(a, &dims, call.threads)?, expanded(b, &dims, call.threads)?];
        let (a_bits, b_bits) = (a.bits::<u8>()?, b.bits::<u8>()?);
        let a = Codes { bits: a_bits, signed: is_signed(&a), zero: single(call.tensor(3)?)? };
        let b = Codes { bits: b_bits, signed: is_signed(&b), zero: single(call.tensor(5)?)? };
        let scales = [number(call, 2)?, number(call, 4)?];
        let by = Quantize { scale: number(call, 6)?, zero: single(y_zero)?, low: self.low, high: self.high };
        let function = match self.function {
            QLinearFunction::Add => Function::Add,
            QLinearFunction::Mul => Function::Mul,
        };
        let chunk = |i: usize, out: &mut [u8]| {
            let at = i * CHUNK..i * CHUNK + out.len();
            let (a, b) = (Codes { bits: &a.bits[at.clone()], ..a }, Codes { bits: &b.bits[at], ..b });
            binary(Isa::get(), function, a, b, scales, by, out);
        };
        let out = alloc_uninit(&dims)?.overwrite(|out| call.threads.for_each_chunk(out, CHUNK, chunk));
        Ok(vec![Array::new(out, &dims)?.reinterpret(y_zero.dtype())?.into()])
    }
}

/// Codes per task.
const CHUNK: usize = 1 << 16;

impl Kernel for LookUp {
    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        Some(0)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (x, table) = (call.tensor(0)?, call.tensor(1)?);
        LookUp::check_table(table.dims())?;
        let table_bits: &[u8; 256] = table.bits::<u8>()?.try_into().map_err(|_| Error::op("the table is too short"))?;
        let x_bits = x.bits::<u8>()?;
        let chunk = |i: usize, out: &mut [u8]| look_up(table_bits, &x_bits[i * CHUNK..i * CHUNK + out.len()], out);
        let out = alloc_uninit(x.dims())?.overwrite(|out| call.threads.for_each_chunk(out, CHUNK, chunk));
        Ok(vec![Array::new(out, x.dims())?.reinterpret(table.dtype())?.into()])
    }
}

impl Kernel for QLinearGlobalAveragePool {
    fn scratch(&self, inputs: &Types) -> Option<usize> {
        is_short(*inputs.sizes(0).ok()??.last()?).then_some(0)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (x, y_zero) = (call.tensor(0)?, call.tensor(3)?);
        let mut dims = x.dims().to_vec();
        QLinearGlobalAveragePool::check_images(&dims)?;
        let image: usize = dims[1..].iter().product();
        let (low, high) = if is_signed(y_zero) { (-128, 127) } else { (0, 255) };
        let by = Quantize { scale: number(call, 1)?, zero: single(y_zero)?, low, high };
        let last = dims.len() - 1;
        dims[1..last].fill(1);
        let (bits, zero) = (x.bits::<u8>()?, single(call.tensor(2)?)?);
        let out = alloc_uninit::<u8>(&dims)?.overwrite(|out| {
            for (bits, out) in bits.chunks(image).zip(out.chunks_mut(dims[last])) {
                mean(Isa::get(), Codes { bits, signed: is_signed(x), zero }, by, out);
            }
        });
        Ok(vec![Array::new(out, &dims)?.reinterpret(y_zero.dtype())?.into()])
    }
}

/// Returns the only element of `float32` input `i`.
fn number(call: &Call, i: usize) -> Result<f32> {
    one_element(&scale_name(i), call.tensor(i)?.dims())?;
    Ok(call.read::<f32>(i)?[0])
}

/// Broadcasts the codes to a shape.
fn expanded(x: &Array, dims: &[usize], threads: &Threads) -> Result<Array> {
    if x.dims() == dims {
        return Ok(x.clone());
    }
    broadcast(x, dims, threads)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, tensor};

    #[test]
    fn pairs_broadcast() {
        let a = Some(tensor(&[1u8, 2, 3, 4], &[2, 2]));
        let b = Some(tensor(&[-1i8, 10], &[2]));
        let one = |x: f32| Some(tensor(&[x], &[]));
        let (zero, signed) = (Some(tensor(&[0u8], &[])), Some(tensor(&[1i8], &[])));
        for (function, expected) in [(QLinearFunction::Add, [0u8, 6, 0, 6]), (QLinearFunction::Mul, [0, 9, 0, 18])] {
            let inputs =
                [a.clone(), b.clone(), one(1.0), zero.clone(), one(1.0), signed.clone(), one(2.0), zero.clone()];
            let y = run(&QLinearBinary { function, low: 0, high: 255 }, &inputs).unwrap();
            assert_eq!(y.tensor().unwrap().read::<u8>().unwrap(), expected, "{function:?}");
        }
    }

    #[test]
    fn tables_and_means() {
        let table: Vec<i8> = (0..=255u8).map(|i| i.wrapping_add(1).cast_signed()).collect();
        let y = run(&LookUp {}, &[Some(tensor(&[-1i8, 0, 127], &[3])), Some(tensor(&table, &[256]))]).unwrap();
        assert_eq!(y.tensor().unwrap().read::<i8>().unwrap(), [0, 1, -128]);
        let x = Some(tensor(&[1u8, 2, 3, 10], &[1, 1, 2, 2]));
        let inputs = [x, Some(tensor(&[2f32], &[])), Some(tensor(&[0u8], &[])), Some(tensor(&[5u8], &[]))];
        let y = run(&QLinearGlobalAveragePool {}, &inputs).unwrap();
        assert_eq!(y.tensor().unwrap().read::<u8>().unwrap(), [6, 8]);
        assert_eq!(y.tensor().unwrap().dims(), [1, 1, 1, 2]);
    }
}
