//! Kernels on the tensors of a GPU.

use candle_plan_device::{Gpu, Grid, Symbol};
use candle_plan_kernels::buffer;

use crate::bail;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::Call;
use crate::value::{element_count, out_of_memory, Array};

/// The widest word that a thread moves has 2 to this power bytes.
const WIDEST: u32 = 4;

/// The parameters of a kernel: the twin of its structure in `runtime/device/kernels/`.
///
/// # Safety
/// The fields are those of the twin, in its order; whoever fills them gives addresses of as many elements as its counts and
/// strides say.
pub(super) unsafe trait Params: bytemuck::Pod {}

/// Runs a kernel.
///
/// # Errors
/// What the device says.
pub(super) fn launch<P: Params>(gpu: &Gpu, symbol: Symbol, grid: Grid, params: &P) -> Result<()> {
    // SAFETY: the promise of `Params`. What is freed later is so behind this work.
    Ok(unsafe { gpu.launch(symbol, grid, params) }?)
}

/// A tensor on the GPU whose elements are arbitrary: a kernel writes them all.
///
/// # Errors
/// There is no room for it, or less than the bound of the run.
pub(super) fn alloc_uninit(gpu: &Gpu, dims: &[usize], dtype: DType) -> Result<Array> {
    let bytes = element_count(dims)?.checked_mul(dtype.storage_dtype()?.size_in_bytes());
    let bytes = bytes.filter(|&bytes| buffer::charge(bytes)).ok_or_else(|| out_of_memory(dims))?;
    Array::on_device(gpu.allocate(bytes)?, dims, dtype)
}

/// [`alloc_uninit`], which is the storage of the first of these inputs that has the dimensions and the type and dies here, if there
/// is one.
///
/// # Errors
/// As [`alloc_uninit`].
pub(super) fn alloc_in_place(
    gpu: &Gpu,
    call: &mut Call,
    inputs: &[usize],
    dims: &[usize],
    dtype: DType,
) -> Result<Array> {
    let fits = |call: &Call, i: usize| call.tensor(i).is_ok_and(|x| x.dtype() == dtype && x.dims() == dims);
    match inputs.iter().find_map(|&i| if fits(call, i) { call.take(i) } else { None }) {
        Some(array) => Ok(array),
        None => alloc_uninit(gpu, dims, dtype),
    }
}

/// Where the elements of a tensor lie; 0 for one that is absent.
///
/// # Errors
/// It lies on the host.
pub(super) fn address(array: Option<&Array>) -> Result<u64> {
    array.map_or(Ok(0), Array::address)
}

/// A number of elements as kernels count them.
///
/// # Errors
/// There are 2³¹ or more.
pub(super) fn count(elements: usize) -> Result<u32> {
    match i32::try_from(elements) {
        Ok(count) => Ok(count.unsigned_abs()),
        Err(_) => bail!("kernels of the device count fewer than 2³¹ elements, found {elements}"),
    }
}

/// The suffix of kernels that compute with elements of a dtype.
///
/// # Errors
/// There are none.
pub(super) fn kind(dtype: DType) -> Result<&'static str> {
    Ok(match dtype {
        DType::Bool | DType::Uint8 => "u8",
        DType::Int8 => "i8",
        DType::Int16 => "i16",
        DType::Int32 => "i32",
        DType::Int64 => "i64",
        DType::Uint16 => "u16",
        DType::Uint32 => "u32",
        DType::Uint64 => "u64",
        DType::Float16 => "f16",
        DType::Bfloat16 => "bf16",
        DType::Float32 => "f32",
        DType::Float64 => "f64",
        other => bail!("the device has no kernel for {other}"),
    })
}

/// The suffix of kernels that move elements as wide as those of a dtype.
///
/// # Errors
/// It has no elements on a device.
pub(super) fn width(dtype: DType) -> Result<&'static str> {
    Ok(word(dtype.storage_dtype()?.size_in_bytes()))
}

/// The suffix of kernels that move words of so many bytes.
pub(super) fn word(bytes: usize) -> &'static str {
    match bytes {
        1 => "u8",
        2 => "u16",
        4 => "u32",
        8 => "u64",
        _ => "u128",
    }
}

/// How many elements of `bytes` bytes a thread can move as one word, where runs of `run` of them stand together and begin at
/// multiples of `run` from the addresses.
pub(super) fn joined_in_words(bytes: usize, run: usize, addresses: &[u64]) -> usize {
    let spans = addresses.iter().fold((run * bytes) as u64, |bits, address| bits | address);
    ((1 << spans.trailing_zeros().min(WIDEST)) / bytes).max(1)
}

impl From<candle_plan_device::Error> for Error {
    fn from(error: candle_plan_device::Error) -> Error {
        Error::op(error.to_string())
    }
}
