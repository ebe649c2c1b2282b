//! Tensors of strings.

use std::sync::Arc;

use candle_plan_memory::buffer;

use crate::error::Result;
use crate::size::{out_of_memory, scratch, with_capacity};

/// A tensor of strings, in row-major order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strings {
    /// The dimensions.
    pub dims: Vec<usize>,
    /// The elements. Their number is the product of the dimensions.
    pub data: Arc<[String]>,
}

impl Strings {
    /// Returns the bytes of all elements.
    pub(crate) fn bytes(&self) -> usize {
        self.data.iter().map(|text| bytes_of(text.len())).fold(0, usize::saturating_add)
    }
}

/// Returns the bytes that a string of a length takes. An allocator rounds sizes up.
fn bytes_of(length: usize) -> usize {
    size_of::<String>() + length.next_multiple_of(16)
}

/// The strings that a kernel makes. Each counts toward the memory budget.
pub(crate) struct Texts(Vec<String>);

impl Texts {
    /// Starts with no strings, and with capacity for `count`.
    ///
    /// # Errors
    /// There is not enough memory for them.
    pub fn with_capacity(count: usize) -> Result<Texts> {
        let texts = with_capacity(count)?;
        scratch::<String>(count)?; // `Texts::into_strings` moves them
        Ok(Texts(texts))
    }

    /// Appends the concatenation of `parts`.
    ///
    /// # Errors
    /// There is not enough memory for it.
    pub fn push(&mut self, parts: &[&str]) -> Result<()> {
        let length = parts.iter().map(|part| part.len()).sum();
        let mut text = String::new();
        if !buffer::charge(bytes_of(length) - size_of::<String>()) || text.try_reserve_exact(length).is_err() {
            return Err(out_of_memory(&[length]));
        }
        parts.iter().for_each(|part| text.push_str(part));
        self.0.push(text);
        Ok(())
    }

    /// The number of strings.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Makes a tensor of the strings.
    pub fn into_strings(self, dims: &[usize]) -> Strings {
        Strings { dims: dims.to_vec(), data: self.0.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_string_counts_toward_the_budget() {
        let made = |budget: usize| {
            buffer::within(budget, || {
                let mut texts = Texts::with_capacity(3)?;
                for text in ["a", "", "a longer text"] {
                    texts.push(&[text, "!"])?;
                }
                Ok(texts.into_strings(&[3]))
            })
        };
        let texts: Result<Strings> = made(48);
        assert_eq!(*texts.expect("three blocks of 16 bytes").data, ["a!", "!", "a longer text!"]);
        assert!(made(47).is_err());
    }
}
