//! Recognizes a plan of a newer compiler from an op, an attribute, a field or a name that this version lacks.
//!
//! The version of the format stays the same if the format gains an op or an attribute: most plans do not have it.

use crate::error::{Error, ErrorKind};

// `LEFT_OUT`, which `build.rs` writes: the ops whose feature is off, with the feature.
include!(concat!(env!("OUT_DIR"), "/left_out.rs"));

/// The beginning of an op in a plan's JSON.
const OP: &str = "\"op\":";
/// The longest name that an error repeats, in characters.
const LONGEST: usize = 60;

/// The error for a plan whose JSON `text` serde refuses: of the kind [`Version`](ErrorKind::Version) if the text has a
/// name that this version does not know.
pub(crate) fn refused(text: &str, error: &serde_json::Error) -> Error {
    let message = error.to_string();
    let lines: usize = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    match unknown(text, &message, lines + error.column()) {
        Some(what) => Error::Read { kind: ErrorKind::Version, reason: advice(&what, LEFT_OUT) },
        None => Error::Read { kind: ErrorKind::Invalid, reason: format!("its description is not valid: {message}") },
    }
}

/// What to do about an unknown name. `left_out` lists the ops that this build leaves out, with their features.
fn advice(what: &str, left_out: &[(&str, &str)]) -> String {
    let op = what.strip_prefix("the op ");
    match left_out.iter().find(|(name, _)| Some(*name) == op) {
        Some((_, feature)) => format!(
            "it has {what}, which this program leaves out: build it with the feature {feature:?} of the crate candle-plan"
        ),
        None => format!(
            "it has {what}, which this runtime does not know: upgrade candle-compiler, or compile the model again with \
             the installed version"
        ),
    }
}

/// The unknown name in words. `end` is the place in the text behind it, in bytes.
fn unknown(text: &str, message: &str, end: usize) -> Option<String> {
    let (is_field, name) = match message.strip_prefix("unknown field `") {
        Some(rest) => (true, rest),
        None => (false, message.strip_prefix("unknown variant `")?),
    };
    let (name, _) = name.rsplit_once("`, expected").or_else(|| name.rsplit_once("`, there are no"))?;
    let shown: String = name.chars().take(LONGEST).collect();
    let read = text.get(..end).unwrap_or(text);
    let before = read.rfind(&format!("\"{name}\"")).map_or("", |at| &read[..at]);
    Some(match (is_field, before.rsplit_once(OP)) {
        (false, Some((_, "" | "{"))) => format!("the op {shown}"),
        (true, Some((_, within))) if depth(within) == 2 => {
            let op = within.split('"').nth(1).unwrap_or_default();
            format!("the attribute {shown} of the op {op}")
        }
        (true, _) => format!("the field {shown}"),
        (false, _) => format!("the value {shown}"),
    })
}

/// The number of objects that begin in a text and do not end in it.
fn depth(text: &str) -> isize {
    text.chars().map(|each| isize::from(each == '{') - isize::from(each == '}')).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_names_the_feature_of_an_op() {
        let left_out = [("Det", "algebra"), ("Dft", "signal")];
        let said = advice("the op Dft", &left_out);
        assert!(said.ends_with("leaves out: build it with the feature \"signal\" of the crate candle-plan"), "{said}");
        for other in ["the op Det2", "the field Dft"] {
            assert!(advice(other, &left_out).contains("upgrade candle-compiler"), "{other}");
        }
    }
}
