//! The reductions of a window.

use crate::float_types::Real;
use crate::isa::Level;
use crate::reduce::Ordered;

/// A reduction.
pub(super) trait Rule: Copy + Sync {
    type Element: bytemuck::Pod + Send + Sync;
    type Partial: Copy + Send;
    /// The widest level that the reduction is compiled for.
    const WIDEST: Level;
    const START: Self::Partial;
    fn lift(self, x: Self::Element) -> Self::Partial;
    fn join(a: Self::Partial, b: Self::Partial) -> Self::Partial;
    /// Converts a number of rows or columns to a factor of the weight.
    fn weight(self, count: f32) -> f32 {
        count
    }
    /// Converts the total of a window to its result. Its weight is the product of the weights of its rows and columns.
    fn finish(self, total: Self::Partial, weight: f32) -> Self::Element;
}

pub(super) struct Max<T>(pub std::marker::PhantomData<T>);
pub(super) struct Average<T>(pub bool, pub std::marker::PhantomData<T>);
pub(super) struct Norm<T>(pub f64, pub std::marker::PhantomData<T>);

macro_rules! copy {
    ($($rule:ident)*) => {
        $(impl<T> Clone for $rule<T> {
            fn clone(&self) -> Self {
                *self
            }
        }
        impl<T> Copy for $rule<T> {})*
    };
}

copy! { Max Average Norm }

impl<T: Ordered> Rule for Max<T> {
    type Element = T;
    type Partial = T;
    const WIDEST: Level = T::WIDEST;
    const START: T = T::LEAST;
    #[inline(always)]
    fn lift(self, x: T) -> T {
        x
    }
    #[inline(always)]
    fn join(a: T, b: T) -> T {
        if b > a {
            b
        } else {
            a
        }
    }
    #[inline(always)]
    fn finish(self, total: T, _: f32) -> T {
        total
    }
}

impl<R: Real> Rule for Average<R> {
    type Element = R;
    type Partial = R;
    const WIDEST: Level = R::WIDEST;
    const START: R = R::ZERO;
    #[inline(always)]
    fn lift(self, x: R) -> R {
        x
    }
    #[inline(always)]
    fn join(a: R, b: R) -> R {
        a + b
    }
    /// The reciprocal if it is exact: a multiplication is faster than a division.
    #[inline(always)]
    fn weight(self, count: f32) -> f32 {
        if self.0 {
            1.0 / count
        } else {
            count
        }
    }
    #[inline(always)]
    fn finish(self, total: R, weight: f32) -> R {
        let weight = R::from_f64(f64::from(weight));
        if self.0 {
            total * weight
        } else {
            total / weight
        }
    }
}

impl<R: Real> Rule for Norm<R> {
    type Element = R;
    type Partial = R;
    const WIDEST: Level = Level::Scalar;
    const START: R = R::ZERO;
    #[inline(always)]
    fn lift(self, x: R) -> R {
        let x = x.abs();
        match self.0 {
            1.0 => x,
            2.0 => x * x,
            p => x.powf(R::from_f64(p)),
        }
    }
    #[inline(always)]
    fn join(a: R, b: R) -> R {
        a + b
    }
    #[inline(always)]
    fn finish(self, total: R, _: f32) -> R {
        match self.0 {
            1.0 => total,
            2.0 => total.sqrt(),
            p => total.powf(R::from_f64(1.0 / p)),
        }
    }
}
