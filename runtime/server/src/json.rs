//! The bodies of requests and answers: `{"inputs": {"x": {"shape": [1, 2], "data": [0.5, 1]}}}`, and the same with
//! `outputs`.

use candle_plan::{DType, Element, Error, Session, Type, Value};
use serde::de::{MapAccess, Visitor};
use serde::ser::{Error as _, SerializeMap, SerializeSeq, SerializeStruct};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::numbers::{by_type, InJson, Number};

/// Checks that JSON can hold the inputs and outputs of a plan.
pub fn check(session: &Session) -> Result<(), String> {
    for (name, kind) in session.inputs().chain(session.outputs()) {
        let of_tensor = |dtype: DType| by_type!(dtype, T => Ok(<T as InJson>::DTYPE)).is_ok();
        if kind.is_optional() || !kind.dtype().is_some_and(of_tensor) {
            return Err(format!("the server has no JSON for {name:?}, which is {kind}"));
        }
    }
    Ok(())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    inputs: Named,
}

/// The tensors of a body, in its order. A name may occur twice: the plan's inputs decide.
struct Named(Vec<(String, Tensor)>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tensor {
    shape: Vec<usize>,
    data: Vec<Number>,
}

impl<'de> Deserialize<'de> for Named {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Named, D::Error> {
        struct Tensors;
        impl<'de> Visitor<'de> for Tensors {
            type Value = Named;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("tensors by their names")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Named, A::Error> {
                let mut named = Vec::new();
                while let Some(tensor) = map.next_entry()? {
                    named.push(tensor);
                }
                Ok(Named(named))
            }
        }
        deserializer.deserialize_map(Tensors)
    }
}

/// The inputs in a request's body, in the plan's order.
///
/// # Errors
/// A sentence: the body is not such JSON, or its tensors do not have the names, types and sizes of the plan's inputs.
pub fn inputs(session: &Session, body: &[u8]) -> Result<Vec<Value>, String> {
    let Body { inputs: Named(named) } =
        serde_json::from_slice(body).map_err(|error| format!("the body is not a request: {error}"))?;
    let declared: Vec<(&str, &Type)> = session.inputs().collect();
    let value = |(name, tensor): (String, Tensor)| -> Result<(String, Value), String> {
        let known = declared.iter().find(|(known, _)| *known == name);
        let value = match known.and_then(|(_, kind)| kind.dtype()) {
            Some(dtype) => by_type!(dtype, T => array::<T>(&tensor)).map_err(|e| format!("input {name:?}: {e}"))?,
            None => Value::absent(), // The check of the names refuses it.
        };
        Ok((name, value))
    };
    let named: Vec<(String, Value)> = named.into_iter().map(value).collect::<Result<_, _>>()?;
    let inputs = session.ordered(named).map_err(|error| error.to_string())?;
    match declared.iter().zip(&inputs).find(|((_, kind), value)| !kind.admits(value)) {
        Some(((name, kind), value)) => Err(format!("input {name:?}: expected {kind}, found {}", value.describe())),
        None => Ok(inputs),
    }
}

fn array<T: InJson>(tensor: &Tensor) -> Result<Value, Error> {
    let element = |(at, &number): (usize, &Number)| {
        let unfit = || Error::op(format!("element {at} is {number}, which is not a {}", T::DTYPE));
        T::of(number).ok_or_else(unfit)
    };
    let elements: Result<Vec<T::Element>, Error> = tensor.data.iter().enumerate().map(element).collect();
    Value::new(elements?, &tensor.shape)?.reinterpret(T::DTYPE)
}

/// The body of an answer.
///
/// # Errors
/// An output is not a tensor that JSON can hold.
pub fn outputs(session: &Session, outputs: &[Value]) -> Result<Vec<u8>, String> {
    let names = session.outputs().map(|(name, _)| name).collect();
    serde_json::to_vec(&Answer { outputs: Outputs { names, values: outputs } }).map_err(|error| error.to_string())
}

#[derive(Serialize)]
struct Answer<'a> {
    outputs: Outputs<'a>,
}

struct Outputs<'a> {
    names: Vec<&'a str>,
    values: &'a [Value],
}

impl Serialize for Outputs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.names.len()))?;
        for (name, value) in self.names.iter().zip(self.values) {
            map.serialize_entry(name, &Output(value))?;
        }
        map.end()
    }
}

struct Output<'a>(&'a Value);

impl Serialize for Output<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Output", 2)?;
        fields.serialize_field("shape", self.0.dims().map_err(S::Error::custom)?)?;
        fields.serialize_field("data", &Data(self.0))?;
        fields.end()
    }
}

struct Data<'a>(&'a Value);

impl Serialize for Data<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let dtype = self.0.dtype().ok_or_else(|| S::Error::custom("JSON has only tensors"))?;
        let mut sequence = serializer.serialize_seq(None)?;
        let written: Result<(), Error> = by_type!(dtype, T => {
            type Stored = <T as InJson>::Element;
            let stored = self.0.reinterpret(<Stored as Element>::DTYPE).map_err(S::Error::custom)?;
            for &element in stored.read::<Stored>().map_err(S::Error::custom)? {
                sequence.serialize_element(&T::to_json(element))?;
            }
            Ok(())
        });
        written.map_err(S::Error::custom)?;
        sequence.end()
    }
}
