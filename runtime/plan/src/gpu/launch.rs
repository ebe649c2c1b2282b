//! Launches kernels on tensors of a GPU.

use std::any::TypeId;
use std::cell::RefCell;
use std::collections::HashSet;

pub(super) use candle_plan_derive::Params;
use candle_plan_device::{Buffer, Gpu, Grid, Mirror, Symbol};
use rustc_hash::FxBuildHasher;

use crate::bail;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::Call;
use crate::value::{charge, Array};

/// log₂ of the bytes of the widest word that a thread moves.
const WIDEST: u32 = 4;

/// The parameters of a kernel. `#[derive(Params)]` compares their fields with those of the kernel's struct in
/// `runtime/device/kernels/`, and lists the kernels with this struct.
///
/// # Safety
/// Code that fills the fields provides addresses of as many elements as the counts and strides state. No macro can check
/// this: the doc comment of a structure states how its code does it.
pub(super) unsafe trait Params: bytemuck::Pod + Mirror {
    /// The modules and the names of the kernels with these parameters. In a name, `*` stands for letters and digits that a
    /// macro of the module adds. `None` in a packaged crate, which lacks the sources of the kernels.
    const KERNELS: Option<&'static [(&'static str, &'static str)]>;
}

/// A kernel, by the addresses and lengths of its texts, which live forever, and a structure.
type Compared = ([(usize, usize); 3], TypeId);

thread_local! {
    /// The kernels that this thread has launched, each with its parameters. Only their first launch compares the names.
    static COMPARED: RefCell<HashSet<Compared, FxBuildHasher>> =
        const { RefCell::new(HashSet::with_hasher(FxBuildHasher)) };
}

/// Launches a kernel.
///
/// # Errors
/// The kernel has other parameters, or the device fails.
pub(super) fn launch<P: Params>(gpu: &Gpu, symbol: Symbol, grid: Grid, params: &P) -> Result<()> {
    if P::KERNELS.is_some_and(|kernels| !has_parameters(symbol, TypeId::of::<P>(), kernels)) {
        bail!("the kernel {symbol} in {}.cu does not have the parameters {}", symbol.module, P::TWIN);
    }
    // SAFETY: `Params` guarantees valid parameters of this kernel. Memory is freed in stream order, after this kernel.
    Ok(unsafe { gpu.launch(symbol, grid, params) }?)
}

/// Returns whether a kernel is one of those with a structure of parameters.
fn has_parameters(symbol: Symbol, params: TypeId, kernels: &[(&str, &str)]) -> bool {
    let texts = [symbol.module, symbol.name, symbol.kind].map(|text| (text.as_ptr().addr(), text.len()));
    let pair = (texts, params);
    if COMPARED.with_borrow(|compared| compared.contains(&pair)) {
        return true;
    }
    let is_one = kernels.iter().any(|kernel| is_kernel(symbol, kernel));
    if is_one {
        COMPARED.with_borrow_mut(|compared| compared.insert(pair));
    }
    is_one
}

/// Returns whether a symbol is a kernel of a module with a name, which may contain `*`.
fn is_kernel(symbol: Symbol, (module, name): &(&str, &str)) -> bool {
    let line = if symbol.kind.is_empty() { "" } else { "_" };
    *module == symbol.module
        && matches(name.as_bytes(), symbol.name.bytes().chain(line.bytes()).chain(symbol.kind.bytes()))
}

/// Returns whether a text matches a pattern. In the pattern, `*` stands for one or more bytes.
fn matches(pattern: &[u8], mut text: impl Iterator<Item = u8> + Clone) -> bool {
    match pattern.split_first() {
        None => text.next().is_none(),
        Some((b'*', rest)) => {
            while text.next().is_some() {
                if matches(rest, text.clone()) {
                    return true;
                }
            }
            false
        }
        Some((byte, rest)) => text.next() == Some(*byte) && matches(rest, text),
    }
}

/// Allocates a tensor on the GPU; a kernel must write all its elements.
///
/// # Errors
/// The GPU lacks memory for the tensor, or the tensor exceeds the run's memory limit.
pub(super) fn alloc_uninit(gpu: &Gpu, dims: &[usize], dtype: DType) -> Result<Array> {
    let bytes = charge(dims, dtype.storage_dtype()?.size_in_bytes())?;
    Array::on_device(gpu.allocate(bytes)?, dims, dtype)
}

/// Allocates scratch memory on the GPU. It counts toward the run's memory limit.
///
/// # Errors
/// The GPU lacks memory, or the limit is exceeded.
pub(super) fn scratch(gpu: &Gpu, bytes: usize) -> Result<Buffer> {
    Ok(gpu.allocate(charge(&[bytes], 1)?)?)
}

