//! The staging buffer of a session: pinned host memory for all copies to and from the GPU.
//!
//! A copy from pageable memory may still be pending when its source is freed, and NVIDIA does not define what happens
//! then. Bytes for the GPU are therefore copied to the staging buffer first, and the caller may free its memory when
//! the call returns. The buffer is a ring of slots. Copies fill a slot one after the other. An event that is recorded
//! when the slot is full tells when the slot is free again.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::Arc;

use candle_plan_device::Download;

use crate::driver::{
    cuEventCreate, cuEventDestroy_v2, cuEventRecord, cuEventSynchronize, cuMemFreeHost, cuMemHostAlloc,
    cuMemcpyDtoHAsync_v2, cuMemcpyHtoDAsync_v2, EventHandle, WITHOUT_TIME,
};
use crate::failure::Failure;
use crate::stream::Stream;

/// The number of slots, and the size of each in bytes. During a large copy, the GPU copies one slot while the host
/// fills the next.
const SLOTS: usize = 4;
const SLOT: usize = 1 << 20;
/// The alignment of pieces in bytes.
const ALIGNMENT: usize = 64;

type Done<T> = Result<T, Failure>;

pub(super) struct Staging {
    /// `SLOTS · SLOT` bytes, pinned.
    memory: *mut u8,
    slots: [Slot; SLOTS],
    /// The slot that is being filled, and the number of bytes used in it.
    slot: usize,
    filled: usize,
    stream: Arc<Stream>,
}

// SAFETY: the memory belongs to the staging buffer alone, and is not bound to a thread.
unsafe impl Send for Staging {}

struct Slot {
    event: EventHandle,
    /// Whether the event was recorded, and not waited for since.
    is_recorded: bool,
}

/// Bytes that the GPU writes to a slot, and their destination.
struct Piece<'a> {
    slot: usize,
    from: *const u8,
    to: &'a mut [u8],
}

impl Staging {
    /// Allocates the buffer. Here and below, the stream's context must be bound to the thread.
    ///
    /// # Errors
    /// There is no pinned memory left.
    pub fn new(stream: &Arc<Stream>) -> Done<Staging> {
        let mut memory: *mut c_void = std::ptr::null_mut();
        // SAFETY: the call writes one address.
        unsafe { cuMemHostAlloc(&raw mut memory, SLOTS * SLOT, 0) }?;
        let slots = [(); SLOTS].map(|()| Slot { event: EventHandle::NULL, is_recorded: false });
        let mut staging = Staging { memory: memory.cast(), slots, slot: 0, filled: 0, stream: Arc::clone(stream) };
        for slot in &mut staging.slots {
            // SAFETY: the call writes one handle.
            unsafe { cuEventCreate(&raw mut slot.event, WITHOUT_TIME) }?;
        }
        Ok(staging)
    }

    /// Copies bytes to the GPU. Reads `from` before it returns.
    ///
    /// # Safety
    /// `to` is the address of at least as many bytes.
    pub unsafe fn upload(&mut self, mut from: &[u8], mut to: u64) -> Done<()> {
        while !from.is_empty() {
            if self.filled == SLOT {
                self.next_slot()?;
            }
            let (piece, rest) = from.split_at(from.len().min(SLOT - self.filled));
            let place = self.place(piece.len());
            // SAFETY: the destination has as many bytes, and no copy is pending there; the caller guarantees the rest.
            unsafe {
                std::ptr::copy_nonoverlapping(piece.as_ptr(), place, piece.len());
                cuMemcpyHtoDAsync_v2(to, place.cast(), piece.len(), self.stream.handle())?;
            }
            (from, to) = (rest, to + piece.len() as u64);
        }
        Ok(())
    }

    /// Copies bytes from the GPU, after all queued work is done. Waits once if they fit in the staging buffer.
    ///
    /// # Safety
    /// Each address has at least as many bytes.
    pub unsafe fn download(&mut self, parts: &mut [Download]) -> Done<()> {
        let mut pieces = VecDeque::new();
        for part in parts {
            let (mut from, mut to) = (part.from(), part.to());
            while !to.is_empty() {
                if self.filled == SLOT {
                    self.next_slot()?;
                    self.deliver(&mut pieces, |slot, next| slot == next);
                }
                let (piece, rest) = to.split_at_mut(to.len().min(SLOT - self.filled));
                let place = self.place(piece.len());
                // SAFETY: the destination has as many bytes, and nothing uses them; the caller guarantees the rest.
                unsafe { cuMemcpyDtoHAsync_v2(place.cast(), from, piece.len(), self.stream.handle()) }?;
                from += piece.len() as u64;
                pieces.push_back(Piece { slot: self.slot, from: place, to: piece });
                to = rest;
            }
        }
        self.stream.synchronize()?;
        self.deliver(&mut pieces, |_, _| true);
        self.filled = 0;
        self.slots.iter_mut().for_each(|slot| slot.is_recorded = false);
        Ok(())
    }

    /// Returns the address for a piece in the current slot, which has enough bytes left.
    fn place(&mut self, bytes: usize) -> *mut u8 {
        // SAFETY: the slot has as many bytes left, so the address is inside the buffer.
        let place = unsafe { self.memory.add(self.slot * SLOT + self.filled) };
        self.filled = (self.filled + bytes).next_multiple_of(ALIGNMENT);
        place
    }

    /// Switches to the next slot, after the GPU is done with its contents.
    fn next_slot(&mut self) -> Done<()> {
        let full = &mut self.slots[self.slot];
        // SAFETY: the event and the stream exist.
        unsafe { cuEventRecord(full.event, self.stream.handle()) }?;
        full.is_recorded = true;
        let next = (self.slot + 1) % SLOTS;
        if self.slots[next].is_recorded {
            // SAFETY: the event exists.
            unsafe { cuEventSynchronize(self.slots[next].event) }?;
            self.slots[next].is_recorded = false;
        }
        (self.slot, self.filled) = (next, 0);
        Ok(())
    }

    /// Copies pieces to their destinations, from the first one on, while
    /// `is_done(slot of the piece, slot that is filled next)`.
    fn deliver(&self, pieces: &mut VecDeque<Piece>, is_done: impl Fn(usize, usize) -> bool) {
        while pieces.front().is_some_and(|piece| is_done(piece.slot, self.slot)) {
            let Some(piece) = pieces.pop_front() else { break };
            // SAFETY: the GPU has written as many bytes there, and nothing has overwritten them.
            unsafe { std::ptr::copy_nonoverlapping(piece.from, piece.to.as_mut_ptr(), piece.to.len()) };
        }
    }
}

impl Drop for Staging {
    /// If waiting for earlier work fails, the memory is not freed, because the GPU may still use it.
    fn drop(&mut self) {
        let Ok(_bound) = self.stream.bind() else { return };
        if self.stream.synchronize().is_err() {
            return;
        }
        for slot in self.slots.iter().filter(|slot| slot.event != EventHandle::NULL) {
            // SAFETY: nothing waits for the event any more.
            let _ = unsafe { cuEventDestroy_v2(slot.event) };
        }
        // SAFETY: no copy is pending.
        let _ = unsafe { cuMemFreeHost(self.memory.cast()) };
    }
}
