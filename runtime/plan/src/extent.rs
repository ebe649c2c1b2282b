//! Comparison of sizes in checks. In a run, all sizes are known; before it, only some are. An unknown size fits every
//! size.

use candle_plan_descriptors::broadcast::Dims;

use crate::bail;
use crate::error::{Error, Result};

/// A size in a run, or a dimension of a type.
pub(crate) trait Extent {
    /// The size, if it is known.
    fn known(&self) -> Option<usize>;
}

impl Extent for Option<usize> {
    fn known(&self) -> Option<usize> {
        *self
    }
}

impl Extent for usize {
    fn known(&self) -> Option<usize> {
        Some(*self)
    }
}

/// Whether two sizes are equal, or one of them is unknown.
pub(crate) fn fits(a: &impl Extent, b: &impl Extent) -> bool {
    a.known().zip(b.known()).is_none_or(|(a, b)| a == b)
}

/// Whether two shapes have the same rank and sizes that [fit](fits).
pub(crate) fn all_fit<A: Extent, B: Extent>(a: &[A], b: &[B]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| fits(a, b))
}

/// Whether size `a` is at most `b`, or one of them is unknown.
pub(crate) fn at_most(a: &impl Extent, b: &impl Extent) -> bool {
    a.known().zip(b.known()).is_none_or(|(a, b)| a <= b)
}

/// The number of elements, where every size is known; at most the largest number.
pub(crate) fn count(dims: &[impl Extent]) -> Option<usize> {
    dims.iter().try_fold(1usize, |count, dim| Some(count.saturating_mul(dim.known()?)))
}

/// The sizes of a run, which knows all of them.
///
/// # Errors
/// One is not known.
pub(crate) fn known_sizes(dims: &[impl Extent]) -> Result<Dims> {
    dims.iter().map(|dim| dim.known().ok_or_else(|| Error::op(format!("{} is not known", text(dims))))).collect()
}

/// Formats a shape for an error message: `[2, ?]`.
pub(crate) fn text(dims: &[impl Extent]) -> String {
    format!("[{}]", dims.iter().map(size_text).collect::<Vec<_>>().join(", "))
}

/// A size as errors show it: `2` or `?`.
pub(crate) fn size_text(size: &impl Extent) -> String {
    size.known().map_or_else(|| "?".to_string(), |size| size.to_string())
}

/// Checks that a tensor of shape `from` broadcasts to one of shape `to`, as NumPy does.
///
/// # Errors
/// `from` has more dimensions than `to`, or a size that is neither 1 nor that of `to`.
pub(crate) fn check_broadcast<D: Extent>(from: &[D], to: &[D]) -> Result<()> {
    let mut aligned = from.iter().rev().zip(to.iter().rev());
    if from.len() > to.len() || !aligned.all(|(from, to)| fits(from, &1) || fits(from, to)) {
        bail!("{} does not broadcast to {}", text(from), text(to));
    }
    Ok(())
}

/// Checks that the input called `name` in errors has one element, or one for each of `outputs`.
///
/// # Errors
/// It has another number of elements.
pub(crate) fn one_or_each(name: &str, dims: &[impl Extent], outputs: Option<usize>) -> Result<()> {
    match (count(dims), outputs) {
        (Some(count), Some(outputs)) if count != 1 && count != outputs => {
            bail!("{name} has shape {}; it must have one element, or one for each of {outputs} outputs", text(dims))
        }
        _ => Ok(()),
    }
}

/// Checks that the input called `name` in errors has one element.
///
/// # Errors
/// It has another number of elements.
pub(crate) fn one_element(name: &str, dims: &[impl Extent]) -> Result<()> {
    if dims.iter().any(|dim| !fits(dim, &1)) {
        bail!("{name} has shape {}; it must have one element", text(dims));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Dim;

    #[test]
    fn unknown_sizes_fit() {
        let batch = [Some(Dim::Symbol("batch".into())), Some(Dim::Size(3)), None];
        assert!(all_fit(&batch, &[7, 3, 0]) && !all_fit(&batch, &[7, 4, 0]) && !all_fit(&batch, &[7, 3]));
        assert!(at_most(&batch[1], &3) && !at_most(&batch[1], &2) && at_most(&batch[0], &0));
        assert_eq!((count(&batch), count(&[2, 3]), text(&batch).as_str()), (None, Some(6), "[?, 3, ?]"));
        assert!(one_element("K", &[Some(Dim::Size(1)), None]).is_ok());
        let refused = one_element("K", &batch).expect_err("three elements");
        assert_eq!(refused.to_string(), "K has shape [?, 3, ?]; it must have one element");
    }
}