/// Copies bytes to scratch memory on the GPU. It counts toward the run's memory limit.
///
/// # Errors
/// The GPU lacks memory, or the limit is exceeded.
pub(super) fn uploaded_scratch(gpu: &Gpu, bytes: &[u8]) -> Result<Buffer> {
    charge(&[bytes.len()], 1)?;
    Ok(gpu.uploaded(bytes)?)
}

/// Takes over the storage of the first of these inputs that has the dimensions and type and dies in this step. If there
/// is none, allocates a tensor with [`alloc_uninit`].
///
/// # Errors
/// See [`alloc_uninit`].
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

/// Returns the device address of a tensor, or 0 if it is absent.
///
/// # Errors
/// The tensor is on the host.
pub(super) fn address(array: Option<&Array>) -> Result<u64> {
    array.map_or(Ok(0), Array::address)
}

/// Converts a number of elements to the type that kernels use.
///
/// # Errors
/// There are 2³¹ or more.
pub(super) fn count(elements: usize) -> Result<u32> {
    match i32::try_from(elements) {
        Ok(count) => Ok(count.unsigned_abs()),
        Err(_) => bail!("kernels of the device count fewer than 2³¹ elements, found {elements}"),
    }
}

/// Returns the suffix of kernels that compute with elements of a dtype.
///
/// # Errors
/// There is no such kernel.
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
        other => return Err(Error::Gpu(format!("the device has no kernel for {other}"))),
    })
}

/// Returns the suffix of kernels that move elements of a dtype's width.
///
/// # Errors
/// The dtype has no storage dtype.
pub(super) fn width(dtype: DType) -> Result<&'static str> {
    Ok(word(dtype.storage_dtype()?.size_in_bytes()))
}

/// Returns the suffix of kernels that move words of `bytes` bytes.
pub(super) fn word(bytes: usize) -> &'static str {
    match bytes {
        1 => "u8",
        2 => "u16",
        4 => "u32",
        8 => "u64",
        _ => "u128",
    }
}

/// Returns how many elements of `bytes` bytes a thread can move as one word. The elements lie in contiguous runs of
/// `run` elements, which begin at multiples of `run` from the addresses.
pub(super) fn elements_per_word(bytes: usize, run: usize, addresses: &[u64]) -> usize {
    let spans = addresses.iter().fold((run * bytes) as u64, |bits, address| bits | address);
    ((1 << spans.trailing_zeros().min(WIDEST)) / bytes).max(1)
}

#[doc(hidden)]
impl From<candle_plan_device::Error> for Error {
    fn from(error: candle_plan_device::Error) -> Error {
        Error::Gpu(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_kernels_match() {
        for (name, [module, base, kind], is_same) in [
            ("unary_f32", ["m", "unary", "f32"], true),
            ("program", ["m", "program", ""], true),
            ("unary_f32", ["other", "unary", "f32"], false),
            ("unary_f32", ["m", "unary", "f3"], false),
            ("unary_f32", ["m", "unary", "f32x"], false),
            ("unary_f32", ["m", "unary", ""], false),
            ("conv_direct_*", ["m", "conv_direct", "bf16"], true),
            ("conv_direct_*", ["m", "conv_direct", ""], false),
            ("reduce_*_*", ["m", "reduce_sum", "f16"], true),
            ("reduce_*_parts_*", ["m", "reduce_log_sum_exp_parts", "f16"], true),
            ("reduce_*_parts_*", ["m", "reduce_sum", "f16"], false),
        ] {
            let symbol = Symbol { module, name: base, kind };
            assert_eq!(is_kernel(symbol, &("m", name)), is_same, "{symbol}, {name}");
        }
    }

    #[test]
    fn names_are_compared_once_for_a_kernel_and_a_structure() {
        let compared = || COMPARED.with_borrow(HashSet::len);
        let (one, other, before) = (TypeId::of::<u32>(), TypeId::of::<u64>(), compared());
        let symbol = Symbol { module: "m", name: "unary", kind: "f32" };
        let kernels = [("m", "binary_f32"), ("m", "unary_*")];
        assert!(has_parameters(symbol, one, &kernels) && has_parameters(symbol, one, &[]), "it does not look again");
        for _ in 0..2 {
            assert!(!has_parameters(symbol, other, &kernels[..1]), "another structure, which other kernels have");
            assert!(!has_parameters(Symbol { kind: "", ..symbol }, one, &kernels), "another kernel");
        }
        assert_eq!(compared(), before + 1);
    }
}
