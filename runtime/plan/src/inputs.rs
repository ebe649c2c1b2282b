//! Checks of a run's inputs against their declarations in the plan.

use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::prepare::Executable;
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
