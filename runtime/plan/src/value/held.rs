//! The bytes of the values that a run holds.

use std::collections::hash_map::Entry;
use std::collections::HashMap;
use std::hash::BuildHasher;

use smallvec::SmallVec;

use super::storages::{Addresses, ByAddress, Stored, RECORD};
use super::{Items, Value};

/// Values that are held and counted elsewhere.
#[derive(Default)]
pub(crate) struct Outside<'c> {
    /// The storages of constants.
    constants: Option<&'c Addresses>,
    /// The other storages.
    storages: Addresses,
    /// The bytes of each sequence when it was counted. A sequence that grew since then is larger by the difference.
    sequences: ByAddress<usize>,
}

impl<'c> Outside<'c> {
    pub fn of<'v>(values: impl Iterator<Item = &'v Value> + Clone) -> Outside<'c> {
        Outside::default().and(values)
    }

    /// Starts with the constants of a plan, whose storages are in a set.
    pub fn of_constants(constants: &'c Addresses) -> Outside<'c> {
        Outside { constants: Some(constants), ..Outside::default() }
    }

    /// Adds values.
    pub fn and<'v>(mut self, values: impl Iterator<Item = &'v Value> + Clone) -> Outside<'c> {
        for value in values.clone().filter(|value| !matches!(value, Value::Sequence(_))) {
            self.add(value);
        }
        for value in values {
            if let Value::Sequence(items) = value {
                self.sequences.insert(items.address(), self.bytes_of(items));
            }
        }
        self
    }

    /// Adds a value. Returns the bytes that were not held before.
    pub fn add(&mut self, value: &Value) -> usize {
        let new = value.storage().filter(|(address, _)| !self.contains(*address));
        new.filter(|(address, _)| self.storages.insert(*address)).map_or(0, |(_, bytes)| bytes)
    }

    fn contains(&self, address: usize) -> bool {
        self.constants.is_some_and(|constants| constants.contains(&address)) || self.storages.contains(&address)
    }

    /// Returns the bytes of a sequence without those of the outside storages.
    fn bytes_of(&self, items: &Items) -> usize {
        let storages = items.storages();
        let constants = self.constants.map_or(0, |constants| storages.bytes_in(constants));
        items.bytes().saturating_sub(constants).saturating_sub(storages.bytes_in(&self.storages))
    }

    /// Returns the address and the bytes of a value that has bytes which are not outside.
    fn beside(&self, value: &Value) -> Option<(usize, usize)> {
        let Value::Sequence(items) = value else {
            return value.storage().filter(|(address, _)| !self.contains(*address));
        };
        let counted = self.sequences.get(&items.address()).copied().unwrap_or_default();
        Some((items.address(), self.bytes_of(items).saturating_sub(counted)))
    }
}

/// The storages of some values without the [outside](Outside) ones. Each storage counts once, except that each sequence
/// counts all of its items. A change takes a time that does not depend on the number of values.
#[derive(Default)]
pub(crate) struct Held {
    storages: ByAddress<Counted>,
    sequences: ByAddress<Counted>,
    /// The bytes of all these.
    bytes: usize,
}

/// A storage or a sequence, and the number of values that hold it.
struct Counted {
    bytes: usize,
    values: usize,
}

