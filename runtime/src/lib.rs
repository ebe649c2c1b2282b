//! The Python extension `compiler._runtime`: converts arrays and errors, and does nothing else.

#![deny(unsafe_code)]

mod arrays;
#[allow(unsafe_code)] // Lends tensors of other Python libraries: their memory is theirs.
mod device_arrays;
#[allow(unsafe_code)] // Reads and writes DLPack's structures, and calls the functions that they name.
mod dlpack;
mod errors;
mod outputs;
mod session;

use candle_plan::error::Error;
use candle_plan_kernels::allocator::Allocator;
use candle_plan_kernels::isa::Isa;
use mimalloc::MiMalloc;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

#[global_allocator]
static ALLOCATOR: Allocator<MiMalloc> = Allocator::new(MiMalloc);

#[pymodule]
mod _runtime {
    #[pymodule_export]
    use super::device_arrays::DeviceArray;
    #[pymodule_export]
    use super::errors::{DeviceError, InputError, LimitError, OpError, PlanError, RunError};
    #[pymodule_export]
    use super::session::Session;
    #[pymodule_export]
    const MAX_THREADS: usize = candle_plan::session::MAX_THREADS;
    #[pymodule_export]
    const MOST_RESIZED_AXES: usize = candle_plan::ops::resize::MOST_AXES;
    #[pymodule_export]
    use super::{check, infer, levels, ops, placed_steps, plan_json, schema, verify};
}

/// The outputs' types, as JSON, of an op (JSON) on inputs of the given types (a JSON list of types and nulls). `constants` are
/// the bytes of the inputs that are constants, in the order of the inputs.
#[pyfunction]
fn infer(op: &str, inputs: &str, constants: Vec<Option<PyBackedBytes>>, outputs: usize) -> PyResult<String> {
    candle_plan::infer::infer(op, inputs, &slices(&constants), outputs).map_err(errors::to_python)
}

/// Checks that an op on such inputs can have the outputs' types that a plan states (a JSON list of types and nulls).
#[pyfunction]
fn check(op: &str, inputs: &str, constants: Vec<Option<PyBackedBytes>>, outputs: &str) -> PyResult<()> {
    candle_plan::infer::check(op, inputs, &slices(&constants), outputs).map_err(errors::to_python)
}

fn slices(constants: &[Option<PyBackedBytes>]) -> Vec<Option<&[u8]>> {
    constants.iter().map(|constant| constant.as_deref()).collect()
}

/// Every rule of the format that a plan file breaks; empty when it is sound.
#[pyfunction]
fn verify(plan: &[u8]) -> Vec<String> {
    match candle_plan::read::read(plan) {
        Ok((plan, constants)) => candle_plan::verify::verify(&plan, &constants),
        Err(Error::Verify(violations)) => violations,
        Err(error) => vec![error.to_string()],
    }
}

/// The plan of a plan file, as JSON.
#[pyfunction]
fn plan_json(plan: &[u8]) -> PyResult<String> {
    candle_plan::read::describe(plan).map_err(errors::to_python)
}

/// Where every step of a plan file would run on a GPU, which need not be there, as a JSON list.
#[pyfunction]
fn placed_steps(plan: &[u8]) -> PyResult<String> {
    let steps = candle_plan::session::placed_steps(plan).map_err(errors::to_python)?;
    Ok(serde_json::json!(steps).to_string())
}

/// The JSON schema of a plan.
#[pyfunction]
fn schema() -> String {
    candle_plan::plan::schema()
}

/// The instruction-set levels of this processor, by the names that `CANDLE_PLAN_ISA` takes, the plainest first.
#[pyfunction]
fn levels() -> Vec<&'static str> {
    Isa::available().map(|isa| isa.level().name()).collect()
}

/// Every op as a JSON list of family, name and placement on a GPU.
#[pyfunction]
fn ops() -> String {
    serde_json::json!(candle_plan::gpu::placements()).to_string()
}
