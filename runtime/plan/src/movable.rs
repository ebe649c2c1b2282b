//! Tensors of any dtype, including strings, whose elements an op moves and does not compute with.

use candle_plan_descriptors::strided::View;
use candle_plan_kernels::strided::copy;
use candle_plan_kernels::threads::Threads;
use smallvec::{smallvec, SmallVec};

use crate::array::words;
use crate::by_width;
use crate::error::{Error, Result};
use crate::value::strings::Texts;
use crate::value::{element_count, list, scratch, Array, Strings, Value};

/// Tensors of one dtype whose elements an op moves. Strings are moved as numbers: their indices in a table of all
/// strings.
pub struct Movable {
    /// The tensors, in the order given.
    pub arrays: SmallVec<[Array; 1]>,
    strings: Option<Vec<Strings>>,
}

impl Movable {
    /// Wraps the tensors `values`.
    ///
    /// # Errors
    /// A value is not a tensor, or the dtypes differ.
    pub fn new(values: &[&Value]) -> Result<Movable> {
        if let [Value::Strings(_), ..] = values {
            return Movable::of_strings(values);
        }
        scratch::<Array>(values.len())?;
        let mut arrays = SmallVec::<[Array; 1]>::new();
        for value in values {
            arrays.push(value.tensor()?.clone());
        }
        match arrays.iter().find(|array| array.dtype() != arrays[0].dtype()) {
            Some(other) => Err(Error::op(format!(
                "the inputs must have one type, found {} and {}",
                arrays[0].dtype(),
                other.dtype()
            ))),
            None => Ok(Movable { arrays, strings: None }),
        }
    }

    fn of_strings(values: &[&Value]) -> Result<Movable> {
        scratch::<(Array, Strings)>(values.len())?;
        let (mut arrays, mut tables, mut next) = (SmallVec::new(), Vec::new(), 0u64);
        for value in values {
            let Value::Strings(strings) = value else {
                return Err(Error::op(format!("expected strings, found {}", value.describe())));
            };
            let count = strings.data.len();
            arrays.push(Array::new(list((0..count).map(|i| next + i as u64))?, &strings.dims)?);
            tables.push(strings.clone());
            next += count as u64;
        }
        Ok(Movable { arrays, strings: Some(tables) })
    }

    /// The value that a moved tensor stands for.
    ///
    /// # Errors
    /// A string's index is not in the table.
    pub fn restore(&self, moved: Array) -> Result<Value> {
        let Some(tables) = &self.strings else { return Ok(moved.into()) };
        let find = |index: &u64| {
            let mut index = *index as usize;
            for table in tables {
                match table.data.get(index) {
                    Some(string) => return Ok(string.as_str()),
                    None => index -= table.data.len(),
                }
            }
            Err(Error::op("a moved string has no index in its table"))
        };
        let mut texts = Texts::with_capacity(moved.len())?;
        for index in moved.read::<u64>()? {
            texts.push(&[find(index)?])?;
        }
        Ok(Value::Strings(texts.into_strings(moved.dims())))
    }
}

impl From<Array> for Movable {
    fn from(array: Array) -> Movable {
        Movable { arrays: smallvec![array], strings: None }
    }
}

/// Copies the elements of a view of `array` into a new tensor.
///
/// # Errors
/// The allocation fails.
pub fn copy_view(array: &Array, view: &View, threads: &Threads) -> Result<Array> {
    by_width!(array.dtype(), W => {
        let from = words::read::<W>(array)?;
        let out = words::alloc_uninit::<W>(&view.dims)?.overwrite(|out| copy(from, view, out, threads));
        words::array(out, &view.dims, array.dtype())
    })
}

/// A value with the same elements and other dimensions. It shares the storage.
///
/// # Errors
/// The value is not a tensor, or the dimensions hold another number of elements.
pub fn reshape(value: &Value, dims: &[usize]) -> Result<Value> {
    match value {
        Value::Strings(strings) if element_count(dims)? == strings.data.len() => {
            Ok(Value::Strings(Strings { dims: dims.to_vec(), data: strings.data.clone() }))
        }
        Value::Strings(strings) => Err(Error::op(format!("cannot view {:?} as {dims:?}", strings.dims))),
        value => Ok(value.tensor()?.reshape(dims)?.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(data: &[&str]) -> Value {
        Value::Strings(Strings { dims: vec![data.len()], data: data.iter().map(|s| s.to_string()).collect() })
    }

    #[test]
    fn strings_move_as_indices() {
        let movable = Movable::new(&[&strings(&["a", "b"]), &strings(&["c"])]).expect("strings mix");
        let moved = Array::new(vec![2u64, 0, 1, 2], &[2, 2]).expect("four elements");
        let Value::Strings(back) = movable.restore(moved).expect("known places") else { panic!("not strings") };
        assert_eq!((back.dims, back.data.join("")), (vec![2, 2], "cabc".to_string()));
        assert!(Movable::new(&[&strings(&["a"]), &Array::scalar(1u64).into()]).is_err());
    }
}
