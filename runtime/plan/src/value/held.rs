//! The bytes of the values that a run holds.

use std::cell::Cell;
use std::collections::HashMap;
use std::hash::BuildHasher;

use smallvec::SmallVec;

use super::by_address::{Addresses, ByAddress};
use super::storages::{Stored, RECORD};
use super::{Items, Value};

/// Values that are held and counted elsewhere.
#[derive(Default)]
pub(crate) struct Outside<'c> {
    /// The storages of constants.
    constants: Option<&'c Addresses>,
    /// The other storages.
    storages: ByAddress<()>,
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
                let bytes = self.bytes_of(items);
                match self.sequences.get_mut(items.address()) {
                    Some(counted) => *counted = bytes,
                    None => self.sequences.insert_new(items.address(), bytes),
                }
            }
        }
        self
    }

    /// Adds a value. Returns the bytes that were not held before.
    pub fn add(&mut self, value: &Value) -> usize {
        let Some((address, bytes)) = value.storage().filter(|(address, _)| !self.contains(*address)) else { return 0 };
        self.storages.insert_new(address, ());
        bytes
    }

    fn contains(&self, address: usize) -> bool {
        self.constants.is_some_and(|constants| constants.contains(&address)) || self.storages.contains(address)
    }

    /// Returns the bytes of a sequence without those of the outside storages.
    fn bytes_of(&self, items: &Items) -> usize {
        let storages = items.storages();
        let constants = self.constants.map_or(0, |constants| storages.bytes_in(constants));
        items.bytes().saturating_sub(constants).saturating_sub(storages.bytes_among(&self.storages))
    }

    /// Returns the address and the bytes of a value that has bytes which are not outside.
    fn beside(&self, value: &Value) -> Option<(usize, usize)> {
        let Value::Sequence(items) = value else {
            return value.storage().filter(|(address, _)| !self.contains(*address));
        };
        let counted = self.sequences.get(items.address()).copied().unwrap_or_default();
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
    /// The bytes of the storages that sequences also count, until a storage or a sequence is added or removed.
    twice: Cell<Option<usize>>,
}

/// A storage or a sequence, and the number of values that hold it.
struct Counted {
    bytes: usize,
    values: usize,
}

/// The storage or the sequence of a value.
#[derive(Clone, Copy)]
pub(crate) struct Holding {
    address: usize,
    is_sequence: bool,
}

impl Holding {
    /// Returns what a value holds.
    pub fn of(value: &Value) -> Option<Holding> {
        Some(match value {
            Value::Sequence(items) => Holding { address: items.address(), is_sequence: true },
            value => Holding { address: value.storage()?.0, is_sequence: false },
        })
    }
}

impl Held {
    /// Returns the bytes of values. The time does not depend on the lengths of sequences.
    pub fn bytes_of<'v>(values: impl Iterator<Item = &'v Value> + Clone, outside: &Outside) -> usize {
        let mut held = Held::default();
        values.clone().for_each(|value| held.add(value, outside));
        held.bytes(values)
    }

    /// Counts a value.
    pub fn add(&mut self, value: &Value, outside: &Outside) {
        let Some((address, bytes)) = outside.beside(value) else { return };
        let all = self.of_kind(matches!(value, Value::Sequence(_)));
        match all.get_mut(address) {
            Some(counted) => counted.values += 1,
            None => {
                all.insert_new(address, Counted { bytes, values: 1 });
                self.bytes = self.bytes.saturating_add(bytes);
                self.twice.set(None);
            }
        }
    }

    /// Stops counting a value, whose storage or sequence has not moved since it was added.
    pub fn remove(&mut self, Holding { address, is_sequence }: Holding) {
        let all = self.of_kind(is_sequence);
        let Some(counted) = all.get_mut(address) else { return };
        counted.values -= 1;
        if counted.values == 0 {
            let bytes = counted.bytes;
            all.remove(address);
            self.bytes = self.bytes.saturating_sub(bytes);
            self.twice.set(None);
        }
    }

    /// Whether it counts the storage of a value that is no sequence.
    pub fn holds(&self, value: &Value) -> bool {
        !matches!(value, Value::Sequence(_))
            && value.storage().is_some_and(|(address, _)| self.storages.contains(address))
    }

    fn of_kind(&mut self, is_sequence: bool) -> &mut ByAddress<Counted> {
        match is_sequence {
            true => &mut self.sequences,
            false => &mut self.storages,
        }
    }

    /// Returns the bytes of the counted values, which are `values`.
    pub fn bytes<'v>(&self, values: impl Iterator<Item = &'v Value>) -> usize {
        let twice = self.twice.get().unwrap_or_else(|| self.bytes_in_sequences(values));
        self.twice.set(Some(twice));
        self.bytes.saturating_sub(twice)
    }

    /// Returns the bytes of the storages that sequences among `values` also count.
    fn bytes_in_sequences<'v>(&self, values: impl Iterator<Item = &'v Value>) -> usize {
        if self.sequences.is_empty() || self.storages.is_empty() {
            return 0;
        }
        let lists: SmallVec<[&Items; 4]> = values.filter_map(items_of).collect();
        let is_item = |at: usize| lists.iter().any(|items| items.storages().contains(at));
        let twice = self.storages.iter().filter(|(at, _)| is_item(*at));
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
        let mut outside = Outside::default();
        outside.sequences.insert_new(items.address(), items.bytes());
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
        let check = |held: &Held, present: &[&Value]| {
            let bytes = held.bytes(present.iter().copied());
            assert_eq!(bytes, Held::bytes_of(present.iter().copied(), &outside), "{}", present.len());
        };
        for value in every {
            held.add(value, &outside);
            present.push(value);
            check(&held, &present);
        }
        while !present.is_empty() {
            held.remove(Holding::of(present.remove(0)).expect("a tensor or a sequence"));
            check(&held, &present);
        }
    }
}
