//! The Python extension `compiler._runtime`, which only converts arrays and errors.

#![deny(unsafe_code)]

#[allow(unsafe_code)] // Reads the elements of NumPy arrays, which Python owns.
mod arrays;
#[allow(unsafe_code)] // Borrows tensors of other Python libraries, which own the memory.
mod device_arrays;
#[allow(unsafe_code)] // Reads and writes DLPack's structures, and calls their function pointers.
mod dlpack;
mod errors;
#[allow(unsafe_code)] // Maps plan files, whose users promise not to change them.
mod files;
#[allow(unsafe_code)] // States what mimalloc does with free pages.
mod memory;
mod outputs;
mod session;
mod state;

use candle_plan::error::Error;
use candle_plan_kernels::isa::Isa;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

#[pymodule]
mod _runtime {
    #[pymodule_export]
    use super::device_arrays::DeviceArray;
    #[pymodule_export]
    use super::errors::{DeviceError, InputError, LimitError, OpError, PlanError, RunError};
    #[pymodule_export]
    use super::session::{Cancel, Session};
    #[pymodule_export]
    use super::state::State;
    #[pymodule_export]
    const MAX_THREADS: usize = candle_plan::session::MAX_THREADS;
    #[pymodule_export]
    const MOST_RESIZED_AXES: usize = candle_plan::ops::resize::MOST_AXES;
    #[pymodule_export]
    const MOST_WINDOW_AXES: usize = candle_plan::ops::window::MOST_AXES;
    #[pymodule_export]
    use super::{
        check, checked_inputs, infer, levels, number_inputs, ops, placed_steps, plan_json, schema, usable_processors,
        verify,
    };
}

/// Returns the types of an op's outputs as JSON. `op` is the op as JSON. `inputs` is a JSON list of the inputs' types,
/// with null for an absent input. `constants` are the bytes of the inputs that are constants, in the order of the
/// inputs.
#[pyfunction]
fn infer(op: &str, inputs: &str, constants: Vec<Option<PyBackedBytes>>, outputs: usize) -> PyResult<String> {
    candle_plan::infer::infer(op, inputs, &slices(&constants), outputs).map_err(errors::to_python)
}

/// Returns the indices of the inputs of which an op reads numbers, for a step with `count` inputs. `infer` reads the
/// constants among these inputs.
#[pyfunction]
fn number_inputs(op: &str, count: usize) -> PyResult<Vec<usize>> {
    candle_plan::infer::number_inputs(op, count).map_err(errors::to_python)
}

/// Returns the indices of the inputs, of `count`, whose elements an op (JSON) checks. `infer` also reads constants among
/// these.
#[pyfunction]
fn checked_inputs(op: &str, count: usize) -> PyResult<Vec<usize>> {
    candle_plan::infer::checked_inputs(op, count).map_err(errors::to_python)
}

/// Checks that the outputs of an op on these inputs can have the types that a plan states. `outputs` is a JSON list of
/// these types, with null for an output that no step reads.
#[pyfunction]
fn check(op: &str, inputs: &str, constants: Vec<Option<PyBackedBytes>>, outputs: &str) -> PyResult<()> {
    candle_plan::infer::check(op, inputs, &slices(&constants), outputs).map_err(errors::to_python)
}

fn slices(constants: &[Option<PyBackedBytes>]) -> Vec<Option<&[u8]>> {
    constants.iter().map(|constant| constant.as_deref()).collect()
}

/// Returns every rule of the plan format that a plan file violates; empty if there is none.
#[pyfunction]
fn verify(plan: &[u8]) -> Vec<String> {
    match candle_plan::read::read(plan) {
        Ok((plan, constants)) => candle_plan::verify::verify(&plan, &constants),
        Err(Error::Verify(violations)) => violations,
        Err(error) => vec![error.to_string()],
    }
}

/// Returns the plan of a plan file, as JSON.
#[pyfunction]
fn plan_json(plan: &[u8]) -> PyResult<String> {
    candle_plan::read::describe(plan).map_err(errors::to_python)
}

/// Returns where every step of a plan file would run on a GPU, as a JSON list. No GPU is needed.
#[pyfunction]
fn placed_steps(plan: &[u8]) -> PyResult<String> {
    let steps = candle_plan::session::placed_steps(plan).map_err(errors::to_python)?;
    Ok(serde_json::json!(steps).to_string())
}

/// Returns the JSON schema of a plan.
#[pyfunction]
fn schema() -> String {
    candle_plan::plan::schema()
}

/// Returns the instruction sets of this CPU as `CANDLE_PLAN_ISA` names them, the most basic first.
#[pyfunction]
fn levels() -> Vec<&'static str> {
    Isa::available().map(|isa| isa.level().name()).collect()
}

/// Returns the number of processors that this process may use.
#[pyfunction]
fn usable_processors() -> usize {
    candle_plan::session::usable_processors()
}

/// Returns every op as a JSON list of family, name and placement on a GPU.
#[pyfunction]
fn ops() -> String {
    serde_json::json!(candle_plan::gpu::placements()).to_string()
}
