//! GPU kernels: copies elements between views of tensors.

use bytemuck::{Pod, Zeroable};
use candle_plan_descriptors::strided::View;
use candle_plan_device::{Gpu, Grid, Symbol};

use super::launch::{alloc_uninit, count, elements_per_word, launch, width, word, Params};
use super::shapes::{step, Dims, Strides, MAX_RANK};
use crate::bail;
use crate::error::Result;
use crate::value::Array;

/// The side of the square that a block transposes, as `SQUARE` in `copy.cu`.
const SQUARE: usize = 32;

/// The smallest sides of a plane for which squares pay off.
const WORTH_SQUARES: usize = SQUARE / 2;

/// `copy` checks that every place is inside its tensor.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(CopyOf in "copy.cu")]
struct CopyParams {
    x: u64,
    y: u64,
    count: u32,
    dims: Dims,
    from: Strides,
    to: Strides,
}

/// `copy` checks that every place is inside its tensor, as for `CopyParams`.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(TransposeOf in "copy.cu")]
struct TransposeParams {
    x: u64,
    y: u64,
    rows: u32,
    columns: u32,
    from: i32,
    to: i32,
    planes: u32,
    dims: Dims,
    begins: Strides,
    ends: Strides,
}

/// Y has `count` elements.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(FillOf in "copy.cu")]
struct FillParams {
    y: u64,
    value: u64,
    count: u32,
    padding: u32,
}

/// Copies the elements of a view, which are inside `x`, to a new tensor.
///
/// # Errors
/// The GPU lacks memory for the tensor, or the device fails.
pub(crate) fn copied(gpu: &Gpu, x: &Array, view: &View) -> Result<Array> {
    let y = alloc_uninit(gpu, &view.dims, x.dtype())?;
    copy(gpu, (x, view), (&y, &View::contiguous(&view.dims)))?;
    Ok(y)
}

/// Copies the elements of a view of `x` to the places of a view of `y`, which must be distinct.
///
/// # Errors
/// The views do not fit each other or their tensors, or the device fails.
pub(super) fn copy(gpu: &Gpu, (x, from): (&Array, &View), (y, to): (&Array, &View)) -> Result<()> {
    if from.dims != to.dims || x.dtype() != y.dtype() || !from.fits(x.len()) || !to.fits(y.len()) {
        bail!("{from:?} of {:?} cannot be copied to {to:?} of {:?}", x.dims(), y.dims());
    }
    if from.is_empty() {
        return Ok(());
    }
    let width = x.dtype().storage_dtype()?.size_in_bytes();
    let begin = |array: &Array, view: &View| array.address().map(|begin| begin + (view.offset * width) as u64);
    let strides = from.strides.iter().zip(&to.strides);
    let axes = from.dims.iter().zip(strides).map(|(&size, (&from, &to))| Axis { size, from, to }).collect();
    let moves = Moves { x: begin(x, from)?, y: begin(y, to)?, width, axes };
    moves.merged().widened().run(gpu)
}

/// Sets every element to the low bits of `value`.
///
/// # Errors
/// The device fails.
pub(super) fn fill(gpu: &Gpu, y: &Array, value: u64) -> Result<()> {
    let params = FillParams { y: y.address()?, value, count: count(y.len())?, padding: 0 };
    launch(gpu, kernel("fill", width(y.dtype())?), Grid::over(params.count), &params)
}

fn kernel(name: &'static str, kind: &'static str) -> Symbol {
    Symbol { module: "copy", name, kind }
}

/// A dimension of a copy, with its strides in the source and in the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Axis {
    size: usize,
    from: isize,
    to: isize,
}

/// A copy of words of `width` bytes from address `x` to address `y`. No dimension is 0.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Moves {
    x: u64,
    y: u64,
    width: usize,
    axes: Vec<Axis>,
}

impl Moves {
    /// Merges dimensions, so that there are as few as possible, but at least one.
    fn merged(mut self) -> Moves {
        let mut axes: Vec<Axis> = Vec::with_capacity(self.axes.len());
        for axis in self.axes.into_iter().filter(|axis| axis.size != 1) {
            let reach = |stride: isize| stride.checked_mul(axis.size as isize);
            match axes.last_mut() {
                Some(outer) if reach(axis.from) == Some(outer.from) && reach(axis.to) == Some(outer.to) => {
                    *outer = Axis { size: outer.size * axis.size, ..axis };
                }
                _ => axes.push(axis),
            }
        }
        if axes.is_empty() {
            axes.push(Axis { size: 1, from: 1, to: 1 });
        }
        self.axes = axes;
        self
    }

