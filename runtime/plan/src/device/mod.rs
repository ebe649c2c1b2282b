//! Devices: where values lie and steps run.
//!
//! What is given to a run, and what it gives, lies on the host. With another device than the processor,
//! [prepare](crate::prepare) places every step: an op says with [`Kernel::on_device`] how it runs there, and steps that
//! move values stand where a value is needed on the other side. How ops run on a GPU is said here, a file a family, the
//! namesakes of `ops/`; the kernels themselves are the crate `candle-plan-device`'s.

mod attention;
mod binary;
mod cast;
mod col2im;
mod conditional;
mod conv;
mod copy;
mod cumulative;
mod detection;
mod gather;
mod gemm;
mod generate;
mod grid_sample;
mod int8;
mod integer;
mod join;
mod keys;
mod launch;
mod layer_norm;
mod layout;
mod matmul;
mod norm;
mod numbers;
mod pad;
mod placed;
mod pool;
mod program;
mod qlinear;
mod qlinear_elementwise;
mod quantize;
mod recurrent;
mod reduce;
mod repeat;
mod resize;
mod rotary;
mod scatter;
mod select;
mod shapes;
mod slice;
mod softmax;
mod sort;
mod team;
mod transfer;
mod unary;
mod unpool;

use candle_plan_device::Gpu;
use candle_plan_kernels::isa::Isa;

use crate::error::{Error, Result};
use crate::kernel::Call;
#[allow(unused_imports)] // named in documentation
use crate::kernel::Kernel;
use crate::value::Value;

pub(crate) use copy::copied;
pub(crate) use gather::takes_indices;
pub(crate) use integer::{ConvIntegerOnGpu, MatMulIntegerOnGpu};
pub(crate) use layer_norm::kind as layer_norm_kind;
pub(crate) use placed::Placed;
pub(crate) use qlinear::QLinearOnGpu;
pub(crate) use shapes::{has_few_dimensions, MAX_RANK};
pub(crate) use transfer::{download, upload, Homecoming, Transfer, TRANSFER};

/// A device that is there.
#[derive(Debug, Clone)]
pub enum Device {
    /// The processor, which is the host itself.
    Cpu,
    /// One with a memory of its own.
    Gpu(Gpu),
}

/// How an op runs on a device that is not the host.
#[derive(Debug)]
pub enum OnDevice {
    /// Not at all, by its nature: what it does concerns the host.
    Host,
    /// Not yet: there is no kernel.
    NoKernel,
    /// By its own `run`, on whichever side input 0 lies: it gives a view.
    View,
    /// By this kernel.
    Kernel(Box<dyn OnGpu>),
}

impl OnDevice {
    /// By this kernel, if there is one.
    pub(crate) fn by<K: OnGpu + 'static>(kernel: Result<Option<K>>) -> Result<OnDevice> {
        kernel.map(|kernel| kernel.map_or(OnDevice::NoKernel, |kernel| OnDevice::Kernel(Box::new(kernel))))
    }
}

/// How an op runs on a GPU.
pub trait OnGpu: std::fmt::Debug + Send + Sync {
    /// As [`Kernel::in_place`].
    fn in_place(&self) -> &'static [usize] {
        &[]
    }

    /// Computes the outputs, which lie on the GPU as the inputs do, but for those that the op
    /// [needs](Kernel::needs) elsewhere. The work may go on when the call returns.
    ///
    /// # Errors
    /// The inputs do not fit the op, or what the device says.
    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>>;
}

