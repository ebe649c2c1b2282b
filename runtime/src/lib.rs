//! The Python extension `compiler._runtime`: converts arrays and errors, and does nothing else.

mod arrays;
mod errors;
mod session;

use candle_plan::error::Error;
use candle_plan::kernel::Types;
use candle_plan::ops::Op;
use candle_plan::types::Type;
use candle_plan_kernels::allocator::Allocator;
use mimalloc::MiMalloc;
use pyo3::prelude::*;

#[global_allocator]
static ALLOCATOR: Allocator<MiMalloc> = Allocator::new(MiMalloc);

#[pymodule]
mod _runtime {
    #[pymodule_export]
    use super::errors::{DeviceError, InputError, OpError, PlanError, RunError};
    #[pymodule_export]
    use super::session::Session;
    #[pymodule_export]
    const MAX_THREADS: usize = candle_plan::session::MAX_THREADS;
    #[pymodule_export]
    use super::{infer, ops, plan_json, schema, verify};
}

/// The outputs' types, as JSON, of an op (JSON) on inputs of the given types (a JSON list of types and nulls).
#[pyfunction]
fn infer(op: &str, inputs: &str, outputs: usize) -> PyResult<String> {
    let op: Op = parse(op)?;
    let inputs: Vec<Option<Type>> = parse(inputs)?;
    let inputs: Vec<Option<&Type>> = inputs.iter().map(Option::as_ref).collect();
    let kernel = op.kernel();
    let arity = kernel.arity();
    if !arity.inputs.contains(&inputs.len()) || !arity.outputs.contains(&outputs) {
        let message = format!("{} does not take {} inputs to {outputs} outputs", op.name(), inputs.len());
        return Err(errors::to_python(Error::op(message)));
    }
    let types = op.infer(&Types { inputs: &inputs, outputs }).map_err(errors::to_python)?;
    serde_json::to_string(&types).map_err(|error| errors::to_python(Error::op(error.to_string())))
}

/// Every rule of the format that a plan file breaks; empty when it is sound.
#[pyfunction]
fn verify(plan: &[u8]) -> Vec<String> {
    match candle_plan::read::read(plan) {
        Ok((plan, _)) => candle_plan::verify::verify(&plan),
        Err(Error::Verify(violations)) => violations,
        Err(error) => vec![error.to_string()],
    }
}

/// The plan of a plan file, as JSON.
#[pyfunction]
fn plan_json(plan: &[u8]) -> PyResult<String> {
    candle_plan::read::describe(plan).map_err(errors::to_python)
}

/// The JSON schema of a plan.
#[pyfunction]
fn schema() -> String {
    candle_plan::plan::schema()
}

/// Every op as (family, name).
#[pyfunction]
fn ops() -> Vec<(&'static str, &'static str)> {
    Op::all().to_vec()
}

/// How many characters of a JSON text an error shows.
const SHOWN: usize = 200;

fn parse<T: serde::de::DeserializeOwned>(json: &str) -> PyResult<T> {
    serde_json::from_str(json).map_err(|error| {
        let shown: String = json.chars().take(SHOWN).collect();
        errors::to_python(Error::op(format!("{error} in {shown}")))
    })
}
