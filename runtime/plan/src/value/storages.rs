//! The storages of values, and their sizes in bytes.

use super::by_address::{Addresses, ByAddress, Many};

/// The approximate memory of a tensor besides its elements, which matters for many small values.
pub(crate) type Record = [u8; 512];
pub(crate) const RECORD: usize = size_of::<Record>();

/// A value that has a storage, or none.
pub trait Stored {
    /// Returns the address of the value's storage and its size in bytes. The size of a sequence includes its items.
    fn storage(&self) -> Option<(usize, usize)>;
}

/// The storages of the items of a sequence. Each counts once, even if several items share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Storages {
    by_address: Many<Shared>,
    bytes: usize,
}

/// A storage, and the number of items that share it.
#[derive(Debug, Clone, Copy)]
struct Shared {
    bytes: usize,
    items: usize,
}

impl Storages {
    pub fn of<'v, V: Stored + 'v>(items: impl Iterator<Item = &'v V>) -> Storages {
        let mut all = Storages::default();
        items.for_each(|item| all.add(item));
        all
    }

    /// Counts an item that was added to the sequence.
    pub fn add(&mut self, item: &impl Stored) {
        let Some((address, bytes)) = item.storage() else { return };
        let shared = self.by_address.entry(address).or_insert(Shared { bytes, items: 0 });
        if shared.items == 0 {
            self.bytes = self.bytes.saturating_add(bytes);
        }
        shared.items += 1;
    }

    /// Stops counting an item that was removed from the sequence.
    pub fn remove(&mut self, item: &impl Stored) {
        let Some((address, _)) = item.storage() else { return };
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
            false => others.iter().map(|at| self.bytes_at(*at)).sum(),
        }
    }

    /// Returns the bytes of the storages that are also in `others`. The time depends on the smaller of both sets.
    pub fn bytes_among(&self, others: &ByAddress<()>) -> usize {
        match self.by_address.len() < others.len() {
            true => self.by_address.iter().filter(|(at, _)| others.contains(**at)).map(|(_, one)| one.bytes).sum(),
            false => others.iter().map(|(at, ())| self.bytes_at(at)).sum(),
        }
    }

    /// Returns the bytes of the storage at an address, or 0 if it is not among these.
    fn bytes_at(&self, address: usize) -> usize {
        self.by_address.get(&address).map_or(0, |one| one.bytes)
    }
}
