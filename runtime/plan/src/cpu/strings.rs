//! CPU kernels: tensors of strings.

use regex::Regex;

use super::packed::Packs;
use super::repeat::expanded;
use crate::dtype::Bool;
use crate::error::{Error, Result};
use crate::kernel::{Call, Constants, Kernel};
use crate::ops::strings::{Case, RegexFullMatch, StringConcat, StringNormalizer, StringSplit};
use crate::pattern::full_match;
use crate::value::{element_count, list, with_capacity, Array, Strings, Value};

impl Kernel for StringConcat {
    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (x, y) = (call.value(0)?, call.value(1)?);
        let (x, y) = (expanded(x, y.dims()?, call.threads)?, expanded(y, x.dims()?, call.threads)?);
        let (x, y) = (text_of(&x)?, text_of(&y)?);
        let data = x.data.iter().zip(y.data.iter()).map(|(x, y)| format!("{x}{y}")).collect();
        Ok(vec![Value::Strings(Strings { dims: x.dims.clone(), data })])
    }
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
    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let x = text(call, 0)?;
        let parts: Vec<Vec<&str>> = list(x.data.iter().map(|text| self.parts(text)))?;
        let width = parts.iter().map(Vec::len).max().unwrap_or(0);
        let dims = [&x.dims[..], &[width]].concat();
        let mut data = with_capacity(element_count(&dims)?)?;
        for parts in &parts {
            let padding = std::iter::repeat_n("", width - parts.len());
            data.extend(parts.iter().copied().chain(padding).map(str::to_string));
        }
        let counts = list(parts.iter().map(|parts| parts.len() as i64))?;
        let split = Strings { dims, data: data.into() };
        Ok(vec![Value::Strings(split), Array::new(counts, &x.dims)?.into()])
    }
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
    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let x = text(call, 0)?;
        StringNormalizer::check(&x.dims)?;
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

impl Packs for RegexFullMatch {
    type Packed = Regex;

    fn pack(&self, _: &Constants) -> Result<Option<Self::Packed>> {
        Ok(Some(full_match(&self.pattern)?))
    }

    fn run(&self, packed: Option<&Self::Packed>, call: &mut Call) -> Result<Vec<Value>> {
        let expression = match packed {
            Some(expression) => expression.clone(),
            None => full_match(&self.pattern)?,
        };
        let x = text(call, 0)?;
        let matches: Vec<Bool> = x.data.iter().map(|text| expression.is_match(text).into()).collect();
        Ok(vec![Array::new(matches, &x.dims)?.into()])
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
        let none =
            run_outputs(&StringSplit { delimiter: String::new(), most: None }, &[Some(strings(&[], &[0, 2]))], 2);
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
