//! The storages of values, and their sizes in bytes.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::value::{Items, Value};

/// The approximate memory of a tensor besides its elements, which matters for many small values.
pub(crate) type Record = [u8; 512];
pub(crate) const RECORD: usize = size_of::<Record>();

/// The storages of the items of a sequence. Each counts once, even if several items share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Storages {
    by_address: HashMap<usize, Shared>,
    bytes: usize,
}

/// A storage, and the number of items that share it.
#[derive(Debug, Clone, Copy)]
struct Shared {
    bytes: usize,
    items: usize,
}

impl Storages {
    pub fn of(items: &[Value]) -> Storages {
        let mut all = Storages::default();
        items.iter().for_each(|item| all.add(item));
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

    fn contains(&self, address: usize) -> bool {
        self.by_address.contains_key(&address)
    }

    /// Returns the bytes of the storages that are also in `others`. The time depends on the smaller of both sets.
    fn bytes_in(&self, others: &HashSet<usize>) -> usize {
        match self.by_address.len() < others.len() {
            true => self.by_address.iter().filter(|(at, _)| others.contains(at)).map(|(_, one)| one.bytes).sum(),
            false => others.iter().filter_map(|at| self.by_address.get(at)).map(|one| one.bytes).sum(),
        }
    }
}

/// Values that are held and counted elsewhere.
#[derive(Default)]
pub(crate) struct Outside {
    storages: HashSet<usize>,
    /// The bytes of each sequence when it was counted. A sequence that grew since then is larger by the difference.
    sequences: HashMap<usize, usize>,
}

impl Outside {
    pub fn of<'v>(values: impl Iterator<Item = &'v Value>) -> Outside {
        let Held { storages, sequences } = Held::of(values);
        let mut outside = Outside { storages: storages.into_keys().collect(), sequences: HashMap::new() };
        outside.sequences = sequences.into_iter().map(|(at, items)| (at, outside.bytes_of(items))).collect();
        outside
    }

    /// Adds a value. Returns the bytes that were not held before.
    pub fn add(&mut self, value: &Value) -> usize {
        storage(value).filter(|(address, _)| self.storages.insert(*address)).map_or(0, |(_, bytes)| bytes)
    }

    /// Returns the bytes of a sequence without those of the outside storages.
    fn bytes_of(&self, items: &Items) -> usize {
        items.bytes().saturating_sub(items.storages().bytes_in(&self.storages))
    }
}

/// The storages of some values. Each storage counts once, except that each sequence counts all of its items.
#[derive(Default)]
pub(crate) struct Held<'v> {
    storages: HashMap<usize, usize>,
    sequences: HashMap<usize, &'v Items>,
}

impl<'v> Held<'v> {
    pub fn of(values: impl Iterator<Item = &'v Value>) -> Held<'v> {
        let mut held = Held::default();
        held.add(values);
        held
    }

    pub fn add(&mut self, values: impl Iterator<Item = &'v Value>) {
        for value in values {
            match value {
                Value::Sequence(items) => {
                    self.sequences.insert(items.address(), items);
                }
                other => self.storages.extend(storage(other)),
            }
        }
    }

    /// Returns the bytes that `outside` does not count. The time does not depend on the lengths of sequences.
    pub fn bytes_beside(&self, outside: &Outside) -> usize {
        let is_item = |at: usize| self.sequences.values().any(|items| items.storages().contains(at));
        let tensors = self.storages.iter().filter(|(at, _)| !outside.storages.contains(at) && !is_item(**at));
        let sequences = self.sequences.iter().map(|(at, items)| {
            outside.bytes_of(items).saturating_sub(outside.sequences.get(at).copied().unwrap_or_default())
        });
        tensors.map(|(_, bytes)| *bytes).chain(sequences).fold(0, usize::saturating_add)
    }
}

/// Returns the address of a value's storage and its size in bytes. The size of a sequence includes its items.
fn storage(value: &Value) -> Option<(usize, usize)> {
    match value {
        Value::Tensor(array) => Some(array.storage()),
        Value::Strings(strings) => {
            let text = strings.data.iter().map(|text| text.len() + size_of::<String>()).sum();
            Some((Arc::as_ptr(&strings.data).addr(), text))
        }
        Value::Sequence(items) => Some((items.address(), items.bytes())),
        Value::None => None,
    }
}

/// Adds every storage of a value with its size in bytes. The time depends on the lengths of sequences.
pub(crate) fn storages(value: &Value, held: &mut HashMap<usize, usize>) {
    if let Value::Sequence(items) = value {
        held.insert(items.address(), items.len().saturating_mul(RECORD));
        items.iter().for_each(|item| storages(item, held));
    } else {
        held.extend(storage(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::tensor;

    fn item(size: usize) -> Value {
        tensor(&vec![1f32; size], &[size])
    }

    fn beside(values: &[&Value], outside: &[&Value]) -> usize {
        Held::of(values.iter().copied()).bytes_beside(&Outside::of(outside.iter().copied()))
    }

    #[test]
    fn a_sequence_counts_its_items_after_every_change() {
        let (one, two) = (item(1), item(2));
        let mut items = Items::default();
        for (item, expected) in [(&one, RECORD + 4), (&one, 2 * RECORD + 4), (&two, 3 * RECORD + 12)] {
            items.insert(0, item.clone()).expect("there is memory");
            assert_eq!(items.bytes(), expected);
        }
        for expected in [2 * RECORD + 4, RECORD + 4, 0] {
            items.remove(0).expect("there is memory");
            assert_eq!(items.bytes(), expected);
        }
    }

    #[test]
    fn a_storage_counts_once() {
        let (one, two) = (item(1), item(2));
        let sequence = Value::Sequence(vec![one.clone(), two.clone()].into());
        let bytes = 2 * RECORD + 12;
        assert_eq!(beside(&[&sequence, &one, &two, &sequence], &[]), bytes);
        assert_eq!(beside(&[&sequence, &two], &[&one]), bytes - 4);
        assert_eq!(beside(&[&sequence, &one], &[&sequence]), 0);
        assert_eq!(beside(&[&one, &two], &[&one]), 8);
    }

    #[test]
    fn a_sequence_that_grew_counts_its_new_items() {
        let mut items = Items::from(vec![item(1), item(2)]);
        let outside = Outside { sequences: HashMap::from([(items.address(), items.bytes())]), ..Outside::default() };
        items.insert(2, item(4)).expect("there is memory");
        let grown = Value::Sequence(items);
        assert_eq!(Held::of([&grown].into_iter()).bytes_beside(&outside), RECORD + 16);
    }
}
