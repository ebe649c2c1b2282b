//! Rows of tensors that are stacks of matrices: `[…, rows, …]` along an axis.

use std::ops::Range;

use crate::array::words;
use crate::array::Array;
use crate::by_width;
use crate::dtype::DType;
use crate::error::Result;

/// The rows of consecutive matrices that a step changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edit {
    /// The matrices, counted over all axes before that of the rows.
    pub matrices: Range<usize>,
    /// The rows that change.
    pub to: Range<usize>,
    /// The first one of the new rows in the same matrices of another tensor; `None` for zeros.
    pub from: Option<usize>,
}

/// The rows that a step writes into a tensor.
pub(crate) struct Edits {
    /// The number of rows of the result.
    pub length: usize,
    pub list: Vec<Edit>,
    /// The number of rows of the result before those that are zeros.
    pub filled: usize,
}

/// Runs of elements that lie equally far apart: the same rows of consecutive matrices.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Runs {
    /// The first element.
    pub offset: usize,
    /// The distance between two runs.
    pub pitch: usize,
    pub count: usize,
    pub length: usize,
}

impl Runs {
    /// The rows from `start` on, `[matrix, row]`, of a tensor of these dimensions: `count`, `[matrices, rows]`.
    pub fn of(dims: &[usize], axis: usize, start: [usize; 2], count: [usize; 2]) -> Runs {
        let row: usize = dims[axis + 1..].iter().product();
        let pitch = dims[axis] * row;
        Runs { offset: start[0] * pitch + start[1] * row, pitch, count: count[0], length: count[1] * row }
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0 || self.length == 0
    }
}

/// Moves elements on the host or on a device. Nothing else shares the tensors that it changes.
pub(crate) trait Mover {
    /// Copies runs of as many elements to another tensor of the same dtype.
    ///
    /// # Errors
    /// A tensor lies elsewhere, or the device fails.
    fn copy(&self, from: (&Array, Runs), to: (&mut Array, Runs)) -> Result<()>;

    /// Sets runs to zero.
    ///
    /// # Errors
    /// The tensor lies elsewhere, or the device fails.
    fn clear(&self, to: (&mut Array, Runs)) -> Result<()>;

    /// Makes a tensor of zeros.
    ///
    /// # Errors
    /// There is no memory.
    fn zeros(&self, dims: &[usize], dtype: DType) -> Result<Array>;
}

/// The mover of the host.
pub(crate) struct OnHost;

impl Mover for OnHost {
    fn copy(&self, (from, source): (&Array, Runs), (to, target): (&mut Array, Runs)) -> Result<()> {
        by_width!(from.dtype(), W => {
            let from = words::read::<W>(from)?[source.offset..].chunks(source.pitch);
            words::update::<W>(to, |to| {
                for (to, from) in to[target.offset..].chunks_mut(target.pitch).zip(from).take(target.count) {
                    to[..target.length].copy_from_slice(&from[..source.length]);
                }
            })
        })
    }

    fn clear(&self, (to, target): (&mut Array, Runs)) -> Result<()> {
        by_width!(to.dtype(), W => words::update::<W>(to, |to| {
            let runs = to[target.offset..].chunks_mut(target.pitch).take(target.count);
            runs.for_each(|run| run[..target.length].fill(0));
        }))
    }

    fn zeros(&self, dims: &[usize], dtype: DType) -> Result<Array> {
        by_width!(dtype, W => words::array(words::alloc_uninit::<W>(dims)?.fill(0), dims, dtype))
    }
}
