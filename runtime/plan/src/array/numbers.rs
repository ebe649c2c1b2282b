//! The elements of a tensor as numbers of one type. Operators read shapes, axes, indices and factors with these functions.

use std::fmt::Display;

use candle_plan_descriptors::cast::Source;
use candle_plan_memory::buffer::mapped;
use half::{bf16, f16};

use super::Array;
use crate::dispatch;
use crate::dtype::{Bool, DType};
use crate::error::{Error, Result};
use crate::size::{copied, list, try_list};

/// Returns the error for an integer, element `place` of its tensor, that is too large for [`Array::to_i64`].
pub(crate) fn beyond_i64(integer: impl Display, place: usize) -> String {
    format!("{integer} does not fit in 64 bits (element {place})")
}

impl Array {
    /// Converts the elements of an integer or boolean tensor to `i64`.
    ///
    /// # Errors
    /// The type is not an integer, or a value does not fit.
    #[allow(clippy::unnecessary_fallible_conversions)] // infallible for some of the types
    pub fn to_i64(&self) -> Result<Vec<i64>> {
        match self.dtype {
            DType::Int64 => copied(self.read::<i64>()?),
            DType::Bool => list(self.read::<Bool>()?.iter().map(|b| i64::from(b.0))),
            dtype => dispatch!("an index", dtype, [i32, i16, i8, u8, u16, u32, u64], T => {
                let fits = |(place, v): (usize, &T)| i64::try_from(*v).map_err(|_| Error::Op(beyond_i64(v, place)));
                try_list(self.read::<T>()?.iter().enumerate().map(fits))
            }),
        }
    }

    /// Converts the elements of a tensor of numbers to `f64`, each rounded to nearest.
    ///
    /// # Errors
    /// The tensor is not numeric.
    pub fn to_f64(&self) -> Result<Vec<f64>> {
        dispatch!("a number", self.dtype, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64], T => {
            list(self.read::<T>()?.iter().map(|&v| Source::to_f64(v)))
        })
    }

    /// Converts the elements of a tensor of numbers to `i64`, with fractions truncated.
    ///
    /// # Errors
    /// The tensor is not numeric, or an integer does not fit.
    #[allow(clippy::cast_possible_truncation)]
    pub fn to_truncated(&self) -> Result<Vec<i64>> {
        if !self.dtype.is_float() {
            return self.to_i64();
        }
        Ok(mapped(self.to_f64()?, |value| value as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_types_are_read() {
        let halves = Array::new([1.5, -2.75].map(f16::from_f64).to_vec(), &[2]).expect("two");
        assert_eq!(halves.to_f64().expect("numbers"), [1.5, -2.75]);
        assert_eq!(halves.to_truncated().expect("numbers"), [1, -2]);
        let integers = Array::new(vec![3u64, u64::MAX], &[2]).expect("two");
        assert_eq!(integers.to_f64().expect("numbers"), [3.0, 2f64.powi(64)]);
        assert!(integers.to_truncated().is_err() && halves.to_i64().is_err());
        let flags = Array::new(vec![Bool(1)], &[1]).expect("one");
        assert_eq!((flags.to_i64().ok(), flags.to_f64().is_err()), (Some(vec![1]), true));
    }
}
