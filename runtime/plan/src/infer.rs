//! Type inference of one op, for a compiler that writes plans: JSON in, JSON out.

use bytemuck::cast_slice_mut;
use serde::de::DeserializeOwned;

use crate::array::words;
use crate::bail;
use crate::by_width;
use crate::error::{Error, Result};
use crate::operator::Needs;
use crate::ops::Op;
use crate::types::{TensorType, Type, Types};
use crate::value::Array;

/// The number of characters of a JSON text that an error shows.
const SHOWN: usize = 200;

/// Returns the types of an op's outputs as JSON. `op` is the op as JSON. `inputs` is a JSON list of the inputs' types,
/// with null for an absent input. `constants` are the bytes of the inputs that are constants of known sizes, in the
/// order of the inputs.
///
/// # Errors
/// A text has another form, the bytes do not fill a constant, or the op refuses the inputs or the number of outputs.
pub fn infer(op: &str, inputs: &str, constants: &[Option<&[u8]>], outputs: usize) -> Result<String> {
    let step = Step::parse(op, inputs, constants)?;
    let types = step.with_types(outputs, |types| step.op.infer(types))?;
    serde_json::to_string(&types).map_err(|error| Error::op(error.to_string()))
}

/// Returns the indices of an op's numeric inputs (`Needs::Numbers`): the values of these inputs decide the shapes of
/// outputs. `op` is the op as JSON. The step has `count` inputs. `infer` reads the constants among the numeric inputs.
///
/// # Errors
/// The text is not an op.
pub fn number_inputs(op: &str, count: usize) -> Result<Vec<usize>> {
    let op: Op = parse(op)?;
    Ok((0..count).filter(|&i| op.operator().needs(i) == Needs::Numbers).collect())
}

/// Returns the indices of the inputs whose elements an op checks (`Operator::checks`). `op` is the op as
/// JSON. The step has `count` inputs. `infer` also reads the constants among these inputs. The caller omits them for a step
/// that may never run.
///
/// # Errors
/// The text is not that of an op.
pub fn checked_inputs(op: &str, count: usize) -> Result<Vec<usize>> {
    let op: Op = parse(op)?;
    Ok((0..count).filter(|&i| op.operator().checks(i)).collect())
}

/// Checks that the outputs of an op on these inputs can have the types that a plan states. `outputs` is a JSON list of
/// these types, with null for an output that no step reads. The other arguments are the same as in [`infer`].
///
/// # Errors
/// As [`infer`], and where the op refuses the outputs.
pub fn check(op: &str, inputs: &str, constants: &[Option<&[u8]>], outputs: &str) -> Result<()> {
    let step = Step::parse(op, inputs, constants)?;
    let outputs: Vec<Option<Type>> = parse(outputs)?;
    let outputs: Vec<Option<&Type>> = outputs.iter().map(Option::as_ref).collect();
    step.with_types(outputs.len(), |types| step.op.check(types, &outputs))
}

/// A step of a plan that is not written yet.
struct Step {
    op: Op,
    inputs: Vec<Option<Type>>,
    constants: Vec<Option<Array>>,
}

impl Step {
    fn parse(op: &str, inputs: &str, constants: &[Option<&[u8]>]) -> Result<Step> {
        let (op, inputs): (Op, Vec<Option<Type>>) = (parse(op)?, parse(inputs)?);
        let array = |(kind, bytes): (&Option<Type>, &Option<&[u8]>)| match (kind, bytes) {
            (Some(kind), Some(bytes)) => constant(kind.tensor()?, bytes).map(Some),
            _ => Ok(None),
        };
        let constants = inputs.iter().zip(constants).map(array).collect::<Result<_>>()?;
        Ok(Step { op, inputs, constants })
    }

    /// Calls `ask` with the types and constants of a step's inputs. The step has `outputs` outputs.
    fn with_types<R>(&self, outputs: usize, ask: impl FnOnce(&Types) -> Result<R>) -> Result<R> {
        let (op, count, arity) = (self.op.name(), self.inputs.len(), self.op.operator().arity());
        if !arity.inputs.contains(&count) || !arity.outputs.contains(&outputs) {
            bail!("{op} does not take {count} inputs to {outputs} outputs");
        }
        let inputs: Vec<Option<&Type>> = self.inputs.iter().map(Option::as_ref).collect();
        let constants: Vec<Option<&Array>> = self.constants.iter().map(Option::as_ref).collect();
        ask(&Types { inputs: &inputs, constants: &constants, outputs })
    }
}

/// A constant of the type, made of the bytes of its elements.
fn constant(kind: &TensorType, bytes: &[u8]) -> Result<Array> {
    let dims = kind.sizes().ok_or_else(|| Error::op("the shape of a constant is not known"))?;
    by_width!(kind.dtype, W => {
        let elements = words::alloc_uninit::<W>(&dims)?;
        if elements.len() * size_of::<W>() != bytes.len() {
            bail!("{} bytes do not fill a constant of {} {dims:?}", bytes.len(), kind.dtype);
        }
        let elements = elements.overwrite(|elements| cast_slice_mut(elements).copy_from_slice(bytes));
        words::array(elements, &dims, kind.dtype)
    })
}

fn parse<T: DeserializeOwned>(json: &str) -> Result<T> {
    serde_json::from_str(json).map_err(|error| {
        let shown: String = json.chars().take(SHOWN).collect();
        Error::op(format!("{error} in {shown}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_follow_from_types() {
        let tensor = r#"{"Tensor": {"dtype": "float32", "shape": [2, null]}}"#;
        let relu = r#"{"Unary": {"function": "Relu"}}"#;
        let given = infer(relu, &format!("[{tensor}]"), &[], 1).expect("a type");
        assert_eq!(given.replace(' ', ""), format!("[{tensor}]").replace(' ', ""));
        for (op, inputs, outputs, expected) in [
            (relu, "[]", 1, "does not take 0 inputs"),
            (relu, "[null]", 2, "to 2 outputs"),
            (relu, "[null]", 1, "input 0 is missing"),
            (r#"{"Unary": {}}"#, "[]", 1, "missing field"),
            (relu, "[1]", 1, "in [1]"),
        ] {
            let error = infer(op, inputs, &[], outputs).expect_err(expected).to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn constants_are_read() {
        let reshape = r#"{"Reshape": {"allow_zero": false}}"#;
        let types = r#"[{"Tensor": {"dtype": "float32", "shape": [6]}}, {"Tensor": {"dtype": "int64", "shape": [2]}}]"#;
        let shape: &[u8] = bytemuck::cast_slice(&[3i64, -1]);
        assert_eq!(number_inputs(reshape, 2).expect("an op"), [1]);
        assert!(infer(reshape, types, &[None, Some(shape)], 1).expect("a type").contains("[3,2]"));
        assert!(infer(reshape, types, &[None, None], 1).expect("a type").contains("[null,null]"));
        let error = infer(reshape, types, &[None, Some(&shape[1..])], 1).expect_err("a byte is missing").to_string();
        assert_eq!(error, "15 bytes do not fill a constant of int64 [2]");
        let stated = |shape: &str| format!(r#"[{{"Tensor": {{"dtype": "float32", "shape": {shape}}}}}]"#);
        assert!(check(reshape, types, &[None, Some(shape)], &stated(r#"["n", 2]"#)).is_ok());
        assert!(check(reshape, types, &[None, Some(shape)], &stated("[2, 3]")).is_err());
    }
}
