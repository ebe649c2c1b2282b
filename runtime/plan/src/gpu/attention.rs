//! GPU kernels: attention, in [one pass](flash) over the keys, or with [products](products) of matrices.

mod flash;
mod products;
mod scoring;
#[cfg(test)]
mod tests;

use bytemuck::{Pod, Zeroable};
use candle_plan_device::{Gpu, Grid, Symbol};

use self::scoring::unsigned;
use super::launch::{alloc_uninit, count, launch, width, Params};
use super::OnGpu;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::gpu_kernel;
use crate::kernel::{Call, Constants, Kernel};
use crate::operands::attention::{Layout, Strides};
use crate::ops::attention::{vectors, Attention};
use crate::types::Types;
use crate::value::{Array, Value};

/// The parameters of the kernel that joins past and new keys, or values. The sizes are the sizes of `Scoring`.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(JoinedKeys in "attention.cu")]
struct JoinParams {
    past: u64,
    fresh: u64,
    joined: u64,
    count: u32,
    heads: u32,
    old: u32,
    rows: u32,
    size: u32,
    step: [u32; 3],
}

gpu_kernel!(Attention: "attention" if |self, operands| has_kernel(operands));

impl OnGpu for Attention {
    fn reads_grown(&self, input: usize, from_end: usize) -> bool {
        Kernel::reads_grown(self, input, from_end)
    }

    fn scratch(&self, inputs: &Types) -> Option<usize> {
        if inputs.optional(4).is_some() {
            return None; // all keys and values may be scratch memory
        }
        let ([batch, heads, queries, _], [_, _, keys, _]) =
            (vectors(inputs.shape(0).ok()??, self.heads).ok()?, vectors(inputs.shape(1).ok()??, self.kv_heads).ok()?);
        Some(products::scratch_bytes([batch?, heads?, queries?, keys?], inputs.tensor(0).ok()?.dtype))
    }

    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let layout = self.layout(call)?;
        let joined = joined(gpu, call, &layout)?;
        let dims = layout.dims;
        let y_dims = match self.heads {
            None => vec![dims.batch, dims.heads, dims.queries, dims.width],
            Some(_) => vec![dims.batch, dims.queries, dims.heads * dims.width],
        };
        let dtype = call.tensor(0)?.dtype();
        let y = alloc_uninit(gpu, &y_dims, dtype)?;
        let all = [dims.batch, dims.heads, dims.queries, dims.keys];
        let kept = if call.outputs > 3 { Some(alloc_uninit(gpu, &all, dtype)?) } else { None };
        let whole = |size: usize| [dims.kv_heads * dims.keys * size, dims.keys * size, size];
        let (k, v) = match &joined {
            Some([k, v]) => ((k, whole(dims.depth)), (v, whole(dims.width))),
            None => ((call.storage(1)?, layout.k), (call.storage(2)?, layout.v)),
        };
        let row = match self.heads {
            None => [dims.heads * dims.queries * dims.width, dims.queries * dims.width, dims.width],
            Some(_) => [dims.queries * dims.heads * dims.width, dims.width, dims.heads * dims.width],
        };
        let scoring = self.scoring(call, &layout)?;
        let vectors = [(call.tensor(0)?, layout.q), k, v, (&y, row)];
        if kept.is_none() && flash::fits(dtype, dims) {
            flash::run(gpu, dims, vectors, scoring)?;
        } else {
            let kept = kept.as_ref().map(|kept| (kept, self.scores));
            products::run(gpu, dims, vectors, scoring, kept)?;
        }
        let mut outputs = vec![y.into()];
        outputs.extend(joined.into_iter().flatten().map(Value::from));
        outputs.extend(kept.map(Value::from));
        Ok(outputs)
    }
}

/// Returns all keys and values, `[N, kv_heads, S, D]`, if there is a past or they are outputs.
fn joined(gpu: &Gpu, call: &Call, layout: &Layout) -> Result<Option<[Array; 2]>> {
    if call.optional(4).is_none() && call.outputs < 2 {
        return Ok(None);
    }
    let dims = layout.dims;
    let join = |past: usize, fresh: usize, strides: Strides, size: usize| {
        let (past, fresh) = (call.optional_tensor(past)?, call.storage(fresh)?);
        let joined = alloc_uninit(gpu, &[dims.batch, dims.kv_heads, dims.keys, size], fresh.dtype())?;
        let params = JoinParams {
            past: past.map_or(Ok(0), Array::address)?,
            fresh: fresh.address()?,
            joined: joined.address()?,
            count: count(joined.len())?,
            heads: count(dims.kv_heads)?,
            old: count(layout.past)?,
            rows: count(dims.keys)?,
            size: count(size)?,
            step: unsigned(strides)?,
        };
        let symbol = Symbol { module: "attention", name: "join", kind: width(fresh.dtype())? };
        launch(gpu, symbol, Grid::over(params.count), &params)?;
        Ok::<_, crate::error::Error>(joined)
    };
    Ok(Some([join(4, 1, layout.k, dims.depth)?, join(5, 2, layout.v, dims.width)?]))
}

/// Whether the device has a kernel: V, and a numeric mask, must have Q's type.
fn has_kernel(operands: &Constants) -> bool {
    let [q, v, mask] = [0, 2, 3].map(|i| operands.dtype(i));
    let has_mask = operands.types.get(3).copied().flatten().is_some();
    q.is_some() && v == q && (!has_mask || mask == Some(DType::Bool) || mask == q)
}
