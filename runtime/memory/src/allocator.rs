//! An allocator for tensor values: few, large blocks of many sizes, which every run allocates and frees again.
//!
//! An allocator for many small blocks keeps separate memory for each size class. A value of one size cannot reuse the
//! memory of a value of another size, so a run holds much more memory than its values need. This allocator cuts a block
//! from the smallest free range that is large enough (best fit), and merges a freed block with its free neighbors. Blocks
//! are cut from the end of a range, so unused memory is at the start of a region. The allocator uses a range at the start of
//! a region only if no other range is large enough.

use std::alloc::{GlobalAlloc, Layout};
use std::collections::BTreeMap;
use std::ptr::{self, null_mut, with_exposed_provenance_mut};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The size in bytes from which a block counts as large. Smaller blocks come from the inner allocator.
const LARGE: usize = 16 << 10;
/// The alignment in bytes of large blocks; their sizes are multiples of it.
const PAGE: usize = 4 << 10;
/// The size of a region, from which large blocks are cut, is a multiple of this. Pages that were never written take no
/// memory.
const REGION: usize = 64 << 20;

/// An allocator that cuts large blocks from its own ranges. The allocator `A` provides small blocks and the regions.
pub struct Allocator<A> {
    inner: A,
    keeps_pages: fn() -> bool,
    ranges: Mutex<Ranges>,
}

impl<A> Allocator<A> {
    /// Wraps another allocator. `keeps_pages` tells whether `inner` keeps the bytes of the pages that it hands out, even of
    /// pages that were never written: see [`keeps_pages`]. Each new region asks it.
    ///
    /// # Safety
    /// The result is the program's global allocator. If `keeps_pages` returns true, `inner` never gives the advice
    /// `MADV_FREE`, or advice like it, for a page that it hands out again.
    pub const unsafe fn new(inner: A, keeps_pages: fn() -> bool) -> Allocator<A> {
        Allocator { inner, keeps_pages, ranges: Mutex::new(Ranges::new()) }
    }

    /// Locks the ranges. A poisoned lock is ignored: no panic can leave the ranges half changed.
    fn ranges(&self) -> MutexGuard<'_, Ranges> {
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether an [`Allocator`] that keeps pages has made a region.
static KEEPS_PAGES: AtomicBool = AtomicBool::new(false);

/// Whether pages that were never written have the same bytes in every read, because the program's allocator is an
/// [`Allocator`] that keeps them. After the advice `MADV_FREE`, the system may discard the bytes of a page until the page
/// is written. False until the program allocates a large block.
pub fn keeps_pages() -> bool {
    KEEPS_PAGES.load(Ordering::Relaxed)
}

/// The bytes of all large blocks that an [`Allocator`] has handed out.
static ALLOCATED: AtomicU64 = AtomicU64::new(0);

/// The bytes of all large blocks that the program has allocated so far, also of those that it has freed. A block of 16 KiB or
/// more counts, if the program's allocator is an [`Allocator`].
pub fn allocated() -> u64 {
    ALLOCATED.load(Ordering::Relaxed)
}

/// Returns the size in bytes, rounded up to whole pages, if the block is large.
#[inline]
fn large(layout: Layout) -> Option<usize> {
    (layout.size() >= LARGE && layout.align() <= PAGE).then(|| layout.size().next_multiple_of(PAGE))
}

impl<A: GlobalAlloc> Allocator<A> {
    /// Allocates a large block of `size` bytes; null if memory runs out. Not inlined, to keep the path of small blocks
    /// short.
    #[inline(never)]
    fn allocate(&self, size: usize) -> *mut u8 {
        ALLOCATED.fetch_add(size as u64, Ordering::Relaxed);
        let mut ranges = self.ranges();
        if let Some(start) = ranges.allocate(size) {
            return with_exposed_provenance_mut(start);
        }
        let Ok(region) = Layout::from_size_align(size.next_multiple_of(REGION), PAGE) else { return null_mut() };
        // SAFETY: a region is not empty.
        let start = unsafe { self.inner.alloc(region) };
        if start.is_null() {
            return null_mut();
        }
        if (self.keeps_pages)() {
            KEEPS_PAGES.store(true, Ordering::Relaxed);
        }
        ranges.add_region(start.expose_provenance(), region.size());
        ranges.allocate(size).map_or(null_mut(), with_exposed_provenance_mut)
    }

