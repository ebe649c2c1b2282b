//! A cache of the values for the most recent keys.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// The number of cached values: enough for a few sizes that alternate.
const MOST: usize = 4;

/// The most recently used values and their keys, the latest first.
pub(crate) struct Recent<K, V>(Mutex<Vec<(K, Arc<V>)>>);

impl<K: PartialEq, V> Recent<K, V> {
    /// Returns the value for `key`: a cached one, or the result of `make`.
    pub fn get(&self, key: K, make: impl FnOnce(&K) -> V) -> Arc<V> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match kept.iter().position(|(made_for, _)| *made_for == key) {
            Some(place) => kept[..=place].rotate_right(1),
            None => {
                kept.truncate(MOST - 1);
                let value = Arc::new(make(&key));
                kept.insert(0, (key, value));
            }
        }
        Arc::clone(&kept[0].1)
    }
}

impl<K, V> Default for Recent<K, V> {
    fn default() -> Recent<K, V> {
        Recent(Mutex::new(Vec::new()))
    }
}

/// A clone starts empty.
impl<K, V> Clone for Recent<K, V> {
    fn clone(&self) -> Recent<K, V> {
        Recent::default()
    }
}

impl<K, V> fmt::Debug for Recent<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Recent")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_made_once_for_calls_that_are_alike() {
        let (recent, made) = (Recent::default(), std::cell::Cell::new(0));
        let get = |key: usize| {
            let make = |&key: &usize| {
                made.set(made.get() + 1);
                10 * key
            };
            *recent.get(key, make)
        };
        assert_eq!([1, 1, 2, 3, 4, 1, 2].map(get), [10, 10, 20, 30, 40, 10, 20]);
        assert_eq!(made.get(), 4);
        assert_eq!([5, 1, 2, 3].map(get), [50, 10, 20, 30]); // 3 was the least recently used when 5 was inserted
        assert_eq!(made.get(), 6);
        assert_eq!(*recent.clone().get(1, |_| 7), 7);
    }
}
