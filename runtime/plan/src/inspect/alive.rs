//! The bytes that are alive while each step of a block runs.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::listing::Listing;
use crate::operator::OperatorKind;
use crate::prepare::{Operand, PreparedStep, SlotId};

/// The storages of a block's living values, updated step by step.
pub(super) struct Alive {
    /// The storage of each slot's value.
    storage_of: HashMap<SlotId, StorageId>,
    /// The storages that values may still hold.
    storages: BTreeMap<StorageId, Storage>,
    next: StorageId,
}

/// The number of a storage. A newer storage has a larger one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct StorageId(u32);

/// The storage of a value.
struct Storage {
    /// Its bytes, if they are known.
    bytes: Option<usize>,
    /// An older storage that holds the value instead, if the value is a view of it.
    instead: Option<StorageId>,
}

/// The storages that may hold views of a value.
#[derive(Clone, Copy, Default)]
struct Views {
    bytes: usize,
    exist: bool,
}

impl Alive {
    /// The state before the first step. The inputs of a nested block count 0 bytes, because its caller holds and counts
    /// them.
    pub(super) fn of(listing: &Listing) -> Alive {
        let mut alive = Alive { storage_of: HashMap::new(), storages: BTreeMap::new(), next: StorageId(0) };
        for &slot in &listing.block.inputs {
            let bytes = if listing.depth == 0 { listing.bytes(slot) } else { Some(0) };
            alive.add(slot, Storage { bytes, instead: None });
        }
        alive
    }

    fn add(&mut self, slot: SlotId, storage: Storage) {
        self.storage_of.insert(slot, self.next);
        self.storages.insert(self.next, storage);
        self.next.0 += 1;
    }

    /// The bytes that are alive while a step runs. Afterwards, the state is that after the step.
    pub(super) fn during(&mut self, listing: &Listing, step: &PreparedStep) -> Option<usize> {
        for (i, &slot) in step.outputs.iter().enumerate().filter_map(|(i, slot)| Some((i, slot.as_ref()?))) {
            match self.reused(listing, step, i, slot) {
                Some(storage) => {
                    self.storage_of.insert(slot, storage);
                }
                None => self.add(slot, self.made(listing, step, slot)),
            }
        }
        let values = self.bytes();
        for slot in &step.drops {
            self.storage_of.remove(slot);
        }
        if !step.blocks.is_empty() {
            return None;
        }
        let parts =
            [values?, listing.dropped_bytes(step)?, listing.with_types(step, |types| step.kernel().scratch(types))?];
        Some(parts.into_iter().fold(0, usize::saturating_add))
    }

    /// The storage of an input that output `i`, in slot `slot`, certainly reuses: because it is a view, or because the
    /// kernel takes the storage over.
    fn reused(&self, listing: &Listing, step: &PreparedStep, i: usize, slot: SlotId) -> Option<StorageId> {
        let is_same = |other: SlotId| {
            let layout = |slot: SlotId| listing.block.held[slot.at()].layout;
            layout(slot) == layout(other) && listing.info(slot).kind == listing.info(other).kind
        };
        let reused = |(input, operand): (usize, &Operand)| match *operand {
            Operand::Dying(other) if i == 0 && is_same(other) => self.storage_of.get(&other).copied(),
            Operand::Slot(other) if input == 0 && is_view(step) => self.storage_of.get(&other).copied(),
            _ => None,
        };
        listing.bytes(slot)?;
        step.inputs.iter().enumerate().find_map(reused)
    }

    /// A new storage for the output of a step in slot `slot`, which may be a view of an input with elements as large.
    fn made(&self, listing: &Listing, step: &PreparedStep, slot: SlotId) -> Storage {
        let width = |slot: SlotId| {
            let tensor = listing.info(slot).kind.tensor().ok()?;
            tensor.dtype.storage_dtype().ok().map(|stored| stored.size_in_bytes())
        };
        let shared = |(input, operand): (usize, &Operand)| match *operand {
            Operand::Slot(other) if step.ops.shares(input) && width(other) == width(slot) => {
                self.storage_of.get(&other).copied()
            }
            _ => None,
        };
        let bytes = listing.bytes(slot);
        match step.inputs.iter().enumerate().filter_map(shared).collect::<Vec<_>>()[..] {
            [] => Storage { bytes, instead: None },
            [one] => Storage { bytes, instead: Some(one) },
            // A view of one of several inputs: as large as the largest.
            ref several => {
                let mut all = several.iter().map(|&storage| self.largest(storage)).chain([bytes]);
                Storage { bytes: all.try_fold(0, |most: usize, bytes| Some(most.max(bytes?))), instead: None }
            }
        }
    }

    /// The bytes of a storage, or of one that may hold its value instead.
    fn largest(&self, storage: StorageId) -> Option<usize> {
        let Storage { bytes, instead } = self.storages.get(&storage)?;
        let before = instead.map_or(Some(0), |instead| self.largest(instead));
        bytes.zip(before).map(|(own, before)| own.max(before))
    }

    /// The bytes of all storages, if they are known. It forgets those that no value holds.
    fn bytes(&mut self) -> Option<usize> {
        let held: HashSet<StorageId> = self.storage_of.values().copied().collect();
        let mut views: HashMap<StorageId, Views> = HashMap::new();
        let (mut total, mut is_known, mut free) = (0usize, true, HashSet::new());
        // A view is newer than the storage that may hold it.
        for (&at, storage) in self.storages.iter().rev() {
            let inside = views.remove(&at).unwrap_or_default();
            if !held.contains(&at) && !inside.exist {
                free.insert(at);
                continue;
            }
            is_known &= storage.bytes.is_some();
            let own = storage.bytes.unwrap_or(0);
            let bytes = if held.contains(&at) { own.saturating_add(inside.bytes) } else { own.max(inside.bytes) };
            match storage.instead {
                Some(before) => {
                    let other = views.entry(before).or_default();
                    *other = Views { bytes: other.bytes.saturating_add(bytes), exist: true };
                }
                None => total = total.saturating_add(bytes),
            }
        }
        self.storages.retain(|at, _| !free.contains(at));
        is_known.then_some(total)
    }
}

/// Whether the step always returns a view. A transpose, for example, does so only if no element moves.
fn is_view(step: &PreparedStep) -> bool {
    step.ops.single().is_some_and(|op| op.kind() == OperatorKind::View)
}
