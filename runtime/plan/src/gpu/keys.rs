//! GPU kernels: sorts updates of a tensor by the slices they write. The last update of a slice wins, or all updates of
//! it are combined in their order, so that the result is deterministic.

use bytemuck::{Pod, Zeroable};
use candle_plan_descriptors::strided::View;
use candle_plan_device::{Gpu, Grid, Symbol};

use super::copy::copied;
use super::launch::{alloc_uninit, count, elements_per_word, kind, launch, word, Params};
use crate::bail;
use crate::dtype::DType;
use crate::error::Result;
use crate::kernel::Call;
use crate::ops::scatter::Combination;
use crate::value::{Array, Value};

/// The largest number of updates that are sorted.
const MAX_SORTED: usize = 1 << 30;

/// The number of keys that a block sorts, as `SORTED_TOGETHER` in `scatter.cu`.
const SORTED_TOGETHER: u32 = 1024;

/// There are `count` keys, and a winner per slice.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(ScatterKeys in "scatter.cu")]
pub(super) struct KeysParams {
    keys: u64,
    winners: u64,
    updates: u32,
    count: u32,
}

/// Y has `run` elements per slice, and there are `count` elements of updates.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(ScatterWrite in "scatter.cu")]
struct WriteParams {
    keys: u64,
    winners: u64,
    updates: u64,
    y: u64,
    count: u32,
    run: u32,
    operation: u32,
    padding: u32,
}

/// There are `count` keys, a power of two greater than 1.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(ScatterSort in "scatter.cu")]
struct SortParams {
    keys: u64,
    count: u32,
    first_span: u32,
    last_span: u32,
    reach: u32,
}

/// Names a kernel of `scatter.cu`.
pub(super) fn kernel(name: &'static str, kind: &'static str) -> Symbol {
    Symbol { module: "scatter", name, kind }
}

/// Returns the tensor to write into: input 0, taken over if it dies here, otherwise a copy.
pub(super) fn target(gpu: &Gpu, call: &mut Call) -> Result<Array> {
    match call.take(0) {
        Some(array) => Ok(array),
        None => {
            let x = call.tensor(0)?;
            copied(gpu, x, &View::contiguous(x.dims()))
        }
    }
}

/// The keys of updates, which encode their slices.
pub(super) struct Keys {
    keys: Array,
    /// A number per slice, if the last update of a slice wins.
    winners: Option<Array>,
    updates: u32,
    /// The number of updates, rounded up to a power of two if the keys are sorted.
    pub count: u32,
}

impl Keys {
    /// Allocates the keys of `updates` updates of `slices` slices.
    pub fn new(gpu: &Gpu, updates: usize, slices: usize, reduction: Combination) -> Result<Keys> {
        let (updates, slices) = (count(updates)?, count(slices)? as usize);
        let wins = reduction == Combination::None;
        if !wins && updates as usize > MAX_SORTED {
            bail!("kernels of the device combine at most {MAX_SORTED} updates, found {updates}");
        }
        let count = if wins { updates } else { updates.next_power_of_two() };
        let winners = wins.then(|| alloc_uninit(gpu, &[slices], DType::Uint32)).transpose()?;
        Ok(Keys { keys: alloc_uninit(gpu, &[count as usize], DType::Uint64)?, winners, updates, count })
    }

    pub fn params(&self) -> Result<KeysParams> {
        let winners = self.winners.as_ref().map_or(Ok(0), Array::address)?;
        Ok(KeysParams { keys: self.keys.address()?, winners, updates: self.updates, count: self.count })
    }

    /// Writes the updates (input 2), in slices of `run` elements, into input 0.
    pub fn write(&self, gpu: &Gpu, call: &mut Call, run: usize, reduction: Combination) -> Result<Vec<Value>> {
        let y = target(gpu, call)?;
        let updates = call.tensor(2)?;
        let KeysParams { keys, winners, .. } = self.params()?;
        let width = y.dtype().storage_dtype()?.size_in_bytes();
        let (joined, symbol, operation) = match reduction {
            Combination::None => {
                let joined = elements_per_word(width, run, &[updates.address()?, y.address()?]);
                launch(gpu, kernel("scatter_winners", ""), Grid::over(self.updates), &self.params()?)?;
                (joined, kernel("scatter_write", word(width * joined)), 0)
            }
            _ => {
                let kind = if y.dtype() == DType::Bool { "bool" } else { kind(y.dtype())? };
                self.sort(gpu)?;
                (1, kernel("scatter_combine", kind), code(reduction))
            }
        };
        let (count, run) = (count(updates.len() / joined)?, count(run / joined)?);
        let params = WriteParams {
            keys,
            winners,
            updates: updates.address()?,
            y: y.address()?,
            count,
            run,
            operation,
            padding: 0,
        };
        launch(gpu, symbol, Grid::over(count), &params)?;
        Ok(vec![y.into()])
    }

    /// Sorts the keys. Keys of one block are sorted in shared memory.
    fn sort(&self, gpu: &Gpu) -> Result<()> {
        let (keys, count) = (self.keys.address()?, self.count);
        let sort_blocks = |first_span: u32, last_span: u32| {
            let params = SortParams { keys, count, first_span, last_span, reach: 0 };
            launch(gpu, kernel("scatter_sort_near", ""), Grid::blocks(count.div_ceil(SORTED_TOGETHER)), &params)
        };
        if count < 2 {
            return Ok(());
        }
        sort_blocks(2, count.min(SORTED_TOGETHER))?;
        let mut span = SORTED_TOGETHER;
        while span < count {
            span *= 2;
            let mut reach = span / 2;
            while reach >= SORTED_TOGETHER {
                let params = SortParams { keys, count, first_span: span, last_span: span, reach };
                launch(gpu, kernel("scatter_sort_far", ""), Grid::over(count / 2), &params)?;
                reach /= 2;
            }
            sort_blocks(span, span)?;
        }
        Ok(())
    }
}

/// Returns the number of a reduction in `Combination` of `scatter.cu`, which lacks `None`.
fn code(reduction: Combination) -> u32 {
    match reduction {
        Combination::None | Combination::Add => 0,
        Combination::Mul => 1,
        Combination::Min => 2,
        Combination::Max => 3,
    }
}
