//! GPU kernels: gathers elements and rows by index. The kernel reports an index outside its axis as a fault.

use bytemuck::{Pod, Zeroable};
use candle_plan_descriptors::strided::View;
use candle_plan_device::{Fault, Gpu, Grid, Mirror, Report, Symbol};

use super::launch::{alloc_uninit, count, elements_per_word, launch, width, word, Params};
use super::shapes::{of_view, Dims, Strides};
use super::OnGpu;
use crate::axes;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::gpu::{gpu_kernel, has_few_dimensions, takes_indices};
use crate::kernel::Call;
use crate::ops::gather::{Gather, GatherElements, GatherNd};
use crate::ops::places::{element_axis, index_out_of_range, vector_parts, VectorParts};
use crate::value::{Array, Value};

/// Indices of 32 or 64 bits.
#[derive(Clone, Copy, Pod, Zeroable, Mirror)]
#[repr(C)]
#[kernel(Indices in "indices.cuh")]
pub(super) struct Indices {
    address: u64,
    are_wide: u32,
    padding: u32,
}

impl Indices {
    /// Describes the elements of a tensor as indices.
    ///
    /// # Errors
    /// Kernels do not read indices of this type, or the tensor is on the host.
    pub fn of(array: &Array) -> Result<Indices> {
        let are_wide = match array.dtype() {
            DType::Int32 => 0,
            DType::Int64 => 1,
            other => return Err(Error::Gpu(format!("the device has no kernel for indices of {other}"))),
        };
        Ok(Indices { address: array.address()?, are_wide, padding: 0 })
    }
}

/// Vectors of indices.
#[derive(Clone, Copy, Pod, Zeroable, Mirror)]
#[repr(C)]
#[kernel(Vectors in "indices.cuh")]
pub(super) struct Vectors {
    indices: Indices,
    fault: Fault,
    per_batch: u32,
    picked: Dims,
}

impl Vectors {
    /// Describes the vectors of `indices`, which select parts of a tensor.
    ///
    /// # Errors
    /// Kernels do not support their number or type.
    pub fn new(gpu: &Gpu, indices: &Array, parts: &VectorParts) -> Result<Vectors> {
        count(indices.len())?;
        Ok(Vectors {
            indices: Indices::of(indices)?,
            fault: gpu.fault(parts.picked)?,
            per_batch: count(parts.per_batch.iter().product())?,
            picked: Dims::new(parts.picked)?,
        })
    }

    /// Returns the error for an index of a vector that is beyond its axis. The axes of the vectors' indices follow
    /// `batch_dims` other axes.
    pub fn fault(report: &Report, batch_dims: usize) -> String {
        let axis = report.place % report.bounds.len().max(1);
        index_out_of_range(report.value, report.place, batch_dims + axis, report.bound(axis))
    }
}

/// The tensors of a kernel that gathers along one axis of X with `size` places. Y has `count` elements.
#[derive(Clone, Copy, Pod, Zeroable, Mirror)]
#[repr(C)]
#[kernel(Gathered in "gather.cu")]
struct Gathered {
    x: u64,
    y: u64,
    indices: Indices,
    fault: Fault,
    count: u32,
    size: u32,
}

impl Gathered {
    /// Describes the elements of `y`. A thread writes `joined` of them at a time.
    fn new(gpu: &Gpu, [x, y, indices]: [&Array; 3], axis: usize, joined: usize) -> Result<Gathered> {
        Ok(Gathered {
            x: x.address()?,
            y: y.address()?,
            indices: Indices::of(indices)?,
            fault: gpu.fault(&[axis, x.dims()[axis]])?,
            count: count(y.len() / joined)?,
            size: count(x.dims()[axis])?,
        })
    }
}

/// X is `[outer, size, run]`, there are `picked` indices, and Y is `[outer, picked, run]`.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(GatherRows in "gather.cu")]
struct RowsParams {
    all: Gathered,
    picked: u32,
    run: u32,
}

/// `element_axis` checks that the indices fit X on the other axes.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(GatherElements in "gather.cu")]
struct ElementsParams {
    all: Gathered,
    step: u32,
    dims: Dims,
    strides: Strides,
}

/// X has `run` elements per place of the picked axes of a batch, and Y per vector.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(GatherSlices in "gather.cu")]
struct SlicesParams {
    x: u64,
    y: u64,
    vectors: Vectors,
    count: u32,
    run: u32,
}

