//! The first keys of a sequence that comes in pieces.

use std::marker::PhantomData;

use super::keys::{Key, Packed};

/// Keys that are looked at together.
const BLOCK: usize = 16;
/// Entries that are kept beside the twofold of those wanted, so that throwing away pays for few as well.
const SPARE: usize = 32;

/// The `k` first entries of those that were offered, and some that may still be thrown away.
pub(super) struct Best<K, P> {
    /// Room for the entries, of which `len` count, and for a block more.
    entries: Vec<P>,
    len: usize,
    k: usize,
    /// The last key that can still be among the first; `None` where no key can.
    limit: Option<K>,
    keys: PhantomData<K>,
}

/// How many entries there are room for, to find the first `k > 0` of `n`: as many as there are, or so many that throwing
/// away all but `k` is rare.
pub(super) fn room(n: usize, k: usize) -> usize {
    n.min(k.saturating_mul(2).saturating_add(SPARE)) + BLOCK
}

impl<K: Key, P: Packed<K>> Best<K, P> {
    /// Nothing yet, of `n` keys of which the first `k > 0` are wanted.
    pub fn new(n: usize, k: usize) -> Best<K, P> {
        Best { entries: vec![P::default(); room(n, k)], len: 0, k, limit: Some(K::MAX), keys: PhantomData }
    }

    /// Offers the keys at the places from `first` on; places never decrease.
    #[inline(always)]
    pub fn offer(&mut self, keys: &[K], first: usize) {
        for (i, block) in keys.chunks(BLOCK).enumerate() {
            let Some(limit) = self.limit else { return };
            let is_any = match block.first_chunk::<BLOCK>() {
                Some(block) => block.iter().fold(false, |any, &key| any | (key <= limit)),
                None => true,
            };
            if is_any {
                self.take(limit, block, first + i * BLOCK);
            }
        }
    }

    /// Takes the keys of a block that are within the limit.
    fn take(&mut self, limit: K, block: &[K], first: usize) {
        let free = &mut self.entries[self.len..];
        let mut taken = 0;
        for (place, &key) in (first..).zip(block) {
            free[taken] = P::pack(key, place);
            taken += usize::from(key <= limit);
        }
        self.len += taken;
        if self.len + BLOCK > self.entries.len() {
            self.throw_away();
        }
    }

    /// Keeps the `k` first. Whoever comes later comes after those that are kept with the same key.
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
        (self.len, self.limit) = (0, Some(K::MAX));
    }
}
