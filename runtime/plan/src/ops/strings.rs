//! Tensors of text.

use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::repeat::{broadcast, expanded};
use crate::bail;
use crate::device::on_device;
use crate::dtype::{Bool, DType};
use crate::error::{Error, Result};
use crate::kernel::{Arity, Call, Constants, Kernel, Packed, Types};
use crate::pattern::full_match;
use crate::types::{Dim, TensorType, Type};
use crate::value::{element_count, list, with_room, Array, Strings, Value};

/// `Z = X ‖ Y`: each string of `X` followed by the string of `Y` at the same place, broadcast as NumPy does.
///
/// Source: [ONNX StringConcat](https://onnx.ai/onnx/operators/onnx__StringConcat.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StringConcat {}

impl Kernel for StringConcat {
    fn arity(&self) -> Arity {
        Arity::exact(2, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let (x, y) = (text_type(inputs, 0)?, text_type(inputs, 1)?);
        let shape = match (x.sizes(), y.sizes()) {
            (Some(x), Some(y)) => Some(broadcast(&x, &y)?.dims.into_iter().map(|dim| Some(Dim::Size(dim))).collect()),
            _ => x.rank().zip(y.rank()).map(|(x, y)| vec![None; x.max(y)]),
        };
        Ok(vec![Type::Tensor(TensorType { dtype: DType::String, shape })])
    }

    on_device!(Host);

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (x, y) = (call.value(0)?, call.value(1)?);
        let (x, y) = (expanded(x, y.dims()?, call.threads)?, expanded(y, x.dims()?, call.threads)?);
        let (x, y) = (text_of(&x)?, text_of(&y)?);
        let data = x.data.iter().zip(y.data.iter()).map(|(x, y)| format!("{x}{y}")).collect();
        Ok(vec![Value::Strings(Strings { dims: x.dims.clone(), data })])
    }
}

/// The parts of each string of `X` between occurrences of a delimiter: `Y [dims(X), n]`, padded with empty strings to the
/// largest number of parts, and `Z: int64` of `X`'s shape, the numbers of parts. An empty string has no parts.
///
/// Source: [ONNX StringSplit](https://onnx.ai/onnx/operators/onnx__StringSplit.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StringSplit {
    /// What separates parts; empty: any white space, which is then also cut off at both ends.
    pub delimiter: String,
    /// After how many splits the rest stays whole; absent: never.
    pub most: Option<usize>,
}

impl StringSplit {
    fn parts<'a>(&self, text: &'a str) -> Vec<&'a str> {
        let most = self.most.map_or(usize::MAX, |most| most.saturating_add(1));
        if !self.delimiter.is_empty() {
            return if text.is_empty() { Vec::new() } else { text.splitn(most, &self.delimiter).collect() };
        }
        let (mut parts, mut rest) = (Vec::new(), text.trim());
        while !rest.is_empty() {
            let (part, after) = match rest.split_once(char::is_whitespace) {
                Some((part, after)) if parts.len() + 1 < most => (part, after.trim_start()),
                _ => (rest, ""),
            };
            parts.push(part);
            rest = after;
        }
        parts
    }
}

impl Kernel for StringSplit {
    fn arity(&self) -> Arity {
        Arity { inputs: 1..=1, outputs: 1..=2 }
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = text_type(inputs, 0)?;
        let parts = x.shape.clone().map(|shape| shape.into_iter().chain([None]).collect());
        let parts = Type::Tensor(TensorType { dtype: DType::String, shape: parts });
        Ok(vec![parts, Type::Tensor(TensorType { dtype: DType::Int64, shape: x.shape.clone() })])
    }

    on_device!(Host);

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let x = text(call, 0)?;
        let parts: Vec<Vec<&str>> = list(x.data.iter().map(|text| self.parts(text)))?;
        let width = parts.iter().map(Vec::len).max().unwrap_or(0);
        let dims = [&x.dims[..], &[width]].concat();
        let mut data = with_room(element_count(&dims)?)?;
        for parts in &parts {
            let padding = std::iter::repeat_n("", width - parts.len());
            data.extend(parts.iter().copied().chain(padding).map(str::to_string));
        }
        let counts = list(parts.iter().map(|parts| parts.len() as i64))?;
        let split = Strings { dims, data: data.into() };
        Ok(vec![Value::Strings(split), Array::new(counts, &x.dims)?.into()])
    }
}

