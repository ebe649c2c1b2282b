//! Pooling of images in blocks of channels.

use candle_plan_kernels::blocking::Blocking;
use candle_plan_kernels::convolution::blocked::{self, Pool};

use super::blocks::Blocked;
use super::bounds::has_short_lines;
use super::planned::CpuOperands;
use crate::error::Result;
use crate::kernel::{Call, Kernel};
use crate::layout::{in_blocks, in_rows, Image, Layout};
use crate::ops::pool::PoolWindow;
use crate::types::{Type, Types};
use crate::value::{alloc_uninit, Array, Value};

/// The additional time per pixel of a window in rows, compared with blocks of 16 channels, in multiply-adds of a
/// vector. In rows, the kernel has to shuffle the pixels of a row.
const PIXEL: f64 = 2.0;

/// Returns how pooling without indices runs on blocks.
pub(super) fn blocked(
    window: &PoolWindow,
    pool: Pool,
    operands: &CpuOperands,
    outputs: &[Option<&Type>],
) -> Option<(PoolBlocks, Blocked)> {
    let ([Some(x)], [Some(y)]) = (operands.constants.types, outputs) else { return None };
    let (x, y) = (Image::of(x)?, Image::of(y)?);
    let pixels: f64 = window.kernel.iter().map(|&size| size as f64).product();
    let largest = Blocking::largest(operands.blocking.isa());
    let rows = y.vectors(largest) as f64 + PIXEL * (y.vectors(largest) - y.wasted(largest)) as f64;
    let blocked = Blocked {
        rank: x.rank,
        inputs: vec![Layout::Blocks],
        outputs: vec![Layout::Blocks],
        times: [rows, y.vectors(operands.blocking) as f64].map(|vectors| pixels * vectors),
    };
    Some((PoolBlocks { window: window.clone(), pool, channels: x.channels, blocking: operands.blocking }, blocked))
}

/// Pooling of images in blocks.
#[derive(Debug, Clone)]
pub(super) struct PoolBlocks {
    window: PoolWindow,
    pool: Pool,
    channels: usize,
    blocking: Blocking,
}

impl Kernel for PoolBlocks {
    fn scratch(&self, inputs: &Types) -> Option<usize> {
        has_short_lines(&self.window, inputs).then_some(0)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let (windows, dims) = self.window.windows(&in_rows(x.dims(), self.channels)?)?;
        let dims = in_blocks(&dims, self.blocking);
        let x = x.read::<f32>()?;
        let run = |y: &mut [f32]| blocked::pool(self.blocking, call.threads, self.pool, x, windows, y);
        let y = alloc_uninit(&dims)?.overwrite(run);
        Ok(vec![Array::new(y, &dims)?.into()])
    }
}
