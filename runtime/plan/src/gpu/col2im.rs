//! GPU kernels: sums sliding windows into an image.

use bytemuck::{Pod, Zeroable};
use candle_plan_device::{Gpu, Grid, Symbol};

use super::launch::{alloc_uninit, count, kind, launch, Params};
use super::shapes::{Dims, MAX_RANK};
use super::OnGpu;
use crate::axes;
use crate::error::Result;
use crate::extent::known_sizes;
use crate::gpu::gpu_kernel;
use crate::kernel::Call;
use crate::ops::col2im::Col2Im;
use crate::value::Value;

/// `Col2Im::windows` checks that X has all windows.
#[derive(Debug, Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(Columns in "col2im.cu")]
struct ColumnsParams {
    x: u64,
    y: u64,
    count: u32,
    taps: u32,
    windows: u32,
    image: Dims,
    kernel: [u32; MAX_RANK],
    places: [u32; MAX_RANK],
    stride: [u32; MAX_RANK],
    dilation: [u32; MAX_RANK],
    before: [u32; MAX_RANK],
}

gpu_kernel!(Col2Im: "col2im" if |self, _operands| self.strides.len() <= MAX_RANK);

impl OnGpu for Col2Im {
    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let image = axes::dims(&call.tensor(1)?.to_i64()?)?;
        let kernel = axes::dims(&call.tensor(2)?.to_i64()?)?;
        let (windows, dims) = self.windows(x.dims(), &image, &kernel)?;
        let dims = known_sizes(&dims)?;
        let y = alloc_uninit(gpu, &dims, x.dtype())?;
        if y.is_empty() {
            return Ok(vec![y.into()]);
        }
        count(x.len())?;
        // The step between windows is unused with one window, and the step between taps with one tap.
        let used_steps = |sizes: &[usize], steps: &[usize]| -> Vec<usize> {
            sizes.iter().zip(steps).map(|(&size, &step)| if size < 2 { 1 } else { step }).collect()
        };
        for (&size, &step) in kernel.iter().zip(&self.dilations) {
            count((size - 1).saturating_mul(step))?;
        }
        let before: Vec<usize> = self.pads.iter().map(|pad| pad[0]).collect();
        let params = ColumnsParams {
            x: x.address()?,
            y: y.address()?,
            count: count(y.len())?,
            taps: count(kernel.iter().product())?,
            windows: count(windows.iter().product())?,
            image: Dims::new(&image)?,
            kernel: by_axis(&kernel)?,
            places: by_axis(&windows)?,
            stride: by_axis(&used_steps(&windows, &self.strides))?,
            dilation: by_axis(&used_steps(&kernel, &self.dilations))?,
            before: by_axis(&before)?,
        };
        launch(
            gpu,
            Symbol { module: "col2im", name: "col2im", kind: kind(x.dtype())? },
            Grid::over(params.count),
            &params,
        )?;
        Ok(vec![y.into()])
    }
}

fn by_axis(sizes: &[usize]) -> Result<[u32; MAX_RANK]> {
    let mut all = [1; MAX_RANK];
    for (place, &size) in all.iter_mut().zip(sizes) {
        *place = count(size)?;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::*;
    use crate::testing::{draw, run, tensor};

    fn of_dtype(dtype: usize, data: &[i64], dims: &[usize]) -> Value {
        macro_rules! of {
            ($from:expr) => {
                tensor(&data.iter().map(|&x| $from(x)).collect::<Vec<_>>(), dims)
            };
        }
        match dtype {
            0 => of!(|x| x as f32),
            1 => of!(|x| x as f64),
            2 => of!(|x| f16::from_f64(x as f64)),
            3 => of!(|x| bf16::from_f64(x as f64)),
            4 => of!(|x| x as i8),
            5 => of!(|x| x as u8),
            6 => of!(|x| x as i16),
            7 => of!(|x| x as u16),
            8 => of!(|x| (x << 24) as i32),
            9 => of!(|x| (x << 24) as u32),
            10 => of!(|x| x << 56),
            _ => of!(|x| (x << 56) as u64),
        }
    }

    #[test]
    fn random_windows() {
        let (seed, mut done) = (&mut 1, 0);
        while done < 120 {
            let axes = 1 + draw(seed, 3);
            let mut each = |from: usize, to: usize| (0..axes).map(|_| from + draw(seed, to - from)).collect::<Vec<_>>();
            let (strides, dilations, kernel, image) = (each(1, 4), each(1, 3), each(1, 4), each(1, 12));
            let pads = each(0, 3).into_iter().zip(each(0, 3)).map(|(before, after)| [before, after]).collect();
            let op = Col2Im { strides, dilations, pads };
            let size = |a: usize| {
                let span =
                    (image[a] + op.pads[a][0] + op.pads[a][1]).checked_sub((kernel[a] - 1) * op.dilations[a] + 1)?;
                Some(span / op.strides[a] + 1)
            };
            let Some(windows) = (0..axes).map(size).try_fold(1, |n, size| Some(n * size?)) else { continue };
            let dims = [1 + draw(seed, 2), (1 + draw(seed, 3)) * kernel.iter().product::<usize>(), windows];
            let data: Vec<i64> = (0..dims.iter().product()).map(|_| draw(seed, 200) as i64 - 100).collect();
            let sizes = |sizes: &[usize]| {
                Some(tensor(&sizes.iter().map(|&size| size as i64).collect::<Vec<_>>(), &[sizes.len()]))
            };
            run(&op, &[Some(of_dtype(done % 12, &data, &dims)), sizes(&image), sizes(&kernel)]).unwrap();
            done += 1;
        }
    }
}