/// What every op says in `impl Kernel` of a GPU: `on_device!(NoKernel)`, `on_device!(Host)`, `on_device!(View)`, or the module
/// of its kernel and, after `if`, for which operands there is one. After `by` stands the kernel where that is not the op itself, or `None`.
macro_rules! on_device {
    ($place:ident) => {
        on_device!(@ $place, |self, _operands, _gpu| Ok($crate::device::OnDevice::$place));
    };
    ($module:literal) => {
        on_device!($module by |self, _operands, _gpu| Ok(Some(self.clone())));
    };
    ($module:literal if |$op:ident, $operands:ident| $fits:expr) => {
        on_device!($module by |$op, $operands, _gpu| Ok(($fits).then(|| $op.clone())));
    };
    ($module:literal by |$op:ident, $operands:ident, $gpu:ident| $kernel:expr) => {
        on_device!(@ Kernel($module), |$op, $operands, $gpu| $crate::device::OnDevice::by($kernel));
    };
    (@ $place:ident $(($module:literal))?, |$op:ident, $operands:ident, $gpu:ident| $how:expr) => {
        fn placement() -> $crate::device::Placement {
            $crate::device::Placement::$place $(($module))?
        }

        fn on_device(
            &$op,
            $operands: &$crate::kernel::Constants,
            $gpu: &candle_plan_device::Gpu,
        ) -> $crate::error::Result<$crate::device::OnDevice> {
            $how
        }
    };
}
pub(crate) use on_device;

/// Where steps of an op run when the device is a GPU, whatever their attributes and types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// On the device, by a kernel of this module, for the types that it takes.
    Kernel(&'static str),
    /// Where their first input lies: they give a view of it.
    View,
    /// On the host, by their nature.
    Host,
    /// On the host, for want of a kernel.
    NoKernel,
}

/// What an op needs of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// The elements, where the op runs.
    Elements,
    /// The elements, on the host wherever the op runs: axes, sizes and the like.
    Numbers,
    /// The dimensions alone.
    Dims,
}

/// Why a step runs on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// It belongs there: control flow, texts, sequences, arithmetic of sizes.
    Nature,
    /// The device has no kernel for it.
    NoKernel,
}

impl Device {
    /// The device of this name: `cpu`, `cuda` (the first GPU) or `cuda:N`.
    ///
    /// # Errors
    /// [`Error::Device`]: there is none, this build cannot use it, or it lacks the instruction set that was asked for.
    pub fn open(name: &str) -> Result<Device> {
        let refused = |reason: String| Error::Device { device: name.to_string(), reason };
        let ordinal = name.strip_prefix("cuda:").map_or((name == "cuda").then_some(0), |number| number.parse().ok());
        match (name, ordinal) {
            ("cpu", _) => Isa::check().map(|()| Device::Cpu).map_err(refused),
            #[cfg(feature = "emulator")]
            ("emulator", _) => Gpu::emulator().map(Device::Gpu).map_err(|error| refused(error.to_string())),
            #[cfg(feature = "cuda")]
            (_, Some(ordinal)) => Gpu::cuda(ordinal).map(Device::Gpu).map_err(|error| refused(error.to_string())),
            #[cfg(not(feature = "cuda"))]
            (_, Some(_)) => Err(refused("this runtime runs on the processor alone".to_string())),
            _ => Err(refused("it is not known".to_string())),
        }
    }

    /// Waits until all work is done that was given before.
    ///
    /// # Errors
    /// What the device says of it.
    pub fn finish(&self) -> Result<()> {
        match self {
            Device::Cpu => Ok(()),
            Device::Gpu(gpu) => gpu.finish().map_err(|error| self.refused(error.to_string())),
        }
    }

    /// What the device says that is of no step.
    pub(crate) fn refused(&self, reason: String) -> Error {
        Error::Device { device: self.name().to_string(), reason }
    }

    /// The name.
    pub fn name(&self) -> &str {
        match self {
            Device::Cpu => "cpu",
            Device::Gpu(gpu) => gpu.name(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_is_not_there_is_refused() {
        for (name, reason) in
            [("cuda", "processor alone"), ("cuda:1", "processor alone"), ("cuda:x", "not known"), ("tpu", "not known")]
        {
            let error = Device::open(name).expect_err("no such device").to_string();
            assert!(error.contains(&format!("{name:?}")) && error.contains(reason), "{error}");
        }
    }
}
