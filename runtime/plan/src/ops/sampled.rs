//! The types in which elements are interpolated.

use std::borrow::Cow;

use candle_plan_kernels::buffer::{collected, mapped};
use candle_plan_kernels::real::Real;
use half::{bf16, f16};

use crate::dtype::Element;
use crate::float::Float;

/// An element type, and the type in which it is interpolated.
pub(crate) trait Sampled: Element {
    type Wide: Real + Element;
    fn widen(x: &[Self]) -> Cow<'_, [Self::Wide]>;
    /// Converts results to elements. Integers saturate; they are truncated, or rounded half up if `rounded`.
    fn narrow(y: Vec<Self::Wide>, rounded: bool) -> Vec<Self>;
}

macro_rules! sampled {
    ($($kind:ident in $wide:ident: $widen:expr, $narrow:expr;)*) => {
        $(impl Sampled for $kind {
            type Wide = $wide;

            fn widen(x: &[$kind]) -> Cow<'_, [$wide]> {
                $widen(x)
            }

            fn narrow(y: Vec<$wide>, rounded: bool) -> Vec<$kind> {
                $narrow(y, rounded)
            }
        })*
    };
}

fn from_integers<T: Copy + Into<f64>>(x: &[T]) -> Cow<'_, [f64]> {
    Cow::Owned(collected(x.iter().map(|&v| v.into())))
}

sampled! {
    f32 in f32: Float::widen, |y: Vec<f32>, _| Float::narrow(y);
    f64 in f64: Float::widen, |y: Vec<f64>, _| Float::narrow(y);
    f16 in f32: Float::widen, |y: Vec<f32>, _| Float::narrow(y);
    bf16 in f32: Float::widen, |y: Vec<f32>, _| Float::narrow(y);
    u8 in f64: from_integers, |y: Vec<f64>, rounded| mapped(y, |v| whole(v, rounded) as u8);
    i8 in f64: from_integers, |y: Vec<f64>, rounded| mapped(y, |v| whole(v, rounded) as i8);
    u16 in f64: from_integers, |y: Vec<f64>, rounded| mapped(y, |v| whole(v, rounded) as u16);
    i16 in f64: from_integers, |y: Vec<f64>, rounded| mapped(y, |v| whole(v, rounded) as i16);
    u32 in f64: from_integers, |y: Vec<f64>, rounded| mapped(y, |v| whole(v, rounded) as u32);
    i32 in f64: from_integers, |y: Vec<f64>, rounded| mapped(y, |v| whole(v, rounded) as i32);
}

/// A number to truncate to an integer. If `rounded`, truncation then rounds half up.
fn whole(v: f64, rounded: bool) -> f64 {
    if rounded {
        (v + 0.5).floor()
    } else {
        v
    }
}
