//! What a caller gives, against what the plan declares.

use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::prepare::Executable;
use crate::types::{Dim, Type};
use crate::value::Value;

/// Checks the inputs of a run: their number, kinds, dtypes, ranks and sizes, and that a symbol has one size throughout.
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
        let wrong = |expected: String| Error::Input { name: name.to_string(), expected, found: found(kind, value) };
        if !kind.admits(value) {
            return Err(wrong(kind.to_string()));
        }
        if let Some((symbol, first)) = misfit(kind, value, &mut symbols) {
            return Err(wrong(format!("{kind} with {symbol} = {first}, as in an input before it")));
        }
    }
    Ok(())
}

/// The value in words; of a sequence, the first item that does not fit.
fn found(kind: &Type, value: &Value) -> String {
    let odd = match (kind, value) {
        (Type::Sequence(item), Value::Sequence(items)) => {
            items.iter().enumerate().find(|(_, value)| !item.admits(value)).zip(Some(items.len()))
        }
        _ => None,
    };
    match odd {
        Some(((index, item), count)) => format!("{} as item {index} of {count}", item.describe()),
        None => value.describe(),
    }
}

/// Plain symbols, and the sizes that values have given them.
type Symbols<'a> = SmallVec<[(&'a str, usize); 8]>;

/// Notes the sizes that a value gives to the plain symbols of its declared type (expressions are not solved); the first
/// symbol that has another size already, and that size.
fn misfit<'a>(kind: &'a Type, value: &Value, symbols: &mut Symbols<'a>) -> Option<(&'a str, usize)> {
    let tensor = match (kind, value) {
        (_, Value::None) => return None,
        (Type::Optional(item), value) => return misfit(item, value, symbols),
        (Type::Sequence(item), Value::Sequence(items)) => {
            return items.iter().find_map(|value| misfit(item, value, symbols));
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
