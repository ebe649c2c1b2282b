//! How operators run on a GPU: one file per family, with the same names as in [`ops`](crate::ops).
//!
//! A file fills the parameters of a kernel in the crate `candle-plan-device` and launches it. [Prepare](crate::prepare)
//! calls [`on_device`] to get the kernel of every step.

use candle_plan_device::{Gpu, Report};

use crate::error::Result;
use crate::form::Estimate;
use crate::kernel::{Call, Constants};
use crate::operator::OperatorKind;
use crate::ops::{self, Op};
use crate::types::Types;
use crate::value::Value;

// The macro `gpu_modules`, which `build.rs` writes: it declares the files and folders beside this file.
include!(concat!(env!("OUT_DIR"), "/gpu_modules.rs"));

gpu_modules!();

pub(crate) use copy::copied;
pub(crate) use rows::RowsOnGpu;
pub(crate) use shapes::{has_few_dimensions, takes_indices};
#[cfg(test)]
pub(crate) use transfer::download;
pub(crate) use transfer::{upload, Transfer, TRANSFER};

/// How an op runs on a device other than the host.
#[derive(Debug)]
pub enum OnDevice {
    /// On the host, by its nature: it works on values that are only there.
    Host,
    /// On the host: the device has no kernel for it yet.
    NoKernel,
    /// By the CPU's kernel, which copies no elements: its output is a view of input 0, on the host or on the device.
    View,
    /// By this kernel.
    Kernel(Box<dyn OnGpu>),
}

/// How an op runs on a GPU.
pub trait OnGpu: std::fmt::Debug + Send + Sync {
    /// The inputs that the kernel [takes](crate::kernel::Kernel::takes), whatever their type.
    fn in_place(&self) -> &'static [usize] {
        &[]
    }

    /// Whether the kernel reads the storage of a tensor that grows; see [`Kernel::reads_grown`](crate::kernel::Kernel::reads_grown).
    fn reads_grown(&self, _input: usize, _from_end: usize) -> bool {
        false
    }

    /// Returns the error for a value that the kernel reported. It equals the error of the CPU kernel.
    fn fault(&self, report: &Report) -> String {
        report.to_string()
    }

    /// The forms that the kernel compares in a run on inputs of these types, if it has several.
    fn estimates(&self, _inputs: &Types) -> Vec<Estimate> {
        Vec::new()
    }

    /// An upper bound on the scratch memory of a run on inputs of these types, in bytes, on the GPU and on the host; see
    /// [`Kernel::scratch`](crate::kernel::Kernel::scratch).
    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        None
    }

    /// Computes the outputs. The inputs and outputs are on the GPU, except those that the op
    /// [needs](crate::operator::Operator::needs) elsewhere. The work may still run after the call returns.
    ///
    /// # Errors
    /// The inputs do not fit the op, or the device fails.
    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>>;
}

/// Declares the GPU kernels of an operator, in a module of `runtime/device/kernels/`. A condition on the operands may
/// follow `if`. If the kernel is not the operator itself, an expression that returns the kernel or `None` follows `by`.
macro_rules! gpu_kernel {
    ($Op:ty: $module:literal) => {
        gpu_kernel!($Op: $module by |self, _operands, _gpu| Ok(Some(self.clone())));
    };
    ($Op:ty: $module:literal if |$op:ident, $operands:ident| $fits:expr) => {
        gpu_kernel!($Op: $module by |$op, $operands, _gpu| Ok(($fits).then(|| $op.clone())));
    };
    ($Op:ty: $module:literal by |$op:ident, $operands:ident, $gpu:ident| $kernel:expr) => {
        impl $crate::gpu::HasGpuKernel for $Op {
            const MODULE: &'static str = $module;

            fn gpu_kernel(
                &$op,
                $operands: &$crate::kernel::Constants,
                $gpu: &candle_plan_device::Gpu,
            ) -> $crate::error::Result<Option<Box<dyn $crate::gpu::OnGpu>>> {
                $crate::gpu::boxed($kernel)
            }
        }
    };
}
pub(crate) use gpu_kernel;

/// An operator with GPU kernels.
#[diagnostic::on_unimplemented(
    message = "no module has the file with `gpu_kernel!({Self}: …);`",
    note = "if this file is in a subfolder of gpu/, write `mod` for it in the subfolder's mod.rs"
)]
pub(crate) trait HasGpuKernel {
    /// The module of `runtime/device/kernels/` with the kernels.
    const MODULE: &'static str;

    /// Returns the kernel for operands of these types, or `None` if there is none.
    ///
    /// # Errors
    /// The GPU lacks memory for the kernel's data.
    fn gpu_kernel(&self, operands: &Constants, gpu: &Gpu) -> Result<Option<Box<dyn OnGpu>>>;
}

/// Boxes a kernel.
pub(crate) fn boxed<K: OnGpu + 'static>(kernel: Result<Option<K>>) -> Result<Option<Box<dyn OnGpu>>> {
    kernel.map(|kernel| kernel.map(|kernel| Box::new(kernel) as Box<dyn OnGpu>))
}

// The macro `with_gpu_kernels`, which `build.rs` writes: it knows the operators with a `gpu_kernel!`.
include!(concat!(env!("OUT_DIR"), "/gpu_kernels.rs"));

/// Finds the kernels of ops. A line of the table holds a family and its ops with kernels.
macro_rules! kernels {
    ($d:tt $($family:ident: $($op:ident)*;)*) => {
        /// Returns how a step of an operator runs on a GPU.
        ///
        /// # Errors
        /// The GPU lacks memory for the kernel's data.
        pub(crate) fn on_device(op: &Op, operands: &Constants, gpu: &Gpu) -> Result<OnDevice> {
            let kernel = match op {
                $($(Op::$op(op) => HasGpuKernel::gpu_kernel(op, operands, gpu)?,)*)*
                _ => None,
            };
            Ok(match (kernel, op.kind()) {
                (Some(kernel), _) => OnDevice::Kernel(kernel),
                (None, OperatorKind::View) => OnDevice::View,
                (None, OperatorKind::Structure) => OnDevice::Host,
                (None, OperatorKind::Computation) => OnDevice::NoKernel,
            })
        }

        /// Returns the module of an operator's kernels, if it has any.
        fn module(op: &str) -> Option<&'static str> {
            match op {
                $($(stringify!($op) => Some(<ops::$family::$op as HasGpuKernel>::MODULE),)*)*
                _ => None,
            }
        }
    };
}

with_gpu_kernels!(kernels $);

/// Returns the family, name and placement of every op, in the order of the table of ops. The placement is where steps
/// run when the device is a GPU, for all attributes and types.
pub fn placements() -> Vec<(&'static str, &'static str, Placement)> {
    let placement = |op, kind| match (module(op), kind) {
        (Some(module), _) => Placement::Kernel(module),
        (None, OperatorKind::View) => Placement::View,
        (None, OperatorKind::Structure) => Placement::Host,
        (None, OperatorKind::Computation) => Placement::NoKernel,
    };
    Op::all().into_iter().map(|(family, op, kind)| (family, op, placement(op, kind))).collect()
}

/// Where the steps of an op run when the device is a GPU, for all attributes and types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// On the device, by a kernel of this module, for the types that the kernel supports.
    Kernel(&'static str),
    /// Where the first input is: the output is a view of it.
    View,
    /// On the host, by their nature.
    Host,
    /// On the host, because there is no kernel.
    NoKernel,
}
