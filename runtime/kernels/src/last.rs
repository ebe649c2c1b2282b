//! What was made for the last call, for the next one that is like it.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// The last value that was made, with its key.
pub(crate) struct Last<K, V>(Mutex<Option<(K, Arc<V>)>>);

impl<K: PartialEq, V> Last<K, V> {
    /// The value for `key`: the last one, or one that is made now.
    pub fn get(&self, key: K, make: impl FnOnce(&K) -> V) -> Arc<V> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, value)) = last.as_ref().filter(|(made_for, _)| *made_for == key) {
            return Arc::clone(value);
        }
        let value = Arc::new(make(&key));
        *last = Some((key, Arc::clone(&value)));
        value
    }
}

impl<K, V> Default for Last<K, V> {
    fn default() -> Last<K, V> {
        Last(Mutex::new(None))
    }
}

/// A copy begins with nothing.
impl<K, V> Clone for Last<K, V> {
    fn clone(&self) -> Last<K, V> {
        Last::default()
    }
}

impl<K, V> fmt::Debug for Last<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Last")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_made_once_for_calls_that_are_alike() {
        let (last, made) = (Last::default(), std::cell::Cell::new(0));
        let get = |key: usize| {
            let make = |&key: &usize| {
                made.set(made.get() + 1);
                10 * key
            };
            *last.get(key, make)
        };
        assert_eq!([get(1), get(1), get(2), get(2), get(1)], [10, 10, 20, 20, 10]);
        assert_eq!(made.get(), 3);
        assert_eq!(*last.clone().get(1, |_| 7), 7);
    }
}
