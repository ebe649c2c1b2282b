//! A GPU that the CPU emulates, as the device `emulator`, for tests. It runs the kernels of `candle-plan-device`, compiled
//! as C++.
//!
//! A GPU runs blocks and warps in any order. The CPU runs them in one order, in which a missing barrier, or two threads
//! that write the same element, may do no harm. The emulator therefore runs every launch several times: forwards;
//! backwards, so that each of two unsynchronized threads is first once; and with a single block that loops, as blocks
//! do if the grid is smaller than the work. All runs start with the same memory, and must write the same bytes. This
//! detects the error in the launch that has it, independent of earlier launches, and makes two runs of a plan equal on
//! a GPU.

#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{c_char, c_void, CString};
use std::sync::Arc;

use candle_plan_device::{Backend, Download, Error, Gemm, Gpu, Grid, Memory, Result, Symbol};
use parking_lot::Mutex;

/// The emulator. Its memory is host memory that is accessed only by address.
#[derive(Debug)]
struct Emulator;

/// Makes the emulator available as the device `emulator`. There is only one.
pub fn register() {
    candle_plan_device::register("emulator", |ordinal| match ordinal {
        0 => open(),
        _ => Err(Error::Unavailable(format!("there is no GPU {ordinal}: the emulator is one, number 0"))),
    });
}

/// Opens the emulator.
///
/// # Errors
/// The host has no memory left.
pub fn open() -> Result<Gpu> {
    Gpu::new(Arc::new(Emulator))
}

thread_local! {
    static ALLOCATED: Cell<usize> = const { Cell::new(0) };
}

/// The bytes that this thread has allocated on the emulator so far.
pub fn allocated() -> usize {
    ALLOCATED.get()
}

/// The initial value of every byte, which reveals bytes that a kernel fails to write.
const UNWRITTEN: u8 = 0xA5;
/// Guard bytes after every buffer, which reveal out-of-bounds writes.
const GUARD: usize = 64;

/// Kernels that write a list in any order; later kernels sort it.
const UNORDERED: [(&str, &str); 1] = [("topk", "topk_select")];
/// Kernels whose output depends on the number of blocks.
const OF_BLOCKS: [(&str, &str); 1] = [("quantize", "range")];

/// All memory: its start addresses, and its sizes including guard bytes. The lock is held while a kernel runs, so that
/// only one kernel runs, and no memory is freed.
static MEMORY: Mutex<BTreeMap<u64, usize>> = Mutex::new(BTreeMap::new());

/// Memory in units of the largest alignment.
struct Owner {
    words: Vec<u128>,
    address: u64,
    bytes: usize,
}

impl candle_plan_device::Owner for Owner {}

impl Drop for Owner {
    fn drop(&mut self) {
        MEMORY.lock().remove(&self.address);
        let bytes: &[u8] = bytemuck::cast_slice(&self.words);
        assert!(
            bytes[self.bytes..].iter().all(|&byte| byte == UNWRITTEN),
            "a kernel wrote behind {} bytes",
            self.bytes
        );
    }
}

/// A buffer that a launch has the address of.
struct Place {
    start: u64,
    before: Vec<u8>,
    /// The contents after the first run, if they changed.
    after: Option<Vec<u8>>,
}

/// Returns all buffers of a launch; only its parameters contain addresses.
fn places(params: &[u8], memory: &BTreeMap<u64, usize>) -> BTreeMap<u64, usize> {
    let holding = |word: &[u8]| {
        let address = u64::from_ne_bytes(word.try_into().ok()?);
        let (&start, &bytes) = memory.range(..=address).next_back()?;
        (address - start < bytes as u64).then_some((start, bytes))
    };
    params.chunks_exact(size_of::<u64>()).filter_map(holding).collect()
}

impl Place {
    /// # Safety
    /// While the value exists, the memory exists. While one of its methods runs, nothing else writes the memory, or
    /// reads what a kernel wrote.
    unsafe fn new((start, bytes): (u64, usize)) -> Place {
        // SAFETY: guaranteed by the caller.
        let before = unsafe { std::slice::from_raw_parts(start as *const u8, bytes) }.to_vec();
        Place { start, before, after: None }
    }

    fn now(&self) -> &[u8] {
        // SAFETY: guaranteed by the caller of `new`.
        unsafe { std::slice::from_raw_parts(self.start as *const u8, self.before.len()) }
    }

    fn keep(&mut self) {
        self.after = (self.now() != self.before).then(|| self.now().to_vec());
    }

    /// Restores the contents. Does not write memory that has not changed, because others may read it.
    fn restore(&self) {
        if self.now() != self.before {
            // SAFETY: guaranteed by the caller of `new`.
            unsafe { std::ptr::copy_nonoverlapping(self.before.as_ptr(), self.start as *mut u8, self.before.len()) };
        }
    }

    /// Returns the first byte that differs from the first run.
    fn difference(&self) -> Option<usize> {
        let (now, after) = (self.now(), self.after.as_ref().unwrap_or(&self.before));
        // Most buffers are equal; comparing them as a whole is faster.
        if now == after {
            None
        } else {
            now.iter().zip(after).position(|(x, y)| x != y)
        }
    }
}

