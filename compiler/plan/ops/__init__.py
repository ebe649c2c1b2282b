"""The types of a plan, as Python writes them. GENERATED from Rust by `make generate`: do not edit.

A module is imported when one of its types is used.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compiler.plan.ops.attention import (
        Attention as Attention,
        AttentionGuard as AttentionGuard,
        AttentionScores as AttentionScores,
    )
    from compiler.plan.ops.binary import Binary as Binary
    from compiler.plan.ops.cache import AppendRows as AppendRows
    from compiler.plan.ops.cast import BitCast as BitCast, Cast as Cast, Round as Round
    from compiler.plan.ops.col2im import Col2Im as Col2Im
    from compiler.plan.ops.conditional import Clip as Clip, Where as Where
    from compiler.plan.ops.control import If as If, Loop as Loop, Scan as Scan, Scanned as Scanned
    from compiler.plan.ops.conv import Conv as Conv
    from compiler.plan.ops.conv_transpose import ConvTranspose as ConvTranspose
    from compiler.plan.ops.cumulative import Accumulation as Accumulation, Cumulative as Cumulative
    from compiler.plan.ops.custom import Attribute as Attribute, AnyAttribute as AnyAttribute, Custom as Custom
    from compiler.plan.ops.deform_conv import DeformConv as DeformConv
    from compiler.plan.ops.det import Det as Det
    from compiler.plan.ops.detection import (
        MaxRoiPool as MaxRoiPool,
        NonMaxSuppression as NonMaxSuppression,
        RoiAlign as RoiAlign,
    )
    from compiler.plan.ops.einsum import Einsum as Einsum
    from compiler.plan.ops.elementwise import Elementwise as Elementwise
    from compiler.plan.ops.gather import Gather as Gather, GatherElements as GatherElements, GatherNd as GatherNd
    from compiler.plan.ops.gemm import Gemm as Gemm
    from compiler.plan.ops.generate import EyeLike as EyeLike, Fill as Fill, OneHot as OneHot, Range as Range
    from compiler.plan.ops.grid_sample import GridSample as GridSample, Outside as Outside, Sampling as Sampling
    from compiler.plan.ops.identity import Identity as Identity
    from compiler.plan.ops.integer import (
        ConvInteger as ConvInteger,
        MatMulInteger as MatMulInteger,
        Requantize as Requantize,
    )
    from compiler.plan.ops.join import Concat as Concat, Split as Split
    from compiler.plan.ops.layer_norm import LayerNorm as LayerNorm, RmsNorm as RmsNorm
    from compiler.plan.ops.layout import (
        DepthToSpace as DepthToSpace,
        ReverseSequence as ReverseSequence,
        SpaceToDepth as SpaceToDepth,
        Transpose as Transpose,
    )
    from compiler.plan.ops.matmul import MatMul as MatMul
    from compiler.plan.ops.matmul_nbits import MatMulNBits as MatMulNBits
    from compiler.plan.ops.ml import LabelEncoder as LabelEncoder
    from compiler.plan.ops.norm import (
        BatchNorm as BatchNorm,
        GroupNorm as GroupNorm,
        InstanceNorm as InstanceNorm,
        Lrn as Lrn,
    )
    from compiler.plan.ops.optional import (
        Optional as Optional,
        OptionalGetElement as OptionalGetElement,
        OptionalHasElement as OptionalHasElement,
    )
    from compiler.plan.ops.pad import CenterCropPad as CenterCropPad, Pad as Pad, PadMode as PadMode
    from compiler.plan.ops.pool import (
        AveragePool as AveragePool,
        LpPool as LpPool,
        MaxPool as MaxPool,
        PoolWindow as PoolWindow,
    )
    from compiler.plan.ops.program import (
        BinaryFunction as BinaryFunction,
        Instruction as Instruction,
        AnyInstruction as AnyInstruction,
        Operand as Operand,
        AnyOperand as AnyOperand,
        Program as Program,
        UnaryFunction as UnaryFunction,
        AnyUnaryFunction as AnyUnaryFunction,
    )
    from compiler.plan.ops.qlinear import QLinearConv as QLinearConv, QLinearMatMul as QLinearMatMul
    from compiler.plan.ops.qlinear_elementwise import (
        LookUp as LookUp,
        QLinearBinary as QLinearBinary,
        QLinearFunction as QLinearFunction,
        QLinearGlobalAveragePool as QLinearGlobalAveragePool,
    )
    from compiler.plan.ops.quantize import (
        DequantizeLinear as DequantizeLinear,
        DynamicQuantizeLinear as DynamicQuantizeLinear,
        QuantizeLinear as QuantizeLinear,
    )
    from compiler.plan.ops.quantized_matmul import QuantizedMatMul as QuantizedMatMul
    from compiler.plan.ops.raise_ import Raise as Raise
    from compiler.plan.ops.random import (
        Multinomial as Multinomial,
        RandomNormal as RandomNormal,
        RandomUniform as RandomUniform,
    )
    from compiler.plan.ops.recurrent import (
        Activation as Activation,
        AnyActivation as AnyActivation,
        Direction as Direction,
        Gru as Gru,
        Lstm as Lstm,
        Rnn as Rnn,
    )
    from compiler.plan.ops.reduce import Reduce as Reduce, Reduction as Reduction
    from compiler.plan.ops.repeat import Expand as Expand, Tile as Tile
    from compiler.plan.ops.resize import (
        Coordinates as Coordinates,
        Interpolate as Interpolate,
        Interpolation as Interpolation,
        AnyInterpolation as AnyInterpolation,
        Rounding as Rounding,
        SizePolicy as SizePolicy,
    )
    from compiler.plan.ops.rotary import RotaryEmbedding as RotaryEmbedding
    from compiler.plan.ops.rounded_matmul import RoundedMatMul as RoundedMatMul
    from compiler.plan.ops.scatter import (
        Combination as Combination,
        ScatterElements as ScatterElements,
        ScatterNd as ScatterNd,
        TensorScatter as TensorScatter,
    )
    from compiler.plan.ops.select import Compress as Compress, NonZero as NonZero, Trilu as Trilu, Unique as Unique
    from compiler.plan.ops.sequence import (
        ConcatFromSequence as ConcatFromSequence,
        SequenceAt as SequenceAt,
        SequenceConstruct as SequenceConstruct,
        SequenceEmpty as SequenceEmpty,
        SequenceErase as SequenceErase,
        SequenceInsert as SequenceInsert,
        SequenceLength as SequenceLength,
        SplitToSequence as SplitToSequence,
    )
    from compiler.plan.ops.shape import Shape as Shape, Size as Size
    from compiler.plan.ops.signal import Dft as Dft, MelWeightMatrix as MelWeightMatrix, Stft as Stft
    from compiler.plan.ops.slice import Slice as Slice
    from compiler.plan.ops.softmax import Softmax as Softmax, SoftmaxFunction as SoftmaxFunction
    from compiler.plan.ops.sort import ArgReduce as ArgReduce, ArgReduction as ArgReduction, TopK as TopK
    from compiler.plan.ops.strings import (
        Case as Case,
        RegexFullMatch as RegexFullMatch,
        StringConcat as StringConcat,
        StringNormalizer as StringNormalizer,
        StringSplit as StringSplit,
    )
    from compiler.plan.ops.svm import PairwiseCoupling as PairwiseCoupling, SquaredDistances as SquaredDistances
    from compiler.plan.ops.tf_idf import TfIdfVectorizer as TfIdfVectorizer
    from compiler.plan.ops.trees import (
        Aggregate as Aggregate,
        Classes as Classes,
        ScoreTransform as ScoreTransform,
        TreeEnsemble as TreeEnsemble,
    )
    from compiler.plan.ops.types import (
        Block as Block,
        Constant as Constant,
        AnyConstant as AnyConstant,
        ConstantId as ConstantId,
        ConstantValue as ConstantValue,
        DType as DType,
        Dim as Dim,
        NamedWeight as NamedWeight,
        Origin as Origin,
        OriginId as OriginId,
        Padding as Padding,
        AnyPadding as AnyPadding,
        Plan as Plan,
        StatePair as StatePair,
        Step as Step,
        TensorType as TensorType,
        Type as Type,
        AnyType as AnyType,
        ValueId as ValueId,
        ValueInfo as ValueInfo,
    )
    from compiler.plan.ops.unary import Unary as Unary
    from compiler.plan.ops.unpool import MaxUnpool as MaxUnpool
    from compiler.plan.ops.views import (
        Flatten as Flatten,
        Reshape as Reshape,
        Squeeze as Squeeze,
        Unsqueeze as Unsqueeze,
    )
else:  # otherwise any misspelled name would have a type
    _NAMES = {
        "attention": "Attention AttentionGuard AttentionScores",
        "binary": "Binary",
        "cache": "AppendRows",
        "cast": "BitCast Cast Round",
        "col2im": "Col2Im",
        "conditional": "Clip Where",
        "control": "If Loop Scan Scanned",
        "conv": "Conv",
        "conv_transpose": "ConvTranspose",
        "cumulative": "Accumulation Cumulative",
        "custom": "Attribute AnyAttribute Custom",
        "deform_conv": "DeformConv",
        "det": "Det",
        "detection": "MaxRoiPool NonMaxSuppression RoiAlign",
        "einsum": "Einsum",
        "elementwise": "Elementwise",
        "gather": "Gather GatherElements GatherNd",
        "gemm": "Gemm",
        "generate": "EyeLike Fill OneHot Range",
        "grid_sample": "GridSample Outside Sampling",
        "identity": "Identity",
        "integer": "ConvInteger MatMulInteger Requantize",
        "join": "Concat Split",
        "layer_norm": "LayerNorm RmsNorm",
        "layout": "DepthToSpace ReverseSequence SpaceToDepth Transpose",
        "matmul": "MatMul",
        "matmul_nbits": "MatMulNBits",
        "ml": "LabelEncoder",
        "norm": "BatchNorm GroupNorm InstanceNorm Lrn",
        "optional": "Optional OptionalGetElement OptionalHasElement",
        "pad": "CenterCropPad Pad PadMode",
        "pool": "AveragePool LpPool MaxPool PoolWindow",
        "program": (
            "BinaryFunction Instruction AnyInstruction Operand AnyOperand Program UnaryFunction AnyUnaryFunction"
        ),
        "qlinear": "QLinearConv QLinearMatMul",
        "qlinear_elementwise": "LookUp QLinearBinary QLinearFunction QLinearGlobalAveragePool",
        "quantize": "DequantizeLinear DynamicQuantizeLinear QuantizeLinear",
        "quantized_matmul": "QuantizedMatMul",
        "raise_": "Raise",
        "random": "Multinomial RandomNormal RandomUniform",
        "recurrent": "Activation AnyActivation Direction Gru Lstm Rnn",
        "reduce": "Reduce Reduction",
        "repeat": "Expand Tile",
        "resize": "Coordinates Interpolate Interpolation AnyInterpolation Rounding SizePolicy",
        "rotary": "RotaryEmbedding",
        "rounded_matmul": "RoundedMatMul",
        "scatter": "Combination ScatterElements ScatterNd TensorScatter",
        "select": "Compress NonZero Trilu Unique",
        "sequence": (
            "ConcatFromSequence SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert "
            "SequenceLength SplitToSequence"
        ),
        "shape": "Shape Size",
        "signal": "Dft MelWeightMatrix Stft",
        "slice": "Slice",
        "softmax": "Softmax SoftmaxFunction",
        "sort": "ArgReduce ArgReduction TopK",
        "strings": "Case RegexFullMatch StringConcat StringNormalizer StringSplit",
        "svm": "PairwiseCoupling SquaredDistances",
        "tf_idf": "TfIdfVectorizer",
        "trees": "Aggregate Classes ScoreTransform TreeEnsemble",
        "types": (
            "Block Constant AnyConstant ConstantId ConstantValue DType Dim NamedWeight Origin OriginId "
            "Padding AnyPadding Plan StatePair Step TensorType Type AnyType ValueId ValueInfo"
        ),
        "unary": "Unary",
        "unpool": "MaxUnpool",
        "views": "Flatten Reshape Squeeze Unsqueeze",
    }
    _MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}

    def __getattr__(name):
        """Import the module of a type, or say how an op that this package lacks comes into it."""
        if name not in _MODULES:
            advice = "write `impl Operator for …` in a file of runtime/plan/src/ops, then run `make generate`"
            raise AttributeError(f"the plan has no op or type {name}: {advice}")
        found = globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        return found
