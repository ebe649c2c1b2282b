//! Convolutions in tiles: a block of threads computes some outputs at some windows, for a part of the depth.

use candle_plan_device::{Grid, BLOCK, MOST_BLOCKS};

use super::case::Case;
use super::constants::{kernel, BYTES, ENOUGH, FINISH, MOST_PARTS, MULTIPROCESSORS, PART};
use super::form::{GpuConvForm, Work};
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::launch::{address, alloc_uninit, count};

/// The outputs and windows that a block computes at a time.
#[derive(Debug, PartialEq)]
pub(super) struct GpuTileForm {
    name: &'static str,
    kernel: &'static str,
    /// As `OUTPUTS` and `WINDOWS` in `conv.cu`.
    outputs: usize,
    windows: usize,
    /// The multiply-adds of a multiprocessor in a nanosecond.
    rate: f64,
}

/// The terms that a block loads at a time, as `DEPTH` in `conv.cu`.
const DEPTH: usize = 16;

/// The terms that a block could multiply while it starts and ends.
const START: usize = 29;

impl GpuTileForm {
    pub const SMALL: GpuTileForm =
        GpuTileForm { name: "small", kernel: "conv_small", outputs: 32, windows: 32, rate: 51.0 };

    pub const MEDIUM: GpuTileForm =
        GpuTileForm { name: "medium", kernel: "conv_medium", outputs: 64, windows: 64, rate: 84.0 };

    pub const LARGE: GpuTileForm =
        GpuTileForm { name: "large", kernel: "conv_large", outputs: 128, windows: 64, rate: 108.0 };

    /// Returns the number of blocks, with one part.
    fn blocks(&self, case: &Case) -> usize {
        let [rows, columns] = case.remainders();
        let windows = case.shape.batch.saturating_mul(case.most_windows()).div_ceil(self.windows);
        let pieces = [case.shape.groups, rows, columns].into_iter().fold(windows, usize::saturating_mul);
        case.outputs().div_ceil(self.outputs).saturating_mul(pieces)
    }

    /// Returns the number of sums that the blocks compute, including unused ones.
    fn computed(&self, case: &Case) -> usize {
        self.blocks(case).saturating_mul(self.outputs * self.windows)
    }
}

impl GpuConvForm for GpuTileForm {
    fn name(&self) -> &'static str {
        self.name
    }

    fn refusal(&self, case: &Case) -> Option<String> {
        // Large tiles of the widest dtype do not fit in shared memory.
        let is_wide = *self == GpuTileForm::LARGE && case.dtype == DType::Float64;
        is_wide.then(|| format!("and there is no such tile of {}", case.dtype))
    }

    fn limit(&self, case: &Case) -> Option<&'static str> {
        if *self == GpuTileForm::SMALL {
            None
        } else if self.blocks(case).saturating_mul(self.parts(case)) < ENOUGH {
            Some("too few blocks to fill the GPU")
        } else if self.computed(case) > (GpuTileForm::SMALL.computed(case) / 3).saturating_mul(4) {
            Some("much of its tiles is unused")
        } else {
            None
        }
    }

    fn splits(&self) -> bool {
        true
    }

    /// As many parts as give enough blocks.
    fn parts(&self, case: &Case) -> usize {
        let wanted = ENOUGH.div_ceil(self.blocks(case).max(1));
        wanted.min(case.depth() / PART).clamp(1, MOST_PARTS)
    }

    /// The multiprocessors compute blocks one after another.
    fn cost(&self, case: &Case, parts: usize) -> f64 {
        let waves = self.blocks(case).saturating_mul(parts).div_ceil(MULTIPROCESSORS);
        let terms = case.depth().div_ceil(parts).next_multiple_of(DEPTH).saturating_add(START);
        let products = waves as f64 * terms as f64 * (self.outputs * self.windows) as f64;
        // The kernel that adds parts reads them and writes their sums.
        let moved = (parts + 1) as f64 * case.sums() as f64 * size_of::<f32>() as f64;
        kernel(products, self.rate) + if parts > 1 { FINISH + moved / BYTES } else { 0.0 }
    }

    /// The parts are added at the end.
    fn run(&self, work: Work, parts: usize) -> Result<()> {
        let (case, y, mut params) = (work.case, work.y, work.params);
        let wide = if case.dtype == DType::Float64 { case.dtype } else { DType::Float32 };
        let partial = if parts > 1 { Some(alloc_uninit(work.gpu, &[parts, y.len()], wide)?) } else { None };
        params.parts = count(parts)?;
        params.partial = address(partial.as_ref())?;
        let windows = case.most_windows().saturating_mul(case.shape.batch);
        let pieces = (work.remainders()? as usize).saturating_mul(case.shape.groups).saturating_mul(parts);
        let outputs = params.outputs.div_ceil(self.outputs as u32).min(MOST_BLOCKS);
        let blocks = [count(windows.div_ceil(self.windows))?, outputs, count(pieces)?.min(MOST_BLOCKS)];
        work.step(self.kernel, Grid { blocks, threads: BLOCK }, &params)?;
        match partial {
            Some(_) => work.finish(&params),
            None => Ok(()),
        }
    }
}
