//! GPU kernels: triangles of matrices.

use bytemuck::{Pod, Zeroable};
use candle_plan_device::{Gpu, Grid, Symbol};

use super::launch::{alloc_in_place, count, launch, width, Params};
use super::OnGpu;
use crate::bail;
use crate::error::Result;
use crate::gpu::gpu_kernel;
use crate::kernel::Call;
use crate::ops::select::Trilu;
use crate::value::Value;

/// X and Y have `count` elements.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(TriluOf in "select.cu")]
struct TriluParams {
    x: u64,
    y: u64,
    k: i64,
    count: u32,
    rows: u32,
    columns: u32,
    is_upper: u32,
}

/// Clamps a diagonal so that row indices can be added to it; the triangles of every supported matrix stay the same.
pub(super) fn bounded_diagonal(k: i64) -> i64 {
    const BEYOND: i64 = 1 << 31;
    k.clamp(-BEYOND, BEYOND)
}

gpu_kernel!(Trilu: "select");

impl OnGpu for Trilu {
    fn in_place(&self) -> &'static [usize] {
        &[0]
    }

    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let (k, x) = (Trilu::diagonal(call)?, call.tensor(0)?);
        let (dims, dtype, address) = (x.dims().to_vec(), x.dtype(), x.address()?);
        let &[.., rows, columns] = &dims[..] else { bail!("expected matrices, found {dims:?}") };
        let y = alloc_in_place(gpu, call, OnGpu::in_place(self), &dims, dtype)?;
        if y.is_empty() {
            return Ok(vec![y.into()]);
        }
        let params = TriluParams {
            x: address,
            y: y.address()?,
            k: bounded_diagonal(k),
            count: count(y.len())?,
            rows: count(rows)?,
            columns: count(columns)?,
            is_upper: self.upper.into(),
        };
        let symbol = Symbol { module: "select", name: "trilu", kind: width(dtype)? };
        launch(gpu, symbol, Grid::over(params.count), &params)?;
        Ok(vec![y.into()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Element;
    use crate::testing::{run, tensor};

    fn check<T: Element>(of: impl Fn(usize) -> T) {
        for dims in [&[17, 33][..], &[3, 2, 9, 7], &[1, 300], &[4, 1], &[2, 0, 3], &[3, 0]] {
            let x: Vec<T> = (0..dims.iter().product()).map(&of).collect();
            for k in [0, 1, -1, 5, -20, 400, i64::MAX, i64::MIN, 1 << 31, -(1 << 31)] {
                for upper in [true, false] {
                    run(&Trilu { upper }, &[Some(tensor(&x, dims)), Some(tensor(&[k], &[1]))]).expect("matrices");
                }
            }
        }
    }

    #[test]
    fn parameters_of_another_kernel_are_refused() {
        let (gpu, params) = (Gpu::dry_run().expect("it needs nothing"), TriluParams::zeroed());
        for (symbol, shown) in [
            (Symbol { module: "softmax", name: "softmax", kind: "f32" }, "softmax_f32 in softmax.cu"),
            (Symbol { module: "select", name: "trilu", kind: "f32" }, "trilu_f32 in select.cu"),
        ] {
            let error = launch(&gpu, symbol, Grid::over(1), &params).expect_err("it has other parameters");
            let expected = format!("the kernel {shown} does not have the parameters TriluOf in select.cu");
            assert!(error.to_string().contains(&expected), "{error}");
        }
        let symbol = Symbol { module: "select", name: "trilu", kind: "u32" };
        assert!(launch(&gpu, symbol, Grid::over(1), &params).is_ok());
    }

    #[test]
    fn triangles_of_every_width() {
        check(|i| (i % 250 + 1) as u8);
        check(|i| (i + 1) as i16);
        check(|i| i as f32 + 0.5);
        check(|i| i as i64 - 7);
    }
}
