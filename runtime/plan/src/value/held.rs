//! The bytes of the values that a run holds.

use std::collections::HashMap;
use std::hash::BuildHasher;

use super::storages::{Addresses, ByAddress, Stored, RECORD};
use super::{Items, Value};

/// Values that are held and counted elsewhere.
#[derive(Default)]
pub(crate) struct Outside {
    storages: Addresses,
    /// The bytes of each sequence when it was counted. A sequence that grew since then is larger by the difference.
    sequences: ByAddress<usize>,
}

impl Outside {
    pub fn of<'v>(values: impl Iterator<Item = &'v Value>) -> Outside {
        let Held { storages, sequences } = Held::of(values);
        let mut outside = Outside { storages: storages.into_keys().collect(), sequences: ByAddress::default() };
        outside.sequences = sequences.into_iter().map(|(at, items)| (at, outside.bytes_of(items))).collect();
        outside
    }

    /// Adds a value. Returns the bytes that were not held before.
    pub fn add(&mut self, value: &Value) -> usize {
        value.storage().filter(|(address, _)| self.storages.insert(*address)).map_or(0, |(_, bytes)| bytes)
    }

    /// Returns the bytes of a sequence without those of the outside storages.
    fn bytes_of(&self, items: &Items) -> usize {
        items.bytes().saturating_sub(items.storages().bytes_in(&self.storages))
    }
}

/// The storages of some values. Each storage counts once, except that each sequence counts all of its items.
#[derive(Default)]
pub(crate) struct Held<'v> {
    storages: ByAddress<usize>,
    sequences: ByAddress<&'v Items>,
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
                other => self.storages.extend(other.storage()),
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

/// Adds every storage of a value with its size in bytes. The time depends on the lengths of sequences.
pub(crate) fn storages<S: BuildHasher>(value: &Value, held: &mut HashMap<usize, usize, S>) {
    if let Value::Sequence(items) = value {
        held.insert(items.address(), items.len().saturating_mul(RECORD));
        items.iter().for_each(|item| storages(item, held));
    } else {
        held.extend(value.storage());
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
        let outside =
            Outside { sequences: [(items.address(), items.bytes())].into_iter().collect(), ..Outside::default() };
        items.insert(2, item(4)).expect("there is memory");
        let grown = Value::Sequence(items);
        assert_eq!(Held::of([&grown].into_iter()).bytes_beside(&outside), RECORD + 16);
    }
}
