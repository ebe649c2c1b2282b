//! The functions of the extension for the CPU. They answer the compiler's questions about ops, plans and the machine.

use candle_plan::internal::{self, infer as types};
use candle_plan::{Error, ErrorKind};
use candle_plan_kernels::isa::Isa;
use candle_plan_memory::allocator;
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::arrays::dtype_of;
use crate::dlpack::host_capsule;
use crate::errors::to_python;

/// Returns the types of an op's outputs as JSON. `op` is the op as JSON. `inputs` is a JSON list of the inputs' types,
/// with null for an absent input. `constants` are the bytes of the inputs that are constants, in the order of the
/// inputs.
#[pyfunction]
pub fn infer(op: &str, inputs: &str, constants: Vec<Option<PyBackedBytes>>, outputs: usize) -> PyResult<String> {
    types::infer(op, inputs, &slices(&constants), outputs).map_err(to_python)
}

/// Returns the indices of an op's numeric inputs: the values of these inputs decide the shapes of outputs. The step has
/// `count` inputs. `infer` reads the constants among the numeric inputs.
#[pyfunction]
pub fn number_inputs(op: &str, count: usize) -> PyResult<Vec<usize>> {
    types::number_inputs(op, count).map_err(to_python)
}

/// Returns the indices of the inputs whose elements an op (JSON) checks. The step has `count` inputs. `infer` also reads
/// the constants among these inputs.
#[pyfunction]
pub fn checked_inputs(op: &str, count: usize) -> PyResult<Vec<usize>> {
    types::checked_inputs(op, count).map_err(to_python)
}

/// Checks that the outputs of an op on these inputs can have the types that a plan states. `outputs` is a JSON list of
/// these types, with null for an output that no step reads.
#[pyfunction]
pub fn check(op: &str, inputs: &str, constants: Vec<Option<PyBackedBytes>>, outputs: &str) -> PyResult<()> {
    types::check(op, inputs, &slices(&constants), outputs).map_err(to_python)
}

fn slices(constants: &[Option<PyBackedBytes>]) -> Vec<Option<&[u8]>> {
    constants.iter().map(|constant| constant.as_deref()).collect()
}

/// Returns every rule of the plan format that a plan file violates; empty if there is none. Raises `PlanError` if the
/// file cannot be read.
#[pyfunction]
pub fn verify(plan: &[u8]) -> PyResult<Vec<String>> {
    match internal::read(plan) {
        Ok((plan, constants)) => Ok(internal::verify(&plan, &constants)),
        Err(Error::Verify(violations)) => Ok(violations),
        Err(error) => Err(to_python(error)),
    }
}

/// Returns the plan of a plan file, as JSON.
#[pyfunction]
pub fn plan_json(plan: &[u8]) -> PyResult<String> {
    internal::describe(plan).map_err(to_python)
}

/// Returns where every step of a plan file would run on a GPU, as a JSON list. No GPU is needed.
#[pyfunction]
pub fn placed_steps(plan: &[u8]) -> PyResult<String> {
    let steps = internal::placed_steps(plan).map_err(to_python)?;
    Ok(serde_json::json!(steps).to_string())
}

/// Returns the JSON schema of a plan.
#[pyfunction]
pub fn schema() -> String {
    internal::schema()
}

/// Returns the instruction sets of this CPU as `CANDLE_PLAN_ISA` names them, the most basic first.
#[pyfunction]
pub fn levels() -> Vec<&'static str> {
    Isa::available().map(|isa| isa.level().name()).collect()
}

/// Returns the names of the kinds of errors.
#[pyfunction]
pub fn error_kinds() -> Vec<&'static str> {
    ErrorKind::ALL.iter().map(|kind| kind.name()).collect()
}

/// Makes a DLPack capsule of a NumPy array in row-major order, which keeps the array. Raises `BufferError` if DLPack has no
/// such elements.
#[pyfunction]
pub fn capsule<'py>(array: &Bound<'py, PyUntypedArray>) -> PyResult<Bound<'py, PyAny>> {
    if !array.is_c_contiguous() {
        return Err(PyBufferError::new_err("the array is not in row-major order"));
    }
    let dtype = dtype_of(array).map_err(|error| PyBufferError::new_err(error.to_string()))?;
    host_capsule(array, dtype)
}

/// Returns the number of processors that this process may use.
#[pyfunction]
pub fn usable_processors() -> usize {
    internal::usable_processors()
}

/// Returns whether the allocator keeps the bytes of pages that were never written, so that kernels need not touch the
/// pages of their results first. False until the first large allocation.
#[pyfunction]
pub fn keeps_pages() -> bool {
    allocator::keeps_pages()
}

/// Returns the bytes of all blocks of 16 KiB or more that the extension has allocated so far, also of those that it has freed.
#[pyfunction]
pub fn allocated() -> u64 {
    allocator::allocated()
}

/// Returns every op as a JSON list of family, name and placement on a GPU.
#[pyfunction]
pub fn ops() -> String {
    serde_json::json!(internal::placements()).to_string()
}
