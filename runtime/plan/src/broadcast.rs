//! Broadcasting of shapes, as in NumPy.

use candle_plan_descriptors::broadcast::{self, Broadcast, Dims};

use crate::error::{Error, Result};
use crate::types::{Dim, Shape, TensorType};

/// The shape that tensors of these types broadcast to, as far as it is known.
///
/// # Errors
/// Two known sizes of an axis differ, and neither is 1.
pub fn shape_of(types: &[&TensorType]) -> Result<Option<Shape>> {
    let Some(shapes) = types.iter().map(|kind| kind.shape.as_ref()).collect::<Option<Vec<_>>>() else {
        return Ok(None);
    };
    let rank = shapes.iter().map(|shape| shape.len()).max().unwrap_or(0);
    let axis_of = |axis: usize| {
        let aligned = shapes.iter().filter_map(|shape| (axis + shape.len()).checked_sub(rank).map(|axis| &shape[axis]));
        dim_of(aligned).ok_or_else(|| Error::op(format!("the shapes {} do not broadcast", list(types))))
    };
    (0..rank).map(axis_of).collect::<Result<Shape>>().map(Some)
}

/// The dimension that the operands' dimensions of one axis broadcast to; the outer `None` if sizes differ.
fn dim_of<'a>(dims: impl Iterator<Item = &'a Option<Dim>>) -> Option<Option<Dim>> {
    let mut result = Some(Dim::Size(1));
    for dim in dims {
        result = match (result, dim) {
            (Some(Dim::Size(1)), other) => other.clone(),
            (result, Some(Dim::Size(1))) => result,
            (Some(Dim::Size(a)), Some(Dim::Size(b))) if a != *b => return None,
            (Some(Dim::Size(a)), _) | (_, &Some(Dim::Size(a))) => Some(Dim::Size(a)),
            (result, other) if result == *other => result,
            _ => None,
        };
    }
    Some(result)
}

fn list(types: &[&TensorType]) -> String {
    let shapes = types.iter().map(|kind| crate::types::Type::Tensor((*kind).clone()).to_string());
    shapes.collect::<Vec<_>>().join(" and ")
}

/// The dimensions that operands of these dimensions broadcast to, and how each operand is read for them.
///
/// # Errors
/// Two sizes of an axis differ, and neither is 1.
pub fn join(operands: &[&[usize]]) -> Result<(Dims, Broadcast)> {
    let dims = shape_from(operands)?;
    let broadcast = Broadcast::new(&dims, operands).map_err(|_| refused(operands))?;
    Ok((dims, broadcast))
}

/// The dimensions that operands of these dimensions broadcast to.
///
/// # Errors
/// As [`join`].
pub fn shape_from(operands: &[&[usize]]) -> Result<Dims> {
    broadcast::shape(operands).ok_or_else(|| refused(operands))
}

fn refused(operands: &[&[usize]]) -> Error {
    Error::op(format!("the shapes {operands:?} do not broadcast"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;

    #[test]
    fn known_sizes_and_symbols_broadcast() {
        let size = |n| Some(Dim::Size(n));
        let symbol = |name: &str| Some(Dim::Symbol(name.into()));
        let cases: Vec<(Shape, Shape, Option<Shape>)> = vec![
            (vec![size(2), size(1)], vec![size(3)], Some(vec![size(2), size(3)])),
            (vec![symbol("n"), size(3)], vec![size(1), size(1)], Some(vec![symbol("n"), size(3)])),
            (vec![symbol("n")], vec![symbol("n")], Some(vec![symbol("n")])),
            (vec![symbol("n")], vec![symbol("m")], Some(vec![None])),
            (vec![symbol("n")], vec![size(4)], Some(vec![size(4)])),
            (vec![None], vec![size(1)], Some(vec![None])),
            (vec![None], vec![symbol("n")], Some(vec![None])),
            (vec![size(2)], vec![size(3)], None),
        ];
        for (a, b, expected) in cases {
            let kind = |shape: &Shape| TensorType { dtype: DType::Float32, shape: Some(shape.clone()) };
            assert_eq!(shape_of(&[&kind(&a), &kind(&b)]).ok(), expected.map(Some), "{a:?} {b:?}");
        }
    }
}
