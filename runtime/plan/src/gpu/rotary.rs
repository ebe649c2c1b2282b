//! GPU kernels: rotary position embedding.

use bytemuck::{Pod, Zeroable};
use candle_plan_device::{Fault, Gpu, Grid, Report, Symbol};

use super::launch::{alloc_uninit, count, kind, launch, Params};
use super::OnGpu;
use crate::error::Result;
use crate::gpu::gpu_kernel;
use crate::kernel::Call;
use crate::ops::rotary::{position_out_of_range, RotaryEmbedding};
use crate::value::{Array, Value};

/// `RotaryEmbedding::sizes` checked the inputs against its sizes.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(RotaryTurn in "rotary.cu")]
struct RotaryParams {
    x: u64,
    cos: u64,
    sin: u64,
    y: u64,
    ids: u64,
    fault: Fault,
    count: u32,
    size: u32,
    rotary: u32,
    heads: u32,
    positions: u32,
    rows: u32,
    heads_first: u32,
    interleaved: u32,
}

gpu_kernel!(RotaryEmbedding: "rotary" if |self, operands| operands.dtype(0).is_some());

impl OnGpu for RotaryEmbedding {
    fn fault(&self, report: &Report) -> String {
        position_out_of_range(report.value, report.place, report.bound(0))
    }

    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let (x, cos, sin) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?);
        let sizes = self.sizes(call)?;
        let y = alloc_uninit(gpu, x.dims(), x.dtype())?;
        let params = RotaryParams {
            x: x.address()?,
            cos: cos.address()?,
            sin: sin.address()?,
            y: y.address()?,
            ids: call.optional_tensor(3)?.map_or(Ok(0), Array::address)?,
            fault: gpu.fault(&[sizes.rows])?,
            count: count(y.len())?,
            size: count(sizes.size)?,
            rotary: count(sizes.rotary)?,
            heads: count(sizes.heads)?,
            positions: count(sizes.positions)?,
            rows: count(sizes.rows)?,
            heads_first: self.heads.is_none().into(),
            interleaved: self.interleaved.into(),
        };
        let symbol = Symbol { module: "rotary", name: "rotary", kind: kind(x.dtype())? };
        launch(gpu, symbol, Grid::over(params.count), &params)?;
        Ok(vec![y.into()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Element;
    use crate::testing::{fault, run, tensor};

    fn check<T: Element>(from: impl Fn(f32) -> T) {
        let data = |dims: &[usize]| -> Option<Value> {
            let data: Vec<T> =
                (0..dims.iter().product()).map(|i: usize| from((i * 7919 % 101) as f32 / 50.0 - 1.0)).collect();
            Some(tensor(&data, dims))
        };
        for (interleaved, rotary) in [(false, None), (true, None), (false, Some(6)), (true, Some(4)), (true, Some(0))] {
            let op = |heads| RotaryEmbedding { heads, interleaved, rotary_dim: rotary };
            let half = rotary.unwrap_or(8) / 2;
            let ids = Some(tensor(&[6i64, -1, 0, -7, 3, 2], &[2, 3]));
            for (x, heads) in [(&[2, 7, 3, 8][..], None), (&[2, 3, 56], Some(7))] {
                run(&op(heads), &[data(x), data(&[7, half]), data(&[7, half]), ids.clone()]).expect("runs");
                for batch in [1, 2] {
                    run(&op(heads), &[data(x), data(&[batch, 3, half]), data(&[batch, 3, half]), None]).expect("runs");
                }
            }
        }
    }

    #[test]
    fn vectors_rotate_as_on_the_cpu() {
        check::<f32>(|x| x);
        check::<f64>(f64::from);
        check::<half::f16>(half::f16::from_f32);
        check::<half::bf16>(half::bf16::from_f32);
    }

    #[test]
    fn positions_outside_of_the_caches_are_told_of() {
        let op = RotaryEmbedding { heads: None, interleaved: false, rotary_dim: None };
        let caches = || tensor(&[1f32, 0.0], &[2, 1]);
        for (id, expected) in [(1i64, false), (2, true), (-3, true), (i64::MIN, true)] {
            let last = if expected { 7 } else { -2 };
            let inputs = [tensor(&[1f32; 6], &[1, 1, 3, 2]), caches(), caches(), tensor(&[0, id, last], &[1, 3])];
            assert_eq!(fault(&op, &inputs), expected, "position {id}");
        }
    }
}
