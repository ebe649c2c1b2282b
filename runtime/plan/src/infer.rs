//! Type inference of one op, for a compiler that writes plans: JSON in, JSON out.

use serde::de::DeserializeOwned;

use crate::bail;
use crate::error::{Error, Result};
use crate::ops::Op;
use crate::types::{Type, Types};

/// The number of characters of a JSON text that an error shows.
const SHOWN: usize = 200;

/// Infers the types of an op's outputs, as JSON. `op` is JSON, and `inputs` a JSON list of types and nulls.
///
/// # Errors
/// A text is malformed, or the op rejects the inputs or the number of outputs.
pub fn infer(op: &str, inputs: &str, outputs: usize) -> Result<String> {
    let op: Op = parse(op)?;
    let inputs: Vec<Option<Type>> = parse(inputs)?;
    let inputs: Vec<Option<&Type>> = inputs.iter().map(Option::as_ref).collect();
    let arity = op.operator().arity();
    if !arity.inputs.contains(&inputs.len()) || !arity.outputs.contains(&outputs) {
        bail!("{} does not take {} inputs to {outputs} outputs", op.name(), inputs.len());
    }
    let types = op.infer(&Types { inputs: &inputs, outputs })?;
    serde_json::to_string(&types).map_err(|error| Error::op(error.to_string()))
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
        let given = infer(relu, &format!("[{tensor}]"), 1).expect("a type");
        assert_eq!(given.replace(' ', ""), format!("[{tensor}]").replace(' ', ""));
        for (op, inputs, outputs, expected) in [
            (relu, "[]", 1, "does not take 0 inputs"),
            (relu, "[null]", 2, "to 2 outputs"),
            (relu, "[null]", 1, "input 0 is missing"),
            (r#"{"Unary": {}}"#, "[]", 1, "missing field"),
            (relu, "[1]", 1, "in [1]"),
        ] {
            let error = infer(op, inputs, outputs).expect_err(expected).to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