fn kernel(name: &'static str, kind: &'static str) -> Symbol {
    Symbol { module: "gather", name, kind }
}

gpu_kernel!(Gather: "gather" if |self, operands| takes_indices(operands, 1));

impl OnGpu for Gather {
    fn fault(&self, report: &Report) -> String {
        index_out_of_range(report.value, report.place, report.bound(0), report.bound(1))
    }

    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let (x, indices) = (call.tensor(0)?, call.tensor(1)?);
        let axis = axes::resolve(self.axis, x.rank())?;
        let (before, after) = (&x.dims()[..axis], &x.dims()[axis + 1..]);
        let y = alloc_uninit(gpu, &[before, indices.dims(), after].concat(), x.dtype())?;
        let (width, run): (_, usize) = (x.dtype().storage_dtype()?.size_in_bytes(), after.iter().product());
        let joined = elements_per_word(width, run, &[x.address()?, y.address()?]);
        let all = Gathered::new(gpu, [x, &y, indices], axis, joined)?;
        let params = RowsParams { all, picked: count(indices.len())?, run: count(run / joined)? };
        launch(gpu, kernel("gather_rows", word(width * joined)), Grid::over(all.count), &params)?;
        Ok(vec![y.into()])
    }
}

/// Returns the dimensions and strides that map indices of shape `indices` to a tensor of shape `dims`. The stride along
/// `axis` is 0; the returned number is the factor of the index itself.
///
/// # Errors
/// The rank is too large for kernels.
pub(super) fn element_steps(dims: &[usize], indices: &[usize], axis: usize) -> Result<(Dims, Strides, u32)> {
    let mut strides = View::contiguous(dims).strides;
    let step = std::mem::take(&mut strides[axis]);
    let (dims, strides) = of_view(&View { offset: 0, dims: indices.to_vec(), strides })?;
    Ok((dims, strides, count(step.unsigned_abs())?))
}

gpu_kernel!(GatherElements: "gather" if |self, operands| takes_indices(operands, 1) && has_few_dimensions(operands));

impl OnGpu for GatherElements {
    fn fault(&self, report: &Report) -> String {
        index_out_of_range(report.value, report.place, report.bound(0), report.bound(1))
    }

    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let (x, indices) = (call.tensor(0)?, call.tensor(1)?);
        let axis = element_axis(x.dims(), indices.dims(), self.axis)?;
        let y = alloc_uninit(gpu, indices.dims(), x.dtype())?;
        let (dims, strides, step) = element_steps(x.dims(), indices.dims(), axis)?;
        let params = ElementsParams { all: Gathered::new(gpu, [x, &y, indices], axis, 1)?, step, dims, strides };
        launch(gpu, kernel("gather_elements", width(x.dtype())?), Grid::over(params.all.count), &params)?;
        Ok(vec![y.into()])
    }
}

gpu_kernel!(GatherNd: "gather" if |self, operands| takes_indices(operands, 1) && has_few_dimensions(operands));

