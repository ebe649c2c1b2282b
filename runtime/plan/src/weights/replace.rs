//! Replaces the elements of a plan's weights.

use std::collections::HashMap;

use candle_core::quantized::QTensor;
use candle_core::Device;

use super::named::Weights;
use super::names::similar;
use super::products::keep;
use super::weight::{no_memory, Weight};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ids::ConstantId;
use crate::plan::Plan;
use crate::value::{scratch, Array, Value};
use crate::verify::check;

/// The advice for a name that the plan lacks.
const KEEP: &str = "compile the model with Options(keep_weights=True), or candlec compile --keep-weights";

/// The names that a message lists, of those that the plan lacks.
const LISTED: usize = 20;

/// A plan and its constants, with other weights if they are given.
pub(crate) fn replaced(
    (mut plan, mut constants): (Plan, Vec<Value>),
    weights: Option<&Weights>,
) -> Result<(Plan, Vec<Value>)> {
    if let Some(weights) = weights {
        check(&plan, &constants)?;
        weights.replace(&mut plan, &mut constants)?;
    }
    Ok((plan, constants))
}

impl Weights {
    /// Replaces the constants of a [verified](crate::verify) plan that are weights of these names. The other weights stay
    /// as they are.
    ///
    /// # Errors
    /// [`Error::Weights`] with every name that is no weight of the plan, and every weight that has another dtype or shape.
    pub(crate) fn replace(&self, plan: &mut Plan, constants: &mut Vec<Value>) -> Result<()> {
        let places: HashMap<String, ConstantId> =
            plan.weights.iter().map(|weight| (weight.name.clone(), weight.constant)).collect();
        let unknown: Vec<&String> = self.tensors.keys().filter(|name| !places.contains_key(*name)).collect();
        let mut wrong: Vec<String> = unknown.iter().take(LISTED).map(|name| missing(name, plan)).collect();
        if unknown.len() > LISTED {
            wrong.push(format!("the plan lacks {} other names too", unknown.len() - LISTED));
        }
        for (name, weight) in &self.tensors {
            let Some(&place) = places.get(name) else { continue };
            match weight.put(place, plan, constants) {
                Ok(()) => {}
                Err(Error::Op(reason)) => wrong.push(format!("weight {name:?}: {reason}")),
                Err(Error::Memory(reason)) => return Err(no_memory(format!("weight {name:?}: {reason}"))),
                Err(error) => return Err(error),
            }
        }
        match wrong.is_empty() {
            true => Ok(()),
            false => Err(Error::Weights(wrong)),
        }
    }
}

impl Weight {
    /// Makes the elements those of a constant. Quantized ones stay so if products can read them.
    ///
    /// # Errors
    /// The dtype or shape differs from that of the constant, or the host lacks memory.
    fn put(&self, place: ConstantId, plan: &mut Plan, constants: &mut Vec<Value>) -> Result<()> {
        let old = constants.get(place.at()).ok_or_else(|| Error::op("the plan lacks its constant"))?.tensor()?;
        self.check(old)?;
        let (dtype, dims) = (old.dtype(), old.dims().to_vec());
        let new = match self {
            Weight::Array(array) => array.clone(),
            Weight::Quantized(tensor) if keep(tensor, place, plan, constants)? => Array::hollow(&dims, dtype),
            Weight::Quantized(tensor) => dequantized(tensor, dtype)?,
        };
        constants[place.at()] = new.into();
        Ok(())
    }

    /// Checks that the elements can be those of a constant.
    fn check(&self, old: &Array) -> Result<()> {
        let (found, dims) = self.kind();
        let fits = match self {
            Weight::Array(array) => array.dtype() == old.dtype(),
            Weight::Quantized(_) => is_float(old.dtype()),
        };
        if fits && dims == old.dims() {
            return Ok(());
        }
        let (dtype, expected) = (old.dtype(), old.dims());
        Err(Error::op(format!("expected {dtype} {expected:?}, found {found} {dims:?}")))
    }
}

/// The elements of a tensor of a GGUF file, as floats of the type `dtype`.
pub fn dequantized(tensor: &QTensor, dtype: DType) -> Result<Array> {
    scratch::<f32>(tensor.shape().elem_count())?;
    let numbers = tensor.dequantize(&Device::Cpu)?.to_dtype(dtype.storage_dtype()?)?;
    Array::from_candle(&numbers, dtype)
}

fn is_float(dtype: DType) -> bool {
    matches!(dtype, DType::Float16 | DType::Bfloat16 | DType::Float32 | DType::Float64)
}

/// Says why a plan has no weight of a name.
fn missing(name: &str, plan: &Plan) -> String {
    let similar = similar(name, plan.weights.iter().map(|weight| weight.name.as_str()));
    if plan.weights.is_empty() {
        return format!("{name:?}: the plan lists no weights, because passes may have changed them: {KEEP}");
    }
    if similar.is_empty() {
        return format!("{name:?}: the plan has no such weight. If the model has it: {KEEP}");
    }
    let similar: Vec<String> = similar.into_iter().map(|other| format!("{other:?}")).collect();
    format!("{name:?}: the plan has no such weight. Similar names: {}. If the model has it: {KEEP}", similar.join(", "))
}
