//! CPU kernels: operators of classical machine learning.

use std::collections::HashMap;
use std::hash::Hash;

use candle_plan_kernels::threads::Threads;

use super::convert::converted;
use crate::array::words;
use crate::bail;
use crate::by_width;
use crate::dtype::DType;
use crate::error::Result;
use crate::extent::one_element;
use crate::kernel::{Call, Kernel};
use crate::movable::Movable;
use crate::ops::ml::LabelEncoder;
use crate::value::{list, out_of_memory, scratch, Array, Value};

impl Kernel for LabelEncoder {
    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (x, keys) = (call.value(0)?, call.value(1)?);
        let (values, default) = (call.value(2)?, call.value(3)?);
        LabelEncoder::check(keys.dims()?, values.dims()?)?;
        one_element("the default", default.dims()?)?;
        let places = match (keys, x) {
            (Value::Strings(keys), Value::Strings(x)) => places(keys.data.iter(), x.data.iter())?,
            _ => {
                let (keys, x) = (identities(keys.tensor()?, call.threads)?, identities(x.tensor()?, call.threads)?);
                places(keys.iter(), x.iter())?
            }
        };
        let data = Movable::new(&[values, default])?;
        let [values, default] = &data.arrays[..] else { bail!("values and a default are needed") };
        Ok(vec![data.restore(by_width!(values.dtype(), W => {
            let (table, default) = (words::read::<W>(values)?, words::read::<W>(default)?);
            let value = |place: &Option<usize>| place.and_then(|place| table.get(place)).unwrap_or(&default[0]);
            words::array(list(places.iter().map(value).copied())?, x.dims()?, values.dtype())
        })?)?])
    }
}

/// Returns, for each element of `x`, the index of the last key that equals it.
fn places<K: Eq + Hash>(
    keys: impl ExactSizeIterator<Item = K>,
    x: impl ExactSizeIterator<Item = K>,
) -> Result<Vec<Option<usize>>> {
    let mut table = HashMap::new();
    scratch::<[(K, usize); 2]>(keys.len())?; // a table has at least as many free slots as elements
    table.try_reserve(keys.len()).map_err(|_| out_of_memory(&[keys.len()]))?;
    table.extend(keys.enumerate().map(|(place, key)| (key, place)));
    list(x.map(|element| table.get(&element).copied()))
}

/// Maps each element to an integer so that equal elements, including two NaNs, have equal integers.
fn identities(array: &Array, threads: &Threads) -> Result<Vec<i64>> {
    if !array.dtype().is_float() {
        return array.to_i64();
    }
    let wide = converted(array, DType::Float64, threads)?;
    let identity = |&x: &f64| if x.is_nan() { f64::NAN.to_bits() } else { (x + 0.0).to_bits() } as i64;
    list(wide.read::<f64>()?.iter().map(identity))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, tensor};
    use crate::value::Strings;

    fn text(data: &[&str]) -> Option<Value> {
        Some(Value::Strings(Strings { dims: vec![data.len()], data: data.iter().map(|s| s.to_string()).collect() }))
    }

    #[test]
    fn labels_map_words_to_numbers_and_back() {
        let [keys, values] = [text(&["a", "b", "a"]), Some(tensor(&[1i64, 2, 3], &[3]))];
        let default = Some(tensor(&[-1i64], &[1]));
        let y = run(&LabelEncoder {}, &[text(&["b", "c", "a"]), keys.clone(), values.clone(), default.clone()]);
        let y = y.and_then(|y| y.tensor()?.to_i64()).expect("numbers");
        assert_eq!(y, [2, -1, 3]);

        let [x, keys] = [&[f32::NAN, -0.0, 7.0][..], &[0.0, f32::NAN]].map(|x| Some(tensor(x, &[x.len()])));
        let y = run(&LabelEncoder {}, &[x.clone(), keys.clone(), text(&["zero", "none"]), text(&["?"])]);
        let Ok(Value::Strings(y)) = y else { panic!("not strings: {y:?}") };
        assert_eq!(y.data.join(" "), "none zero ?");
        assert!(run(&LabelEncoder {}, &[x, keys, values, default]).is_err());
    }
}
