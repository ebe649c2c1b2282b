//! GPU kernels: casts and bit casts.

use bytemuck::{Pod, Zeroable};
use candle_plan_descriptors::minifloat::{Format as Minifloat, Special};
use candle_plan_device::{Gpu, Grid, Mirror, Symbol};

use super::launch::{alloc_uninit, count, kind, launch, width, Params};
use super::numbers::number;
use super::OnGpu;
use crate::bail;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::gpu_kernel;
use crate::kernel::Call;
use crate::ops::cast::{bits, format_of, BitCast, Cast, Round};
use crate::value::{Array, Value};

/// A format of floating-point numbers of 8 or 4 bits.
#[derive(Clone, Copy, Pod, Zeroable, Mirror)]
#[repr(C)]
#[kernel(MiniFormat in "minifloat.cuh")]
struct Format {
    exponent: u32,
    mantissa: u32,
    bias: i32,
    special: u32,
}

/// X and Y have `count` elements.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(CastOf in "cast.cu")]
struct CastParams {
    x: u64,
    y: u64,
    count: u32,
    from: u32,
    shift: u32,
    is_mini: u32,
    decoder: Format,
    encoder: Format,
    saturates: u32,
    round: u32,
}

impl Format {
    /// Returns the format of a small float.
    fn of(dtype: DType) -> Option<Format> {
        let of = |format: Minifloat| Format {
            exponent: format.exponent,
            mantissa: format.mantissa,
            bias: format.bias,
            special: match format.special {
                Special::Ieee => 0,
                Special::AllOnes => 1,
                Special::NegativeZero => 2,
                Special::Finite => 3,
            },
        };
        let scale = (dtype == DType::Float8E8M0Fnu).then_some(Format { special: 4, ..Format::zeroed() });
        format_of(dtype).map(of).or(scale)
    }
}

/// Returns the number of high bits that a small integer does not use in its byte.
fn missing_bits(dtype: DType) -> u32 {
    match dtype {
        DType::Int4 | DType::Uint4 => 4,
        DType::Int2 | DType::Uint2 => 6,
        _ => 0,
    }
}

/// Returns the numbers of a tensor, each rounded to the nearest `bfloat16`.
pub(super) fn rounded(gpu: &Gpu, x: &Array) -> Result<Array> {
    let rest = CastParams { from: number(x.dtype())?, ..CastParams::zeroed() };
    run_cast(gpu, x, DType::Bfloat16, kind(DType::Bfloat16)?, rest)
}

/// Runs `cast_<kind>` on all elements, with the other parameters in `rest`.
fn run_cast(gpu: &Gpu, x: &Array, to: DType, kind: &'static str, rest: CastParams) -> Result<Array> {
    let y = alloc_uninit(gpu, x.dims(), to)?;
    let params = CastParams { x: x.address()?, y: y.address()?, count: count(x.len())?, ..rest };
    launch(gpu, Symbol { module: "cast", name: "cast", kind }, Grid::over(params.count), &params)?;
    Ok(y)
}

gpu_kernel!(Cast: "cast" if |self, operands| operands.dtype(0).is_some_and(|dtype| dtype != DType::String && self.to != DType::String));

impl OnGpu for Cast {
    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        if x.dtype() == self.to {
            return Ok(vec![x.clone().into()]);
        }
        let (decoder, encoder) = (Format::of(x.dtype()), Format::of(self.to));
        let from = if decoder.is_some() { 0 } else { number(x.dtype())? };
        let kind = match self.to {
            DType::Bool => "bool",
            DType::Int2 | DType::Int4 => "i8",
            DType::Uint2 | DType::Uint4 => "u8",
            _ if encoder.is_some() => "mini",
            to => kind(to)?,
        };
        let rest = CastParams {
            from,
            shift: missing_bits(self.to),
            is_mini: decoder.is_some().into(),
            decoder: decoder.unwrap_or_else(Format::zeroed),
            encoder: encoder.unwrap_or_else(Format::zeroed),
            saturates: self.saturate.into(),
            round: match self.round {
                Round::Up => 0,
                Round::Down => 1,
                Round::Nearest => 2,
            },
            ..CastParams::zeroed()
        };
        Ok(vec![run_cast(gpu, x, self.to, kind, rest)?.into()])
    }
}

