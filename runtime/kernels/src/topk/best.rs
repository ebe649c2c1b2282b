//! The first keys of a sequence that arrives in pieces.

use super::keys::{Key, Packed};
use crate::lane_loops::per_isa;
use crate::scratch::Scratch;

/// Keys of a row or a column that are compared at a time.
pub(super) const BLOCK: usize = 16;
/// Entries to keep in addition to twice the requested number, so that pruning is rare even for small `k`.
const SPARE: usize = 32;

/// The `k` first entries so far, and others that have not been pruned yet.
pub(super) struct Best<K, P> {
    /// Capacity for the entries, of which `len` are used, plus one block.
    entries: Scratch<P>,
    len: usize,
    k: usize,
    /// An upper bound of keys: a later entry with a larger key cannot be among the first.
    limit: K,
}

/// Returns the list capacity for the first `k > 0` of `n` entries: all of them, or enough that pruning is rare.
pub(super) fn list_len(n: usize, k: usize) -> usize {
    n.min(k.saturating_mul(2).saturating_add(SPARE)) + BLOCK
}

impl<K: Key, P: Packed<K>> Best<K, P> {
    /// An empty list for the first `k > 0` of `n` keys.
    pub fn new(n: usize, k: usize) -> Best<K, P> {
        Best { entries: Scratch::filled(P::default(), list_len(n, k)), len: 0, k, limit: K::MAX }
    }

    /// Adds the keys of a block that are within the limit. Their indices start at `first`; indices never decrease
    /// between calls.
    fn push(&mut self, block: &[K], first: usize) {
        let free = &mut self.entries[self.len..];
        let mut pushed = 0;
        for (place, &key) in (first..).zip(block) {
            free[pushed] = P::pack(key, place);
            pushed += usize::from(key <= self.limit);
        }
        self.len += pushed;
        if self.len + BLOCK > self.entries.len() {
            self.prune();
        }
    }

    /// Prunes all but the `k` first entries. A later entry with an equal key comes after them, so the limit excludes
    /// it.
    fn prune(&mut self) {
        if self.len > self.k {
            let (_, last, _) = self.entries[..self.len].select_nth_unstable(self.k - 1);
            self.limit = last.key().before();
            self.len = self.k;
        }
    }

    /// Writes the indices of the `k` first entries in order, and clears the list.
    pub fn finish(&mut self, places: &mut [i64]) {
        self.prune();
        let entries = &mut self.entries[..self.len];
        entries.sort_unstable();
        for (place, entry) in places.iter_mut().zip(entries) {
            *place = entry.place();
        }
        (self.len, self.limit) = (0, K::MAX);
    }
}

per_isa! {
    /// Adds the keys of a row, whose indices start at `first`.
    pub(super) fn offer_row<K: Key, P: Packed<K>>(keys: &[K], first: usize, best: &mut Best<K, P>) where FMA {
        for (i, block) in keys.chunks(BLOCK).enumerate() {
            let is_any = match block.first_chunk::<BLOCK>() {
                Some(block) => is_within(block, best.limit),
                None => true,
            };
            if is_any {
                best.push(block, first + i * BLOCK);
            }
        }
    }
}

/// Whether any key is within the limit.
#[inline(always)]
fn is_within<K: Key>(keys: &[K; BLOCK], limit: K) -> bool {
    // A loop instead of iterator methods: a closure in a method is compiled without the instruction set's features.
    let mut any = false;
    for key in keys {
        any |= *key <= limit;
    }
    any
}