/// The strings of `X [C]` or `[1, C]` that are not stop words, in another case; one empty string where none is left.
///
/// Source: [ONNX StringNormalizer](https://onnx.ai/onnx/operators/onnx__StringNormalizer.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StringNormalizer {
    /// What is dropped.
    pub stop_words: Vec<String>,
    /// Whether a stop word of another case is dropped too.
    pub ignore_case: bool,
    /// The case of the results.
    pub case: Case,
}

/// What becomes of upper and lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Case {
    /// It stays.
    Keep,
    /// All letters become lower case.
    Lower,
    /// All letters become upper case.
    Upper,
}

impl StringNormalizer {
    fn is_kept(&self, text: &str) -> bool {
        let drops = |word: &String| match self.ignore_case {
            true => word.to_lowercase() == text.to_lowercase(),
            false => word == text,
        };
        !self.stop_words.iter().any(drops)
    }
}

impl Kernel for StringNormalizer {
    fn arity(&self) -> Arity {
        Arity::exact(1, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let shape = match text_type(inputs, 0)?.rank() {
            None => None,
            Some(1) => Some(vec![None]),
            Some(2) => Some(vec![Some(Dim::Size(1)), None]),
            Some(_) => bail!("expected [C] or [1, C], found {}", inputs.get(0)?),
        };
        Ok(vec![Type::Tensor(TensorType { dtype: DType::String, shape })])
    }

    on_device!(Host);

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let x = text(call, 0)?;
        let (&[_] | &[1, _]) = &x.dims[..] else { bail!("expected [C] or [1, C], found {:?}", x.dims) };
        let cased = |text: &String| match self.case {
            Case::Keep => text.clone(),
            Case::Lower => text.to_lowercase(),
            Case::Upper => text.to_uppercase(),
        };
        let mut kept: Vec<String> = x.data.iter().filter(|text| self.is_kept(text)).map(cased).collect();
        if kept.is_empty() {
            kept.push(String::new());
        }
        let mut dims = vec![1; x.dims.len()];
        dims[x.dims.len() - 1] = kept.len();
        Ok(vec![Value::Strings(Strings { dims, data: kept.into() })])
    }
}

/// Whether each string of `X`, as a whole, matches a regular expression: `bool` of `X`'s shape.
///
/// Source: [ONNX RegexFullMatch](https://onnx.ai/onnx/operators/onnx__RegexFullMatch.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegexFullMatch {
    /// The expression, in [RE2's syntax](https://github.com/google/re2/wiki/Syntax).
    pub pattern: String,
}

impl Kernel for RegexFullMatch {
    fn arity(&self) -> Arity {
        Arity::exact(1, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        full_match(&self.pattern)?;
        let shape = text_type(inputs, 0)?.shape.clone();
        Ok(vec![Type::Tensor(TensorType { dtype: DType::Bool, shape })])
    }

    fn prepack(&self, _: &Constants) -> Result<Option<Packed>> {
        Ok(Some(Box::new(full_match(&self.pattern)?)))
    }

    on_device!(Host);

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let expression = match call.packed::<Regex>() {
            Some(expression) => expression.clone(),
            None => full_match(&self.pattern)?,
        };
        let x = text(call, 0)?;
        let matches: Vec<Bool> = x.data.iter().map(|text| expression.is_match(text).into()).collect();
        Ok(vec![Array::new(matches, &x.dims)?.into()])
    }
}

/// Input `i`, which must hold strings.
fn text_type<'a>(inputs: &'a Types, i: usize) -> Result<&'a TensorType> {
    match inputs.tensor(i)? {
        text if text.dtype == DType::String => Ok(text),
        other => Err(Error::op(format!("expected strings, found {}", other.dtype))),
    }
}

fn text<'a>(call: &'a Call, i: usize) -> Result<&'a Strings> {
    text_of(call.value(i)?)
}

