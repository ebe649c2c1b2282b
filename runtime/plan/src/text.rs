//! Numbers parsed from strings, and printed as onnxruntime prints them.

use half::{bf16, f16};

use crate::dispatch;
use crate::dtype::{Bool, DType, Element};
use crate::error::{Error, Result};
use crate::value::strings::Texts;
use crate::value::{try_list, Array, Strings, Value};

/// Parses strings as numbers, in the widest type of the kind of `to`: `float64`, `int64` or `uint64`. For `float32`, it
/// is `float32`.
///
/// # Errors
/// A string is not a number.
pub fn parse(strings: &Strings, to: DType) -> Result<Array> {
    fn all<T: Element + std::str::FromStr>(strings: &Strings, kind: &str) -> Result<Array> {
        let number = |text: &String| {
            let parsed = text.trim().trim_start_matches('+').parse();
            parsed.map_err(|_| Error::op(format!("{text:?} is not {kind}")))
        };
        Array::new(try_list::<T>(strings.data.iter().map(number))?, &strings.dims)
    }
    match to {
        DType::Uint64 => all::<u64>(strings, "an integer"),
        to if to.is_int() || to == DType::Bool => all::<i64>(strings, "an integer"),
        // Parsing through `float64` would round twice.
        DType::Float32 => all::<f32>(strings, "a number"),
        _ => all::<f64>(strings, "a number"),
    }
}

/// Prints numbers as strings: integers in decimal, booleans as 0 and 1, floats with as many significant digits as
/// onnxruntime's `%.8g` (`%.17g` for `float64`).
///
/// # Errors
/// The dtype is not numeric.
pub fn print(x: &Array) -> Result<Value> {
    match x.dtype() {
        DType::Float16 => each::<f16>(x, |v| general(v.to_f64(), 8)),
        DType::Bfloat16 => each::<bf16>(x, |v| general(v.to_f64(), 8)),
        DType::Float32 => each::<f32>(x, |&v| general(f64::from(v), 8)),
        DType::Float64 => each::<f64>(x, |&v| general(v, 17)),
        DType::Bool => each::<Bool>(x, |v| v.0.to_string()),
        dtype => dispatch!("Cast to string", dtype, [i8, i16, i32, i64, u8, u16, u32, u64], T => {
            each::<T>(x, ToString::to_string)
        }),
    }
}

/// Converts each element to a string.
fn each<T: Element>(x: &Array, text: impl Fn(&T) -> String) -> Result<Value> {
    let mut texts = Texts::with_capacity(x.len())?;
    for number in x.read::<T>()? {
        texts.push(&[&text(number)])?;
    }
    Ok(Value::Strings(texts.into_strings(x.dims())))
}

/// A number with `digits` significant digits and without trailing zeros, as C prints it with `%g`.
fn general(x: f64, digits: usize) -> String {
    if x.is_nan() {
        return "NaN".to_string();
    }
    if x.is_infinite() {
        return if x > 0.0 { "INF" } else { "-INF" }.to_string();
    }
    let scientific = format!("{x:.*e}", digits - 1);
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..digits as i32).contains(&exponent) {
        let decimals = (digits as i32 - 1 - exponent).unsigned_abs() as usize;
        return short(&format!("{x:.decimals$}")).to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", short(mantissa), exponent.abs())
}

fn short(decimal: &str) -> &str {
    if decimal.contains('.') {
        decimal.trim_end_matches('0').trim_end_matches('.')
    } else {
        decimal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_print_as_in_c() {
        for (x, digits, text) in [
            (0.0, 8, "0"),
            (-0.0, 8, "-0"),
            (1.0, 8, "1"),
            (100.0, 8, "100"),
            (0.1, 8, "0.1"),
            (0.1, 17, "0.10000000000000001"),
            (123456789.0, 8, "1.2345679e+08"),
            (12345678.0, 8, "12345678"),
            (0.0001, 8, "0.0001"),
            (0.00001, 8, "1e-05"),
            (-1.5e300, 17, "-1.5000000000000001e+300"),
        ] {
            assert_eq!(general(x, digits), text);
        }
    }
}
