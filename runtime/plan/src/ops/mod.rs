//! The operations of a plan, one file a family. An op keeps its one name everywhere: the struct here, the tag in the plan,
//! the class in `compiler/plan/ops.py`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bail;
use crate::device::Placement;
use crate::error::Result;
use crate::kernel::{Kernel, Types};
use crate::plan::MAX_DEPTH;
use crate::types::Type;

mod conv_blocks;
mod exact;
pub(crate) mod mask;
pub(crate) mod matrices;
mod nested;
pub mod padding;
pub(crate) mod places;
mod pool_blocks;
mod power;
mod recurrent_inputs;
pub mod resample;
mod separable;
mod transposed_window;
pub(crate) mod window;

/// The table of ops: a family is a file, a word is an op.
macro_rules! ops {
    ($($family:ident: $($op:ident)*;)*) => {
        $(pub mod $family;)*

        /// An operation and its attributes, tagged by its name.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        pub enum Op {
            $($(
                #[allow(missing_docs)]
                $op($family::$op),
            )*)*
        }

        impl Op {
            /// The op's one name.
            pub fn name(&self) -> &'static str {
                match self { $($(Op::$op(_) => stringify!($op),)*)* }
            }

            /// What the op states about itself, and how it runs.
            pub fn kernel(&self) -> &dyn Kernel {
                match self { $($(Op::$op(op) => op,)*)* }
            }

            /// What [`Op::kernel`] gives, for keeps.
            pub fn boxed(&self) -> Box<dyn Kernel> {
                match self { $($(Op::$op(op) => Box::new(op.clone()),)*)* }
            }

            /// The outputs' types from the inputs': [`Kernel::infer`] for types that a value can have, to such types.
            ///
            /// # Errors
            /// As [`Kernel::infer`], where a type has [no value](crate::types::Type::check), and where blocks nest
            /// deeper than
            /// [`MAX_DEPTH`].
            pub fn infer(&self, types: &Types) -> Result<Vec<Type>> {
                if self.kernel().blocks().into_iter().any(|block| block.depth() >= MAX_DEPTH) {
                    bail!("blocks nest deeper than {MAX_DEPTH}");
                }
                types.inputs.iter().flatten().try_for_each(|kind| kind.check())?;
                let outputs = self.kernel().infer(types)?;
                outputs.iter().try_for_each(Type::check)?;
                Ok(outputs)
            }

            /// Every op's family and name, and where steps of it run when the device is a GPU, in the table's order.
            pub fn all() -> Vec<(&'static str, &'static str, Placement)> {
                vec![$($((stringify!($family), stringify!($op), <$family::$op as Kernel>::placement()),)*)*]
            }
        }
    };
}

ops! {
    attention: Attention;
    binary: Binary;
    cast: BitCast Cast;
    col2im: Col2Im;
    conditional: Clip Where;
    control: If Loop Scan;
    conv: Conv;
    conv_transpose: ConvTranspose;
    cumulative: Cumulative;
    deform_conv: DeformConv;
    det: Det;
    detection: MaxRoiPool NonMaxSuppression RoiAlign;
    einsum: Einsum;
    elementwise: Elementwise;
    gather: Gather GatherElements GatherNd;
    gemm: Gemm;
    generate: EyeLike Fill OneHot Range;
    grid_sample: GridSample;
    identity: Identity;
    integer: ConvInteger MatMulInteger Requantize;
    join: Concat Split;
    layer_norm: LayerNorm RmsNorm;
    layout: DepthToSpace ReverseSequence SpaceToDepth Transpose;
    matmul: MatMul;
    ml: LabelEncoder;
    norm: BatchNorm InstanceNorm GroupNorm Lrn;
    optional: Optional OptionalGetElement OptionalHasElement;
    pad: CenterCropPad Pad;
    pool: AveragePool LpPool MaxPool;
    qlinear: QLinearConv QLinearMatMul;
    qlinear_elementwise: LookUp QLinearBinary QLinearGlobalAveragePool;
    quantize: DequantizeLinear DynamicQuantizeLinear QuantizeLinear;
    raise: Raise;
    random: Multinomial RandomNormal RandomUniform;
    recurrent: Gru Lstm Rnn;
    reduce: Reduce;
    repeat: Expand Tile;
    resize: Interpolate;
    rotary: RotaryEmbedding;
    scatter: ScatterElements ScatterNd TensorScatter;
    select: Compress NonZero Trilu Unique;
    sequence: ConcatFromSequence SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength SplitToSequence;
    shape: Shape Size;
    signal: Dft MelWeightMatrix Stft;
    slice: Slice;
    softmax: Softmax;
    sort: ArgReduce TopK;
    strings: RegexFullMatch StringConcat StringNormalizer StringSplit;
    tf_idf: TfIdfVectorizer;
    unary: Unary;
    unpool: MaxUnpool;
    views: Flatten Reshape Squeeze Unsqueeze;
}