    /// Frees a large block.
    ///
    /// # Safety
    /// [`Allocator::allocate`] returned the block for this size, and nothing uses it any more.
    #[inline(never)]
    unsafe fn release(&self, block: *mut u8, size: usize) {
        let unused = self.ranges().release(block.expose_provenance(), size);
        if let Some((start, size)) = unused {
            // SAFETY: the region was allocated with this layout, and no block lies in it.
            unsafe {
                self.inner.dealloc(with_exposed_provenance_mut(start), Layout::from_size_align_unchecked(size, PAGE));
            }
        }
    }
}

// SAFETY: a large block is a part of one of the inner allocator's regions that no other block overlaps (see `Ranges`),
// and starts at a page. The layout decides whether a block is large, and it is the same when the block is freed. The
// nodes of the maps in `Ranges` are small, so allocating them never locks the ranges again.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Allocator<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match large(layout) {
            Some(size) => self.allocate(size),
            // SAFETY: guaranteed by the caller.
            None => unsafe { self.inner.alloc(layout) },
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let Some(size) = large(layout) else {
            // SAFETY: guaranteed by the caller.
            return unsafe { self.inner.alloc_zeroed(layout) };
        };
        let block = self.allocate(size);
        if !block.is_null() {
            // SAFETY: the block has `size` bytes.
            unsafe { ptr::write_bytes(block, 0, layout.size()) };
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: guaranteed by the caller. The layout tells which allocator the block comes from.
        unsafe {
            match large(layout) {
                Some(size) => self.release(block, size),
                None => self.inner.dealloc(block, layout),
            }
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: guaranteed by the caller: the new size makes a valid layout. Blocks are at least as long as their
        // layouts say.
        unsafe {
            let wanted = Layout::from_size_align_unchecked(size, layout.align());
            match (large(layout), large(wanted)) {
                (None, None) => return self.inner.realloc(block, layout, size),
                (Some(has), Some(wants)) if has == wants => return block,
                _ => {}
            }
            let moved = self.alloc(wanted);
            if !moved.is_null() {
                ptr::copy_nonoverlapping(block, moved, size.min(layout.size()));
                self.dealloc(block, layout);
            }
            moved
        }
    }
}

/// The regions and their free ranges: maps from start to length. No two free ranges of a region are adjacent.
struct Ranges {
    regions: BTreeMap<usize, usize>,
    free: BTreeMap<usize, usize>,
}

impl Ranges {
    const fn new() -> Ranges {
        Ranges { regions: BTreeMap::new(), free: BTreeMap::new() }
    }

    fn add_region(&mut self, start: usize, length: usize) {
        self.regions.insert(start, length);
        self.free.insert(start, length);
    }

    /// Allocates a block at the end of the smallest free range that is large enough, and returns its start. A range at the
    /// start of a region is the last choice, because it may hold pages that were never written.
    fn allocate(&mut self, length: usize) -> Option<usize> {
        let fitting = self.free.iter_mut().filter(|(_, free)| **free >= length);
        let (&start, free) = fitting.min_by_key(|(start, free)| (self.regions.contains_key(start), **free))?;
        *free -= length;
        let left = *free;
        if left == 0 {
            self.free.remove(&start);
        }
        Some(start + left)
    }

    /// Frees a block. If this leaves two regions entirely free, the method removes the block's region and returns its
    /// `(start, length)` for the caller to free. The other free region stays for the next run.
    fn release(&mut self, mut start: usize, mut length: usize) -> Option<(usize, usize)> {
        let is_inside = |border: usize| !self.regions.contains_key(&border);
        if let Some(after) = Some(start + length).filter(|&end| is_inside(end)).and_then(|end| self.free.remove(&end)) {
            length += after;
        }
        let before = self.free.range(..start).next_back().map(|(&before, &free)| (before, free));
        if let Some((before, free)) = before.filter(|(before, free)| before + free == start && is_inside(start)) {
            (start, length) = (before, free + length);
        }
        self.free.insert(start, length);
        let is_region = |(start, length): &(&usize, &usize)| self.regions.get(start) == Some(*length);
        if !is_region(&(&start, &length)) || self.free.iter().filter(is_region).count() == 1 {
            return None;
        }
        self.regions.remove(&start);
        self.free.remove(&start);
        Some((start, length))
    }
}

#[cfg(test)]
mod tests {
    use std::alloc::System;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use super::*;

    /// The system's allocator, with a count of the bytes that are allocated.
    struct Counting(AtomicUsize);

    // SAFETY: forwards to the system's allocator.
    unsafe impl GlobalAlloc for Counting {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            self.0.fetch_add(layout.size(), SeqCst);
            // SAFETY: guaranteed by the caller.
            unsafe { System.alloc(layout) }
        }

        unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
            self.0.fetch_sub(layout.size(), SeqCst);
            // SAFETY: guaranteed by the caller.
            unsafe { System.dealloc(block, layout) }
        }
    }

    /// Pseudo-random numbers below `end`.
    fn random(end: usize) -> impl FnMut() -> usize {
        let mut state = 1u64;
        move || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % end
        }
    }

    /// A block whose bytes all equal `tag`.
    struct Block {
        start: *mut u8,
        layout: Layout,
        tag: u8,
    }

    impl Block {
        fn new(start: *mut u8, layout: Layout, tag: u8) -> Block {
            assert!(!start.is_null() && start.addr().is_multiple_of(layout.align()), "{layout:?}");
            // SAFETY: the block was just allocated with this layout.
            unsafe { ptr::write_bytes(start, tag, layout.size()) };
            Block { start, layout, tag }
        }

        /// Asserts that the first `size` bytes, sampled, still equal `tag`.
        fn holds(&self, size: usize) {
            // SAFETY: the block holds them.
            let bytes = unsafe { std::slice::from_raw_parts(self.start, size) };
            assert!(bytes.iter().step_by(61).chain(bytes.last()).all(|&byte| byte == self.tag), "{:?}", self.layout);
        }
    }

    #[test]
    fn blocks_keep_their_bytes_and_all_memory_comes_back() {
        // SAFETY: it does not claim to keep pages.
        let allocator = unsafe { Allocator::new(Counting(AtomicUsize::new(0)), || false) };
        let held = || allocator.inner.0.load(SeqCst);
        let sizes = [1, 1000, LARGE - 1, LARGE, LARGE + PAGE, 100_000, 3 << 20, REGION + 1];
        let (mut size, mut align, mut choice) = (random(sizes.len()), random(3), random(1 << 20));
        let mut blocks: Vec<Block> = Vec::new();
        for tag in 0..1000 {
            let layout = Layout::from_size_align(sizes[size()], [1, 64, 2 * PAGE][align()]).unwrap();
            // SAFETY: layouts are not empty, and each block is freed once, with its own layout.
            unsafe {
                match (choice() % 3, blocks.len()) {
                    (_, 0) => blocks.push(Block::new(allocator.alloc(layout), layout, tag as u8)),
                    (0, 1..8) => {
                        let block = Block { start: allocator.alloc_zeroed(layout), layout, tag: 0 };
                        block.holds(layout.size());
                        blocks.push(Block::new(block.start, layout, tag as u8));
                    }
                    (1, count) => {
                        let Block { start, layout: old, tag: kept } = blocks.swap_remove(choice() % count);
                        let new = Layout::from_size_align(layout.size(), old.align()).unwrap();
                        let block = Block { start: allocator.realloc(start, old, new.size()), layout: new, tag: kept };
                        block.holds(old.size().min(new.size()));
                        blocks.push(Block::new(block.start, new, tag as u8));
                    }
                    (_, count) => {
                        let block = blocks.swap_remove(choice() % count);
                        block.holds(block.layout.size());
                        allocator.dealloc(block.start, block.layout);
                    }
                }
            }
        }
        for block in blocks {
            block.holds(block.layout.size());
            // SAFETY: this allocator allocated the block.
            unsafe { allocator.dealloc(block.start, block.layout) };
        }
        let free: Vec<usize> = allocator.ranges().free.values().copied().collect();
        assert_eq!((free.len(), held()), (1, free[0]), "one region stays, free from end to end");
    }

    #[test]
    fn pages_are_kept_if_the_inner_allocator_keeps_them() {
        let keeps = |inner_keeps: fn() -> bool| {
            // SAFETY: the global allocator of tests is the system's, which does not give the advice.
            let allocator = unsafe { Allocator::new(System, inner_keeps) };
            let layout = Layout::from_size_align(LARGE, 1).unwrap();
            // SAFETY: the layout is not empty, and the block is freed with it.
            unsafe { allocator.dealloc(allocator.alloc(layout), layout) };
            keeps_pages()
        };
        let before = allocated();
        assert_eq!([keeps(|| false), keeps(|| true)], [false, true]);
        assert!(allocated() - before >= 2 * LARGE as u64);
    }

    #[test]
    fn a_block_is_cut_from_the_smallest_range_and_joins_its_neighbors() {
        let mut ranges = Ranges::new();
        ranges.add_region(REGION, REGION);
        let starts = [1, 2, 1, 4, 1].map(|pages| ranges.allocate(pages * PAGE).unwrap());
        assert_eq!(starts, [1, 3, 4, 8, 9].map(|page| 2 * REGION - page * PAGE));
        ranges.release(starts[1], 2 * PAGE);
        ranges.release(starts[3], 4 * PAGE);
        assert_eq!(ranges.allocate(2 * PAGE), Some(starts[1]), "not of the four pages before it");
        ranges.release(starts[1], 2 * PAGE);
        ranges.release(starts[2], PAGE);
        assert_eq!(ranges.allocate(7 * PAGE), Some(starts[3]), "the three are one range");
        assert_eq!(ranges.allocate(REGION), None);
        // An adjacent region stays separate: its blocks do not merge with those of the first one.
        ranges.add_region(2 * REGION, REGION);
        assert_eq!(ranges.allocate(REGION), Some(2 * REGION));
        assert_eq!(ranges.release(2 * REGION, REGION), None, "the only free one");
        for (start, pages) in [(starts[0], 1), (starts[3], 7)] {
            assert_eq!(ranges.release(start, pages * PAGE), None);
        }
        assert_eq!(ranges.release(starts[4], PAGE), Some((REGION, REGION)));
    }

    #[test]
    fn pages_that_were_never_written_are_used_last() {
        let mut ranges = Ranges::new();
        ranges.add_region(REGION, REGION);
        let [first, ..] = [REGION / 2, PAGE, REGION / 4].map(|length| ranges.allocate(length).unwrap());
        ranges.release(first, REGION / 2);
        assert_eq!(ranges.allocate(PAGE), Some(2 * REGION - PAGE), "of the larger range");
        assert_eq!(ranges.allocate(REGION / 2 - PAGE), Some(first));
        assert_eq!(ranges.allocate(PAGE), Some(REGION + REGION / 4 - 2 * PAGE));
    }
}
