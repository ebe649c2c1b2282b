//! Element types of interpolation.

use std::borrow::Cow;

use candle_plan_kernels::float_types::Real;
use candle_plan_memory::buffer::{collected, mapped};

use super::convert::Float;
use crate::dtype::Element;

/// An element type that kernels interpolate. They compute in the type `Wide`: that of [`Float`], or `f64` for integers.
pub(crate) trait Sampled: Element {
    type Wide: Real + Element;
    fn widen(x: &[Self]) -> Cow<'_, [Self::Wide]>;
    /// Converts results to elements. Integers saturate; they are truncated, or rounded half up if `rounded`.
    fn narrow(y: Vec<Self::Wide>, rounded: bool) -> Vec<Self>;
}

impl<T: Float> Sampled for T {
    type Wide = <T as Float>::Wide;

    fn widen(x: &[T]) -> Cow<'_, [Self::Wide]> {
        Float::widen(x)
    }

    fn narrow(y: Vec<Self::Wide>, _rounded: bool) -> Vec<T> {
        Float::narrow(y)
    }
}

macro_rules! integers {
    ($($integer:ident)*) => {
        $(impl Sampled for $integer {
            type Wide = f64;

            fn widen(x: &[$integer]) -> Cow<'_, [f64]> {
                Cow::Owned(collected(x.iter().map(|&v| v.into())))
            }

            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Integers saturate.
            fn narrow(y: Vec<f64>, rounded: bool) -> Vec<$integer> {
                mapped(y, |v| whole(v, rounded) as $integer)
            }
        })*
    };
}

integers! { u8 i8 u16 i16 u32 i32 }

/// A number to truncate to an integer. If `rounded`, truncation then rounds half up.
fn whole(v: f64, rounded: bool) -> f64 {
    if rounded {
        (v + 0.5).floor()
    } else {
        v
    }
}
