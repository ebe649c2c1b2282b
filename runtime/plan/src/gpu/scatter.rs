//! GPU kernels: scatters elements and slices by index. The kernel reports an index outside its axis as a fault.

use bytemuck::{Pod, Zeroable};
use candle_plan_device::{Fault, Gpu, Grid, Report};

use super::gather::{element_steps, Indices, Vectors};
use super::keys::{kernel, target, Keys, KeysParams};
use super::launch::{count, elements_per_word, launch, word, Params};
use super::shapes::{Dims, Strides};
use super::OnGpu;
use crate::array::transfer::upload;
use crate::bail;
use crate::error::Result;
use crate::gpu::{gpu_kernel, has_few_dimensions, takes_indices};
use crate::kernel::Call;
use crate::ops::places::{element_axis, index_out_of_range, vector_parts};
use crate::ops::scatter::{
    check_elements, check_parts, check_places, rows_out_of_range, ScatterElements, ScatterNd, TensorScatter,
};
use crate::value::{Array, Value};

/// There is an index per update.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(ScatterElements in "scatter.cu")]
struct ElementsParams {
    to: KeysParams,
    indices: Indices,
    fault: Fault,
    size: u32,
    step: u32,
    dims: Dims,
    strides: Strides,
    padding: u32,
}

/// There is a vector per update.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(ScatterSlices in "scatter.cu")]
struct SlicesParams {
    to: KeysParams,
    vectors: Vectors,
}

/// `fitting_axis` checks the shapes, and there is a first place per sequence.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(ScatterCache in "scatter.cu")]
struct CacheParams {
    y: u64,
    updates: u64,
    firsts: Indices,
    fault: Fault,
    count: u32,
    prefixes: u32,
    size: u32,
    rows: u32,
    run: u32,
    circular: u32,
    has_firsts: u32,
    padding: u32,
}

/// Checks that updates have the dtype of the tensor they are written into.
fn check_dtypes(x: &Array, updates: &Array) -> Result<()> {
    if x.dtype() != updates.dtype() {
        bail!("{} updates cannot be written into a {} tensor", updates.dtype(), x.dtype());
    }
    Ok(())
}

gpu_kernel!(ScatterElements: "scatter" if |self, operands| {
    takes_indices(operands, 1) && has_few_dimensions(operands) && self.reduction.is_defined_for(operands.dtype(0))
});

impl OnGpu for ScatterElements {
    fn fault(&self, report: &Report) -> String {
        index_out_of_range(report.value, report.place, report.bound(0), report.bound(1))
    }

    fn in_place(&self) -> &'static [usize] {
        &[0]
    }

    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let (x, indices, updates) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?);
        check_dtypes(x, updates)?;
        let axis = element_axis(x.dims(), indices.dims(), self.axis)?;
        check_elements(updates.dims(), indices.dims())?;
        let keys = Keys::new(gpu, updates.len(), x.len(), self.reduction)?;
        let (dims, strides, step) = element_steps(x.dims(), indices.dims(), axis)?;
        let params = ElementsParams {
            to: keys.params()?,
            indices: Indices::of(indices)?,
            fault: gpu.fault(&[axis, x.dims()[axis]])?,
            size: count(x.dims()[axis])?,
            step,
            dims,
            strides,
            padding: 0,
        };
        launch(gpu, kernel("scatter_keys_of_elements", ""), Grid::over(keys.count), &params)?;
        keys.write(gpu, call, 1, self.reduction)
    }
}

gpu_kernel!(ScatterNd: "scatter" if |self, operands| {
    takes_indices(operands, 1) && has_few_dimensions(operands) && self.reduction.is_defined_for(operands.dtype(0))
});

impl OnGpu for ScatterNd {
    fn fault(&self, report: &Report) -> String {
        Vectors::fault(report, 0)
    }

    fn in_place(&self) -> &'static [usize] {
        &[0]
    }

    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let (x, indices, updates) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?);
        check_dtypes(x, updates)?;
        let parts = vector_parts(x.dims(), indices.dims(), 0)?;
        check_parts(updates.dims(), &parts)?;
        let run: usize = parts.rest.iter().product();
        if updates.is_empty() {
            return Ok(vec![target(gpu, call)?.into()]);
        }
        let keys = Keys::new(gpu, updates.len() / run, x.len() / run, self.reduction)?;
        let params = SlicesParams { to: keys.params()?, vectors: Vectors::new(gpu, indices, &parts)? };
        launch(gpu, kernel("scatter_keys_of_slices", ""), Grid::over(keys.count), &params)?;
        keys.write(gpu, call, run, self.reduction)
    }
}

gpu_kernel!(TensorScatter: "scatter" if |self, operands| operands.dtype(2).is_none() || takes_indices(operands, 2));

