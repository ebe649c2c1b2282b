//! Batches: the inputs of several requests become the inputs of one run, and its outputs are divided again.

use candle_plan::{Element, Error, Result, Session, Value};

use crate::numbers::{by_type, InJson};

/// Checks that the first dimension of every input and output is the same symbol, and that no other dimension depends on
/// it. A plan that mixes its rows passes this check too: whoever asks for batches knows that it does not.
pub fn check(session: &Session) -> std::result::Result<(), String> {
    let mut batch: Option<&str> = None;
    for (name, kind) in session.inputs().chain(session.outputs()) {
        let refused = |why: &str| Err(format!("--max-batch needs another plan: {why} of {name:?} ({kind})"));
        let Some(first) = kind.symbol(0) else {
            return refused("the first dimension is not a symbol");
        };
        if !is_name(first) || *batch.get_or_insert(first) != first {
            return refused("the first dimension is another one than the first input's");
        }
        let mut others = (1..kind.rank().unwrap_or(0)).filter_map(|axis| kind.symbol(axis));
        if others.any(|other| names(other).any(|name| name == first)) {
            return refused("another dimension depends on the first one");
        }
    }
    match batch {
        Some(_) => Ok(()),
        None => Err("--max-batch needs a plan with inputs".to_string()),
    }
}

/// The symbols in an expression.
fn names(expression: &str) -> impl Iterator<Item = &str> {
    expression.split(|c: char| " +-*/(),".contains(c))
}

fn is_name(symbol: &str) -> bool {
    names(symbol).count() == 1
}

/// The number of rows of every input of a request; `None` if they differ, or there are none.
pub fn rows(inputs: &[Value]) -> Option<usize> {
    let mut rows = inputs.iter().map(|value| value.dims().ok()?.first().copied());
    let first = rows.next()??;
    (first > 0 && rows.all(|other| other == Some(first))).then_some(first)
}

/// Whether two requests differ only in their numbers of rows and in their elements.
pub fn fit(one: &[Value], other: &[Value]) -> bool {
    let rest = |value: &Value| value.dims().ok().and_then(|dims| dims.get(1..).map(<[usize]>::to_vec));
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| rest(one) == rest(other))
}

/// Joins the inputs of requests that [fit].
///
/// # Errors
/// A value is not a tensor.
pub fn join(requests: &[Vec<Value>]) -> Result<Vec<Value>> {
    let first = requests.first().map_or(&[][..], Vec::as_slice);
    let joined = |at: usize| {
        let parts: Vec<&Value> = requests.iter().map(|inputs| &inputs[at]).collect();
        let dtype = parts[0].dtype().ok_or_else(|| Error::op("a batch has only tensors"))?;
        by_type!(dtype, T => joined::<<T as InJson>::Element>(&parts)?.reinterpret(dtype))
    };
    (0..first.len()).map(joined).collect()
}

fn joined<T: Element>(parts: &[&Value]) -> Result<Value> {
    let mut dims = parts[0].dims()?.to_vec();
    dims[0] = 0;
    let mut elements = Vec::new();
    for part in parts {
        dims[0] += part.dims()?[0];
        let part = part.reinterpret(T::DTYPE)?;
        let more = part.read::<T>()?;
        elements.try_reserve(more.len()).map_err(|e| Error::op(e.to_string()))?;
        elements.extend_from_slice(more);
    }
    Value::new(elements, &dims)
}

/// Divides the outputs of a run into those of its requests, without a copy.
///
/// # Errors
/// An output does not have the requests' rows.
pub fn split(outputs: &[Value], rows: &[usize]) -> Result<Vec<Vec<Value>>> {
    let total: usize = rows.iter().sum();
    if let Some(other) = outputs.iter().find(|value| value.dims().map_or(true, |dims| dims.first() != Some(&total))) {
        return Err(Error::op(format!("an output of {total} rows is {}", other.describe())));
    }
    let mut start = 0;
    let parts = rows.iter().map(|&count| {
        let parts: Result<Vec<Value>> = outputs.iter().map(|value| value.rows(start, count)).collect();
        start += count;
        parts
    });
    parts.collect()
}
