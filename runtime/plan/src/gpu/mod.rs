//! How operators run on a GPU: a file a family, the namesakes of [`ops`](crate::ops).
//!
//! A file fills the parameters of a kernel of the crate `candle-plan-device` and launches it. [Prepare](crate::prepare) asks
//! [`on_device`] for the kernel of every step.

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
mod integer_product;
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

use candle_plan_device::{Gpu, Report};

use crate::error::Result;
use crate::kernel::{Call, Constants};
use crate::operator::Kind;
use crate::ops::{self, Op};
use crate::value::Value;

pub(crate) use copy::copied;
pub(crate) use gather::takes_indices;
pub(crate) use placed::Placed;
pub(crate) use shapes::has_few_dimensions;
#[cfg(test)]
pub(crate) use transfer::download;
pub(crate) use transfer::{upload, Transfer, TRANSFER};

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

/// How an op runs on a GPU.
pub trait OnGpu: std::fmt::Debug + Send + Sync {
    /// As [`Kernel::in_place`].
    fn in_place(&self) -> &'static [usize] {
        &[]
    }

    /// Says what is wrong with a value that the kernel reported: the sentence of the CPU kernel.
    fn fault(&self, report: &Report) -> String {
        report.to_string()
    }

    /// Computes the outputs, which lie on the GPU as the inputs do, but for those that the op
    /// [needs](crate::operator::Operator::needs) elsewhere. The work may go on when the call returns.
    ///
    /// # Errors
    /// The inputs do not fit the op, or what the device says.
    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>>;
}

/// Declares that steps of an operator run by the kernels of a module of `runtime/device/kernels/`; after `if`, for which
/// operands. After `by` stands the kernel where that is not the operator itself, or `None`.
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

/// An operator that has kernels on a GPU.
pub(crate) trait HasGpuKernel {
    /// The module of `runtime/device/kernels/` that has them.
    const MODULE: &'static str;

    /// The kernel for operands of these types; `None` where none is written for them.
    ///
    /// # Errors
    /// The GPU has no room for what the kernel needs there.
    fn gpu_kernel(&self, operands: &Constants, gpu: &Gpu) -> Result<Option<Box<dyn OnGpu>>>;
}

/// The kernel in a box.
pub(crate) fn boxed<K: OnGpu + 'static>(kernel: Result<Option<K>>) -> Result<Option<Box<dyn OnGpu>>> {
    kernel.map(|kernel| kernel.map(|kernel| Box::new(kernel) as Box<dyn OnGpu>))
}

/// The table of the operators that have kernels on a GPU.
macro_rules! kernels {
    ($($family:ident: $($op:ident)*;)*) => {
        /// How a step of an operator runs on a GPU.
        ///
        /// # Errors
        /// The GPU has no room for what the kernel needs there.
        pub(crate) fn on_device(op: &Op, operands: &Constants, gpu: &Gpu) -> Result<OnDevice> {
            let kernel = match op {
                $($(Op::$op(op) => op.gpu_kernel(operands, gpu)?,)*)*
                _ => None,
            };
            Ok(match (kernel, op.kind()) {
                (Some(kernel), _) => OnDevice::Kernel(kernel),
                (None, Kind::View) => OnDevice::View,
                (None, Kind::Host) => OnDevice::Host,
                (None, Kind::Computation) => OnDevice::NoKernel,
            })
        }

        /// The module of an operator's kernels, if it has any.
        fn module(op: &str) -> Option<&'static str> {
            match op {
                $($(stringify!($op) => Some(<ops::$family::$op as HasGpuKernel>::MODULE),)*)*
                _ => None,
            }
        }
    };
}

kernels! {
    attention: Attention;
    binary: Binary;
    cast: BitCast Cast;
    col2im: Col2Im;
    conditional: Clip Where;
    conv: Conv;
    conv_transpose: ConvTranspose;
    cumulative: Cumulative;
    detection: MaxRoiPool RoiAlign;
    elementwise: Elementwise;
    gather: Gather GatherElements GatherNd;
    gemm: Gemm;
    generate: EyeLike Fill OneHot Range;
    grid_sample: GridSample;
    integer: ConvInteger MatMulInteger Requantize;
    join: Concat Split;
    layer_norm: LayerNorm RmsNorm;
    layout: DepthToSpace ReverseSequence SpaceToDepth Transpose;
    matmul: MatMul;
    norm: BatchNorm GroupNorm InstanceNorm Lrn;
    pad: CenterCropPad Pad;
    pool: AveragePool LpPool MaxPool;
    qlinear: QLinearConv QLinearMatMul;
    qlinear_elementwise: LookUp QLinearBinary QLinearGlobalAveragePool;
    quantize: DequantizeLinear DynamicQuantizeLinear QuantizeLinear;
    recurrent: Gru Lstm Rnn;
    reduce: Reduce;
    repeat: Expand Tile;
    resize: Interpolate;
    rotary: RotaryEmbedding;
    scatter: ScatterElements ScatterNd TensorScatter;
    select: Trilu;
    slice: Slice;
    softmax: Softmax;
    sort: ArgReduce TopK;
    unary: Unary;
    unpool: MaxUnpool;
}

/// Where steps of each op run when the device is a GPU, whatever their attributes and types: family, name and placement, in
/// the order of the table of ops.
pub fn placements() -> Vec<(&'static str, &'static str, Placement)> {
    let placement = |op, kind| match (module(op), kind) {
        (Some(module), _) => Placement::Kernel(module),
        (None, Kind::View) => Placement::View,
        (None, Kind::Host) => Placement::Host,
        (None, Kind::Computation) => Placement::NoKernel,
    };
    Op::all().into_iter().map(|(family, op, kind)| (family, op, placement(op, kind))).collect()
}

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
