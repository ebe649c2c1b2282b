//! Broadcasting: which elements of the operands meet which element of the result.

use smallvec::{smallvec, SmallVec};

/// Sizes of dimensions, or strides over them: mostly few enough to need no memory of their own.
pub type Dims = SmallVec<[usize; 6]>;

/// The dimensions of a result, merged as far as every operand allows, and each operand's strides over them.
///
/// Within the innermost dimension an operand either advances with the result (stride 1) or stays (stride 0).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broadcast {
    /// The merged dimensions; at least one.
    pub dims: Dims,
    /// For each operand as many strides as there are merged dimensions.
    pub strides: SmallVec<[Dims; 4]>,
}

/// The shape that operands of these shapes broadcast to as NumPy does; `None` when two sizes of an axis differ and neither is 1.
pub fn shape(operands: &[&[usize]]) -> Option<Dims> {
    let rank = operands.iter().map(|dims| dims.len()).max().unwrap_or(0);
    let mut shape: Dims = smallvec![1; rank];
    for dims in operands {
        for (size, &dim) in shape[rank - dims.len()..].iter_mut().zip(*dims) {
            match (*size, dim) {
                (1, dim) => *size = dim,
                (size, dim) if dim == 1 || dim == size => {}
                _ => return None,
            }
        }
    }
    Some(shape)
}

impl Broadcast {
    /// Broadcasts operands of the shapes `operands` to `result` as NumPy does; `None` names the first that does not fit.
    ///
    /// # Errors
    /// The index of the first operand whose shape does not broadcast to `result`.
    pub fn new(result: &[usize], operands: &[&[usize]]) -> Result<Broadcast, usize> {
        let mut full = SmallVec::<[Dims; 4]>::new();
        for (i, operand) in operands.iter().enumerate() {
            full.push(strides(result, operand).ok_or(i)?);
        }
        let mut merged = Broadcast { dims: Dims::new(), strides: smallvec![Dims::new(); operands.len()] };
        for (axis, &size) in result.iter().enumerate().filter(|(_, &size)| size != 1) {
            merged.push(size, |operand| full[operand][axis]);
        }
        if merged.dims.is_empty() {
            merged.push(1, |_| 0);
        }
        Ok(merged)
    }

    /// Appends a dimension, joined to the last one where every operand runs through both at one stride.
    fn push(&mut self, size: usize, stride: impl Fn(usize) -> usize) {
        let joins = |(operand, strides): (usize, &Dims)| strides.last() == Some(&(stride(operand) * size));
        let join = !self.dims.is_empty() && self.strides.iter().enumerate().all(joins);
        if join {
            let last = self.dims.len() - 1;
            self.dims[last] *= size;
            self.strides.iter_mut().enumerate().for_each(|(operand, strides)| strides[last] = stride(operand));
        } else {
            self.dims.push(size);
            self.strides.iter_mut().enumerate().for_each(|(operand, strides)| strides.push(stride(operand)));
        }
    }

    /// The length of a run in which every operand advances or stays.
    pub fn span(&self) -> usize {
        self.dims[self.dims.len() - 1]
    }

    /// Whether operand `i` advances within a run.
    pub fn advances(&self, i: usize) -> bool {
        self.strides[i][self.dims.len() - 1] != 0
    }

    /// Whether operand `i` advances from one run to the next.
    pub fn advances_outside(&self, i: usize) -> bool {
        self.dims.len() > 1 && self.strides[i][self.dims.len() - 2] != 0
    }

    /// The element of operand `i` that meets element `position` of the result.
    pub fn offset(&self, i: usize, position: usize) -> usize {
        let mut rest = position;
        let mut offset = 0;
        for (size, stride) in self.dims.iter().zip(&self.strides[i]).rev() {
            offset += rest % size * stride;
            rest /= size;
        }
        offset
    }
}

/// Cuts elements `start .. start + length` of a result into parts of runs of `span` elements, and calls `run(position, count)`
/// for each.
pub fn for_each_run(span: usize, start: usize, length: usize, mut run: impl FnMut(usize, usize)) {
    let mut position = start;
    while position < start + length {
        let count = (span - position % span).min(start + length - position);
        run(position, count);
        position += count;
    }
}

/// An operand's strides over the dimensions of the result, 0 where it is repeated.
fn strides(result: &[usize], operand: &[usize]) -> Option<Dims> {
    let leading = result.len().checked_sub(operand.len())?;
    let mut strides: Dims = smallvec![0; result.len()];
    let mut stride = 1;
    for axis in (0..operand.len()).rev() {
        match operand[axis] {
            1 => {}
            size if size == result[leading + axis] => strides[leading + axis] = stride,
            _ => return None,
        }
        stride *= operand[axis];
    }
    Some(strides)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_broadcast_from_the_last_axis() {
        let cases: &[(&[&[usize]], Option<&[usize]>)] = &[
            (&[&[2, 3], &[3]], Some(&[2, 3])),
            (&[&[2, 1], &[1, 3], &[4, 1, 1]], Some(&[4, 2, 3])),
            (&[&[], &[0]], Some(&[0])),
            (&[&[1], &[0, 1]], Some(&[0, 1])),
            (&[&[2], &[3]], None),
            (&[&[0], &[3]], None),
            (&[], Some(&[])),
        ];
        for (operands, expected) in cases {
            assert_eq!(shape(operands).as_deref(), *expected, "{operands:?}");
        }
    }

    #[test]
    fn dimensions_merge_where_every_operand_allows() {
        let cases: &[(&[usize], &[&[usize]], &[usize], &[&[usize]])] = &[
            (&[2, 3, 4], &[&[2, 3, 4]], &[24], &[&[1]]),
            (&[2, 3, 4], &[&[2, 3, 4], &[]], &[24], &[&[1], &[0]]),
            (&[2, 3, 4, 5], &[&[2, 3, 4, 5], &[3, 1, 1]], &[2, 3, 20], &[&[60, 20, 1], &[0, 1, 0]]),
            (&[2, 3, 4], &[&[2, 3, 4], &[4]], &[6, 4], &[&[4, 1], &[0, 1]]),
            (&[2, 1, 4], &[&[2, 1, 4], &[2, 1, 1]], &[2, 4], &[&[4, 1], &[1, 0]]),
            (&[2, 3], &[&[2, 1], &[1, 3]], &[2, 3], &[&[1, 0], &[0, 1]]),
            (&[1, 1], &[&[1]], &[1], &[&[0]]),
            (&[], &[&[]], &[1], &[&[0]]),
            (&[0, 3], &[&[0, 3], &[1, 3]], &[0, 3], &[&[3, 1], &[0, 1]]),
        ];
        for (result, operands, dims, strides) in cases {
            let broadcast = Broadcast::new(result, operands).unwrap();
            assert_eq!((&broadcast.dims[..], &broadcast.strides[..]), (*dims, &strides.map_to_vec()[..]), "{result:?}");
        }
        assert_eq!(Broadcast::new(&[2, 3], &[&[2, 3], &[2]]), Err(1));
        assert_eq!(Broadcast::new(&[3], &[&[1, 3]]), Err(0));
    }

    trait MapToVec {
        fn map_to_vec(&self) -> Vec<Dims>;
    }

    impl MapToVec for &[&[usize]] {
        fn map_to_vec(&self) -> Vec<Dims> {
            self.iter().map(|strides| Dims::from_slice(strides)).collect()
        }
    }
}