impl OnGpu for GatherNd {
    fn fault(&self, report: &Report) -> String {
        Vectors::fault(report, self.batch_dims)
    }

    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let (x, indices) = (call.tensor(0)?, call.tensor(1)?);
        let parts = vector_parts(x.dims(), indices.dims(), self.batch_dims)?;
        let y = alloc_uninit(gpu, &[parts.outer, parts.rest].concat(), x.dtype())?;
        let (width, run) = (x.dtype().storage_dtype()?.size_in_bytes(), parts.rest.iter().product());
        let joined = elements_per_word(width, run, &[x.address()?, y.address()?]);
        let params = SlicesParams {
            x: x.address()?,
            y: y.address()?,
            vectors: Vectors::new(gpu, indices, &parts)?,
            count: count(y.len() / joined)?,
            run: count(run / joined)?,
        };
        launch(gpu, kernel("gather_slices", word(width * joined)), Grid::over(params.count), &params)?;
        Ok(vec![y.into()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Element;
    use crate::testing::{run, run_on_device, tensor, Tested};

    /// Shuffled numbers from `-end` to below `end`.
    fn indices(dims: &[usize], end: i64) -> Value {
        let numbers: Vec<i64> =
            (0..dims.iter().product::<usize>() as i64).map(|i| i * 7919 % (2 * end) - end).collect();
        tensor(&numbers, dims)
    }

    /// `run` also compares with the host.
    fn check<T: Element>(op: &dyn Tested, dims: &[usize], indices: &Value, number: impl Fn(usize) -> T) {
        let x = tensor(&(0..dims.iter().product()).map(number).collect::<Vec<_>>(), dims);
        let wide = indices.tensor().expect("a tensor");
        let narrow: Vec<i32> = wide.read::<i64>().expect("indices").iter().map(|&index| index as i32).collect();
        for indices in [indices.clone(), tensor(&narrow, wide.dims())] {
            run(op, &[Some(x.clone()), Some(indices)]).unwrap_or_else(|error| panic!("{op:?} {dims:?}: {error}"));
        }
    }

    fn check_widths(op: &dyn Tested, dims: &[usize], indices: &Value) {
        check(op, dims, indices, |i| i as u8);
        check(op, dims, indices, |i| i as u16);
        check(op, dims, indices, |i| i as f32);
        check(op, dims, indices, |i| i as i64);
    }

    #[test]
    fn rows_of_any_length() {
        for run in [0, 1, 2, 3, 8, 33, 256] {
            check_widths(&Gather { axis: 0 }, &[5, run], &indices(&[3, 7], 5));
            check_widths(&Gather { axis: -2 }, &[2, 3, 4, run], &indices(&[9], 4));
        }
        check_widths(&Gather { axis: 1 }, &[3, 4, 5], &indices(&[], 4));
        check_widths(&Gather { axis: 0 }, &[100], &indices(&[1000], 100));
    }

    #[test]
    fn elements_of_any_axis() {
        for axis in 0..5 {
            let mut own = [2, 3, 1, 4, 9];
            own[axis] = 40;
            check_widths(
                &GatherElements { axis: axis as i64 },
                &[2, 3, 2, 5, 9],
                &indices(&own, [2, 3, 2, 5, 9][axis]),
            );
        }
        check_widths(&GatherElements { axis: -1 }, &[4, 0], &indices(&[4, 0], 1));
    }

    #[test]
    fn slices_of_any_depth() {
        for depth in 0..=3 {
            check_widths(&GatherNd { batch_dims: 0 }, &[4, 5, 6, 16], &indices(&[3, 5, depth], 4));
            check_widths(&GatherNd { batch_dims: 1 }, &[3, 5, 6, 7, 2], &indices(&[3, 30, depth], 5));
        }
        check_widths(&GatherNd { batch_dims: 2 }, &[3, 5, 6], &indices(&[3, 5, 10, 1], 6));
        check_widths(&GatherNd { batch_dims: 0 }, &[3, 0], &indices(&[7, 1], 3));
    }

    #[test]
    fn indices_beyond_an_axis_are_faults() {
        let x = tensor(&[1f32, 2.0, 3.0, 4.0], &[2, 2]);
        let cases: [(Box<dyn Tested>, Value, &[f32], bool); 6] = [
            (Box::new(Gather { axis: 0 }), tensor(&[1i64, 2], &[2]), &[3.0, 4.0, 0.0, 0.0], true),
            (Box::new(Gather { axis: 0 }), tensor(&[i64::MIN, i64::MAX], &[2]), &[0.0; 4], true),
            (Box::new(Gather { axis: 1 }), tensor(&[-2i32], &[]), &[1.0, 3.0], false),
            (Box::new(GatherElements { axis: 1 }), tensor(&[-3i32, 1], &[1, 2]), &[0.0, 2.0], true),
            (Box::new(GatherNd { batch_dims: 0 }), tensor(&[0i64, 2, 1, 1], &[2, 2]), &[0.0, 4.0], true),
            (Box::new(GatherNd { batch_dims: 1 }), tensor(&[-2i64, 1], &[2, 1]), &[1.0, 4.0], false),
        ];
        for (op, indices, expected, is_fault) in cases {
            let (y, found) = run_on_device(op.as_ref(), &[x.clone(), indices]).expect("it runs");
            assert_eq!((y[0].tensor().unwrap().read::<f32>().unwrap(), found), (expected, is_fault), "{op:?}");
        }
        assert!(run_on_device(&Gather { axis: 0 }, &[x, tensor(&[0u8], &[1])]).is_err(), "no kernel takes bytes");
    }
}
