//! Four vectors as one.

use half::{bf16, f16};

use super::Vector;

/// The vectors that a function of a long slice computes together. Without optimization, every temporary has its own stack
/// space, so it is a single vector.
#[cfg(not(unoptimized))]
pub(crate) type Together<V> = Four<V>;
#[cfg(unoptimized)]
pub(crate) type Together<V> = V;

/// Four vectors. A function computes each of its operations for all four before the next one. In a single vector, most
/// operations wait for the result of the one before, and the processor looks only a few dozen operations ahead for others.
#[derive(Clone, Copy)]
pub(crate) struct Four<V>(pub V, pub V, pub V, pub V);

/// Evaluates `$function` for each of the four vectors of the variables. It is written out: a closure has the instruction
/// set's features only if it is inlined.
macro_rules! each {
    (|$($x:ident),+| $function:expr) => {
        Four(
            each!(@part 0 |$($x),+| $function),
            each!(@part 1 |$($x),+| $function),
            each!(@part 2 |$($x),+| $function),
            each!(@part 3 |$($x),+| $function),
        )
    };
    (@part $part:tt |$($x:ident),+| $function:expr) => {{
        $(let $x = $x.$part;)+
        $function
    }};
}

/// Implements operators for each of the four.
macro_rules! operators {
    ($($trait:ident $method:ident;)*) => {
        $(impl<V: Vector> std::ops::$trait for Four<V> {
            type Output = Self;

            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                let x = self;
                each!(|x, other| x.$method(other))
            }
        })*
    };
}

operators! {
    Add add;
    Sub sub;
    Mul mul;
    Div div;
}

/// Implements methods that apply the same method to each of the four.
macro_rules! methods {
    ($($method:ident($($other:ident),*) -> $result:ty;)*) => {
        $(#[inline(always)]
        fn $method(self, $($other: Self),*) -> $result {
            let x = self;
            each!(|x $(, $other)*| x.$method($($other),*))
        })*
    };
}

impl<V: Vector> Four<V> {
    /// Returns the four if each of them is a vector of consecutive elements.
    #[inline(always)]
    fn parts(make: impl Fn(usize) -> V) -> Self {
        Four(make(0), make(V::LANES), make(2 * V::LANES), make(3 * V::LANES))
    }

    /// Keeps the operations before this one before those after it, for all four.
    #[inline(always)]
    fn in_step(self) -> Self {
        let [a, b, c, d] = V::in_step([self.0, self.1, self.2, self.3]);
        Four(a, b, c, d)
    }
}

/// The number of the first `count` elements that lie in the vector which starts at element `at`.
#[inline(always)]
fn beyond<V: Vector>(count: usize, at: usize) -> usize {
    count.saturating_sub(at).min(V::LANES)
}

impl<V: Vector> Vector for Four<V> {
    const LANES: usize = 4 * V::LANES;
    type Mask = Four<V::Mask>;

    #[inline(always)]
    fn splat(value: f32) -> Self {
        let x = V::splat(value);
        Four(x, x, x, x)
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        Four::parts(
            #[inline(always)]
            // SAFETY: guaranteed by the caller, for all lanes together.
            |at| unsafe { V::load(from.wrapping_add(at)) },
        )
    }

    #[inline(always)]
    unsafe fn load_f16(from: *const f16) -> Self {
        Four::parts(
            #[inline(always)]
            // SAFETY: guaranteed by the caller, for all lanes together.
            |at| unsafe { V::load_f16(from.wrapping_add(at)) },
        )
    }

    #[inline(always)]
    unsafe fn load_bf16(from: *const bf16) -> Self {
        Four::parts(
            #[inline(always)]
            // SAFETY: guaranteed by the caller, for all lanes together.
            |at| unsafe { V::load_bf16(from.wrapping_add(at)) },
        )
    }

    #[inline(always)]
    unsafe fn load_first(from: *const f32, count: usize) -> Self {
        Four::parts(
            #[inline(always)]
            // SAFETY: guaranteed by the caller, for all lanes together. A vector without elements reads none.
            |at| unsafe { V::load_first(from.wrapping_add(at), beyond::<V>(count, at)) },
        )
    }

    #[inline(always)]
    unsafe fn load_padded(from: *const f32, count: usize, beyond_it: f32) -> Self {
        Four::parts(
            #[inline(always)]
            // SAFETY: guaranteed by the caller, for all lanes together. A vector without elements reads none.
            |at| unsafe { V::load_padded(from.wrapping_add(at), beyond::<V>(count, at), beyond_it) },
        )
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        let at = |part: usize| to.wrapping_add(part * V::LANES);
        // SAFETY: guaranteed by the caller, for all lanes together.
        unsafe {
            self.0.store(at(0));
            self.1.store(at(1));
            self.2.store(at(2));
            self.3.store(at(3));
        }
    }

