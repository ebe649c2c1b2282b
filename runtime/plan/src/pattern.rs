//! Regular expressions in RE2's syntax, which ONNX uses, on the crate `regex`.
//!
//! The two syntaxes are nearly the same. Where they differ, the pattern is rewritten: RE2's `\d`, `\s`, `\w` and `\b`
//! match ASCII only, RE2 has `\Q…\E`, and its brackets neither nest nor support set operations.

use regex::{Regex, RegexBuilder};

use crate::error::{Error, Result};

/// Compiles an expression that matches whole texts.
///
/// # Errors
/// The pattern is malformed, or uses syntax that only RE2 has (`\B`, `\C`).
pub fn full_match(pattern: &str) -> Result<Regex> {
    let refused = |reason: String| Error::op(format!("the pattern {pattern:?} is not supported: {reason}"));
    let rewritten = Rewriter { rest: pattern, out: String::new() }.run().map_err(|reason| refused(reason.into()))?;
    let built = RegexBuilder::new(&format!(r"\A(?:{rewritten})\z")).octal(true).build();
    built.map_err(|error| refused(error.to_string()))
}

const DIGIT: &str = "0-9";
const SPACE: &str = r"\t\n\f\r ";
const WORD: &str = "0-9A-Za-z_";

struct Rewriter<'a> {
    rest: &'a str,
    out: String,
}

impl Rewriter<'_> {
    fn run(mut self) -> std::result::Result<String, &'static str> {
        while let Some(next) = self.next() {
            match next {
                '\\' if self.take("Q") => self.quoted(),
                '\\' => self.escape(false)?,
                '[' => self.brackets()?,
                other => self.out.push(other),
            }
        }
        Ok(self.out)
    }

    fn next(&mut self) -> Option<char> {
        let next = self.rest.chars().next()?;
        self.rest = &self.rest[next.len_utf8()..];
        Some(next)
    }

    fn take(&mut self, prefix: &str) -> bool {
        let rest = self.rest.strip_prefix(prefix);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Rewrites literal text up to `\E` or the end.
    fn quoted(&mut self) {
        let (text, rest) = self.rest.split_once(r"\E").unwrap_or((self.rest, ""));
        self.out.push_str(&regex::escape(text));
        self.rest = rest;
    }

    /// Rewrites an escape sequence after its backslash, inside brackets or not.
    fn escape(&mut self, inside: bool) -> std::result::Result<(), &'static str> {
        let next = self.next().ok_or("it ends in a backslash")?;
        match next {
            'd' | 's' | 'w' | 'D' | 'S' | 'W' => {
                let set = match next.to_ascii_lowercase() {
                    'd' => DIGIT,
                    's' => SPACE,
                    _ => WORD,
                };
                match (next.is_ascii_lowercase(), inside) {
                    (true, true) => self.out.push_str(set),
                    (true, false) => self.out.push_str(&format!("[{set}]")),
                    (false, _) => self.out.push_str(&format!("[^{set}]")),
                }
            }
            'b' if !inside => self.out.push_str(r"(?-u:\b)"),
            'B' | 'C' => return Err(r"it has \B or \C"),
            other if other.is_ascii_alphanumeric() => self.out.extend(['\\', other]),
            other => self.out.push_str(&regex::escape(other.encode_utf8(&mut [0; 4]))),
        }
        Ok(())
    }

    /// Rewrites a class of characters after its opening bracket, up to the closing one.
    fn brackets(&mut self) -> std::result::Result<(), &'static str> {
        self.out.push('[');
        if self.take("^") {
            self.out.push('^');
        }
        if self.take("]") {
            self.out.push_str(r"\]");
        }
        loop {
            match self.next().ok_or("a bracket is not closed")? {
                ']' => break,
                '[' if self.rest.starts_with(':') && self.rest.contains(":]") => {
                    let (name, rest) = self.rest.split_once(":]").unwrap_or_default();
                    self.out.push_str(&format!("[{name}:]"));
                    self.rest = rest;
                }
                '\\' => self.escape(true)?,
                literal @ ('[' | '&' | '~') => self.out.extend(['\\', literal]),
                '-' if self.rest.starts_with('-') => self.out.push_str(r"\-"),
                other => self.out.push(other),
            }
        }
        self.out.push(']');
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The results of onnxruntime 1.31, which uses RE2, for each pattern.
    #[test]
    fn patterns_mean_what_they_mean_to_re2() {
        let texts = [
            "1", "é1", "a,1", "a\nb", "ab", "[a", "é", "a", "b", "c&", "a.b", "abcd", "A", "n", "\u{a0}", "\u{b}", "１",
        ];
        let cases = [
            (r"\d+", "10000000000000000"),
            (r"\w+", "10001001100111000"),
            (r"[\d,a]+", "10100001000000000"),
            (r"a.b", "00000000001000000"),
            (r"(?i)AB", "00001000000000000"),
            (r"[[a]+", "00000101000000000"),
            (r"\pL+", "00001011100111000"),
            (r"a\b", "00000001000000000"),
            (r"^a$|b", "00000001100000000"),
            (r"[a-z&&b]+", "00001001110101000"),
            (r"\x{e9}", "00000010000000000"),
            (r"\Qa.b\E", "00000000001000000"),
            (r"(a|ab)(c|bcd)(d*)", "00000000000100000"),
            (r"\D+", "00011111111111111"),
            (r"[[:alpha:]]+", "00001001100111000"),
            (r"\101", "00000000000010000"),
            (r"[\D]+", "00011111111111111"),
            (r"\s", "00000000000000000"),
            (r"(?s)a.b", "00010000001000000"),
            (r"\<a", "00000000000000000"),
        ];
        for (pattern, expected) in cases {
            let expression = full_match(pattern).expect(pattern);
            let found: String = texts.iter().map(|text| if expression.is_match(text) { '1' } else { '0' }).collect();
            assert_eq!(found, expected, "{pattern}");
        }
    }

    #[test]
    fn other_syntax_is_rejected() {
        for pattern in [r"\h", r"a\Z", r"\C", r"\B", "(a", "[a", "a\\"] {
            assert!(full_match(pattern).is_err(), "{pattern}");
        }
    }
}
