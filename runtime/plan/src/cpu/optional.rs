//! CPU kernels: optional values.

use crate::bail;
use crate::dtype::Bool;
use crate::error::Result;
use crate::kernel::{Call, Kernel};
use crate::ops::optional::{Optional, OptionalGetElement, OptionalHasElement};
use crate::types::Types;
use crate::value::{Array, Value};

impl Kernel for Optional {
    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        Some(0)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        Ok(vec![call.optional(0).cloned().unwrap_or(Value::None)])
    }
}

impl Kernel for OptionalHasElement {
    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        Some(0)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let holds = !matches!(call.optional(0), None | Some(Value::None));
        Ok(vec![Array::scalar(Bool::from(holds)).into()])
    }
}

impl Kernel for OptionalGetElement {
    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        Some(0)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        match call.value(0)? {
            Value::None => bail!("the optional holds nothing"),
            value => Ok(vec![value.clone()]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::testing::{run, tensor};
    use crate::types::Type;

    #[test]
    fn optionals() {
        let kind = Some(Type::any(DType::Int8));
        let full = run(&Optional { kind: kind.clone() }, &[Some(tensor(&[1i8], &[1]))]).expect("int8 fits");
        let empty = run(&Optional { kind: kind.clone() }, &[]).expect("the type is given");
        assert!(run(&Optional { kind: None }, &[]).is_err());
        assert!(run(&Optional { kind }, &[Some(tensor(&[1f32], &[1]))]).is_err());

        let holds = |inputs: &[Option<Value>]| {
            let y = run(&OptionalHasElement {}, inputs).expect("any input");
            y.tensor().expect("a tensor").to_i64().expect("bool")[0]
        };
        assert_eq!([holds(&[Some(full.clone())]), holds(&[Some(empty.clone())]), holds(&[])], [1, 0, 0]);
        assert!(run(&OptionalGetElement {}, &[Some(full)]).is_ok());
        assert!(run(&OptionalGetElement {}, &[Some(empty)]).is_err());
    }
}