fn text_of(value: &Value) -> Result<&Strings> {
    match value {
        Value::Strings(strings) => Ok(strings),
        other => Err(Error::op(format!("expected strings, found {}", other.describe()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, run_outputs};

    fn strings(data: &[&str], dims: &[usize]) -> Value {
        Value::Strings(Strings { dims: dims.to_vec(), data: data.iter().map(|text| text.to_string()).collect() })
    }

    fn seen(value: &Value) -> (Vec<usize>, Vec<&str>) {
        let text = text_of(value).expect("strings");
        (text.dims.clone(), text.data.iter().map(String::as_str).collect())
    }

    #[test]
    fn concatenates() {
        let inputs = [strings(&["a", "b"], &[2, 1]), strings(&["1", "", "ü"], &[3])].map(Some);
        let y = run(&StringConcat {}, &inputs).expect("they broadcast");
        assert_eq!(seen(&y), (vec![2, 3], vec!["a1", "a", "aü", "b1", "b", "bü"]));
        assert!(run(&StringConcat {}, &[strings(&["a", "b"], &[2]), strings(&["a"; 3], &[3])].map(Some)).is_err());
    }

    #[test]
    fn splits() {
        let cases: [(&str, Option<usize>, &[&str]); 8] = [
            ("", None, &["a", "b", "c,", "d"]),
            ("", Some(0), &["a  b c, d"]),
            ("", Some(1), &["a", "b c, d"]),
            (" ", None, &["", "a", "", "b", "c,", "d", ""]),
            (" ", Some(2), &["", "a", " b c, d "]),
            (",", None, &[" a  b c", " d "]),
            (", ", None, &[" a  b c", "d "]),
            ("x", None, &[" a  b c, d "]),
        ];
        for (delimiter, most, expected) in cases {
            let kernel = StringSplit { delimiter: delimiter.to_string(), most };
            let outputs = run_outputs(&kernel, &[Some(strings(&[" a  b c, d ", ""], &[2]))], 2).expect("strings");
            let padded: Vec<&str> = expected.iter().copied().chain(vec![""; expected.len()]).collect();
            assert_eq!(seen(&outputs[0]), (vec![2, expected.len()], padded), "{delimiter:?} {most:?}");
            let counts = outputs[1].tensor().expect("a tensor").to_i64().expect("integers");
            assert_eq!(counts, [expected.len() as i64, 0]);
        }
        let none = run_outputs(&StringSplit { delimiter: String::new(), most: None }, &[Some(strings(&[], &[0, 2]))], 2);
        assert_eq!(seen(&none.expect("no strings")[0]).0, [0, 2, 0]);
    }

    #[test]
    fn normalizes() {
        let normalized = |stop: &[&str], ignore_case, case| {
            let stop_words = stop.iter().map(|word| word.to_string()).collect();
            let y = run(&StringNormalizer { stop_words, ignore_case, case }, &[Some(strings(&["Ab", "ÄB"], &[1, 2]))]);
            let y = y.expect("one row");
            let (dims, text) = seen(&y);
            (dims, text.join("|"))
        };
        assert_eq!(normalized(&["ab"], false, Case::Lower), (vec![1, 2], "ab|äb".to_string()));
        assert_eq!(normalized(&["ab"], true, Case::Keep), (vec![1, 1], "ÄB".to_string()));
        assert_eq!(normalized(&["ab", "äb"], true, Case::Upper), (vec![1, 1], String::new()));
        let kernel = StringNormalizer { stop_words: vec![], ignore_case: false, case: Case::Keep };
        assert!(run(&kernel, &[Some(strings(&["a", "b"], &[2, 1]))]).is_err());
    }

    #[test]
    fn matches_whole_texts() {
        let kernel = RegexFullMatch { pattern: "a+|b".to_string() };
        let y = run(&kernel, &[Some(strings(&["aa", "ab", "b", ""], &[2, 2]))]).expect("strings");
        assert_eq!(y.tensor().expect("a tensor").to_i64().expect("bool"), [1, 0, 1, 0]);
        assert!(run(&RegexFullMatch { pattern: "(".to_string() }, &[Some(strings(&[], &[0]))]).is_err());
    }
}