impl Held {
    /// Returns the bytes of values. The time does not depend on the lengths of sequences.
    pub fn bytes_of<'v>(values: impl Iterator<Item = &'v Value> + Clone, outside: &Outside) -> usize {
        Held::default().bytes_with(std::iter::empty(), values, outside)
    }

    /// Counts a value.
    pub fn add(&mut self, value: &Value, outside: &Outside) {
        let Some((address, bytes)) = outside.beside(value) else { return };
        let counted = self.of_kind(value).entry(address).or_insert(Counted { bytes, values: 0 });
        counted.values += 1;
        if counted.values == 1 {
            self.bytes = self.bytes.saturating_add(bytes);
        }
    }

    /// Stops counting a value, which has not changed since it was added.
    pub fn remove(&mut self, value: &Value) {
        let Some((address, _)) = value.storage() else { return };
        let Entry::Occupied(mut counted) = self.of_kind(value).entry(address) else { return };
        counted.get_mut().values -= 1;
        if counted.get().values == 0 {
            let bytes = counted.remove().bytes;
            self.bytes = self.bytes.saturating_sub(bytes);
        }
    }

    fn of_kind(&mut self, value: &Value) -> &mut ByAddress<Counted> {
        match value {
            Value::Sequence(_) => &mut self.sequences,
            _ => &mut self.storages,
        }
    }

    /// Returns the bytes of the counted values, which are `values`, and of `more` values.
    pub fn bytes_with<'v>(
        &mut self,
        values: impl Iterator<Item = &'v Value>,
        more: impl Iterator<Item = &'v Value> + Clone,
        outside: &Outside,
    ) -> usize {
        more.clone().for_each(|value| self.add(value, outside));
        let bytes = self.bytes.saturating_sub(self.bytes_in_sequences(values.chain(more.clone())));
        more.for_each(|value| self.remove(value));
        bytes
    }

    /// Returns the bytes of the storages that sequences among `values` also count.
    fn bytes_in_sequences<'v>(&self, values: impl Iterator<Item = &'v Value>) -> usize {
        if self.sequences.is_empty() {
            return 0;
        }
        let lists: SmallVec<[&Items; 4]> = values.filter_map(items_of).collect();
        let is_item = |at: usize| lists.iter().any(|items| items.storages().contains(at));
        let twice = self.storages.iter().filter(|(at, _)| is_item(**at));
        twice.map(|(_, counted)| counted.bytes).fold(0, usize::saturating_add)
    }
}

fn items_of(value: &Value) -> Option<&Items> {
    match value {
        Value::Sequence(items) => Some(items),
        _ => None,
    }
}

/// Returns the addresses of the storages of values.
pub(crate) fn addresses<'v>(values: impl Iterator<Item = &'v Value>) -> Addresses {
    values.filter_map(Stored::storage).map(|(address, _)| address).collect()
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
        Held::bytes_of(values.iter().copied(), &Outside::of(outside.iter().copied()))
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
        assert_eq!(Held::bytes_of([&grown].into_iter(), &outside), RECORD + 16);
    }

    #[test]
    fn constants_never_count() {
        let (constant, one) = (item(1), item(2));
        let constants = addresses([&constant].into_iter());
        let outside = Outside::of_constants(&constants).and([&constant].into_iter());
        let sequence = Value::Sequence(vec![constant.clone(), one.clone()].into());
        let bytes = |values: &[&Value]| Held::bytes_of(values.iter().copied(), &outside);
        assert_eq!((bytes(&[&constant]), bytes(&[&one, &constant])), (0, 8));
        assert_eq!(bytes(&[&sequence, &one]), 2 * RECORD + 8);
    }

    #[test]
    fn changes_give_the_bytes_of_the_present_values() {
        let (one, two) = (item(1), item(2));
        let sequence = Value::Sequence(vec![one.clone(), two.clone()].into());
        let (outside, every) = (Outside::of([&one].into_iter()), [&one, &two, &two.clone(), &sequence, &sequence]);
        let (mut held, mut present) = (Held::default(), Vec::new());
        let check = |held: &mut Held, present: &[&Value]| {
            let bytes = held.bytes_with(present.iter().copied(), std::iter::empty(), &outside);
            assert_eq!(bytes, Held::bytes_of(present.iter().copied(), &outside), "{}", present.len());
        };
        for value in every {
            held.add(value, &outside);
            present.push(value);
            check(&mut held, &present);
        }
        while !present.is_empty() {
            held.remove(present.remove(0));
            check(&mut held, &present);
        }
    }
}
