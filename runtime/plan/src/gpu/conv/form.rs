//! A form of convolutions on a GPU, and the work that it does.

use std::fmt::Debug;

use candle_plan_device::{Gpu, Grid, Symbol};

use super::case::Case;
use super::params::ConvolutionParams;
use crate::error::Result;
use crate::gpu::launch::{count, kind, launch};
use crate::value::Array;

/// A way to compute convolutions on a GPU.
pub(super) trait GpuConvForm: Debug + Sync {
    /// Its name, which is also its name in `CANDLE_PLAN_CONV`.
    fn name(&self) -> &'static str;

    /// Why it cannot compute a convolution, as a relative clause or a clause with "and". `None` if it can.
    fn refusal(&self, case: &Case) -> Option<String>;

    /// Why the planner does not choose it for a convolution that it can compute. No measurement supports the estimated
    /// time of a form beyond its limit.
    fn limit(&self, _case: &Case) -> Option<&'static str> {
        None
    }

    /// Whether it can split every sum into parts.
    fn splits(&self) -> bool {
        false
    }

    /// The number of parts into which it splits every sum, unless another one is requested.
    fn parts(&self, _case: &Case) -> usize {
        1
    }

    /// The expected time on an H100 in `float32`, in microseconds, without the time to add a bias to a product.
    fn cost(&self, case: &Case, parts: usize) -> f64;

    /// Computes a convolution that it can compute.
    ///
    /// # Errors
    /// A size is too large for kernels, or the device fails.
    fn run(&self, work: Work, parts: usize) -> Result<()>;
}

/// A convolution to compute.
pub(super) struct Work<'a> {
    pub gpu: &'a Gpu,
    pub case: Case<'a>,
    /// The result, which is not empty.
    pub y: &'a Array,
    /// The parameters for the operands and the result, in one part.
    pub params: ConvolutionParams,
}

impl Work<'_> {
    /// Launches a kernel with these parameters.
    ///
    /// # Errors
    /// There is no such kernel, or the device fails.
    pub fn step(&self, name: &'static str, grid: Grid, params: &ConvolutionParams) -> Result<()> {
        launch(self.gpu, Symbol { module: "conv", name, kind: kind(self.case.dtype)? }, grid, params)
    }

    /// Launches the kernel that adds the parts of sums, and the bias.
    ///
    /// # Errors
    /// The result is too large for kernels, or the device fails.
    pub fn finish(&self, params: &ConvolutionParams) -> Result<()> {
        self.step("conv_finish", Grid::over(count(self.y.len())?), params)
    }

    /// Returns the number of remainders of output positions.
    ///
    /// # Errors
    /// There are too many for kernels.
    pub fn remainders(&self) -> Result<u32> {
        let [rows, columns] = self.case.remainders();
        count(rows.saturating_mul(columns))
    }
}
