//! Repetitions of elements as views.

use candle_plan_descriptors::strided::View;

use crate::axes;
use crate::error::Result;
use crate::kernel::Call;
use crate::ops::repeat::{check_expansion, check_repeats, repeated, Tile};

impl Tile {
    /// The view of a tensor of shape `dims` that repeats it, and the dimensions of the result.
    pub(crate) fn tiles(&self, dims: &[usize], call: &Call) -> Result<(View, Vec<usize>)> {
        let repeats = axes::dims(&axes::numbers(call.tensor(1)?)?)?;
        check_repeats(Some(repeats.len()), Some(dims.len()))?;
        // Each dimension becomes a pair: the repeats, with stride 0, and the elements.
        let inner = View::contiguous(dims);
        let pairs = repeats.iter().zip(dims).flat_map(|(&repeat, &dim)| [repeat, dim]).collect();
        let strides = inner.strides.iter().flat_map(|&stride| [0, stride]).collect();
        let grown = dims.iter().zip(&repeats).map(|(&dim, &repeat)| repeated(dim, repeat)).collect::<Result<_>>()?;
        Ok((View { offset: 0, dims: pairs, strides }, grown))
    }
}

/// The view of a tensor of shape `dims` that has its broadcast shape with `shape`.
pub(crate) fn broadcast(dims: &[usize], shape: &[usize]) -> Result<View> {
    check_expansion(dims, shape)?;
    let rank = dims.len().max(shape.len());
    let source = View::contiguous(dims);
    let mut view = View { offset: 0, dims: Vec::with_capacity(rank), strides: Vec::with_capacity(rank) };
    for axis in 0..rank {
        let own = (axis + dims.len()).checked_sub(rank);
        let (dim, stride) = own.map_or((1, 0), |own| (dims[own], source.strides[own]));
        let wanted = (axis + shape.len()).checked_sub(rank).map_or(1, |other| shape[other]);
        let (dim, stride) = if dim == wanted || wanted == 1 { (dim, stride) } else { (wanted, 0) };
        view.dims.push(dim);
        view.strides.push(stride);
    }
    Ok(view)
}
