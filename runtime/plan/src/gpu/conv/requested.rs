//! A form requested for all convolutions, so that each form can be timed.

use std::fmt;
use std::sync::LazyLock;

use super::case::Case;
use super::form::GpuConvForm;
use super::planner::{Choice, FORMS};
use crate::error::{Error, Result};

/// The form that is requested for all convolutions. Without a number of parts, the form chooses it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Requested {
    form: &'static dyn GpuConvForm,
    parts: Option<usize>,
}

const VARIABLE: &str = "CANDLE_PLAN_CONV";

/// The largest number of parts that can be requested.
const MOST_PARTS: usize = 1024;

impl Requested {
    /// Returns the form in the environment variable `CANDLE_PLAN_CONV`: the name of a form, or a tile with its parts, as
    /// in `medium:8`; `None` if it is unset or empty. The variable is read once.
    ///
    /// # Errors
    /// The variable has another value.
    pub fn read() -> Result<Option<Requested>> {
        static WANTED: LazyLock<std::result::Result<Option<Requested>, String>> = LazyLock::new(|| {
            let text = std::env::var_os(VARIABLE).unwrap_or_default();
            Requested::named(&text.to_string_lossy())
        });
        WANTED.clone().map_err(Error::Setting)
    }

    /// Parses the name of a form; `None` for an empty name.
    pub fn named(text: &str) -> std::result::Result<Option<Requested>, String> {
        let (name, parts) = text.split_once(':').map_or((text, None), |(name, parts)| (name, Some(parts)));
        let number = parts.map(|parts| parts.parse().ok().filter(|parts| (1..=MOST_PARTS).contains(parts)));
        let form = FORMS.iter().copied().find(|form| form.name() == name);
        match (form, number) {
            (None, None) if name.is_empty() => Ok(None),
            (Some(form), None) => Ok(Some(Requested { form, parts: None })),
            (Some(form), Some(Some(parts))) if form.splits() => Ok(Some(Requested { form, parts: Some(parts) })),
            _ => {
                let names: Vec<&str> = FORMS.iter().map(|form| form.name()).collect();
                let (last, others) = names.split_last().map_or(("", &[][..]), |(last, others)| (*last, others));
                Err(format!(
                    "{VARIABLE} is {text:?}; it may be {} or {last}, and a tile may have up to {MOST_PARTS} parts, as in \
                     medium:8",
                    others.join(", ")
                ))
            }
        }
    }

    /// Returns the form for a convolution.
    ///
    /// # Errors
    /// The convolution cannot be computed in this form.
    pub fn choice(self, case: &Case) -> Result<Choice> {
        match self.form.refusal(case) {
            Some(refusal) => Err(Error::Setting(format!("{VARIABLE} is \"{self}\", {refusal}"))),
            None => {
                let parts = self.parts.unwrap_or_else(|| self.form.parts(case));
                Ok(Choice { form: self.form, parts })
            }
        }
    }
}

impl fmt::Display for Requested {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.form.name())?;
        self.parts.map_or(Ok(()), |parts| write!(f, ":{parts}"))
    }
}

#[cfg(test)]
mod tests {
    use candle_plan_descriptors::conv::Shape;

    use super::*;
    use crate::dtype::DType;
    use crate::error::ErrorKind;

    const IMAGES: Shape = Shape {
        batch: 1,
        channels: 512,
        outputs: 512,
        groups: 1,
        input: [7; 2],
        output: [7; 2],
        kernel: [3; 2],
        strides: [1; 2],
        dilations: [1; 2],
        before: [1; 2],
    };

    fn choice(name: &str, shape: &Shape, transposed: bool, dtype: DType) -> Result<String> {
        let requested = Requested::named(name).unwrap().expect("it is a name");
        requested.choice(&Case { shape, transposed, dtype }).map(|choice| choice.to_string())
    }

    #[test]
    fn forms_have_names() {
        for name in ["product", "direct", "small", "medium", "large", "small:1", "medium:8", "large:1024"] {
            assert_eq!(Requested::named(name).unwrap().expect("it is a name").to_string(), name);
        }
        assert!(Requested::named("").unwrap().is_none());
    }

    #[test]
    fn other_names_are_errors() {
        for name in ["huge", "Small", "small:", "small:0", "small:-1", "small:1025", "direct:2", "product:1", ":2", " "]
        {
            let error = Requested::named(name).expect_err(name);
            let said = error.strip_prefix(&format!("CANDLE_PLAN_CONV is {name:?}; it may be ")).expect(&error);
            assert!(FORMS.iter().all(|form| said.contains(form.name())), "{error}");
        }
    }

    #[test]
    fn requests_give_forms() {
        let points = Shape { kernel: [1; 2], before: [0; 2], ..IMAGES };
        for (name, shape, expected) in [
            ("product", &points, "product"),
            ("direct", &IMAGES, "direct"),
            ("small", &IMAGES, "small:8"),
            ("medium", &IMAGES, "medium:32"),
            ("medium:3", &points, "medium:3"),
            ("large:64", &IMAGES, "large:64"),
        ] {
            assert_eq!(choice(name, shape, false, DType::Float32).unwrap(), expected, "{name}");
        }
        assert_eq!(choice("direct", &points, true, DType::Float64).unwrap(), "direct");
    }

    #[test]
    fn unsuitable_forms_are_errors() {
        let points = Shape { kernel: [1; 2], before: [0; 2], ..IMAGES };
        for (name, shape, transposed, dtype, words) in [
            ("product", &IMAGES, false, DType::Float32, "which is for windows of one element"),
            ("product", &points, true, DType::Float32, "which is for windows of one element"),
            ("large", &IMAGES, false, DType::Float64, "and there is no such tile of float64"),
            ("large:2", &IMAGES, true, DType::Float64, "and there is no such tile of float64"),
        ] {
            let error = choice(name, shape, transposed, dtype).expect_err(name);
            assert_eq!(error.kind(), ErrorKind::Setting);
            let error = error.to_string();
            assert!(error.contains(&format!("CANDLE_PLAN_CONV is \"{name}\", {words}")), "{error}");
        }
    }
}
