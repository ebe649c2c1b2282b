//! Bytes → plan. The bytes are not trusted: version first, then sizes, then the JSON, then the constants.

use std::collections::HashMap;

use safetensors::tensor::{SafeTensors, TensorView};
use safetensors::Dtype;
use sha2::{Digest, Sha256};

use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::plan::{Constant, Plan, FORMAT, VERSION};
use crate::types::TensorType;
use crate::value::{element_count, Array, Strings, Value};

/// Reads a plan and its constants from the bytes of a plan file.
///
/// # Errors
/// [`Error::Read`] when the bytes are not a plan, are of a newer version, or do not match their checksum;
/// [`Error::Verify`] with every constant that breaks the format.
pub fn read(bytes: &[u8]) -> Result<(Plan, Vec<Value>)> {
    let plan = read_json(bytes)?;
    let file = SafeTensors::deserialize(bytes).map_err(not_a_plan)?;
    let mut tensors: HashMap<String, TensorView> = file.tensors().into_iter().collect();
    let mut violations = Vec::new();
    let mut values = Vec::with_capacity(plan.constants.len());
    for (index, constant) in plan.constants.iter().enumerate() {
        match read_constant(constant, tensors.remove(&index.to_string())) {
            Ok(value) => values.push(value),
            Err(error) => violations.push(format!("constant {index}: {error}")),
        }
    }
    violations.extend(tensors.keys().map(|name| format!("tensor {name:?} is no constant of the plan")));
    if violations.is_empty() {
        Ok((plan, values))
    } else {
        violations.sort();
        Err(Error::Verify(violations))
    }
}

/// Reads the plan alone, after its version and checksum.
fn read_json(bytes: &[u8]) -> Result<Plan> {
    let (header, metadata) = SafeTensors::read_metadata(bytes).map_err(not_a_plan)?;
    let metadata = metadata.metadata().as_ref().ok_or_else(|| Error::Read("it has no metadata".into()))?;
    let field = |key: &str| metadata.get(key).ok_or_else(|| Error::Read(format!("its metadata has no {key:?}")));
    if field("format")? != FORMAT {
        return Err(Error::Read(format!("its format is {:?}, not {FORMAT:?}", field("format")?)));
    }
    check_version(field("plan_version")?)?;
    let json = field("plan")?;
    let data = bytes.get(8 + header..).unwrap_or_default();
    if *field("sha256")? != digest(json, data) {
        return Err(Error::Read(
            "its checksum does not match: the file was damaged or edited; compile it again".into(),
        ));
    }
    serde_json::from_str(json).map_err(|error| Error::Read(format!("its description is not valid: {error}")))
}

/// The JSON text of the plan in a plan file, without its constants.
///
/// # Errors
/// As [`read`], for the description.
pub fn describe(bytes: &[u8]) -> Result<String> {
    serde_json::to_string(&read_json(bytes)?).map_err(|error| Error::Read(error.to_string()))
}

fn not_a_plan(error: safetensors::SafeTensorError) -> Error {
    Error::Read(format!("it is not a safetensors file ({error})"))
}

fn check_version(text: &str) -> Result<()> {
    match text.parse::<u32>() {
        Ok(version) if (1..=VERSION).contains(&version) => Ok(()),
        Ok(version) if version > VERSION => Err(Error::Read(format!(
            "it is of version {version}, and this runtime reads up to version {VERSION}: upgrade candle-compiler"
        ))),
        _ => Err(Error::Read(format!("its version {text:?} is not a number from 1"))),
    }
}

