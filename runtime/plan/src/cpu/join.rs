//! CPU kernels: concatenation and split.

use candle_plan_kernels::concat::{concat, Part};
use smallvec::SmallVec;

use super::blocks::Blocked;
use super::bounds::is_short;
use super::choice::{HasBlocksKernel, OnBlocks};
use super::lists::{optional_list, Lists};
use super::packed::{HasKernel, Packed};
use super::planned::CpuOperands;
use crate::array::words;
use crate::bail;
use crate::by_width;
use crate::error::Result;
use crate::kernel::{Call, Kernel};
use crate::layout::{Image, Layout};
use crate::movable::{copy_view, Movable};
use crate::ops::join::{joined_dims, place_of, Concat, Split};
use crate::types::{Type, Types};
use crate::value::{scratch, Array, Value};

impl Kernel for Concat {
    fn scratch(&self, inputs: &Types) -> Option<usize> {
        is_short(inputs.len()).then_some(0)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let values: SmallVec<[&Value; 4]> = (0..call.len()).map(|i| call.value(i)).collect::<Result<_>>()?;
        let data = Movable::new(&values)?;
        let arrays: SmallVec<[&Array; 4]> = data.arrays.iter().collect();
        Ok(vec![data.restore(joined(&arrays, self.axis, call)?)?])
    }
}

impl HasBlocksKernel for Concat {
    fn on_blocks(&self, operands: &CpuOperands, outputs: &[Option<&Type>]) -> Option<OnBlocks> {
        let image = Image::of(outputs.first().copied().flatten()?)?;
        let parts =
            operands.constants.types.iter().map(|kind| Image::of(kind.as_ref()?)).collect::<Option<Vec<_>>>()?;
        let (_, before) = parts.split_last()?;
        let is_whole = before.iter().all(|part| part.channels.is_multiple_of(operands.blocking.block()));
        let fits = self.axis == 1 && is_whole || self.axis > 1;
        let layouts = Blocked {
            rank: image.rank,
            inputs: vec![Layout::Blocks; parts.len()],
            outputs: vec![Layout::Blocks],
            times: [0.0, image.wasted(operands.blocking) as f64],
        };
        fits.then_some(OnBlocks::with_own(layouts))
    }
}

impl HasKernel for Split {
    fn kernel(&self, operands: &CpuOperands) -> Result<Box<dyn Kernel>> {
        Ok(Packed::boxed(self, Lists::of(&operands.constants)))
    }
}

impl Kernel for Packed<Split, Lists> {
    fn scratch(&self, inputs: &Types) -> Option<usize> {
        is_short(inputs.outputs).then_some(0)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (op, packed) = (&self.op, &self.packed);
        let data = Movable::new(&[call.value(0)?])?;
        let x = &data.arrays[0];
        let (axis, sizes) = op.parts(x.dims(), optional_list(packed, call, 1)?.as_deref(), call.outputs)?;
        let mut start = 0;
        let part = |size: usize| {
            let part = part_of(x, axis, start, size, call)?;
            start += size;
            data.restore(part)
        };
        sizes.into_iter().map(part).collect()
    }
}

/// Concatenates tensors of one dtype along an axis.
///
/// # Errors
/// Their dimensions differ on another axis than `axis`.
pub(super) fn joined(arrays: &[&Array], axis: i64, call: &Call) -> Result<Array> {
    let Some(first) = arrays.first() else { bail!("there are no inputs") };
    let (axis, dims) = joined_dims(arrays, axis)?;
    by_width!(first.dtype(), W => {
        let out = words::alloc_uninit::<W>(&dims)?;
        scratch::<Part<W>>(arrays.len())?;
        let mut parts = SmallVec::<[Part<W>; 4]>::new();
        for array in arrays {
            parts.push(Part { data: words::read(array)?, run: array.dims()[axis..].iter().product() });
        }
        let out = out.overwrite(|out| concat(&parts, out, call.threads));
        words::array(out, &dims, first.dtype())
    })
}

/// Returns `size` rows of an axis; a view if they are contiguous.
pub(super) fn part_of(x: &Array, axis: usize, start: usize, size: usize, call: &Call) -> Result<Array> {
    match place_of(x.dims(), axis, start, size) {
        None => x.narrow_outer(axis, start, size),
        Some(view) => copy_view(x, &view, call.threads),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, run_outputs, tensor};

    fn numbers(dims: &[usize], from: u16) -> Value {
        let count = dims.iter().product::<usize>() as u16;
        tensor(&(from..from + count).collect::<Vec<_>>(), dims)
    }

    fn seen(value: &Value) -> (Vec<usize>, Vec<u16>) {
        let array = value.tensor().expect("a tensor");
        (array.dims().to_vec(), array.read::<u16>().expect("uint16").to_vec())
    }

    #[test]
    fn joins() {
        let (a, b) = (numbers(&[2, 2], 0), numbers(&[2, 1], 10));
        let y = run(&Concat { axis: -1 }, &[Some(a.clone()), Some(b.clone()), Some(a.clone())]).expect("2 rows each");
        assert_eq!(seen(&y), (vec![2, 5], vec![0, 1, 10, 0, 1, 2, 3, 11, 2, 3]));
        let y = run(&Concat { axis: 0 }, &[Some(a.clone()), Some(numbers(&[0, 2], 0)), Some(numbers(&[1, 2], 7))]);
        assert_eq!(seen(&y.expect("2 columns each")), (vec![3, 2], vec![0, 1, 2, 3, 7, 8]));
        for (axis, other) in [(0, &b), (2, &a), (-3, &a), (0, &numbers(&[2], 0)), (0, &tensor(&[0i16; 2], &[1, 2]))] {
            assert!(run(&Concat { axis }, &[Some(a.clone()), Some(other.clone())]).is_err());
        }
    }

    #[test]
    fn splits() {
        let x = numbers(&[2, 5], 0);
        let parts = run_outputs(&Split { axis: 1 }, &[Some(x.clone())], 3).expect("2, 2 and 1");
        assert_eq!(seen(&parts[1]), (vec![2, 2], vec![2, 3, 7, 8]));
        assert_eq!(seen(&parts[2]), (vec![2, 1], vec![4, 9]));
        let split = |sizes: &[i64]| {
            run_outputs(&Split { axis: -2 }, &[Some(x.clone()), Some(tensor(sizes, &[sizes.len()]))], 2)
        };
        assert_eq!(seen(&split(&[2, 0]).expect("two rows")[1]), (vec![0, 5], vec![]));
        for sizes in [&[1, 2][..], &[3, -1], &[2], &[i64::MAX, i64::MAX]] {
            assert!(split(sizes).is_err(), "{sizes:?}");
        }
        assert!(run_outputs(&Split { axis: 1 }, &[Some(x)], 4).is_err());
    }
}