gpu_kernel!(BitCast: "cast");

impl OnGpu for BitCast {
    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        if bits(x.dtype())? != bits(self.to)? {
            bail!("{} and {} differ in width", x.dtype(), self.to);
        }
        let word = match width(x.dtype())? {
            "u8" => DType::Uint8,
            "u16" => DType::Uint16,
            "u32" => DType::Uint32,
            _ => DType::Uint64,
        };
        let is_signed = matches!(self.to, DType::Int2 | DType::Int4);
        let shift = 8u32.saturating_sub(bits(self.to)? as u32);
        let rest = CastParams { from: number(word)?, shift, ..CastParams::zeroed() };
        Ok(vec![run_cast(gpu, x, self.to, if is_signed { "i8" } else { kind(word)? }, rest)?.into()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::NUMBERS;
    use crate::testing::{run, tensor};
    use DType::*;

    const SMALL_FLOATS: [DType; 6] =
        [Float4E2M1Fn, Float8E4M3Fn, Float8E4M3Fnuz, Float8E5M2, Float8E5M2Fnuz, Float8E8M0Fnu];

    fn all() -> impl Iterator<Item = DType> {
        NUMBERS.into_iter().chain([Bool, Int2, Int4, Uint2, Uint4]).chain(SMALL_FLOATS)
    }

    /// Lists of numbers of similar magnitude, because the tolerance depends on the largest result.
    fn lists() -> [Vec<f64>; 6] {
        let step = |exponent: i32| 2f64.powi(exponent);
        [
            (-400..400).map(|i| f64::from(i) / 8.0).collect(),
            vec![0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.0, -1.0, 0.5, 1.0 + step(-11) + step(-30)],
            (0..300).map(|i| step(-i / 2) * (1.0 + f64::from(i % 8) / 8.0)).collect(),
            vec![255.5, 300.0, -300.0, 65504.0, 65520.0, 2049.0, 57344.0, 61440.0, 448.0, 464.0, 240.0, 248.0, 70000.0],
            vec![3e9, -3e9, step(31) - 0.5, -step(31) - 0.5, step(32), step(24) + 1.0, step(32) + 77.0],
            vec![step(63), -step(63), -step(63) - step(12), 1.5e19, step(64), 1e19, 9e18, -9e18, 1e18 + 128.0],
        ]
    }

    #[test]
    fn every_type_casts_to_every_type() {
        for list in lists() {
            let cast = |to, saturate, round, x: &Value| run(&Cast { to, saturate, round }, &[Some(x.clone())]);
            let wide = tensor(&list, &[list.len()]);
            for from in all() {
                let x = cast(from, false, Round::Nearest, &wide).expect("casts");
                for to in all() {
                    cast(to, true, Round::Up, &x).expect("casts");
                    if Format::of(to).is_some() {
                        cast(to, false, Round::Nearest, &x).expect("casts");
                        cast(to, true, Round::Down, &x).expect("casts");
                    }
                }
            }
        }
        let none = run(&Cast { to: Int8, saturate: true, round: Round::Up }, &[Some(tensor::<f32>(&[], &[2, 0]))]);
        assert!(none.is_ok());
    }

    #[test]
    fn bit_casts_between_every_pair_of_types() {
        let bytes: Vec<u64> = (0..333).map(|i: u64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
        let wide = tensor(&bytes, &[9, 37]);
        for from in all() {
            let x = run(&Cast { to: from, saturate: true, round: Round::Up }, &[Some(wide.clone())]).expect("casts");
            for to in all() {
                let is_as_wide = bits(from).expect("bits") == bits(to).expect("bits");
                assert_eq!(run(&BitCast { to }, &[Some(x.clone())]).is_ok(), is_as_wide, "{from} {to}");
            }
        }
    }
}
