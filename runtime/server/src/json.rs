//! The bodies of requests and answers: `{"inputs": {"x": {"shape": [1, 2], "data": [0.5, 1]}}}`, and the same with
//! `outputs`.

use candle_plan::dispatch;
use candle_plan::dtype::{Bool, DType};
use candle_plan::error::Error;
use candle_plan::inputs::ordered;
use candle_plan::session::Session;
use candle_plan::types::Type;
use candle_plan::value::{Array, Value};
use half::{bf16, f16};
use serde::de::{MapAccess, Visitor};
use serde::ser::{Error as _, SerializeMap, SerializeSeq, SerializeStruct};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::numbers::{InJson, Number};

/// Runs `$body` with `$T` as the type of a tensor's elements.
macro_rules! by_type {
    ($dtype:expr, $T:ident => $body:expr) => {
        dispatch!("JSON", $dtype, [Bool, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64], $T => $body)
    };
}

/// Checks that JSON can hold the inputs and outputs of a plan.
pub fn check(session: &Session) -> Result<(), String> {
    for (name, kind) in session.inputs().chain(session.outputs()) {
        let of_tensor = |dtype: DType| by_type!(dtype, T => { let _: Option<T> = None; Ok(()) });
        if !matches!(kind, Type::Tensor(tensor) if of_tensor(tensor.dtype).is_ok()) {
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
        let value = match declared.iter().find(|(known, _)| *known == name) {
            Some((_, Type::Tensor(kind))) => {
                by_type!(kind.dtype, T => array::<T>(&tensor)).map_err(|e| format!("input {name:?}: {e}"))?
            }
            _ => Value::None, // The check of the names refuses it.
        };
        Ok((name, value))
    };
    let named: Vec<(String, Value)> = named.into_iter().map(value).collect::<Result<_, _>>()?;
    let inputs = ordered(session.inputs(), named).map_err(|error| error.to_string())?;
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
    let elements: Result<Vec<T>, Error> = tensor.data.iter().enumerate().map(element).collect();
    Ok(Array::new(elements?, &tensor.shape)?.into())
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
            map.serialize_entry(name, &Output(value.tensor().map_err(S::Error::custom)?))?;
        }
        map.end()
    }
}

struct Output<'a>(&'a Array);

impl Serialize for Output<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Output", 2)?;
        fields.serialize_field("shape", self.0.dims())?;
        fields.serialize_field("data", &Data(self.0))?;
        fields.end()
    }
}

struct Data<'a>(&'a Array);

impl Serialize for Data<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut sequence = serializer.serialize_seq(Some(self.0.len()))?;
        let written: Result<(), Error> = by_type!(self.0.dtype(), T => {
            for element in self.0.read::<T>().map_err(S::Error::custom)? {
                sequence.serialize_element(&element.to_json())?;
            }
            Ok(())
        });
        written.map_err(S::Error::custom)?;
        sequence.end()
    }
}
