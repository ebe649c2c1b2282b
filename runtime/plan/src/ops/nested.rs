//! The inputs and outputs of blocks, for the ops that run them.

use super::block::Block;
use crate::bail;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ids::ValueId;
use crate::types::{Dim, TensorType, Type};
use crate::value::Value;

pub(crate) fn axis_of(axis: i64, rank: usize) -> Result<usize> {
    crate::axes::resolve(axis, rank)
}

pub(crate) fn dims(value: &Value) -> Result<&[usize]> {
    match value {
        Value::Strings(strings) => Ok(&strings.dims),
        other => Ok(other.tensor()?.dims()),
    }
}

pub(crate) fn rank(value: &Value) -> Result<usize> {
    Ok(dims(value)?.len())
}

pub(crate) fn expect(found: &TensorType, dtype: DType, name: &str) -> Result<()> {
    if found.dtype != dtype {
        bail!("{name} must be {dtype}, found {}", found.dtype);
    }
    Ok(())
}

pub(crate) fn check_condition(condition: &TensorType) -> Result<()> {
    expect(condition, DType::Bool, "a condition")
}

pub(crate) fn info<O>(block: &Block<O>, id: ValueId) -> Result<&Type> {
    let info = block.values.get(id.at()).ok_or_else(|| Error::op(format!("value {} does not exist", id.0)))?;
    Ok(&info.kind)
}

/// Checks that inputs of the types `given` fit a block.
pub(crate) fn check_block<O>(block: &Block<O>, name: &str, given: &[Option<&Type>]) -> Result<()> {
    if block.inputs.len() != given.len() {
        bail!("{name} takes {} inputs, and is given {}", block.inputs.len(), given.len());
    }
    for (index, (id, given)) in block.inputs.iter().zip(given).enumerate() {
        let taken = info(block, *id)?;
        match given {
            Some(given) if taken.agrees_with(given) => {}
            Some(given) => bail!("{name} takes {taken} as input {index}, and is given {given}"),
            None => bail!("{name}'s input {index} is missing"),
        }
    }
    Ok(())
}

pub(crate) fn results<O>(block: &Block<O>) -> Vec<&Type> {
    block.outputs.iter().filter_map(|id| info(block, *id).ok()).collect()
}

/// The type of a value that has one of two types, as far as they agree.
pub(crate) fn join(a: &Type, b: &Type) -> Result<Type> {
    match (a, b) {
        (Type::Tensor(a), Type::Tensor(b)) if a.dtype == b.dtype => {
            let shape = match (&a.shape, &b.shape) {
                (Some(a), Some(b)) if a.len() == b.len() => {
                    Some(a.iter().zip(b).map(|(a, b)| if a == b { a.clone() } else { None }).collect())
                }
                _ => None,
            };
            Ok(Type::Tensor(TensorType { dtype: a.dtype, shape }))
        }
        (Type::Sequence(a), Type::Sequence(b)) => Ok(Type::Sequence(Box::new(join(a, b)?))),
        (Type::Optional(a), Type::Optional(b)) => Ok(Type::Optional(Box::new(join(a, b)?))),
        (Type::Optional(a), b) | (b, Type::Optional(a)) => Ok(Type::Optional(Box::new(join(a, b)?))),
        _ => bail!("no type holds both {a} and {b}"),
    }
}

pub(crate) fn slice_type(whole: &TensorType, axis: i64) -> Result<Type> {
    let mut kind = whole.clone();
    if let Some(shape) = kind.shape.as_mut() {
        shape.remove(axis_of(axis, shape.len())?);
    }
    Ok(Type::Tensor(kind))
}

pub(crate) fn size_along(whole: &TensorType, axis: i64) -> Result<Option<usize>> {
    Ok(whole.rank().map(|rank| axis_of(axis, rank)).transpose()?.and_then(|axis| whole.size(axis)))
}

pub(crate) fn stacked_type(item: &Type, axis: i64, length: Option<usize>) -> Result<Type> {
    let mut kind = item.tensor()?.clone();
    if let Some(shape) = kind.shape.as_mut() {
        shape.insert(axis_of(axis, shape.len() + 1)?, length.map(Dim::Size));
    }
    Ok(Type::Tensor(kind))
}
