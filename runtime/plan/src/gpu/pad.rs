//! GPU kernels: padding and cropping.

use bytemuck::{Pod as Plain, Zeroable};
use candle_plan_descriptors::strided::View;
use candle_plan_device::{Gpu, Grid, Symbol};

use super::copy::{bits, fill};
use super::launch::{alloc_uninit, count, launch, width, Params};
use super::shapes::{Dims, Strides, MAX_RANK};
use super::OnGpu;
use crate::bail;
use crate::error::Result;
use crate::gpu::{gpu_kernel, has_few_dimensions};
use crate::kernel::Call;
use crate::ops::pad::{CenterCropPad, Pad, PadMode, Window};
use crate::value::{Array, Value};

/// The windows are inside X's axes.
#[derive(Clone, Copy, Plain, Zeroable, Params)]
#[repr(C)]
#[kernel(PadOf in "pad.cu")]
struct PadParams {
    x: u64,
    y: u64,
    value: u64,
    count: u32,
    mode: u32,
    dims: Dims,
    steps: Strides,
    before: [u32; MAX_RANK],
    low: [u32; MAX_RANK],
    kept: [u32; MAX_RANK],
    padding: u32,
}

gpu_kernel!(Pad: "pad" if |self, operands| has_few_dimensions(operands));

impl OnGpu for Pad {
    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let windows = self.windows(call, x.dims())?;
        let value = match call.optional_tensor(2)? {
            Some(value) if value.dtype() != x.dtype() => {
                bail!("a {} tensor cannot be padded with {}", x.dtype(), value.dtype())
            }
            Some(value) => bits(value)?,
            None => 0,
        };
        Ok(vec![padded(gpu, x, &windows, self.mode, value)?.into()])
    }
}

gpu_kernel!(CenterCropPad: "pad" if |self, operands| has_few_dimensions(operands));

impl OnGpu for CenterCropPad {
    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let windows = self.windows(call, x.dims())?;
        Ok(vec![padded(gpu, x, &windows, PadMode::Constant, 0)?.into()])
    }
}

/// Copies the elements in the windows of each axis of `x`; padding gets the element with these bits.
fn padded(gpu: &Gpu, x: &Array, windows: &[Window], mode: PadMode, value: u64) -> Result<Array> {
    let dims: Vec<usize> = windows.iter().map(|window| window.count).collect();
    let y = alloc_uninit(gpu, &dims, x.dtype())?;
    if windows.iter().any(|window| window.kept == 0) {
        fill(gpu, &y, value)?;
        return Ok(y);
    }
    let axes = merged(x.dims(), windows);
    let (sizes, windows): (Vec<usize>, Vec<Window>) = axes.into_iter().unzip();
    let each = |field: fn(&Window) -> usize| -> Result<[u32; MAX_RANK]> {
        let mut all = [0; MAX_RANK];
        for (place, window) in all.iter_mut().zip(&windows) {
            *place = count(field(window))?;
        }
        Ok(all)
    };
    let params = PadParams {
        x: x.address()?,
        y: y.address()?,
        value,
        count: count(y.len())?,
        mode: match mode {
            PadMode::Constant => 0,
            PadMode::Edge => 1,
            PadMode::Reflect => 2,
            PadMode::Wrap => 3,
        },
        dims: Dims::new(&windows.iter().map(|window| window.count).collect::<Vec<_>>())?,
        steps: Strides::new(View::contiguous(&sizes).strides)?,
        before: each(|window| window.before)?,
        low: each(|window| window.first)?,
        kept: each(|window| window.kept)?,
        padding: 0,
    };
    let kernel = Symbol { module: "pad", name: "pad", kind: width(x.dtype())? };
    launch(gpu, kernel, Grid::over(params.count), &params)?;
    Ok(y)
}

/// Returns the axes and their windows, where adjacent axes that are kept whole are merged.
fn merged(dims: &[usize], windows: &[Window]) -> Vec<(usize, Window)> {
    let mut axes: Vec<(usize, Window)> = Vec::with_capacity(dims.len());
    for (&dim, &window) in dims.iter().zip(windows) {
        match axes.last_mut() {
            Some((outer, previous)) if window == Window::whole(dim) && *previous == Window::whole(*outer) => {
                *outer *= dim;
                *previous = Window::whole(*outer);
            }
            _ => axes.push((dim, window)),
        }
    }
    axes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Element;
    use crate::testing::{run, run_on_device, tensor};

    /// `run` also compares with the host.
    fn pad<T: Element>(mode: PadMode, dims: &[usize], pads: &[i64], number: impl Fn(usize) -> T) {
        let x = tensor(&(1..=dims.iter().product()).map(&number).collect::<Vec<_>>(), dims);
        let inputs = [Some(x), Some(tensor(pads, &[pads.len()])), Some(tensor(&[number(99)], &[1]))];
        run(&Pad { mode }, &inputs).unwrap_or_else(|error| panic!("{mode:?} {dims:?} {pads:?}: {error}"));
    }

    #[test]
    fn every_mode_and_width() {
        let cases: [(&[usize], &[i64]); 7] = [
            (&[2, 3, 7, 9], &[0, 0, 1, 2, 0, 0, 3, 0]),
            (&[2, 3, 7, 9], &[0, 1, -2, 2, 0, 1, 3, -4]),
            (&[4, 5, 6], &[2, 0, 0, -1, 0, 0]),
            (&[2, 1, 3, 1, 2], &[1, 2, 0, 0, 3, 0, 1, 2, 1, 0]),
            (&[40], &[-39, 100]),
            (&[3], &[7, 300]),
            (&[2, 3], &[0, 0, 0, 0]),
        ];
        for (dims, pads) in cases {
            for mode in [PadMode::Constant, PadMode::Edge, PadMode::Reflect, PadMode::Wrap] {
                pad(mode, dims, pads, |i| i as u8);
                pad(mode, dims, pads, |i| i as i16);
                pad(mode, dims, pads, |i| i as f32);
                pad(mode, dims, pads, |i| i as i64);
            }
        }
        pad(PadMode::Constant, &[0, 3], &[2, 1, 2, 1], |i| i as f64);
        pad(PadMode::Constant, &[2, 3], &[2, -5, 2, 4], |i| i as u16);
        pad(PadMode::Edge, &[2, 3], &[0, -3, 1, 0], |i| i as u16);
        pad(PadMode::Constant, &[], &[], |i| i as f32);
    }

    #[test]
    fn crops_about_the_center() {
        let x = tensor(&(0..6 * 7 * 8).map(|i| i as f32).collect::<Vec<_>>(), &[6, 7, 8]);
        for shape in [[3, 7, 11], [9, 2, 8], [6, 0, 1], [1, 10, 3]] {
            let op = CenterCropPad { axes: Some(vec![0, -2, 2]) };
            run(&op, &[Some(x.clone()), Some(tensor(&shape, &[3]))]).expect("three sizes");
        }
    }

    #[test]
    fn mismatched_inputs_are_refused() {
        let refused = |pads: Value, value: Value| {
            run_on_device(&Pad { mode: PadMode::Constant }, &[tensor(&[1f32], &[1]), pads, value]).is_err()
        };
        let (pads, value) = (|pads: &[i64]| tensor(pads, &[pads.len()]), tensor(&[0f32], &[]));
        assert!(!refused(pads(&[1, 1]), value.clone()) && refused(pads(&[1, 1, 1]), value.clone()));
        assert!(refused(pads(&[1, -3]), value) && refused(pads(&[1, 1]), tensor(&[0f32, 0.0], &[2])));
        assert!(refused(pads(&[1, 1]), tensor(&[0i32], &[])));
    }
}
