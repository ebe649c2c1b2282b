//! Checks of a run's inputs against their declarations in the plan.

use std::collections::HashMap;

use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::executable::Executable;
use crate::types::{Dim, Type};
use crate::value::Value;

/// Checks the inputs of a run: their number, kinds, dtypes, ranks and sizes, and that each symbol has the same size
/// everywhere.
///
/// # Errors
/// [`Error::Input`] for the first input that does not fit.
pub fn check(executable: &Executable, inputs: &[Value]) -> Result<()> {
    let declared = executable.inputs().count();
    if declared != inputs.len() {
        let names: Vec<&str> = executable.inputs().map(|(name, _)| name).collect();
        return Err(Error::op(format!("expected the inputs {names:?}, in this order, found {}", inputs.len())));
    }
    let mut symbols = Symbols::new();
    for ((name, kind), value) in executable.inputs().zip(inputs) {
        let mismatch = |expected: String| Error::Input { name: name.to_string(), expected, found: found(kind, value) };
        if !kind.admits(value) {
            return Err(mismatch(kind.to_string()));
        }
        if let Some((symbol, first)) = conflict(kind, value, &mut symbols) {
            return Err(mismatch(format!("{kind} with {symbol} = {first}, as in an input before it")));
        }
    }
    Ok(())
}

/// The inputs of a run in the plan's order. An optional input without a value is absent.
///
/// # Errors
/// [`Error::Input`] if an input has no value or two, or if the plan has no input of a name.
pub fn ordered<'a, N: AsRef<str>, V: Into<Value>>(
    declared: impl Iterator<Item = (&'a str, &'a Type)>,
    named: impl IntoIterator<Item = (N, V)>,
) -> Result<Vec<Value>> {
    let declared: Vec<(&str, &Type)> = declared.collect();
    let mut given: HashMap<&str, Value> = HashMap::with_capacity(declared.len());
    for (name, value) in named {
        let name = name.as_ref();
        let mismatch =
            |expected: String, found: &str| Error::Input { name: name.into(), expected, found: found.into() };
        let Some(&(known, _)) = declared.iter().find(|(known, _)| *known == name) else {
            let names: Vec<&str> = declared.iter().map(|&(name, _)| name).collect();
            return Err(mismatch(format!("one of {names:?}"), "another name"));
        };
        if given.insert(known, value.into()).is_some() {
            return Err(mismatch("one value".to_string(), "two"));
        }
    }
    let value = |(name, kind): (&str, &Type)| match (given.remove(name), kind) {
        (Some(value), _) => Ok(value),
        (None, Type::Optional(_)) => Ok(Value::None),
        (None, _) => Err(Error::Input { name: name.into(), expected: kind.to_string(), found: "nothing".into() }),
    };
    declared.into_iter().map(value).collect()
}

/// Describes the value; for a sequence, the first item that does not fit.
fn found(kind: &Type, value: &Value) -> String {
    let misfit = match (kind, value) {
        (Type::Sequence(item), Value::Sequence(items)) => {
            items.iter().enumerate().find(|(_, value)| !item.admits(value)).zip(Some(items.len()))
        }
        _ => None,
    };
    match misfit {
        Some(((index, item), count)) => format!("{} as item {index} of {count}", item.describe()),
        None => value.describe(),
    }
}

/// Plain symbols, and the sizes that values gave them.
type Symbols<'a> = SmallVec<[(&'a str, usize); 8]>;

/// Records the sizes of the plain symbols in a value's declared type; expressions are not solved. Returns the first
/// symbol that already has another size, and that size.
fn conflict<'a>(kind: &'a Type, value: &Value, symbols: &mut Symbols<'a>) -> Option<(&'a str, usize)> {
    let tensor = match (kind, value) {
        (_, Value::None) => return None,
        (Type::Optional(item), value) => return conflict(item, value, symbols),
        (Type::Sequence(item), Value::Sequence(items)) => {
            return items.iter().find_map(|value| conflict(item, value, symbols));
        }
        (Type::Tensor(tensor), _) => tensor,
        (Type::Sequence(_), _) => return None,
    };
    let mut dims = tensor.shape.iter().flatten().zip(value.dims().unwrap_or_default());
    dims.find_map(|(dim, &size)| match dim {
        Some(Dim::Symbol(symbol)) if is_name(symbol) => match symbols.iter().find(|(known, _)| known == symbol) {
            Some(&(symbol, first)) => (first != size).then_some((symbol, first)),
            None => {
                symbols.push((symbol, size));
                None
            }
        },
        _ => None,
    })
}

fn is_name(symbol: &str) -> bool {
    !symbol.contains(|c: char| " +-*/()".contains(c))
}
