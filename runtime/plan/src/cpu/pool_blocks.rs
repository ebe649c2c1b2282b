//! Pooling of images in blocks of channels.

use candle_plan_kernels::blocked::{self, Pool};
use candle_plan_kernels::isa::Isa;

use super::blocks::Blocked;
use crate::error::Result;
use crate::kernel::{Call, Constants, Kernel};
use crate::layout::{in_blocks, in_rows, Image, Layout};
use crate::ops::pool::PoolWindow;
use crate::types::Type;
use crate::value::{alloc_uninit, Array, Value};

/// The saving per pixel of a window, in multiply-adds of a vector. In rows, the kernel has to shuffle the pixels of a
/// row.
const PIXEL: usize = 2;

/// Returns how pooling without indices runs on blocks.
pub(super) fn blocked(
    window: &PoolWindow,
    pool: Pool,
    operands: &Constants,
    outputs: &[Option<&Type>],
) -> Option<(PoolBlocks, Blocked)> {
    let ([Some(x)], [Some(y)]) = (operands.types, outputs) else { return None };
    let (x, y) = (Image::of(x)?, Image::of(y)?);
    let pixels: usize = window.kernel.iter().fold(PIXEL, |pixels, &size| pixels.saturating_mul(size));
    let gain = i64::try_from(pixels.saturating_mul(y.vectors())).unwrap_or(i64::MAX);
    let blocked = Blocked {
        rank: x.rank,
        inputs: vec![Layout::Blocks],
        outputs: vec![Layout::Blocks],
        gain: gain.saturating_sub(y.wasted().saturating_mul(gain / y.vectors().max(1) as i64)),
    };
    Some((PoolBlocks { window: window.clone(), pool, channels: x.channels }, blocked))
}

/// Pooling of images in blocks.
#[derive(Debug, Clone)]
pub(super) struct PoolBlocks {
    window: PoolWindow,
    pool: Pool,
    channels: usize,
}

impl Kernel for PoolBlocks {
    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let (windows, dims) = self.window.windows(&in_rows(x.dims(), self.channels)?)?;
        let dims = in_blocks(&dims);
        let mut y = alloc_uninit(&dims)?;
        blocked::pool(Isa::get(), call.threads, self.pool, x.read::<f32>()?, windows, &mut y);
        Ok(vec![Array::new(y, &dims)?.into()])
    }
}
