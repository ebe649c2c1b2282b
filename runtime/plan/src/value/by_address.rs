//! Maps from addresses.

use std::collections::{HashMap, HashSet};

use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;

/// A map from many addresses. No model chooses addresses, so no model can make their hashes collide.
pub(crate) type Many<V> = HashMap<usize, V, FxBuildHasher>;
/// A set of many addresses.
pub(crate) type Addresses = HashSet<usize, FxBuildHasher>;

/// The most entries of a list that a search compares one after the other.
const FEW: usize = 8;

/// A map from addresses. With a memory limit, each step of a run changes several. As long as a map has only a few entries,
/// it is a list without memory on the heap.
#[derive(Debug, Clone)]
pub(crate) struct ByAddress<V> {
    few: SmallVec<[(usize, V); FEW]>,
    /// All entries, if there are more. Otherwise empty.
    many: Many<V>,
}

impl<V> ByAddress<V> {
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn len(&self) -> usize {
        self.few.len() + self.many.len()
    }

    pub fn contains(&self, address: usize) -> bool {
        self.get(address).is_some()
    }

    pub fn get(&self, address: usize) -> Option<&V> {
        match self.many.is_empty() {
            true => self.few.iter().find(|(at, _)| *at == address).map(|(_, value)| value),
            false => self.many.get(&address),
        }
    }

    pub fn get_mut(&mut self, address: usize) -> Option<&mut V> {
        match self.many.is_empty() {
            true => self.few.iter_mut().find(|(at, _)| *at == address).map(|(_, value)| value),
            false => self.many.get_mut(&address),
        }
    }

    /// Inserts a value at an address that has none.
    pub fn insert_new(&mut self, address: usize, value: V) {
        if self.many.is_empty() && self.few.len() < FEW {
            self.few.push((address, value));
        } else {
            self.many.extend(self.few.drain(..));
            self.many.insert(address, value);
        }
    }

    pub fn remove(&mut self, address: usize) {
        match self.few.iter().position(|(at, _)| *at == address) {
            Some(place) => drop(self.few.swap_remove(place)),
            None => drop(self.many.remove(&address)),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (usize, &V)> {
        self.few.iter().map(|(at, value)| (*at, value)).chain(self.many.iter().map(|(at, value)| (*at, value)))
    }
}

impl<V> Default for ByAddress<V> {
    fn default() -> ByAddress<V> {
        ByAddress { few: SmallVec::new(), many: Many::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_keeps_its_entries_as_it_grows_and_shrinks() {
        let (mut map, mut expected) = (ByAddress::default(), HashMap::new());
        let check = |map: &ByAddress<usize>, expected: &HashMap<usize, usize>| {
            let found: HashMap<usize, usize> = map.iter().map(|(at, value)| (at, *value)).collect();
            assert_eq!((&found, map.len(), map.is_empty()), (expected, expected.len(), expected.is_empty()));
            assert!(
                (0..30).all(|at| map.get(at) == expected.get(&at) && map.contains(at) == expected.contains_key(&at))
            );
        };
        for at in (0..3 * FEW).chain(30..30 + FEW) {
            map.insert_new(at, 2 * at);
            expected.insert(at, 2 * at);
            check(&map, &expected);
            *map.get_mut(at).expect("it was inserted") += 1;
            expected.entry(at).and_modify(|value| *value += 1);
            check(&map, &expected);
        }
        for at in (0..40).rev() {
            map.remove(at);
            expected.remove(&at);
            check(&map, &expected);
        }
        map.insert_new(7, 7);
        assert_eq!((map.get(7), map.few.len()), (Some(&7), 1), "short again");
    }
}
