//! What a caller gives, against what the plan declares.

use std::collections::HashMap;

use crate::error::{Error, Result};
use crate::prepare::Executable;
use crate::types::{Dim, Type};
use crate::value::Value;

/// Checks the inputs of a run: their number, kinds, dtypes, ranks and sizes, and that a symbol has one size throughout.
///
/// # Errors
/// [`Error::Input`] for the first input that does not fit.
pub fn check(executable: &Executable, inputs: &[Value]) -> Result<()> {
    let declared: Vec<(&str, &Type)> = executable.inputs().collect();
    if declared.len() != inputs.len() {
        return Err(Error::op(format!("expected {} inputs, found {}", declared.len(), inputs.len())));
    }
    let mut symbols = HashMap::new();
    for ((name, kind), value) in declared.into_iter().zip(inputs) {
        let wrong = |expected: String| Error::Input { name: name.to_string(), expected, found: value.describe() };
        if !kind.admits(value) {
            return Err(wrong(kind.to_string()));
        }
        for (symbol, size) in symbol_sizes(kind, value) {
            let first = *symbols.entry(symbol.to_string()).or_insert(size);
            if first != size {
                return Err(wrong(format!("{kind} with {symbol} = {first}, as in an input before it")));
            }
        }
    }
    Ok(())
}

/// The sizes that a value gives to the plain symbols of its declared type (expressions are not solved).
fn symbol_sizes<'a>(kind: &'a Type, value: &Value) -> Vec<(&'a str, usize)> {
    let tensor = match (kind, value) {
        (_, Value::None) => return Vec::new(),
        (Type::Optional(item), value) => return symbol_sizes(item, value),
        (Type::Sequence(item), Value::Sequence(items)) => {
            return items.iter().flat_map(|value| symbol_sizes(item, value)).collect();
        }
        (Type::Tensor(tensor), _) => tensor,
        (Type::Sequence(_), _) => return Vec::new(),
    };
    let dims = tensor.shape.iter().flatten().zip(value.dims().unwrap_or_default());
    dims.filter_map(|(dim, &size)| match dim {
        Some(Dim::Symbol(symbol)) if is_name(symbol) => Some((symbol.as_str(), size)),
        _ => None,
    })
    .collect()
}

fn is_name(symbol: &str) -> bool {
    !symbol.contains(|c: char| " +-*/()".contains(c))
}
