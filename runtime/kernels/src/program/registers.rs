//! The registers of the machine.

use crate::vector::Four;

/// The vectors that the machine holds at a time. They are written out, because a loop would put them in memory.
pub(super) trait Registers<V>: Copy {
    fn build(make: impl Fn(usize) -> V) -> Self;
    fn map(self, function: impl Fn(usize, V) -> V) -> Self;
    fn for_each(self, action: impl FnMut(usize, V));
    /// Applies a function, as `four` to four vectors together or as `one` to a single one.
    fn map_together(self, four: impl Fn(Four<V>) -> Four<V>, one: impl Fn(V) -> V) -> Self;
}

impl<V: Copy> Registers<V> for [V; 8] {
    #[inline(always)]
    fn build(make: impl Fn(usize) -> V) -> Self {
        [make(0), make(1), make(2), make(3), make(4), make(5), make(6), make(7)]
    }

    #[inline(always)]
    fn map(self, f: impl Fn(usize, V) -> V) -> Self {
        let [a, b, c, d, e, g, h, i] = self;
        [f(0, a), f(1, b), f(2, c), f(3, d), f(4, e), f(5, g), f(6, h), f(7, i)]
    }

    #[inline(always)]
    fn for_each(self, mut f: impl FnMut(usize, V)) {
        let [a, b, c, d, e, g, h, i] = self;
        f(0, a);
        f(1, b);
        f(2, c);
        f(3, d);
        f(4, e);
        f(5, g);
        f(6, h);
        f(7, i);
    }

    #[inline(always)]
    fn map_together(self, four: impl Fn(Four<V>) -> Four<V>, _: impl Fn(V) -> V) -> Self {
        let [a, b, c, d, e, f, g, h] = self;
        let (Four(a, b, c, d), Four(e, f, g, h)) = (four(Four(a, b, c, d)), four(Four(e, f, g, h)));
        [a, b, c, d, e, f, g, h]
    }
}

impl<V: Copy> Registers<V> for [V; 1] {
    #[inline(always)]
    fn build(make: impl Fn(usize) -> V) -> Self {
        [make(0)]
    }

    #[inline(always)]
    fn map(self, function: impl Fn(usize, V) -> V) -> Self {
        [function(0, self[0])]
    }

    #[inline(always)]
    fn for_each(self, mut action: impl FnMut(usize, V)) {
        action(0, self[0]);
    }

    #[inline(always)]
    fn map_together(self, _: impl Fn(Four<V>) -> Four<V>, one: impl Fn(V) -> V) -> Self {
        [one(self[0])]
    }
}