    /// Widens the words as far as the contiguous runs allow.
    fn widened(mut self) -> Moves {
        let Some((Axis { size, from: 1, to: 1 }, outer)) = self.axes.split_last_mut() else { return self };
        let spans = outer
            .iter()
            .flat_map(|axis| [axis.from, axis.to])
            .map(|stride| (stride.unsigned_abs() * self.width) as u64);
        let begins: Vec<u64> = spans.chain([self.x, self.y]).collect();
        let joined = elements_per_word(self.width, *size, &begins);
        for axis in outer {
            axis.from /= joined as isize;
            axis.to /= joined as isize;
        }
        *size /= joined;
        self.width *= joined;
        self.merged()
    }

    fn run(&self, gpu: &Gpu) -> Result<()> {
        match (self.axes.split_first(), self.crossed_axis()) {
            (Some((outer, inner)), _) if inner.len() >= MAX_RANK => {
                for i in 0..outer.size as i64 {
                    let at =
                        |begin: u64, stride: isize| begin.wrapping_add_signed(i * stride as i64 * self.width as i64);
                    let (x, y) = (at(self.x, outer.from), at(self.y, outer.to));
                    Moves { x, y, width: self.width, axes: inner.to_vec() }.run(gpu)?;
                }
                Ok(())
            }
            (_, Some(axis)) => self.transpose(axis, gpu),
            _ => self.copy_elements(gpu),
        }
    }

    /// Returns the dimension that is contiguous in the source, if the last one is contiguous in the result and both are
    /// long.
    fn crossed_axis(&self) -> Option<usize> {
        let (last, outer) = self.axes.split_last()?;
        let is_long = |axis: &Axis| axis.size >= WORTH_SQUARES;
        let crosses = |axis: &Axis| axis.from == 1 && is_long(axis);
        outer.iter().position(crosses).filter(|_| last.to == 1 && last.from != 1 && is_long(last))
    }

    fn transpose(&self, row: usize, gpu: &Gpu) -> Result<()> {
        let Some((last, outer)) = self.axes.split_last() else { bail!("a plane has two dimensions") };
        let rest = [&outer[..row], &outer[row + 1..]].concat();
        let planes: usize = sizes(&rest).iter().product();
        let params = TransposeParams {
            x: self.x,
            y: self.y,
            rows: count(outer[row].size)?,
            columns: count(last.size)?,
            from: step(last.from)?,
            to: step(outer[row].to)?,
            planes: count(planes)?,
            dims: Dims::new(&sizes(&rest))?,
            begins: Strides::new(rest.iter().map(|axis| axis.from))?,
            ends: Strides::new(rest.iter().map(|axis| axis.to))?,
        };
        let squares = planes * outer[row].size.div_ceil(SQUARE) * last.size.div_ceil(SQUARE);
        launch(gpu, kernel("transpose", word(self.width)), Grid::blocks(count(squares)?), &params)
    }

    fn copy_elements(&self, gpu: &Gpu) -> Result<()> {
        let sizes = sizes(&self.axes);
        let params = CopyParams {
            x: self.x,
            y: self.y,
            count: count(sizes.iter().product())?,
            dims: Dims::new(&sizes)?,
            from: Strides::new(self.axes.iter().map(|axis| axis.from))?,
            to: Strides::new(self.axes.iter().map(|axis| axis.to))?,
        };
        launch(gpu, kernel("copy", word(self.width)), Grid::over(params.count), &params)
    }
}

fn sizes(axes: &[Axis]) -> Vec<usize> {
    axes.iter().map(|axis| axis.size).collect()
}

