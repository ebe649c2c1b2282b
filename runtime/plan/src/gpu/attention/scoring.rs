//! The parameters of kernels that make scores from products.

use bytemuck::{Pod, Zeroable};
use candle_plan_descriptors::attention::Dims;
use candle_plan_device::Mirror;

use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::launch::count;
use crate::kernel::Call;
use crate::operands::attention::{mask_strides, Layout, Strides};
use crate::ops::attention::{Attention, AttentionGuard};
use crate::value::Array;

/// The largest window of keys; positions are smaller.
const FAR: usize = 1 << 60;

/// How products become scores. `Attention::layout` and `mask_strides` check that the inputs have the elements that these
/// sizes and strides require.
#[derive(Clone, Copy, Pod, Zeroable, Mirror)]
#[repr(C)]
#[kernel(Scoring in "attention.cuh")]
pub(super) struct Scoring {
    mask: u64,
    nonpad: u64,
    scale: f64,
    cap: f64,
    left: i64,
    right: i64,
    heads: u32,
    queries: u32,
    keys: u32,
    past: u32,
    mask_kind: u32,
    mask_keys: u32,
    mask_step: [u32; 3],
    guard: u32,
    is_capped: u32,
    padding: u32,
}

/// A tensor, with the strides of its vectors.
pub(super) type Vectors<'a> = (&'a Array, Strides);

impl Attention {
    /// Describes how products become scores.
    pub(super) fn scoring(&self, call: &Call, layout: &Layout) -> Result<Scoring> {
        let dims = layout.dims;
        let window = |keys: Option<usize>| keys.map_or(-1, |keys| keys.min(FAR) as i64);
        let right = if self.is_causal { Some(0) } else { self.right_window };
        let mut scoring = Scoring {
            scale: self.scale.unwrap_or_else(|| 1.0 / (dims.depth as f64).sqrt()),
            cap: self.softcap.unwrap_or(0.0),
            left: window(self.left_window),
            right: window(right),
            heads: count(dims.heads)?,
            queries: count(dims.queries)?,
            keys: count(dims.keys)?,
            past: count(layout.past)?,
            mask_keys: count(dims.keys)?,
            guard: match self.guard {
                AttentionGuard::Unseeing => 0,
                AttentionGuard::Nothing => 1,
                AttentionGuard::Undefined => 2,
            },
            is_capped: self.softcap.is_some().into(),
            ..Scoring::zeroed()
        };
        add_masks(call, dims, &mut scoring)?;
        Ok(scoring)
    }
}

/// Adds the parameters that determine which keys a query sees.
fn add_masks(call: &Call, dims: Dims, scoring: &mut Scoring) -> Result<()> {
    if let Some(mask) = call.optional_tensor(3)? {
        let (steps, keys) = mask_strides(mask.dims(), dims)?;
        count(mask.len())?;
        scoring.mask = mask.address()?;
        scoring.mask_kind = if mask.dtype() == DType::Bool { 2 } else { 1 };
        scoring.mask_keys = count(keys)?;
        scoring.mask_step = unsigned(steps)?;
    }
    if let Some(nonpad) = call.optional_tensor(6)? {
        scoring.nonpad = nonpad.address()?;
    }
    Ok(())
}

/// Converts strides to those of a kernel.
///
/// # Errors
/// A stride is too large.
pub(super) fn unsigned([a, b, c]: Strides) -> Result<[u32; 3]> {
    Ok([count(a)?, count(b)?, count(c)?])
}