/// The checksum that a plan file carries: over the plan's JSON and the tensors' bytes.
fn digest(json: &str, data: &[u8]) -> String {
    let mut hash = Sha256::new();
    hash.update(json.as_bytes());
    hash.update(data);
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn read_constant(constant: &Constant, tensor: Option<TensorView>) -> Result<Value> {
    match (constant, tensor) {
        (Constant::Tensor(kind), Some(view)) => Ok(read_tensor(kind, &view)?.into()),
        (Constant::Tensor(_), None) => Err(Error::op("the file has no tensor for it")),
        (Constant::Strings { .. }, Some(_)) => Err(Error::op("it holds strings, and the file has a tensor for it")),
        (Constant::Strings { shape, data }, None) => {
            if element_count(shape)? != data.len() {
                return Err(Error::op(format!("{} strings do not fill the shape {shape:?}", data.len())));
            }
            Ok(Value::Strings(Strings { dims: shape.clone(), data: data.clone().into() }))
        }
    }
}

fn read_tensor(kind: &TensorType, view: &TensorView) -> Result<Array> {
    let dims = kind.sizes().ok_or_else(|| Error::op("its shape is not known"))?;
    let stored = stored_as(kind.dtype)?;
    if view.shape() != dims || view.dtype() != stored {
        return Err(Error::op(format!(
            "expected {stored:?} {dims:?}, the file has {:?} {:?}",
            view.dtype(),
            view.shape()
        )));
    }
    check_bits(kind.dtype, view.data())?;
    use candle_core::{CpuStorage, DType as Carrier};
    fn collect<T: Element>(bytes: &[u8]) -> Vec<T::Stored> {
        bytemuck::pod_collect_to_vec(bytes)
    }
    let bytes = view.data();
    let storage = match kind.dtype.carrier()? {
        Carrier::I16 => CpuStorage::I16(collect::<i16>(bytes)),
        Carrier::I32 => CpuStorage::I32(collect::<i32>(bytes)),
        Carrier::U32 => CpuStorage::U32(collect::<u32>(bytes)),
        Carrier::I64 => CpuStorage::I64(collect::<i64>(bytes)),
        Carrier::F16 => CpuStorage::F16(collect::<half::f16>(bytes)),
        Carrier::BF16 => CpuStorage::BF16(collect::<half::bf16>(bytes)),
        Carrier::F32 => CpuStorage::F32(collect::<f32>(bytes)),
        Carrier::F64 => CpuStorage::F64(collect::<f64>(bytes)),
        _ => CpuStorage::U8(bytes.to_vec()),
    };
    Array::from_storage(storage, &dims, kind.dtype)
}

/// The safetensors type that stores a constant of a logical type; one byte an element where it has none.
fn stored_as(dtype: DType) -> Result<Dtype> {
    Ok(match dtype {
        DType::Bool => Dtype::BOOL,
        DType::Int8 => Dtype::I8,
        DType::Int16 => Dtype::I16,
        DType::Int32 => Dtype::I32,
        DType::Int64 => Dtype::I64,
        DType::Uint16 => Dtype::U16,
        DType::Uint32 => Dtype::U32,
        DType::Uint64 => Dtype::U64,
        DType::Float16 => Dtype::F16,
        DType::Bfloat16 => Dtype::BF16,
        DType::Float32 => Dtype::F32,
        DType::Float64 => Dtype::F64,
        DType::String => return Err(Error::op("strings are not stored as a tensor")),
        _ => Dtype::U8,
    })
}

/// Refuses bytes that no value of the type has.
pub fn check_bits(dtype: DType, bytes: &[u8]) -> Result<()> {
    let valid: fn(u8) -> bool = match dtype {
        DType::Bool => |byte| byte <= 1,
        DType::Uint2 => |byte| byte < 4,
        DType::Uint4 | DType::Float4E2M1Fn => |byte| byte < 16,
        DType::Int2 => |byte| (-2..2).contains(&(byte as i8)),
        DType::Int4 => |byte| (-8..8).contains(&(byte as i8)),
        _ => return Ok(()),
    };
    match bytes.iter().position(|&byte| !valid(byte)) {
        Some(at) => Err(Error::op(format!("byte {at} is {}, which no {dtype} has", bytes[at]))),
        None => Ok(()),
    }
}
