//! The form that somebody asks of all convolutions, so that each form can be timed beside the others.

use std::fmt;
use std::sync::LazyLock;

use candle_plan_kernels::conv::Shape;

use super::way::{Tile, Way};
use crate::bail;
use crate::dtype::DType;
use crate::error::{Error, Result};

/// A form that a convolution on a device may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As products of matrices.
    Product,
    /// Output by output.
    Direct,
    /// Tile by tile, in parts of the depth; without their number, in as many as [`Way::of`] gives the tile.
    Tiles { tile: Tile, parts: Option<usize> },
}

const VARIABLE: &str = "CANDLE_PLAN_CONV";

/// The most parts that may be asked for.
const MOST_PARTS: usize = 1024;

impl Form {
    /// The form that the environment variable `CANDLE_PLAN_CONV` names: `product`, `direct`, `small`, `medium`, `large`, or
    /// a tile and its parts, as in `medium:8`. None where it names nothing. Read once.
    ///
    /// # Errors
    /// It names something else.
    pub fn wanted() -> Result<Option<Form>> {
        static WANTED: LazyLock<std::result::Result<Option<Form>, String>> = LazyLock::new(|| {
            let text = std::env::var_os(VARIABLE).unwrap_or_default();
            Form::named(&text.to_string_lossy())
        });
        WANTED.clone().map_err(Error::op)
    }

    /// The form of a name; none where there is no name.
    fn named(text: &str) -> std::result::Result<Option<Form>, String> {
        let (name, parts) = text.split_once(':').map_or((text, None), |(name, parts)| (name, Some(parts)));
        let number = parts.map(|parts| parts.parse().ok().filter(|parts| (1..=MOST_PARTS).contains(parts)));
        let tile = [Tile::Small, Tile::Medium, Tile::Large].into_iter().find(|&tile| Form::name(tile) == name);
        match (name, tile, number) {
            ("", _, None) => Ok(None),
            ("product", _, None) => Ok(Some(Form::Product)),
            ("direct", _, None) => Ok(Some(Form::Direct)),
            (_, Some(tile), None) => Ok(Some(Form::Tiles { tile, parts: None })),
            (_, Some(tile), Some(Some(parts))) => Ok(Some(Form::Tiles { tile, parts: Some(parts) })),
            _ => Err(format!(
                "{VARIABLE} is {text:?}; it may be product, direct, small, medium or large, and a tile may have up to \
                 {MOST_PARTS} parts, as in medium:8"
            )),
        }
    }

    /// The name of a tile.
    fn name(tile: Tile) -> &'static str {
        match tile {
            Tile::Small => "small",
            Tile::Medium => "medium",
            Tile::Large => "large",
        }
    }

    /// The way of a convolution in this form.
    ///
    /// # Errors
    /// The convolution cannot have it.
    pub fn way(self, shape: &Shape, transposed: bool, dtype: DType) -> Result<Way> {
        match self {
            Form::Product if transposed || !Way::is_product(shape) => bail!(
                "{VARIABLE} is \"{self}\", which is for windows of one element at every element, of one image or of one \
                 image's large groups"
            ),
            Form::Product => Ok(Way::Product),
            Form::Direct => Ok(Way::Direct),
            Form::Tiles { tile, .. } if !tile.takes(dtype) => {
                bail!("{VARIABLE} is \"{self}\", and there is no such tile of {dtype}")
            }
            Form::Tiles { tile, parts } => {
                let parts = parts.unwrap_or_else(|| Way::parts(shape, transposed, tile));
                Ok(Way::Tiles { tile, parts })
            }
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Form::Product => f.write_str("product"),
            Form::Direct => f.write_str("direct"),
            Form::Tiles { tile, parts: None } => f.write_str(Form::name(tile)),
            Form::Tiles { tile, parts: Some(parts) } => write!(f, "{}:{parts}", Form::name(tile)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    fn way(name: &str, shape: &Shape, transposed: bool, dtype: DType) -> Result<Way> {
        Form::named(name).unwrap().expect("it is a name").way(shape, transposed, dtype)
    }

    #[test]
    fn forms_have_names() {
        for name in ["product", "direct", "small", "medium", "large", "small:1", "medium:8", "large:1024"] {
            assert_eq!(Form::named(name).unwrap().expect("it is a name").to_string(), name);
        }
        assert_eq!(Form::named(""), Ok(None));
    }

    #[test]
    fn other_names_are_told() {
        for name in ["huge", "Small", "small:", "small:0", "small:-1", "small:1025", "direct:2", "product:1", ":2", " "]
        {
            let error = Form::named(name).expect_err(name);
            assert!(error.starts_with(&format!("CANDLE_PLAN_CONV is {name:?}; it may be ")), "{error}");
        }
    }

    #[test]
    fn forms_give_ways() {
        let points = Shape { kernel: [1; 2], before: [0; 2], ..IMAGES };
        for (name, shape, expected) in [
            ("product", &points, Way::Product),
            ("direct", &IMAGES, Way::Direct),
            ("small", &IMAGES, Way::Tiles { tile: Tile::Small, parts: 8 }),
            ("medium", &IMAGES, Way::Tiles { tile: Tile::Medium, parts: 32 }),
            ("medium:3", &points, Way::Tiles { tile: Tile::Medium, parts: 3 }),
            ("large:64", &IMAGES, Way::Tiles { tile: Tile::Large, parts: 64 }),
        ] {
            assert_eq!(way(name, shape, false, DType::Float32).unwrap(), expected, "{name}");
        }
        assert_eq!(way("direct", &points, true, DType::Float64).unwrap(), Way::Direct);
    }

    #[test]
    fn forms_that_do_not_fit_are_errors() {
        let points = Shape { kernel: [1; 2], before: [0; 2], ..IMAGES };
        for (name, shape, transposed, dtype, words) in [
            ("product", &IMAGES, false, DType::Float32, "is for windows of one element"),
            ("product", &points, true, DType::Float32, "is for windows of one element"),
            ("large", &IMAGES, false, DType::Float64, "there is no such tile of float64"),
            ("large:2", &IMAGES, true, DType::Float64, "there is no such tile of float64"),
        ] {
            let error = way(name, shape, transposed, dtype).expect_err(name).to_string();
            assert!(error.contains(&format!("CANDLE_PLAN_CONV is \"{name}\"")) && error.contains(words), "{error}");
        }
    }
}