    #[inline(always)]
    unsafe fn store_first(self, to: *mut f32, count: usize) {
        let at = |part: usize| to.wrapping_add(part * V::LANES);
        let left = |part: usize| beyond::<V>(count, part * V::LANES);
        // SAFETY: guaranteed by the caller, for all lanes together. A vector without elements writes none.
        unsafe {
            self.0.store_first(at(0), left(0));
            self.1.store_first(at(1), left(1));
            self.2.store_first(at(2), left(2));
            self.3.store_first(at(3), left(3));
        }
    }

    #[inline(always)]
    fn mul_add(self, a: Self, b: Self) -> Self {
        let x = self;
        each!(|x, a, b| x.mul_add(a, b)).in_step()
    }

    #[inline(always)]
    fn neg_mul_add(self, a: Self, b: Self) -> Self {
        let x = self;
        each!(|x, a, b| x.neg_mul_add(a, b)).in_step()
    }

    methods! {
        lesser(other) -> Self;
        greater(other) -> Self;
        abs() -> Self;
        neg() -> Self;
        copy_sign(sign) -> Self;
        sqrt() -> Self;
        floor() -> Self;
        ceil() -> Self;
        round() -> Self;
        times_power_of_two(n) -> Self;
        times_normal_power_of_two(n) -> Self;
        less(other) -> Self::Mask;
        less_or_equal(other) -> Self::Mask;
        equal(other) -> Self::Mask;
        is_nan() -> Self::Mask;
    }

    #[inline(always)]
    fn split(self) -> (Self, Self) {
        let x = self;
        let both = each!(|x| x.split());
        (each!(|both| both.0), each!(|both| both.1))
    }

    #[inline(always)]
    fn pick(self, table: &[f32; 8]) -> Self {
        let x = self;
        each!(|x| x.pick(table))
    }

    #[inline(always)]
    fn sum(self) -> f32 {
        (self.0.sum() + self.1.sum()) + (self.2.sum() + self.3.sum())
    }

    #[inline(always)]
    fn largest(self) -> f32 {
        self.0.greater(self.1).greater(self.2.greater(self.3)).largest()
    }

    #[inline(always)]
    fn select(mask: Self::Mask, yes: Self, no: Self) -> Self {
        each!(|mask, yes, no| V::select(mask, yes, no))
    }

    #[inline(always)]
    fn any(mask: Self::Mask) -> bool {
        V::any(mask.0) || V::any(mask.1) || V::any(mask.2) || V::any(mask.3)
    }

    #[inline(always)]
    fn each_lane(self, function: impl Fn(f32) -> f32) -> Self {
        let (x, function) = (self, &function);
        each!(|x| x.each_lane(function))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const X: [f32; 4] = [-1.5, 0.75, 2.0, 30.0];

    fn lanes(x: Four<f32>) -> [f32; 4] {
        [x.0, x.1, x.2, x.3]
    }

    #[test]
    fn a_part_of_four_vectors_is_loaded_and_stored() {
        for count in 0..=4 {
            let mut out = [9.0; 4];
            // SAFETY: `count` elements can be read and written.
            let (first, padded) = unsafe {
                let first = Four::<f32>::load_first(X.as_ptr(), count);
                first.store_first(out.as_mut_ptr(), count);
                (first, Four::<f32>::load_padded(X.as_ptr(), count, 7.0))
            };
            let expected = |beyond: f32| std::array::from_fn(|i| if i < count { X[i] } else { beyond });
            assert_eq!((lanes(first), lanes(padded), out), (expected(0.0), expected(7.0), expected(9.0)), "{count}");
        }
    }

    #[test]
    fn four_vectors_equal_single_ones() {
        let (halves, bits) = (X.map(f16::from_f32), X.map(bf16::from_f32));
        // SAFETY: four elements can be read.
        let [x, half, bit] =
            unsafe { [Four::load(X.as_ptr()), Four::load_f16(halves.as_ptr()), Four::load_bf16(bits.as_ptr())] };
        assert_eq!([lanes(x), lanes(half), lanes(bit)], [X; 3]);
        assert_eq!((x.sum(), x.largest()), (31.25, 30.0));
        let (m, e) = x.abs().split();
        assert_eq!(lanes(m.times_power_of_two(e)), X.map(f32::abs));
        assert_eq!(lanes(x.each_lane(|x| x + 1.0)), X.map(|x| x + 1.0));
        assert_eq!(lanes(x.neg_mul_add(x, x)), X.map(|x| x - x * x));
        let is_small = x.less(Four::splat(1.0));
        assert_eq!(lanes(Four::select(is_small, x.neg(), x)), [1.5, -0.75, 2.0, 30.0]);
        assert_eq!([1.0, -2.0].map(|limit| Four::<f32>::any(x.less(Four::splat(limit)))), [true, false]);
    }
}
