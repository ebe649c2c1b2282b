//! Strided views.

/// A strided view of a source: element `[i0, i1, …]` is at `offset + Σ i·stride`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// The index of element `[0, 0, …]`.
    pub offset: usize,
    /// The dimensions of the view.
    pub dims: Vec<usize>,
    /// The stride of each dimension: 0 repeats an element, and a negative stride goes backwards.
    pub strides: Vec<isize>,
}

impl View {
    /// All elements of a row-major tensor, in order.
    pub fn contiguous(dims: &[usize]) -> View {
        let mut strides = vec![1isize; dims.len()];
        for axis in (1..dims.len()).rev() {
            strides[axis - 1] = strides[axis].saturating_mul(dims[axis].max(1) as isize);
        }
        View { offset: 0, dims: dims.to_vec(), strides }
    }

    /// Permutes the dimensions: dimension `i` of the result is dimension `order[i]`.
    pub fn permute(&self, order: &[usize]) -> View {
        let pick = |&axis: &usize| (self.dims[axis], self.strides[axis]);
        let (dims, strides) = order.iter().map(pick).unzip();
        View { offset: self.offset, dims, strides }
    }

    /// The number of elements; `usize::MAX` if it is larger.
    pub fn len(&self) -> usize {
        self.dims.iter().fold(1, |len: usize, &dim| len.saturating_mul(dim))
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.dims.contains(&0)
    }

    /// Whether every element is inside a source of `len` elements.
    pub fn fits(&self, len: usize) -> bool {
        if self.is_empty() {
            return true;
        }
        let (mut low, mut high) = (self.offset as i128, self.offset as i128);
        for (&dim, &stride) in self.dims.iter().zip(&self.strides) {
            let reach = (dim as i128 - 1) * stride as i128;
            low += reach.min(0);
            high += reach.max(0);
        }
        low >= 0 && high < len as i128
    }

    /// Returns the same elements in the same order with the fewest dimensions: removes those of size 1, and merges
    /// neighbors with a common stride.
    pub fn merged(&self) -> View {
        let mut merged = View { offset: self.offset, dims: Vec::new(), strides: Vec::new() };
        for (&dim, &stride) in self.dims.iter().zip(&self.strides).filter(|(&dim, _)| dim != 1) {
            let joined = match (merged.dims.last(), merged.strides.last()) {
                (Some(outer), Some(step)) if stride.checked_mul(dim as isize) == Some(*step) => outer.checked_mul(dim),
                _ => None,
            };
            if let (Some(joined), Some(outer), Some(step)) = (joined, merged.dims.last_mut(), merged.strides.last_mut())
            {
                (*outer, *step) = (joined, stride);
            } else {
                merged.dims.push(dim);
                merged.strides.push(stride);
            }
        }
        if merged.dims.is_empty() {
            merged.dims.push(1);
            merged.strides.push(1);
        }
        merged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_keeps_the_order() {
        let view = View::contiguous(&[2, 3, 1, 4, 5]);
        assert_eq!(view.merged(), View { offset: 0, dims: vec![120], strides: vec![1] });
        assert_eq!(view.permute(&[1, 0, 2, 3, 4]).merged().dims, [3, 2, 20]);
    }

    #[test]
    fn a_view_that_leaves_its_source_does_not_fit() {
        let view = |offset, stride| View { offset, dims: vec![4], strides: vec![stride] };
        assert!(view(0, 3).fits(10) && view(9, -3).fits(10) && view(9, 0).fits(10));
        assert!(!view(1, 3).fits(10) && !view(8, -3).fits(10) && !view(10, 0).fits(10));
    }
}
