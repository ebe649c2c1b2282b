//! The facts that decide the form of a matrix product.

use super::operands::ProductSizes;
use super::stored::Format;
use crate::isa::Isa;

/// The facts about a product that decide its form.
#[derive(Debug, Clone, Copy)]
pub struct ProductCase {
    /// The instruction set.
    pub isa: Isa,
    /// The sizes.
    pub sizes: ProductSizes,
    /// The strides of the left operand's rows and columns.
    pub a: [usize; 2],
    /// The right operand.
    pub b: RightCase,
}

/// The facts about the right operand that decide the form of a product.
#[derive(Debug, Clone, Copy)]
pub enum RightCase {
    /// It is packed in a format, in panels of `width` columns.
    Packed {
        /// The type of the packed numbers.
        format: Format,
        /// The columns per panel.
        width: usize,
    },
    /// It has these strides of rows and columns.
    Plain([usize; 2]),
}

impl ProductCase {
    /// The bytes of the right operand that the product reads.
    pub(crate) fn right_bytes(&self) -> usize {
        let ProductSizes { n, k, .. } = self.sizes;
        n.saturating_mul(k).saturating_mul(self.format().size())
    }

    /// The type of the right operand's numbers.
    pub(super) fn format(&self) -> Format {
        match self.b {
            RightCase::Packed { format, .. } => format,
            RightCase::Plain(_) => Format::Float32,
        }
    }

    /// The strides of the right operand, if it is not packed.
    pub(super) fn plain(&self) -> Option<[usize; 2]> {
        match self.b {
            RightCase::Packed { .. } => None,
            RightCase::Plain(strides) => Some(strides),
        }
    }
}
