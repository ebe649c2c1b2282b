//! The direct form of convolutions: one thread computes one output.

use candle_plan_device::{Grid, BLOCK, MOST_BLOCKS};

use super::case::Case;
use super::constants::{kernel, FEW, MANY, MULTIPROCESSORS, SHORT};
use super::form::{GpuConvForm, Work};
use crate::error::Result;
use crate::gpu::launch::count;

/// One thread per output.
#[derive(Debug)]
pub(super) struct GpuDirectForm;

/// The multiply-adds of a multiprocessor in a nanosecond. On an H200, the estimates of six convolutions within the limits
/// are within 25 % of the times.
const RATE: f64 = 5.0;

/// The microseconds that the 30 depthwise convolutions of `yolox_nano` take beyond this rate, each.
const START: f64 = 0.35;

impl GpuConvForm for GpuDirectForm {
    fn name(&self) -> &'static str {
        "direct"
    }

    fn refusal(&self, _case: &Case) -> Option<String> {
        None
    }

    fn limit(&self, case: &Case) -> Option<&'static str> {
        if case.outputs() >= FEW {
            Some("many outputs in a group")
        } else if case.depth() > SHORT && case.sums() < MANY {
            Some("few sums, of many terms")
        } else {
            None
        }
    }

    fn cost(&self, case: &Case, _parts: usize) -> f64 {
        START + kernel(case.products() / MULTIPROCESSORS as f64, RATE)
    }

    fn run(&self, work: Work, _parts: usize) -> Result<()> {
        let windows = count(work.case.most_windows())?;
        let threads = windows.next_multiple_of(32).clamp(32, BLOCK);
        let planes = work.params.planes().min(MOST_BLOCKS);
        let blocks = [windows.div_ceil(threads), planes, work.remainders()?.min(MOST_BLOCKS)];
        work.step("conv_direct", Grid { blocks, threads }, &work.params)
    }
}