impl OnGpu for TensorScatter {
    fn fault(&self, report: &Report) -> String {
        rows_out_of_range(report.value, report.place, [report.bound(0), report.bound(1)])
    }

    fn in_place(&self) -> &'static [usize] {
        &[0]
    }

    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let (x, updates) = (call.tensor(0)?, call.tensor(1)?);
        check_dtypes(x, updates)?;
        let axis = self.fitting_axis(x.dims(), updates.dims())?;
        let [prefixes, run] = [&x.dims()[1..axis], &x.dims()[axis + 1..]].map(|dims| dims.iter().product::<usize>());
        let (size, rows) = (count(x.dims()[axis])?, count(updates.dims()[axis])?);
        // A plan with a state reads the positions on the host.
        let placed = |firsts: &Array| if firsts.is_on_device() { Ok(firsts.clone()) } else { upload(gpu, firsts) };
        let placed = call.optional_tensor(2)?.map(placed).transpose()?;
        placed.as_ref().map_or(Ok(()), |firsts| check_places(firsts.len(), x.dims()))?;
        let firsts = placed.as_ref().map(Indices::of).transpose()?;
        let y = target(gpu, call)?;
        let updates = call.tensor(1)?;
        let width = y.dtype().storage_dtype()?.size_in_bytes();
        let joined = elements_per_word(width, run, &[updates.address()?, y.address()?]);
        let params = CacheParams {
            y: y.address()?,
            updates: updates.address()?,
            firsts: firsts.unwrap_or(Indices::zeroed()),
            fault: gpu.fault(&[rows as usize, size as usize])?,
            count: count(updates.len() / joined)?,
            prefixes: count(prefixes)?,
            size,
            rows,
            run: count(run / joined)?,
            circular: self.circular.into(),
            has_firsts: firsts.is_some().into(),
            padding: 0,
        };
        launch(gpu, kernel("scatter_cache", word(width * joined)), Grid::over(params.count), &params)?;
        Ok(vec![y.into()])
    }
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::*;
    use crate::dtype::{Bool, Element};
    use crate::ops::scatter::Combination;
    use crate::testing::{run, run_on_device, tensor, Tested};

    const REDUCTIONS: [Combination; 5] =
        [Combination::None, Combination::Add, Combination::Mul, Combination::Min, Combination::Max];

    fn list<T: Element>(dims: &[usize], number: impl Fn(usize) -> T) -> Value {
        tensor(&(0..dims.iter().product()).map(number).collect::<Vec<_>>(), dims)
    }

    /// Shuffled numbers from `-end` to below `end`.
    fn indices(dims: &[usize], end: i64) -> Value {
        list(dims, |i| i as i64 * 7919 % (2 * end) - end)
    }

    /// `run` also compares with the host.
    fn check<T: Element>(op: &dyn Tested, [x, updates]: [&[usize]; 2], indices: &Value, number: impl Fn(usize) -> T) {
        let wide = indices.tensor().expect("a tensor");
        let narrow = list(wide.dims(), |i| wide.read::<i64>().expect("indices")[i] as i32);
        let (x, updates) = (list(x, &number), list(updates, |i| number(i * 31 % 97)));
        for indices in [indices.clone(), narrow] {
            let inputs = [x.clone(), indices, updates.clone()].map(Some);
            run(op, &inputs).unwrap_or_else(|error| panic!("{op:?}: {error}"));
        }
    }

    fn check_dtypes(op: &dyn Tested, dims: [&[usize]; 2], indices: &Value) {
        check(op, dims, indices, |i| Bool::from(i % 3 == 0));
        check(op, dims, indices, |i| i as u8);
        check(op, dims, indices, |i| i as i8);
        check(op, dims, indices, |i| i as u16);
        check(op, dims, indices, |i| i as i16);
        check(op, dims, indices, |i| i as u32);
        check(op, dims, indices, |i| -(i as i32));
        check(op, dims, indices, |i| u64::MAX - i as u64);
        check(op, dims, indices, |i| i64::MIN + i as i64);
        check(op, dims, indices, |i| f16::from_f32(1.0 + (i % 9) as f32 / 16.0));
        check(op, dims, indices, |i| bf16::from_f32(1.0 - (i % 5) as f32 / 16.0));
        check(op, dims, indices, |i| 1.0 + (i % 7) as f32 / 32.0);
        check(op, dims, indices, |i| 1.0 - (i % 7) as f64 / 32.0);
    }

    #[test]
    fn elements_of_every_dtype() {
        for reduction in REDUCTIONS {
            let op = |axis| ScatterElements { axis, reduction };
            check_dtypes(&op(0), [&[5], &[70]], &indices(&[70], 5));
            check_dtypes(&op(-2), [&[3, 4, 5], &[2, 30, 5]], &indices(&[2, 30, 5], 4));
            check(&op(1), [&[3, 40], &[3, 0]], &indices(&[3, 0], 40), |i| i as f32);
            check(&op(1), [&[3, 40], &[1, 1]], &indices(&[1, 1], 40), |i| i as f32);
        }
    }

    #[test]
    fn slices_of_every_dtype() {
        for reduction in REDUCTIONS {
            let op = ScatterNd { reduction };
            check_dtypes(&op, [&[4, 3, 8], &[6, 5, 8]], &indices(&[6, 5, 2], 3));
            check(&op, [&[4, 5], &[3, 7]], &indices(&[3, 7, 2], 4), |i| i as f32);
            check(&op, [&[4, 5], &[3, 4, 5]], &indices(&[3, 0], 4), |i| i as f32);
            check(&op, [&[4, 0], &[3, 0]], &indices(&[3, 1], 4), |i| i as f32);
        }
    }

    /// Tests more keys than a block sorts.
    #[test]
    fn many_updates_keep_their_order() {
        for reduction in REDUCTIONS {
            for (updates, places) in [(1023, 40), (1025, 1), (5000, 700), (3000, 3000)] {
                let op = ScatterElements { axis: 0, reduction };
                check(&op, [&[places], &[updates]], &indices(&[updates], places as i64), |i| {
                    (i as u32).wrapping_mul(2_654_435_761)
                });
            }
        }
    }

    #[test]
    fn sums_and_extrema_follow_the_order_of_updates() {
        let zeros = || Some(tensor(&[0i64; 5], &[5]));
        let cases = [
            (Combination::Add, [1e20f32, 1.0, -1e20, 1.0, 2.0]),
            (Combination::Min, [1.0, f32::NAN, 5.0, 7.0, 6.0]),
            (Combination::Max, [9.0, f32::NAN, 5.0, 4.0, 3.0]),
            (Combination::Max, [9.0, 5.0, 4.0, f32::INFINITY, f32::NAN]),
        ];
        for (reduction, updates) in cases {
            let inputs = [Some(tensor(&[3f32], &[1])), zeros(), Some(tensor(&updates, &[5]))];
            run(&ScatterElements { axis: 0, reduction }, &inputs).expect("it fits");
        }
    }

    #[test]
    fn caches_of_any_width() {
        for (circular, firsts) in [(false, [0i64, 4, 6]), (true, [9, 7, 1 << 40])] {
            let op = TensorScatter { axis: -2, circular };
            for run_length in [1, 5, 16] {
                let (dims, new) = ([3, 2, 9, run_length], [3, 2, 3, run_length]);
                let inputs = |firsts| [Some(list(&dims, |i| i as u16)), Some(list(&new, |i| 7000 + i as u16)), firsts];
                run(&op, &inputs(Some(tensor(&firsts, &[3])))).expect("they fit");
                run(&op, &inputs(Some(tensor(&firsts.map(|first| (first % 9) as i32), &[3])))).expect("they fit");
                run(&op, &inputs(None)).expect("they fit");
            }
        }
    }

    #[test]
    fn indices_beyond_an_axis_are_faults() {
        let (x, updates) = (tensor(&[0f32; 3], &[3]), tensor(&[1f32, 2.0, 3.0], &[3]));
        for reduction in REDUCTIONS {
            let cases: [(Box<dyn Tested>, [i64; 3], &[usize], bool); 4] = [
                (Box::new(ScatterElements { axis: 0, reduction }), [0, 3, 1], &[3], true),
                (Box::new(ScatterElements { axis: 0, reduction }), [0, i64::MIN, 1], &[3], true),
                (Box::new(ScatterElements { axis: 0, reduction }), [0, -3, 1], &[3], false),
                (Box::new(ScatterNd { reduction }), [0, 1 << 40, 1], &[3, 1], true),
            ];
            for (op, indices, dims, is_fault) in cases {
                let inputs = [x.clone(), tensor(&indices, dims), updates.clone()];
                let (y, found) = run_on_device(op.as_ref(), &inputs).expect("it runs");
                assert_eq!((found, y[0].tensor().unwrap().read::<f32>().unwrap()[2]), (is_fault, 0.0), "{op:?}");
            }
        }
        let cache = |circular, first: i64| {
            let inputs = [tensor(&[0f32; 4], &[1, 4]), tensor(&[1f32, 2.0], &[1, 2]), tensor(&[first], &[1])];
            run_on_device(&TensorScatter { axis: 1, circular }, &inputs).expect("it runs").1
        };
        assert_eq!([2, 3, -1].map(|first| cache(false, first)), [false, true, true]);
        assert_eq!([3, -1].map(|first| cache(true, first)), [false, true]);
        let misfit = [x, tensor(&[0i64], &[1]), updates];
        assert!(run_on_device(&ScatterElements { axis: 0, reduction: Combination::None }, &misfit).is_err());
    }
}
