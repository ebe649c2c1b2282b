//! The first keys of a sequence that comes in pieces.

use super::keys::{Key, Packed};
use crate::lanes::per_isa;
use crate::scratch::Scratch;

/// Keys that are looked at together: of a row, or of as many columns side by side.
pub(super) const BLOCK: usize = 16;
/// Entries that are kept beside the twofold of those wanted, so that throwing away pays for few as well.
const SPARE: usize = 32;

/// The `k` first entries of those that were offered, and some that may still be thrown away.
pub(super) struct Best<K, P> {
    /// Room for the entries, of which `len` count, and for a block more.
    entries: Scratch<P>,
    len: usize,
    k: usize,
    /// No later entry with a greater key can be among the first.
    limit: K,
}

/// How many entries there are room for, to find the first `k > 0` of `n`: as many as there are, or so many that throwing
/// away all but `k` is rare.
pub(super) fn list_len(n: usize, k: usize) -> usize {
    n.min(k.saturating_mul(2).saturating_add(SPARE)) + BLOCK
}

impl<K: Key, P: Packed<K>> Best<K, P> {
    /// Nothing yet, of `n` keys of which the first `k > 0` are wanted.
    pub fn new(n: usize, k: usize) -> Best<K, P> {
        Best { entries: Scratch::filled(P::default(), list_len(n, k)), len: 0, k, limit: K::MAX }
    }

    /// Takes the keys of a block at the places from `first` on that are within the limit; places never decrease.
    fn take(&mut self, block: &[K], first: usize) {
        let free = &mut self.entries[self.len..];
        let mut taken = 0;
        for (place, &key) in (first..).zip(block) {
            free[taken] = P::pack(key, place);
            taken += usize::from(key <= self.limit);
        }
        self.len += taken;
        if self.len + BLOCK > self.entries.len() {
            self.throw_away();
        }
    }

    /// Keeps the `k` first. What comes later comes after those that are kept with the same key.
    fn throw_away(&mut self) {
        if self.len > self.k {
            let (_, last, _) = self.entries[..self.len].select_nth_unstable(self.k - 1);
            self.limit = last.key().before();
            self.len = self.k;
        }
    }

    /// The places of the `k` first, in order; nothing is left.
    pub fn finish(&mut self, places: &mut [i64]) {
        self.throw_away();
        let entries = &mut self.entries[..self.len];
        entries.sort_unstable();
        for (place, entry) in places.iter_mut().zip(entries) {
            *place = entry.place();
        }
        (self.len, self.limit) = (0, K::MAX);
    }
}

per_isa! {
    /// Offers the keys of a row from place `first` on.
    pub(super) fn offer_row<K: Key, P: Packed<K>>(keys: &[K], first: usize, best: &mut Best<K, P>) where FMA {
        for (i, block) in keys.chunks(BLOCK).enumerate() {
            let is_any = match block.first_chunk::<BLOCK>() {
                Some(block) => is_within(block, &[best.limit; BLOCK]),
                None => true,
            };
            if is_any {
                best.take(block, first + i * BLOCK);
            }
        }
    }
}

per_isa! {
    /// Offers the keys of up to [`BLOCK`] columns from place `first` on, those of a place side by side. Beside the last
    /// column, they are [`Key::MAX`].
    pub(super) fn offer_columns<K: Key, P: Packed<K>>(
        keys: &[[K; BLOCK]], first: usize, best: &mut [Best<K, P>],
    ) where FMA {
        let mut limits = [K::MIN; BLOCK];
        for (limit, best) in limits.iter_mut().zip(best.iter()) {
            *limit = best.limit;
        }
        for (place, keys) in (first..).zip(keys) {
            if is_within(keys, &limits) {
                for ((best, limit), key) in best.iter_mut().zip(&mut limits).zip(keys) {
                    if key <= limit {
                        best.take(&[*key], place);
                        *limit = best.limit;
                    }
                }
            }
        }
    }
}

/// Whether any key is within its limit.
#[inline(always)]
fn is_within<K: Key>(keys: &[K; BLOCK], limits: &[K; BLOCK]) -> bool {
    // A loop and not iterators' methods: a closure inside one is compiled for the plainest instruction set.
    let mut any = false;
    for i in 0..BLOCK {
        any |= keys[i] <= limits[i];
    }
    any
}
