//! CPU kernels: tensors of strings.

use std::borrow::Cow;

use regex::Regex;

use super::packed::{HasKernel, Packed};
use super::planned::CpuOperands;
use super::repeat::expanded;
use crate::dtype::Bool;
use crate::error::{Error, Result};
use crate::kernel::{Call, Kernel};
use crate::ops::strings::{Case, RegexFullMatch, StringConcat, StringNormalizer, StringSplit};
use crate::pattern::full_match;
use crate::value::strings::Texts;
use crate::value::{element_count, list, Array, Strings, Value};

impl Kernel for StringConcat {
    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (x, y) = (call.value(0)?, call.value(1)?);
        let (x, y) = (expanded(x, y.dims()?, call.threads)?, expanded(y, x.dims()?, call.threads)?);
        let (x, y) = (text_of(&x)?, text_of(&y)?);
        let mut texts = Texts::with_capacity(x.data.len())?;
        for (x, y) in x.data.iter().zip(y.data.iter()) {
            texts.push(&[x, y])?;
        }
        Ok(vec![Value::Strings(texts.into_strings(&x.dims))])
    }
}

impl StringSplit {
    /// Finds the parts of a text one after the other, without a list of them.
    fn parts<'a>(&'a self, text: &'a str) -> impl Iterator<Item = &'a str> {
        let at_spaces = self.delimiter.is_empty();
        let mut rest = Some(if at_spaces { text.trim() } else { text }).filter(|text| !text.is_empty());
        let mut cuts = self.most.unwrap_or(usize::MAX);
        std::iter::from_fn(move || {
            let text = rest?;
            let cut = match at_spaces {
                true => text.split_once(char::is_whitespace).map(|(part, after)| (part, after.trim_start())),
                false => text.split_once(&self.delimiter),
            };
            let cut = cut.filter(|_| cuts > 0);
            cuts = cuts.saturating_sub(1);
            rest = cut.map(|(_, after)| after);
            Some(cut.map_or(text, |(part, _)| part))
        })
    }
}

impl Kernel for StringSplit {
    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let x = text(call, 0)?;
        let counts = list(x.data.iter().map(|text| self.parts(text).count() as i64))?;
        let width = counts.iter().max().map_or(0, |&most| most as usize);
        let dims = [&x.dims[..], &[width]].concat();
        let mut texts = Texts::with_capacity(element_count(&dims)?)?;
        for text in x.data.iter() {
            for part in self.parts(text).chain(std::iter::repeat("")).take(width) {
                texts.push(&[part])?;
            }
        }
        Ok(vec![Value::Strings(texts.into_strings(&dims)), Array::new(counts, &x.dims)?.into()])
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
        let mut kept = Texts::with_capacity(x.data.len().max(1))?;
        for text in x.data.iter().filter(|text| self.is_kept(text)) {
            kept.push(&[&match self.case {
                Case::Keep => Cow::Borrowed(text.as_str()),
                Case::Lower => Cow::Owned(text.to_lowercase()),
                Case::Upper => Cow::Owned(text.to_uppercase()),
            }])?;
        }
        if kept.len() == 0 {
            kept.push(&[])?;
        }
        let mut dims = vec![1; x.dims.len()];
        dims[x.dims.len() - 1] = kept.len();
        Ok(vec![Value::Strings(kept.into_strings(&dims))])
    }
}

impl HasKernel for RegexFullMatch {
    fn kernel(&self, _: &CpuOperands) -> Result<Box<dyn Kernel>> {
        Ok(Packed::boxed(self, full_match(&self.pattern)?))
    }
}

impl Kernel for Packed<RegexFullMatch, Regex> {
    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let expression = self.packed.clone();
        let x = text(call, 0)?;
        let matches: Vec<Bool> = list(x.data.iter().map(|text| expression.is_match(text).into()))?;
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
