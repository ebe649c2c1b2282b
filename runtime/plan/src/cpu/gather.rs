//! CPU kernels: gathers elements and rows by index.

use std::fmt::Debug;

use candle_plan_kernels::gather_scatter::gather_runs;

use super::packed::{HasKernel, Packed};
use super::places::{self, element_places, row_places, starts_bytes, vector_places};
use super::planned::CpuOperands;
use crate::array::words;
use crate::axes;
use crate::bail;
use crate::by_width;
use crate::error::Result;
use crate::kernel::{Call, Kernel};
use crate::movable::Movable;
use crate::ops::gather::{Gather, GatherElements, GatherNd};
use crate::ops::places::Places;
use crate::types::Types;
use crate::value::{Array, Value};

/// A gather: it finds the places of elements by indices, and returns the elements there.
trait Gathers: Debug + Clone + Send + Sync + 'static {
    /// Finds the places in a tensor of shape `dims`.
    ///
    /// # Errors
    /// An index is out of range.
    fn places(&self, dims: &[usize], indices: &Array) -> Result<Places>;

    /// Returns the elements of `x` at these places.
    ///
    /// # Errors
    /// The shapes do not fit, or memory is short.
    fn gathered(&self, x: &Array, indices: &Array, places: &Places, call: &Call) -> Result<Array>;

    /// Returns the kernel. Places of constant indices are found once.
    ///
    /// # Errors
    /// A constant index is out of range.
    fn boxed(&self, operands: &CpuOperands) -> Result<Box<dyn Kernel>> {
        let packed = places::pack(&operands.constants, |dims, indices| self.places(dims, indices))?;
        Ok(Packed::boxed(self, packed))
    }
}

impl<O: Gathers> Kernel for Packed<O, Option<places::KnownPlaces>> {
    fn scratch(&self, inputs: &Types) -> Option<usize> {
        starts_bytes(self.packed.as_ref(), inputs.tensor(1).ok()?)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let data = Movable::new(&[call.value(0)?])?;
        let (x, indices) = (&data.arrays[0], call.tensor(1)?);
        let find = |dims: &[usize], indices: &Array| self.op.places(dims, indices);
        let places = places::places(self.packed.as_ref(), call, x.dims(), find)?;
        Ok(vec![data.restore(self.op.gathered(x, indices, &places, call)?)?])
    }
}

impl HasKernel for Gather {
    fn kernel(&self, operands: &CpuOperands) -> Result<Box<dyn Kernel>> {
        self.boxed(operands)
    }
}

impl Gathers for Gather {
    fn places(&self, dims: &[usize], indices: &Array) -> Result<Places> {
        row_places(dims, indices, self.axis)
    }

    fn gathered(&self, x: &Array, indices: &Array, rows: &Places, call: &Call) -> Result<Array> {
        let axis = axes::resolve(self.axis, x.rank())?;
        let dims = [&x.dims()[..axis], indices.dims(), &x.dims()[axis + 1..]].concat();
        match view(x, axis, rows)? {
            Some(view) => view.reshape(&dims),
            None => runs(x, x.dims()[axis..].iter().product(), rows, &dims, call),
        }
    }
}

/// Returns a view of the rows if they are contiguous.
fn view(x: &Array, axis: usize, rows: &Places) -> Result<Option<Array>> {
    let (outer, inner) = x.dims().split_at(axis);
    let row: usize = inner[1..].iter().product();
    let &[start] = &rows.starts[..] else { return Ok(None) };
    if rows.run == row * inner[0] {
        return Ok(Some(x.clone()));
    }
    if row == 0 || outer.iter().any(|&dim| dim != 1) {
        return Ok(None);
    }
    x.narrow_outer(axis, start / row, rows.run / row).map(Some)
}

impl HasKernel for GatherElements {
    fn kernel(&self, operands: &CpuOperands) -> Result<Box<dyn Kernel>> {
        self.boxed(operands)
    }
}

impl Gathers for GatherElements {
    fn places(&self, dims: &[usize], indices: &Array) -> Result<Places> {
        element_places(dims, indices, self.axis)
    }

    fn gathered(&self, x: &Array, indices: &Array, places: &Places, call: &Call) -> Result<Array> {
        runs(x, x.len(), places, indices.dims(), call)
    }
}

impl HasKernel for GatherNd {
    fn kernel(&self, operands: &CpuOperands) -> Result<Box<dyn Kernel>> {
        self.boxed(operands)
    }
}

impl Gathers for GatherNd {
    fn places(&self, dims: &[usize], indices: &Array) -> Result<Places> {
        vector_places(dims, indices, self.batch_dims)
    }

    fn gathered(&self, x: &Array, indices: &Array, places: &Places, call: &Call) -> Result<Array> {
        let Some((depth, outer)) = indices.dims().split_last() else { bail!("indices have no dimensions") };
        let dims = [outer, &x.dims()[self.batch_dims + depth..]].concat();
        runs(x, x.len(), places, &dims, call)
    }
}

