//! The elements of tensors in JSON: numbers, booleans, and the texts "NaN", "Infinity" and "-Infinity".

use candle_plan::{DType, Element};
use half::{bf16, f16};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// An element, as JSON gives it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    Signed(i64),
    Unsigned(u64),
    Real(f64),
    Truth(bool),
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Number::Signed(number) => number.fmt(f),
            Number::Unsigned(number) => number.fmt(f),
            Number::Real(number) => number.fmt(f),
            Number::Truth(truth) => truth.fmt(f),
        }
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Number, D::Error> {
        struct Element;
        impl Visitor<'_> for Element {
            type Value = Number;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a number, true or false")
            }

            fn visit_i64<E>(self, number: i64) -> Result<Number, E> {
                Ok(Number::Signed(number))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Number, E> {
                Ok(Number::Unsigned(number))
            }

            fn visit_f64<E>(self, number: f64) -> Result<Number, E> {
                Ok(Number::Real(number))
            }

            fn visit_bool<E>(self, truth: bool) -> Result<Number, E> {
                Ok(Number::Truth(truth))
            }

            /// Also a number in quotes, which becomes the nearest `float64`: JSON's numbers may differ in the last bit.
            fn visit_str<E: Error>(self, text: &str) -> Result<Number, E> {
                text.parse().map(Number::Real).map_err(|_| E::custom(format!("{text:?} is not a number")))
            }
        }
        deserializer.deserialize_any(Element)
    }
}

/// Runs `$body` with `$T` as the type of a tensor's elements.
macro_rules! by_type {
    ($dtype:expr, $T:ident => $body:expr) => {
        $crate::numbers::by_type!(@ $dtype, $T => $body;
            Bool: bool, Int8: i8, Int16: i16, Int32: i32, Int64: i64, Uint8: u8, Uint16: u16, Uint32: u32, Uint64: u64,
            Float16: half::f16, Bfloat16: half::bf16, Float32: f32, Float64: f64)
    };
    (@ $dtype:expr, $T:ident => $body:expr; $($name:ident: $rust:ty),*) => {
        match $dtype {
            $(candle_plan::DType::$name => {
                type $T = $rust;
                $body
            })*
            other => Err(candle_plan::Error::op(format!("JSON has no {other}"))),
        }
    };
}
pub(crate) use by_type;

/// A type of elements that JSON can hold.
pub trait InJson {
    /// The type of the elements in memory, which has the same bits.
    type Element: Element;
    /// The type of the elements in a plan.
    const DTYPE: DType;

    /// The element, unless the type does not have it.
    fn of(number: Number) -> Option<Self::Element>;

    /// The element as JSON.
    fn to_json(element: Self::Element) -> impl Serialize;
}

impl InJson for bool {
    type Element = u8;
    const DTYPE: DType = DType::Bool;

    fn of(number: Number) -> Option<u8> {
        match number {
            Number::Truth(truth) => Some(truth.into()),
            _ => None,
        }
    }

    fn to_json(element: u8) -> impl Serialize {
        element != 0
    }
}

macro_rules! whole {
    ($($whole:ty),*) => {$(impl InJson for $whole {
        type Element = $whole;
        const DTYPE: DType = <$whole as Element>::DTYPE;

        fn of(number: Number) -> Option<$whole> {
            match number {
                Number::Signed(number) => number.try_into().ok(),
                Number::Unsigned(number) => number.try_into().ok(),
                _ => None,
            }
        }

        fn to_json(element: $whole) -> impl Serialize {
            element
        }
    })*};
}
whole!(i8, i16, i32, i64, u8, u16, u32, u64);

/// A real number, or the text of one that JSON does not have.
#[derive(Serialize)]
#[serde(untagged)]
enum Real<T> {
    Finite(T),
    Text(&'static str),
}

macro_rules! real {
    ($($real:ty: $from:expr, $wide:ty;)*) => {$(impl InJson for $real {
        type Element = $real;
        const DTYPE: DType = <$real as Element>::DTYPE;

        fn of(number: Number) -> Option<$real> {
            let wide = match number {
                Number::Signed(number) => number as f64,
                Number::Unsigned(number) => number as f64,
                Number::Real(number) => number,
                Number::Truth(_) => return None,
            };
            let from: fn(f64) -> $real = $from;
            let element = from(wide);
            (<$wide>::from(element).is_finite() || !wide.is_finite()).then_some(element)
        }

        fn to_json(element: $real) -> impl Serialize {
            let wide = <$wide>::from(element);
            match wide {
                _ if wide.is_finite() => Real::Finite(wide),
                _ if wide.is_nan() => Real::Text("NaN"),
                _ if wide > 0.0 => Real::Text("Infinity"),
                _ => Real::Text("-Infinity"),
            }
        }
    })*};
}
real! {
    f16: f16::from_f64, f32;
    bf16: bf16::from_f64, f32;
    f32: |number| number as f32, f32;
    f64: |number| number, f64;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T: InJson>(text: &str) -> Option<T::Element> {
        T::of(serde_json::from_str(text).expect("an element"))
    }

    fn written<T: InJson>(element: T::Element) -> String {
        serde_json::to_string(&T::to_json(element)).expect("an element")
    }

    #[test]
    fn elements_go_both_ways() {
        assert_eq!(read::<u64>(&written::<u64>(u64::MAX)), Some(u64::MAX));
        assert_eq!(read::<i64>(&written::<i64>(i64::MIN)), Some(i64::MIN));
        assert_eq!(
            (written::<bool>(1), read::<bool>("true"), read::<bool>("false")),
            ("true".into(), Some(1), Some(0))
        );
        for number in [0.1, -0.0, f32::MIN_POSITIVE, f32::MAX, f32::INFINITY, f32::NEG_INFINITY] {
            assert_eq!(read::<f32>(&written::<f32>(number)).map(f32::to_bits), Some(number.to_bits()), "{number}");
            let half = f16::from_f32(number);
            assert_eq!(read::<f16>(&written::<f16>(half)).map(f16::to_bits), Some(half.to_bits()), "{half}");
        }
        assert!(read::<f64>(&written::<f64>(f64::NAN)).is_some_and(f64::is_nan));
    }

    #[test]
    fn other_elements_are_refused() {
        assert_eq!(read::<u8>("256"), None);
        assert_eq!(read::<i64>("1.5"), None);
        assert_eq!(read::<u32>("-1"), None);
        assert_eq!(read::<bool>("1"), None);
        assert_eq!(read::<f32>("true"), None);
        assert_eq!((read::<f32>("1e39"), read::<f16>("70000")), (None, None));
        assert!(serde_json::from_str::<Number>("\"one\"").is_err());
        assert!(serde_json::from_str::<Number>("null").is_err());
    }
}
