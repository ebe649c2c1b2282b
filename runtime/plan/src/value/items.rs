//! The items of a sequence, whatever the type `V` of its values is.

use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use super::storages::{Storages, Stored, RECORD};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::size::{out_of_memory, scratch};
use crate::types::{Dim, TensorType, Type};

/// A value that can be an item of a sequence.
pub trait Item: Clone + Stored {
    /// The element type and the dimensions, if the value is a tensor of numbers or strings.
    fn dtype_and_dims(&self) -> Option<(DType, &[usize])>;

    /// Whether the value has a type. Two sizes must be equal where both are known.
    fn is(&self, kind: &Type) -> bool;
}

/// The items of a sequence. Copies share them until one of the copies changes.
#[derive(Debug, Clone)]
pub struct Items<V>(Arc<Shared<V>>);

#[derive(Debug)]
struct Shared<V> {
    values: VecDeque<V>,
    /// The common type of all items, if all are tensors. A loop checks it in every iteration.
    common: Option<Common>,
    /// The storages of the items. Only a run with a memory limit needs them, and then after every change.
    storages: OnceLock<Storages>,
}

/// A type that every item has. Items that were removed still restrict it.
#[derive(Debug, Clone, PartialEq)]
struct Common {
    dtype: DType,
    /// The sizes that are equal in all items, or `None` if the ranks differ.
    dims: Option<SmallVec<[Option<usize>; 4]>>,
}

impl<V: Item> Items<V> {
    /// Inserts an item before item `at`, which is at most the length. Changes the list in place unless it is shared. The
    /// time depends on the distance to the nearer end.
    ///
    /// # Errors
    /// The allocation fails.
    pub fn insert(&mut self, at: usize, item: V) -> Result<()> {
        let items = self.unshared()?;
        items.values.try_reserve(1).map_err(|_| {
            Error::Memory(format!("there is no memory for a sequence of {}: make it shorter", items.values.len() + 1))
        })?;
        if items.values.is_empty() {
            items.common = Common::of(&item);
        } else if !items.common.as_mut().is_some_and(|common| common.widen(&item)) {
            items.common = None;
        }
        if let Some(storages) = items.storages.get_mut() {
            storages.add(&item);
        }
        items.values.insert(at, item);
        Ok(())
    }

    /// Removes item `at`, which must exist. Changes the list in place unless it is shared.
    ///
    /// # Errors
    /// The allocation of a copy fails.
    pub fn remove(&mut self, at: usize) -> Result<V> {
        let items = self.unshared()?;
        let item = items.values.remove(at).ok_or_else(|| Error::op(format!("a sequence has no item {at}")))?;
        if let Some(storages) = items.storages.get_mut() {
            storages.remove(&item);
        }
        Ok(item)
    }

    /// Returns the bytes of the items.
    pub(crate) fn bytes(&self) -> usize {
        self.len().saturating_mul(RECORD).saturating_add(self.storages().bytes())
    }

    /// Returns the storages of the items. The first call finds them, and every change updates them.
    pub(crate) fn storages(&self) -> &Storages {
        self.0.storages.get_or_init(|| Storages::of(self.iter()))
    }

    /// Returns an address that identifies this list of items, also after a change.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Returns the items for changing. Copies the list if it is shared.
    fn unshared(&mut self) -> Result<&mut Shared<V>> {
        if Arc::get_mut(&mut self.0).is_none() {
            let (mut values, count) = (VecDeque::new(), self.len().saturating_add(1));
            scratch::<V>(count)?;
            values.try_reserve(count).map_err(|_| out_of_memory(&[count]))?;
            values.extend(self.iter().cloned());
            self.0 = Arc::new(Shared { values, common: self.0.common.clone(), storages: OnceLock::new() });
        }
        Arc::get_mut(&mut self.0).ok_or_else(|| Error::op("a sequence has another owner"))
    }

    /// Returns the items, without a copy unless they are shared.
    ///
    /// # Errors
    /// The allocation of a copy fails.
    pub fn into_values(mut self) -> Result<Vec<V>> {
        self.unshared()?;
        Arc::try_unwrap(self.0).map(|items| items.values.into()).map_err(|_| Error::op("a sequence has another owner"))
    }

    /// Whether every item has a type.
    pub fn are_all(&self, kind: &Type) -> bool {
        match (kind, &self.0.common) {
            (Type::Tensor(tensor), Some(common)) if common.matches(tensor) => true,
            _ => self.iter().all(|item| item.is(kind)),
        }
    }
}