extern "C" {
    fn emulator_find(name: *const c_char) -> *const c_void;
    fn emulator_parameters(kernel: *const c_void) -> u64;
    fn emulator_run(kernel: *const c_void, blocks: *const u32, threads: u32, params: *const c_void, backwards: bool);
}

/// Runs a kernel in each order, with `run(blocks, backwards)`. No other kernel runs at the same time.
///
/// # Safety
/// During the call, nothing else uses the memory that the kernel writes, or writes other memory that the parameters
/// point to.
unsafe fn run_in_any_order(
    symbol: Symbol,
    blocks: [u32; 3],
    params: &[u8],
    run: impl Fn([u32; 3], bool),
) -> Result<()> {
    let memory = MEMORY.lock();
    // SAFETY: no memory is freed while the lock is held; the caller guarantees the rest.
    let mut places: Vec<Place> = places(params, &memory).into_iter().map(|it| unsafe { Place::new(it) }).collect();
    let name = (symbol.module, symbol.name);
    let one = (blocks != [1; 3] && !OF_BLOCKS.contains(&name)).then_some(([1; 3], "number of its blocks"));
    run(blocks, false);
    places.iter_mut().for_each(Place::keep);
    for (blocks, variation) in [(blocks, "order of its threads")].into_iter().chain(one) {
        places.iter().for_each(Place::restore);
        run(blocks, true);
        if let Some(at) = places.iter().find_map(Place::difference).filter(|_| !UNORDERED.contains(&name)) {
            return Err(Error::Failed(format!(
                "the output of {}/{symbol} depends on the {variation}: byte {at} of its memory",
                symbol.module
            )));
        }
    }
    Ok(())
}

// SAFETY: an address is that of a vector, which is alone until its owner is dropped. Every method has done its work when it
// returns. All emulators of the process have the same memory.
unsafe impl Backend for Emulator {
    fn name(&self) -> &str {
        "emulator"
    }

    fn allocate(&self, bytes: usize) -> Result<Memory> {
        let mut words = Vec::new();
        let count = (bytes.saturating_add(GUARD)).div_ceil(size_of::<u128>());
        words.try_reserve_exact(count).map_err(|_| Error::OutOfMemory(bytes))?;
        words.resize(count, u128::from_ne_bytes([UNWRITTEN; 16]));
        let address = words.as_mut_ptr().expose_provenance() as u64;
        MEMORY.lock().insert(address, size_of::<u128>() * count);
        ALLOCATED.set(ALLOCATED.get() + bytes);
        // SAFETY: the owner has the vector at the address.
        Ok(unsafe { Memory::new(address, Box::new(Owner { words, address, bytes })) })
    }

    unsafe fn upload(&self, from: &[u8], to: u64) -> Result<()> {
        // SAFETY: guaranteed by the caller.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to as *mut u8, from.len()) };
        Ok(())
    }

    unsafe fn download(&self, parts: &mut [Download]) -> Result<()> {
        for part in parts {
            let from = part.from() as *const u8;
            // SAFETY: guaranteed by the caller.
            unsafe { std::ptr::copy_nonoverlapping(from, part.to().as_mut_ptr(), part.bytes()) };
        }
        Ok(())
    }

    unsafe fn copy(&self, from: u64, to: u64, bytes: usize) -> Result<()> {
        // SAFETY: guaranteed by the caller.
        unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, bytes) };
        Ok(())
    }

    unsafe fn launch(&self, symbol: Symbol, grid: Grid, params: &[u8]) -> Result<()> {
        let name =
            CString::new(format!("{}/{symbol}", symbol.module)).map_err(|error| Error::Failed(error.to_string()))?;
        // SAFETY: the name ends with a null byte.
        let kernel = unsafe { emulator_find(name.as_ptr()) };
        if kernel.is_null() {
            return Err(Error::Failed(format!("there is no kernel {symbol}")));
        }
        // SAFETY: `kernel` is a kernel.
        let size = unsafe { emulator_parameters(kernel) };
        if size != params.len() as u64 {
            return Err(Error::Failed(format!("{symbol} takes {size} bytes of parameters, not {}", params.len())));
        }
        // SAFETY: guaranteed by the caller and by `run_in_any_order`.
        let run = |blocks: [u32; 3], backwards| unsafe {
            emulator_run(kernel, blocks.as_ptr(), grid.threads, params.as_ptr().cast(), backwards);
        };
        // SAFETY: the caller guarantees that nothing else uses what the kernel writes, or writes what it reads.
        unsafe { run_in_any_order(symbol, grid.blocks, params, run) }
    }

    unsafe fn gemm(&self, gemm: &Gemm) -> Result<()> {
        let (symbol, grid, params) = gemm.launch();
        // SAFETY: guaranteed by the caller.
        unsafe { self.launch(symbol, grid, bytemuck::bytes_of(&params)) }
    }

    fn check_address(&self, address: u64) -> Result<()> {
        let memory = MEMORY.lock();
        match memory.range(..=address).next_back() {
            Some((start, &bytes)) if address - start < bytes as u64 => Ok(()),
            _ => Err(Error::Failed("the address is not one of the emulator's memory".to_string())),
        }
    }
}
