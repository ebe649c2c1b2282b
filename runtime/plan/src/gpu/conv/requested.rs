//! A form requested for all convolutions, so that each form can be timed.

use std::fmt;
use std::sync::LazyLock;

use candle_plan_descriptors::conv::Shape;

use super::form::{Form, Tile};
use crate::dtype::DType;
use crate::error::{Error, Result};

/// The form that is requested for all convolutions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Requested {
    /// Matrix products.
    Product,
    /// One thread per output.
    Direct,
    /// Tiles, with the depth split into parts. Without a number of parts, [`Form::parts`] chooses it.
    Tiles { tile: Tile, parts: Option<usize> },
}

const VARIABLE: &str = "CANDLE_PLAN_CONV";

/// The largest number of parts that can be requested.
const MOST_PARTS: usize = 1024;

impl Requested {
    /// Returns the form in the environment variable `CANDLE_PLAN_CONV`: `product`, `direct`, `small`, `medium`,
    /// `large`, or a tile with its parts, as in `medium:8`; `None` if it is unset or empty. The variable is read once.
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
    fn named(text: &str) -> std::result::Result<Option<Requested>, String> {
        let (name, parts) = text.split_once(':').map_or((text, None), |(name, parts)| (name, Some(parts)));
        let number = parts.map(|parts| parts.parse().ok().filter(|parts| (1..=MOST_PARTS).contains(parts)));
        let tile = [Tile::Small, Tile::Medium, Tile::Large].into_iter().find(|&tile| Requested::name(tile) == name);
        match (name, tile, number) {
            ("", _, None) => Ok(None),
            ("product", _, None) => Ok(Some(Requested::Product)),
            ("direct", _, None) => Ok(Some(Requested::Direct)),
            (_, Some(tile), None) => Ok(Some(Requested::Tiles { tile, parts: None })),
            (_, Some(tile), Some(Some(parts))) => Ok(Some(Requested::Tiles { tile, parts: Some(parts) })),
            _ => Err(format!(
                "{VARIABLE} is {text:?}; it may be product, direct, small, medium or large, and a tile may have up to \
                 {MOST_PARTS} parts, as in medium:8"
            )),
        }
    }

    /// Returns the name of a tile.
    fn name(tile: Tile) -> &'static str {
        match tile {
            Tile::Small => "small",
            Tile::Medium => "medium",
            Tile::Large => "large",
        }
    }

    /// Returns the form for the sizes of a convolution.
    ///
    /// # Errors
    /// The convolution cannot be computed in this form.
    pub fn form(self, shape: &Shape, transposed: bool, dtype: DType) -> Result<Form> {
        match self {
            Requested::Product if transposed || !Form::is_product(shape) => Err(Error::Setting(format!(
                "{VARIABLE} is \"{self}\", which is for windows of one element at every element, of one image or of one \
                 image's large groups"
            ))),
            Requested::Product => Ok(Form::Product),
            Requested::Direct => Ok(Form::Direct),
            Requested::Tiles { tile, .. } if !tile.takes(dtype) => {
                Err(Error::Setting(format!("{VARIABLE} is \"{self}\", and there is no such tile of {dtype}")))
            }
            Requested::Tiles { tile, parts } => {
                let parts = parts.unwrap_or_else(|| Form::parts(shape, transposed, tile));
                Ok(Form::Tiles { tile, parts })
            }
        }
    }
}

impl fmt::Display for Requested {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Requested::Product => f.write_str("product"),
            Requested::Direct => f.write_str("direct"),
            Requested::Tiles { tile, parts: None } => f.write_str(Requested::name(tile)),
            Requested::Tiles { tile, parts: Some(parts) } => write!(f, "{}:{parts}", Requested::name(tile)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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

    fn form(name: &str, shape: &Shape, transposed: bool, dtype: DType) -> Result<Form> {
        Requested::named(name).unwrap().expect("it is a name").form(shape, transposed, dtype)
    }

    #[test]
    fn forms_have_names() {
        for name in ["product", "direct", "small", "medium", "large", "small:1", "medium:8", "large:1024"] {
            assert_eq!(Requested::named(name).unwrap().expect("it is a name").to_string(), name);
        }
        assert_eq!(Requested::named(""), Ok(None));
    }

    #[test]
    fn other_names_are_errors() {
        for name in ["huge", "Small", "small:", "small:0", "small:-1", "small:1025", "direct:2", "product:1", ":2", " "]
        {
            let error = Requested::named(name).expect_err(name);
            assert!(error.starts_with(&format!("CANDLE_PLAN_CONV is {name:?}; it may be ")), "{error}");
        }
    }

    #[test]
    fn requests_give_forms() {
        let points = Shape { kernel: [1; 2], before: [0; 2], ..IMAGES };
        for (name, shape, expected) in [
            ("product", &points, Form::Product),
            ("direct", &IMAGES, Form::Direct),
            ("small", &IMAGES, Form::Tiles { tile: Tile::Small, parts: 8 }),
            ("medium", &IMAGES, Form::Tiles { tile: Tile::Medium, parts: 32 }),
            ("medium:3", &points, Form::Tiles { tile: Tile::Medium, parts: 3 }),
            ("large:64", &IMAGES, Form::Tiles { tile: Tile::Large, parts: 64 }),
        ] {
            assert_eq!(form(name, shape, false, DType::Float32).unwrap(), expected, "{name}");
        }
        assert_eq!(form("direct", &points, true, DType::Float64).unwrap(), Form::Direct);
    }

    #[test]
    fn unsuitable_forms_are_errors() {
        let points = Shape { kernel: [1; 2], before: [0; 2], ..IMAGES };
        for (name, shape, transposed, dtype, words) in [
            ("product", &IMAGES, false, DType::Float32, "is for windows of one element"),
            ("product", &points, true, DType::Float32, "is for windows of one element"),
            ("large", &IMAGES, false, DType::Float64, "there is no such tile of float64"),
            ("large:2", &IMAGES, true, DType::Float64, "there is no such tile of float64"),
        ] {
            let error = form(name, shape, transposed, dtype).expect_err(name);
            assert_eq!(error.kind(), ErrorKind::Setting);
            let error = error.to_string();
            assert!(error.contains(&format!("CANDLE_PLAN_CONV is \"{name}\"")) && error.contains(words), "{error}");
        }
    }
}
