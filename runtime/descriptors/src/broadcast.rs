//! Broadcasting: maps elements of the result to elements of the operands.

use smallvec::{smallvec, SmallVec};

/// Sizes of dimensions, or strides; in most cases few enough to be stored inline.
pub type Dims = SmallVec<[usize; 6]>;

/// The dimensions of a result, merged as far as every operand allows, and the strides of each operand.
///
/// Along the innermost dimension, an operand has stride 1 or is repeated (stride 0).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broadcast {
    /// The merged dimensions; at least one.
    pub dims: Dims,
    /// The strides of all operands; each has `width` of them.
    strides: SmallVec<[usize; 12]>,
    width: usize,
}

/// Returns the shape that the operands broadcast to by NumPy's rules; `None` if two sizes of an axis differ and neither
/// is 1.
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
    /// Broadcasts operands of the shapes `operands` to `result`, by NumPy's rules.
    ///
    /// # Errors
    /// The index of the first operand whose shape does not broadcast to `result`.
    pub fn new(result: &[usize], operands: &[&[usize]]) -> Result<Broadcast, usize> {
        if let Some(whole) = Broadcast::of_whole(result, operands) {
            return Ok(whole);
        }
        let width = result.len().max(1);
        let mut merged = Broadcast { dims: Dims::new(), strides: SmallVec::new(), width };
        merged.strides.resize(operands.len() * width, 0);
        for (i, (operand, strides)) in operands.iter().zip(merged.strides.chunks_exact_mut(width)).enumerate() {
            write_strides(result, operand, strides).ok_or(i)?;
        }
        for (axis, &size) in result.iter().enumerate().filter(|(_, &size)| size != 1) {
            merged.push(axis, size);
        }
        if merged.dims.is_empty() {
            merged.dims.push(1);
        }
        Ok(merged)
    }

    /// Returns the broadcast if each operand has the shape of the result, or a single element. Then one dimension is enough.
    fn of_whole(result: &[usize], operands: &[&[usize]]) -> Option<Broadcast> {
        let size = result.iter().try_fold(1usize, |size, &dim| size.checked_mul(dim))?;
        let stride = |operand: &&[usize]| match *operand == result {
            true => Some(usize::from(size != 1)),
            false => (operand.len() <= result.len() && operand.iter().all(|&dim| dim == 1)).then_some(0),
        };
        let strides = operands.iter().map(stride).collect::<Option<_>>()?;
        Some(Broadcast { dims: smallvec![size], strides, width: 1 })
    }

    /// Appends axis `axis` of the result. If every operand has a single stride through the last dimension and this
    /// axis, the two are merged. The strides of the axis move to the index of its dimension.
    fn push(&mut self, axis: usize, size: usize) {
        let joined = self.dims.len().checked_sub(1).and_then(|last| {
            let joins = |strides: &[usize]| strides[axis].checked_mul(size) == Some(strides[last]);
            let joined = self.strides.chunks_exact(self.width).all(joins).then(|| self.dims[last].checked_mul(size));
            Some((last, joined.flatten()?))
        });
        let place = match joined {
            Some((last, size)) => {
                self.dims[last] = size;
                last
            }
            None => {
                self.dims.push(size);
                self.dims.len() - 1
            }
        };
        self.strides.chunks_exact_mut(self.width).for_each(|strides| strides[place] = strides[axis]);
    }

    /// Returns the broadcast with operands 0 and 1 swapped.
    #[must_use]
    pub fn swapped(&self) -> Broadcast {
        let mut swapped = self.clone();
        let (first, second) = swapped.strides.split_at_mut(self.width);
        first.swap_with_slice(&mut second[..self.width]);
        swapped
    }

    /// The strides of operand `i`.
    #[inline]
    pub fn strides(&self, i: usize) -> &[usize] {
        &self.strides[i * self.width..][..self.dims.len()]
    }

    /// The length of the innermost dimension: a run over which every operand either advances or is repeated.
    #[inline]
    pub fn span(&self) -> usize {
        self.dims[self.dims.len() - 1]
    }

    /// Whether operand `i` advances within a run.
    #[inline]
    pub fn advances(&self, i: usize) -> bool {
        self.strides(i)[self.dims.len() - 1] != 0
    }

    /// Whether operand `i` advances from one run to the next.
    #[inline]
    pub fn advances_outside(&self, i: usize) -> bool {
        self.dims.len() > 1 && self.strides(i)[self.dims.len() - 2] != 0
    }

    /// Returns the index of the element of operand `i` for element `position` of the result.
    #[inline(never)] // one copy for all elementwise functions
    pub fn offset(&self, i: usize, position: usize) -> usize {
        let mut rest = position;
        let mut offset = 0;
        for (size, stride) in self.dims.iter().zip(self.strides(i)).rev() {
            offset += rest % size * stride;
            rest /= size;
        }
        offset
    }
}

/// Splits elements `start .. start + length` of a result at multiples of `span`, and calls `run(position, count)` for
/// each part.
pub fn for_each_run(span: usize, start: usize, length: usize, mut run: impl FnMut(usize, usize)) {
    let mut position = start;
    while position < start + length {
        let count = (span - position % span).min(start + length - position);
        run(position, count);
        position += count;
    }
}

/// Writes an operand's strides over the dimensions of the result, with 0 where it is repeated; `None` if the shape does
/// not fit.
fn write_strides(result: &[usize], operand: &[usize], strides: &mut [usize]) -> Option<()> {
    let leading = result.len().checked_sub(operand.len())?;
    let mut stride = 1;
    for axis in (0..operand.len()).rev() {
        match operand[axis] {
            1 => {}
            size if size == result[leading + axis] => strides[leading + axis] = stride,
            _ => return None,
        }
        stride *= operand[axis];
    }
    Some(())
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
            (&[1, 1], &[&[], &[1, 1], &[1]], &[1], &[&[0], &[0], &[0]]),
            (&[0, 3], &[&[0, 3], &[1]], &[0], &[&[1], &[0]]),
            (&[2, 3], &[&[2, 3], &[1, 1], &[2, 3]], &[6], &[&[1], &[0], &[1]]),
            (&[0, 3], &[&[0, 3], &[1, 3]], &[0, 3], &[&[3, 1], &[0, 1]]),
        ];
        for (result, operands, dims, strides) in cases {
            let broadcast = Broadcast::new(result, operands).unwrap();
            let found: Vec<&[usize]> = (0..operands.len()).map(|i| broadcast.strides(i)).collect();
            assert_eq!((&broadcast.dims[..], &found[..]), (*dims, *strides), "{result:?}");
        }
        let mixed = |operands: [&[usize]; 3]| Broadcast::new(&[2, 3, 4], &operands).unwrap();
        let (x, y, z) = (&[2, 3, 4][..], &[3, 1][..], &[][..]);
        assert_eq!(mixed([x, y, z]).swapped(), mixed([y, x, z]));
        assert_eq!(Broadcast::new(&[2, 3], &[&[2, 3], &[2]]), Err(1));
        assert_eq!(Broadcast::new(&[3], &[&[1, 3]]), Err(0));
        assert_eq!(Broadcast::new(&[1], &[&[1, 1]]), Err(0));
    }
}