/// Gathers the elements at `places` in each block of `block` elements into a tensor of shape `dims`.
pub(super) fn runs(x: &Array, block: usize, places: &Places, dims: &[usize], call: &Call) -> Result<Array> {
    by_width!(x.dtype(), W => {
        let from = words::read::<W>(x)?;
        let gather = |out: &mut [W]| gather_runs(from, block, &places.starts, places.run, out, call.threads);
        let out = words::alloc_uninit::<W>(dims)?.overwrite(gather);
        words::array(out, dims, x.dtype())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, tensor, Tested};

    fn check(kernel: &dyn Tested, dims: &[usize], indices: (&[i64], &[usize]), expected: Option<(&[usize], &[u32])>) {
        let count = dims.iter().product::<usize>() as u32;
        let x = tensor(&(0..count).collect::<Vec<_>>(), dims);
        let found = run(kernel, &[Some(x), Some(tensor(indices.0, indices.1))]).ok().map(|y| {
            let y = y.tensor().expect("a tensor");
            (y.dims().to_vec(), y.read::<u32>().expect("uint32").to_vec())
        });
        let expected = expected.map(|(dims, data)| (dims.to_vec(), data.to_vec()));
        assert_eq!(found, expected, "{kernel:?} {dims:?} {indices:?}");
    }

    #[test]
    fn rows() {
        check(&Gather { axis: 0 }, &[3, 2], (&[2, -3, 2], &[3]), Some((&[3, 2], &[4, 5, 0, 1, 4, 5])));
        check(&Gather { axis: -1 }, &[2, 3], (&[0, 2], &[1, 2]), Some((&[2, 1, 2], &[0, 2, 3, 5])));
        check(&Gather { axis: 0 }, &[3, 2], (&[1], &[]), Some((&[2], &[2, 3])));
        check(&Gather { axis: 1 }, &[1, 3, 2], (&[-1], &[1]), Some((&[1, 1, 2], &[4, 5])));
        check(&Gather { axis: 1 }, &[2, 3], (&[0, 1, 1, 2], &[2, 2]), Some((&[2, 2, 2], &[0, 1, 1, 2, 3, 4, 4, 5])));
        check(&Gather { axis: 1 }, &[2, 3], (&[0, 1, 2], &[3, 1]), Some((&[2, 3, 1], &[0, 1, 2, 3, 4, 5])));
        check(&Gather { axis: 0 }, &[3, 2], (&[1, 2], &[2]), Some((&[2, 2], &[2, 3, 4, 5])));
        check(&Gather { axis: 0 }, &[3], (&[], &[0, 4]), Some((&[0, 4], &[])));
        check(&Gather { axis: 1 }, &[3, 0], (&[0], &[1]), None);
        check(&Gather { axis: 0 }, &[3], (&[3], &[1]), None);
        check(&Gather { axis: 0 }, &[3], (&[-4], &[]), None);
        check(&Gather { axis: 1 }, &[3], (&[0], &[]), None);
    }

    #[test]
    fn elements() {
        let op = |axis| GatherElements { axis };
        check(&op(1), &[2, 3], (&[2, 0, -1, 1], &[2, 2]), Some((&[2, 2], &[2, 0, 5, 4])));
        check(&op(0), &[3, 3], (&[1, 2, 0, 2, 0, 0], &[2, 3]), Some((&[2, 3], &[3, 7, 2, 6, 1, 2])));
        check(&op(-2), &[2, 2, 2], (&[1, 0, 0, 1], &[2, 1, 2]), Some((&[2, 1, 2], &[2, 1, 4, 7])));
        check(&op(1), &[2, 3], (&[1, 2, 0, 1], &[2, 2]), Some((&[2, 2], &[1, 2, 3, 4])));
        check(&op(0), &[3, 3], (&[3], &[1, 1]), None);
        check(&op(0), &[2, 2], (&[0, 0, 0], &[1, 3]), None);
        check(&op(0), &[2, 2], (&[0], &[1]), None);
    }

    #[test]
    fn vectors() {
        let op = |batch_dims| GatherNd { batch_dims };
        check(&op(0), &[2, 2], (&[0, 0, 1, -1], &[2, 2]), Some((&[2], &[0, 3])));
        check(&op(0), &[2, 2, 2], (&[0, 1, 1, 0], &[2, 1, 2]), Some((&[2, 1, 2], &[2, 3, 4, 5])));
        check(&op(1), &[2, 2, 2], (&[1, 0], &[2, 1]), Some((&[2, 2], &[2, 3, 4, 5])));
        check(&op(1), &[2, 3], (&[2, 0, 0, 1], &[2, 2, 1]), Some((&[2, 2], &[2, 0, 3, 4])));
        check(&op(0), &[2, 2], (&[], &[3, 0]), Some((&[3, 2, 2], &[0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3])));
        check(&op(1), &[0, 2], (&[], &[0, 1]), Some((&[0], &[])));
        check(&op(0), &[2, 2], (&[0, 0, 0], &[1, 3]), None);
        check(&op(1), &[2, 2], (&[0, 0, 0], &[3, 1]), None);
        check(&op(0), &[2, 2], (&[0, 2], &[2]), None);
    }
}