/// Returns the bits of the only element of a tensor on the host.
///
/// # Errors
/// The tensor has another number of elements, or is on a device.
pub(super) fn bits(value: &Array) -> Result<u64> {
    let mut bits = [0; size_of::<u64>()];
    let bytes = value.bytes_on_host()?;
    if value.len() != 1 || bytes.len() > bits.len() {
        bail!("expected one element, found {}", value.len());
    }
    bits[..bytes.len()].copy_from_slice(bytes);
    Ok(u64::from_le_bytes(bits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Element;
    use crate::gpu::{download, upload};
    use crate::testing::copied_on_host;

    /// Asserts that a view of 0, 1, … is copied as on the host.
    fn check<T: Element>(gpu: &Gpu, numbers: Vec<T>, view: &View) {
        let x = Array::new(numbers, &[LENGTH]).expect("as many");
        let expected = copied_on_host(&x, view);
        let there = upload(gpu, &x.into()).expect("enough memory");
        let y = copied(gpu, there.tensor().expect("a tensor"), view).expect("inside");
        let y = download(&y).expect("it lies on the device");
        let (y, expected) = (y.read::<T>(), expected.read::<T>());
        assert!(y.expect("its type") == expected.expect("its type"), "{view:?} {}", std::any::type_name::<T>());
    }

    const LENGTH: usize = 60_000;

    fn check_widths(view: &View) {
        let gpu = candle_plan_device_emulator::open().expect("enough memory");
        let numbers = || 0..LENGTH as u64;
        check(&gpu, numbers().map(|i| (i * 7) as u8).collect(), view);
        check(&gpu, numbers().map(|i| i as u16).collect(), view);
        check(&gpu, numbers().map(|i| i as u32).collect(), view);
        check(&gpu, numbers().collect::<Vec<u64>>(), view);
    }

    #[test]
    fn permutations() {
        let cases: [(&[usize], &[usize]); 13] = [
            (&[2, 300, 2], &[2, 1, 0]),
            (&[700, 4], &[1, 0]),
            (&[200, 300], &[1, 0]),
            (&[33, 64, 16], &[1, 0, 2]),
            (&[20, 40, 3], &[1, 0, 2]),
            (&[2, 100, 300], &[0, 2, 1]),
            (&[2, 17, 18, 19], &[3, 2, 1, 0]),
            (&[17, 5, 33, 6], &[2, 1, 3, 0]),
            (&[4, 5, 6, 7, 8], &[2, 4, 0, 3, 1]),
            (&[2, 3, 2, 3, 2, 3, 2, 3, 2, 3], &[9, 8, 7, 6, 5, 4, 3, 2, 1, 0]),
            (&[20, 1, 30, 1, 40], &[4, 1, 2, 3, 0]),
            (&[3, 0, 4], &[2, 1, 0]),
            (&[], &[]),
        ];
        cases.into_iter().for_each(|(dims, order)| check_widths(&View::contiguous(dims).permute(order)));
    }

    #[test]
    fn steps_and_repeats() {
        let cases = [
            View { offset: 59_999, dims: vec![60_000], strides: vec![-1] },
            View { offset: 16, dims: vec![59_984], strides: vec![1] },
            View { offset: 3, dims: vec![50, 7, 32], strides: vec![64, 0, 1] },
            View { offset: 10, dims: vec![20, 30], strides: vec![300, 2] },
            View { offset: 7, dims: vec![40, 3, 50], strides: vec![0, 1, 0] },
            View { offset: 7, dims: vec![40, 50], strides: vec![1, 0] },
            View { offset: 5000, dims: vec![40, 50], strides: vec![1, -60] },
            View { offset: 1000, dims: vec![20, 30, 40], strides: vec![-40, 1, 60] },
            View { offset: 0, dims: vec![5, 5, 5], strides: vec![0, 0, 0] },
            View { offset: 90_000, dims: vec![2, 0], strides: vec![7, 7] },
        ];
        cases.iter().for_each(check_widths);
    }

    #[test]
    fn views_outside_their_tensor_are_refused() {
        let gpu = candle_plan_device_emulator::open().expect("enough memory");
        let x = alloc_uninit(&gpu, &[10], crate::dtype::DType::Float32).expect("enough memory");
        let view = |offset, dims: &[usize]| View { offset, ..View::contiguous(dims) };
        let cases = [(view(1, &[10]), view(0, &[10])), (view(0, &[4]), view(7, &[4])), (view(0, &[4]), view(0, &[5]))];
        for (from, to) in cases {
            assert!(copy(&gpu, (&x, &from), (&x, &to)).is_err(), "{from:?} {to:?}");
        }
    }

    #[test]
    fn runs_move_in_wide_words() {
        let axis = |size, from, to| Axis { size, from, to };
        let moves = |x, axes: &[Axis]| Moves { x, y: 32, width: 2, axes: axes.to_vec() }.merged().widened();
        assert_eq!(
            moves(16, &[axis(3, 16, 16), axis(16, 1, 1)]),
            Moves { x: 16, y: 32, width: 16, axes: vec![axis(6, 1, 1)] }
        );
        assert_eq!(moves(8, &[axis(3, 20, 12), axis(12, 1, 1)]).axes, [axis(3, 5, 3), axis(3, 1, 1)]);
        assert_eq!(moves(16, &[axis(3, 8, 32), axis(4, 16, 8), axis(8, 1, 1)]).axes, [axis(3, 1, 4), axis(4, 2, 1)]);
        assert_eq!(moves(2, &[axis(3, 16, 16), axis(8, 1, 1)]).width, 2);
    }
}
