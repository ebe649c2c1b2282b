//! The staging buffer of a session: pinned memory of the host, through which all bytes go to the GPU and come back.
//!
//! A copy from pageable memory may still be pending when its source is freed, and NVIDIA promises nothing about that. So
//! bytes that go up are copied into the staging buffer first, and the caller's memory is free when the call returns. The
//! buffer is a ring of slots. A slot is filled by one copy after the other; an event, recorded when the slot is full, says
//! when the slot is free again.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::Arc;

use super::driver::{
    cuEventCreate, cuEventDestroy_v2, cuEventRecord, cuEventSynchronize, cuMemFreeHost, cuMemHostAlloc,
    cuMemcpyDtoHAsync_v2, cuMemcpyHtoDAsync_v2, EventHandle, WITHOUT_TIME,
};
use super::failure::Failure;
use super::stream::Stream;
use crate::memory::Download;

/// How many slots there are, and the bytes of each: a large copy keeps the GPU busy with one slot while the host fills the
/// next.
const SLOTS: usize = 4;
const SLOT: usize = 1 << 20;
/// Pieces begin at multiples of so many bytes.
const ALIGNMENT: usize = 64;

type Done<T> = Result<T, Failure>;

pub(super) struct Staging {
    /// `SLOTS · SLOT` bytes, pinned.
    memory: *mut u8,
    slots: [Slot; SLOTS],
    /// The slot that is being filled, and how far it is.
    slot: usize,
    filled: usize,
    stream: Arc<Stream>,
}

// SAFETY: the memory is the staging buffer's own, and it has no thread.
unsafe impl Send for Staging {}

struct Slot {
    event: EventHandle,
    /// Whether the event was recorded and not waited for since.
    is_recorded: bool,
}

/// Bytes that the GPU writes into a slot, and where they go from there.
struct Piece<'a> {
    slot: usize,
    from: *const u8,
    to: &'a mut [u8],
}

impl Staging {
    /// The stream's context is the thread's, here and below.
    ///
    /// # Errors
    /// There is no pinned memory left.
    pub fn new(stream: &Arc<Stream>) -> Done<Staging> {
        let mut memory: *mut c_void = std::ptr::null_mut();
        // SAFETY: it writes one address.
        unsafe { cuMemHostAlloc(&raw mut memory, SLOTS * SLOT, 0) }?;
        let slots = [(); SLOTS].map(|()| Slot { event: EventHandle::NULL, is_recorded: false });
        let mut staging = Staging { memory: memory.cast(), slots, slot: 0, filled: 0, stream: Arc::clone(stream) };
        for slot in &mut staging.slots {
            // SAFETY: it writes one handle.
            unsafe { cuEventCreate(&raw mut slot.event, WITHOUT_TIME) }?;
        }
        Ok(staging)
    }

    /// Copies bytes to the GPU. `from` is read before the call returns.
    ///
    /// # Safety
    /// `to` is the address of as many bytes.
    pub unsafe fn upload(&mut self, mut from: &[u8], mut to: u64) -> Done<()> {
        while !from.is_empty() {
            if self.filled == SLOT {
                self.next_slot()?;
            }
            let (piece, rest) = from.split_at(from.len().min(SLOT - self.filled));
            let place = self.place(piece.len());
            // SAFETY: the place has as many bytes and no copy is pending there; the caller's promise.
            unsafe {
                std::ptr::copy_nonoverlapping(piece.as_ptr(), place, piece.len());
                cuMemcpyHtoDAsync_v2(to, place.cast(), piece.len(), self.stream.handle())?;
            }
            (from, to) = (rest, to + piece.len() as u64);
        }
        Ok(())
    }

    /// Copies bytes from the GPU, when all work before is done. As long as they fit into the staging buffer, it waits once.
    ///
    /// # Safety
    /// Each address is one of as many bytes.
    pub unsafe fn download(&mut self, parts: &mut [Download]) -> Done<()> {
        let mut pieces = VecDeque::new();
        for part in parts {
            let (mut from, mut to) = (part.from, &mut *part.to);
            while !to.is_empty() {
                if self.filled == SLOT {
                    self.next_slot()?;
                    self.deliver(&mut pieces, |slot, next| slot == next);
                }
                let (piece, rest) = to.split_at_mut(to.len().min(SLOT - self.filled));
                let place = self.place(piece.len());
                // SAFETY: the place has as many bytes and nobody uses them; the caller's promise.
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

    /// Room for a piece in the slot, which has as much left.
    fn place(&mut self, bytes: usize) -> *mut u8 {
        // SAFETY: the slot has as many bytes left, so the place lies in the buffer.
        let place = unsafe { self.memory.add(self.slot * SLOT + self.filled) };
        self.filled = (self.filled + bytes).next_multiple_of(ALIGNMENT);
        place
    }

    /// Goes on to the next slot, when the GPU is done with what was in it.
    fn next_slot(&mut self) -> Done<()> {
        let full = &mut self.slots[self.slot];
        // SAFETY: the event and the stream live.
        unsafe { cuEventRecord(full.event, self.stream.handle()) }?;
        full.is_recorded = true;
        let next = (self.slot + 1) % SLOTS;
        if self.slots[next].is_recorded {
            // SAFETY: the event lives.
            unsafe { cuEventSynchronize(self.slots[next].event) }?;
            self.slots[next].is_recorded = false;
        }
        (self.slot, self.filled) = (next, 0);
        Ok(())
    }

    /// Copies the first pieces on, as far as `is_done(their slot, the slot that is filled next)`.
    fn deliver(&self, pieces: &mut VecDeque<Piece>, is_done: impl Fn(usize, usize) -> bool) {
        while pieces.front().is_some_and(|piece| is_done(piece.slot, self.slot)) {
            let Some(piece) = pieces.pop_front() else { break };
            // SAFETY: the GPU has written as many bytes there, and nothing has taken their place.
            unsafe { std::ptr::copy_nonoverlapping(piece.from, piece.to.as_mut_ptr(), piece.to.len()) };
        }
    }
}

impl Drop for Staging {
    /// Where the work before cannot be waited for, the GPU may still use the memory: it is not freed.
    fn drop(&mut self) {
        let Ok(_bound) = self.stream.bind() else { return };
        if self.stream.synchronize().is_err() {
            return;
        }
        for slot in self.slots.iter().filter(|slot| slot.event != EventHandle::NULL) {
            // SAFETY: nobody waits for it any more.
            let _ = unsafe { cuEventDestroy_v2(slot.event) };
        }
        // SAFETY: no copy is pending.
        let _ = unsafe { cuMemFreeHost(self.memory.cast()) };
    }
}
