//! The storages of values, and their sizes in bytes.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use super::Value;

/// The approximate memory of a tensor besides its elements, which matters for many small values.
pub(crate) type Record = [u8; 512];
pub(crate) const RECORD: usize = size_of::<Record>();

/// A map from addresses. With a memory limit, each step of a run makes several, which may hold a million items.
pub(crate) type ByAddress<V> = HashMap<usize, V, BuildHasherDefault<AddressHasher>>;
pub(crate) type Addresses = HashSet<usize, BuildHasherDefault<AddressHasher>>;

/// Hashes an address with two multiplications. No model chooses addresses, so no model can make them collide.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_usize(&mut self, address: usize) {
        self.write_u64(address as u64);
    }

    fn write_u64(&mut self, word: u64) {
        const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
        // The high bits of a product depend on all bits of the word, and a map looks at the low bits too.
        let product = (self.0 ^ word).wrapping_mul(FACTOR);
        let product = (product ^ (product >> 32)).wrapping_mul(FACTOR);
        self.0 = product ^ (product >> 32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The storages of the items of a sequence. Each counts once, even if several items share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Storages {
    by_address: ByAddress<Shared>,
    bytes: usize,
}

/// A storage, and the number of items that share it.
#[derive(Debug, Clone, Copy)]
struct Shared {
    bytes: usize,
    items: usize,
}

impl Storages {
    pub fn of<'v>(items: impl Iterator<Item = &'v Value>) -> Storages {
        let mut all = Storages::default();
        items.for_each(|item| all.add(item));
        all
    }

    /// Counts an item that was added to the sequence.
    pub fn add(&mut self, item: &Value) {
        let Some((address, bytes)) = storage(item) else { return };
        let shared = self.by_address.entry(address).or_insert(Shared { bytes, items: 0 });
        if shared.items == 0 {
            self.bytes = self.bytes.saturating_add(bytes);
        }
        shared.items += 1;
    }

    /// Stops counting an item that was removed from the sequence.
    pub fn remove(&mut self, item: &Value) {
        let Some((address, _)) = storage(item) else { return };
        let Some(shared) = self.by_address.get_mut(&address) else { return };
        shared.items -= 1;
        if shared.items == 0 {
            self.bytes = self.bytes.saturating_sub(shared.bytes);
            self.by_address.remove(&address);
        }
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn contains(&self, address: usize) -> bool {
        self.by_address.contains_key(&address)
    }

    /// Returns the bytes of the storages that are also in `others`. The time depends on the smaller of both sets.
    pub fn bytes_in(&self, others: &Addresses) -> usize {
        match self.by_address.len() < others.len() {
            true => self.by_address.iter().filter(|(at, _)| others.contains(at)).map(|(_, one)| one.bytes).sum(),
            false => others.iter().filter_map(|at| self.by_address.get(at)).map(|one| one.bytes).sum(),
        }
    }
}

/// Returns the address of a value's storage and its size in bytes. The size of a sequence includes its items.
pub(crate) fn storage(value: &Value) -> Option<(usize, usize)> {
    match value {
        Value::Tensor(array) => Some(array.storage()),
        Value::Grown(grown) => Some(grown.room().0.storage()),
        Value::Strings(strings) => Some((Arc::as_ptr(&strings.data).addr(), strings.bytes())),
        Value::Sequence(items) => Some((items.address(), items.bytes())),
        Value::None => None,
    }
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher;

    use super::*;

    #[test]
    fn addresses_at_equal_distances_spread_over_a_table() {
        let hasher = BuildHasherDefault::<AddressHasher>::default();
        for distance in [8usize, 64, 512, 4096, 1 << 20] {
            let hashes = (0..1024).map(|i| hasher.hash_one(0x7F00_0000_0000 + i * distance));
            let places: HashSet<u64> = hashes.map(|hash| hash % 1024).collect();
            assert!(places.len() > 512, "{} places at the distance {distance}", places.len());
        }
    }

    #[test]
    fn a_hash_depends_on_every_byte() {
        let hash = |bytes: &[u8]| {
            let mut hasher = AddressHasher::default();
            hasher.write(bytes);
            hasher.finish()
        };
        assert_ne!(hash(&[1, 2]), hash(&[2, 1]));
        assert_ne!(hash(&[1]), hash(&[1, 1]));
    }
}