impl Common {
    /// Returns the type of one item, if it is a tensor.
    fn of(item: &impl Item) -> Option<Common> {
        let (dtype, dims) = item.dtype_and_dims()?;
        Some(Common { dtype, dims: Some(dims.iter().copied().map(Some).collect()) })
    }

    /// Makes this the common type of its items and one more. Returns false if there is none: the item is not a tensor, or
    /// has another dtype.
    fn widen(&mut self, item: &impl Item) -> bool {
        let Some((_, dims)) = item.dtype_and_dims().filter(|(dtype, _)| *dtype == self.dtype) else { return false };
        match &mut self.dims {
            Some(common) if common.len() == dims.len() => {
                let differs = |(common, dim): &(&mut Option<usize>, &usize)| **common != Some(**dim);
                common.iter_mut().zip(dims).filter(differs).for_each(|(common, _)| *common = None);
            }
            common => *common = None,
        }
        true
    }

    /// Whether every tensor of this type has type `kind`.
    fn matches(&self, kind: &TensorType) -> bool {
        let fits = |(dim, size): (&Option<Dim>, &Option<usize>)| match dim {
            Some(Dim::Size(known)) => Some(*known) == *size,
            _ => true,
        };
        let has_dims = |shape: &[Option<Dim>]| {
            self.dims.as_ref().is_some_and(|dims| shape.len() == dims.len() && shape.iter().zip(dims).all(fits))
        };
        self.dtype == kind.dtype && kind.shape.as_deref().is_none_or(has_dims)
    }
}

impl<V: Item> Default for Items<V> {
    fn default() -> Items<V> {
        Items::from(Vec::new())
    }
}

impl<V: Item> From<Vec<V>> for Items<V> {
    fn from(values: Vec<V>) -> Items<V> {
        let common = values.split_first().and_then(|(first, rest)| {
            let mut common = Common::of(first)?;
            rest.iter().all(|item| common.widen(item)).then_some(common)
        });
        Items(Arc::new(Shared { values: values.into(), common, storages: OnceLock::new() }))
    }
}

impl<V> Deref for Items<V> {
    type Target = VecDeque<V>;

    fn deref(&self) -> &VecDeque<V> {
        &self.0.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::tensor;
    use crate::value::Value;

    fn item(size: usize) -> Value {
        tensor(&vec![1f32; size], &[size])
    }

    #[test]
    fn copies_keep_their_items() {
        let mut items = Items::from(vec![item(1)]);
        let before = items.clone();
        items.insert(1, item(2)).expect("there is memory");
        let address = items.address();
        items.remove(0).expect("there is memory");
        items.insert(0, item(3)).expect("there is memory");
        assert_eq!(items.address(), address, "nobody else has them");
        let sizes = |items: &Items<Value>| items.iter().map(|item| item.dims().unwrap()[0]).collect::<Vec<_>>();
        assert_eq!((sizes(&before), sizes(&items)), (vec![1], vec![3, 2]));
    }

    #[test]
    fn the_common_type_holds_for_every_item() {
        let kind = |shape: Option<Vec<Option<Dim>>>| Type::Tensor(TensorType { dtype: DType::Float32, shape });
        let two = || Some(Dim::Size(2));
        let kinds = [kind(None), kind(Some(vec![None])), kind(Some(vec![two()])), kind(Some(vec![two(), None]))];
        let mut items = Items::default();
        let check = |items: &Items<Value>, expected: [bool; 4]| {
            assert_eq!(kinds.each_ref().map(|kind| items.are_all(kind)), expected, "{items:?}");
            assert_eq!(
                kinds
                    .each_ref()
                    .map(|kind| Items::from(items.clone().into_values().expect("there is memory")).are_all(kind)),
                expected,
                "{items:?}"
            );
        };
        check(&items, [true; 4]);
        items.insert(0, item(2)).expect("there is memory");
        check(&items, [true, true, true, false]);
        items.insert(0, item(3)).expect("there is memory");
        check(&items, [true, true, false, false]);
        items.insert(2, tensor(&[1f32; 4], &[2, 2])).expect("there is memory");
        check(&items, [true, false, false, false]);
        items.remove(2).expect("there is memory");
        check(&items, [true, true, false, false]);
        items.remove(0).expect("there is memory");
        check(&items, [true, true, true, false]);
        items.insert(0, tensor(&[1i32, 2], &[2])).expect("there is memory");
        check(&items, [false; 4]);
    }
}
