//! The values with which a state begins.

use super::pairs::{NamedPair, Pairs};
use super::values::settled;
use crate::array::words;
use crate::by_width;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::types::{Dim, TensorType, Type};
use crate::value::{Array, Value};

/// The values with which a state begins. The others are zeros, with size 0 along the axis that grows.
#[derive(Debug, Clone)]
pub(super) struct Start {
    /// Values by the names of inputs.
    pub values: Vec<(String, Value)>,
    /// Sizes of the zeros: of a symbol (`batch`), or of a dimension of an input (`state.1`).
    pub sizes: Vec<(String, usize)>,
}

impl Start {
    /// Checks the names, and the types of the values. The result holds values in memory of the runtime.
    ///
    /// # Errors
    /// [`Error::State`] if there is no such input or dimension; [`Error::Input`] if a value does not fit.
    pub(super) fn checked(self, pairs: &Pairs) -> Result<Start> {
        let mut values = Vec::with_capacity(self.values.len());
        for (name, value) in self.values {
            pairs.list[pairs.find(&name)?.at()].check(&value, " as the initial value")?;
            values.push((name, settled(value)?));
        }
        for (name, _) in &self.sizes {
            if !pairs.list.iter().any(|pair| pair.dims().any(|(own, symbol)| own == *name || symbol == Some(name))) {
                return Err(Error::State(format!("no value of the state has a dimension {name:?} of unknown size")));
            }
        }
        Ok(Start { values, sizes: self.sizes })
    }

    /// The first value of each pair, as far as it is known before a run.
    pub(super) fn values(&self, pairs: &Pairs) -> Vec<Option<Value>> {
        let given = |pair: &NamedPair| self.values.iter().find(|(name, _)| *name == pair.input.name);
        pairs.list.iter().map(|pair| given(pair).map(|(_, value)| value.clone())).collect()
    }

    /// The zeros with which a pair begins. `given` are the other inputs of the run, with their declared types.
    ///
    /// # Errors
    /// [`Error::Input`] if a size is unknown; also if there is no memory.
    pub(super) fn zeros(&self, pair: &NamedPair, given: &[(&Type, &Value)]) -> Result<Value> {
        let TensorType { dtype, shape } = pair.kind.tensor()?;
        let unknown = |what: String| Error::Input {
            name: pair.input.name.clone(),
            expected: format!("an initial value, because {what} of {} is unknown", pair.kind),
            found: "nothing".to_string(),
        };
        let shape = shape.as_ref().ok_or_else(|| unknown("the rank".to_string()))?;
        let mut dims = Vec::with_capacity(shape.len());
        for (axis, dim) in shape.iter().enumerate() {
            let size = match dim {
                _ if pair.axis == Some(axis) => Some(0),
                Some(Dim::Size(size)) => Some(*size),
                Some(Dim::Symbol(symbol)) => self.size(pair, axis, Some(symbol)).or_else(|| size_in(symbol, given)),
                None => self.size(pair, axis, None),
            };
            dims.push(size.ok_or_else(|| unknown(format!("the size of dimension {axis}")))?);
        }
        zeros(*dtype, &dims).map(Value::from)
    }

    /// The size that the caller has set for a dimension.
    fn size(&self, pair: &NamedPair, axis: usize, symbol: Option<&str>) -> Option<usize> {
        let own = pair.name_of(axis);
        let is_named = |name: &str| name == own || symbol == Some(name);
        self.sizes.iter().find(|(name, _)| is_named(name)).map(|(_, size)| *size)
    }
}

impl NamedPair {
    /// The dimensions whose size is unknown, except the one that grows: their names by place, and their symbols.
    fn dims(&self) -> impl Iterator<Item = (String, Option<&String>)> {
        let shape = self.kind.tensor().ok().and_then(|tensor| tensor.shape.as_ref());
        let free = shape.into_iter().flatten().enumerate().filter(move |(axis, _)| self.axis != Some(*axis));
        free.filter_map(move |(axis, dim)| match dim {
            Some(Dim::Size(_)) => None,
            Some(Dim::Symbol(symbol)) => Some((self.name_of(axis), Some(symbol))),
            None => Some((self.name_of(axis), None)),
        })
    }

    fn name_of(&self, axis: usize) -> String {
        format!("{}.{axis}", self.input.name)
    }
}

/// The size that one of the values has along a dimension with this symbol in its type.
fn size_in(symbol: &str, values: &[(&Type, &Value)]) -> Option<usize> {
    values.iter().find_map(|(kind, value)| {
        let kind = match kind {
            Type::Optional(item) => &**item,
            kind => *kind,
        };
        let shape = kind.tensor().ok()?.shape.as_ref()?;
        let dims = value.dims().ok()?;
        let is_symbol = |dim: &Option<Dim>| matches!(dim, Some(Dim::Symbol(other)) if other == symbol);
        shape.iter().zip(dims).find(|(dim, _)| is_symbol(dim)).map(|(_, &size)| size)
    })
}

fn zeros(dtype: DType, dims: &[usize]) -> Result<Array> {
    by_width!(dtype, W => {
        words::array(words::alloc_uninit::<W>(dims)?.fill(0), dims, dtype)
    })
}
