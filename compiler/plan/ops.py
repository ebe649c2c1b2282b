"""The types of a plan, as Python writes them. GENERATED from Rust by `make generate`: do not edit."""
# ruff: noqa: I001

from __future__ import annotations

from typing import Literal, TypeAlias

from compiler.plan.encode import Op, Struct, Variant


Accumulation: TypeAlias = Literal["Sum", "Prod"]
"""What [`Cumulative`] accumulates."""


class Activation:
    """A function of one gate or of the state."""

    class Affine(Variant):
        """`α·x + β`"""

        first: float
        second: float

    class Elu(Variant):
        """`x` where positive, else `α·(eˣ − 1)`"""

        value: float

    class HardSigmoid(Variant):
        """`max(0, min(1, α·x + β))`"""

        first: float
        second: float

    class LeakyRelu(Variant):
        """`x` where not negative, else `α·x`"""

        value: float

    class ScaledTanh(Variant):
        """`α·tanh(β·x)`"""

        first: float
        second: float

    class ThresholdedRelu(Variant):
        """`x` where `x > α`, else 0"""

        value: float


AnyActivation: TypeAlias = (
    Activation.Affine
    | Activation.Elu
    | Activation.HardSigmoid
    | Activation.LeakyRelu
    | Activation.ScaledTanh
    | Activation.ThresholdedRelu
    | Literal["Relu", "Sigmoid", "Softplus", "Softsign", "Tanh"]
)
"""Any `Activation`."""


class ArgReduce(Op):
    """`Y = index along axis of the extremum of X`. X `[D0, …]`; Y int64, of size 1 in the axis, or without it."""

    axis: int
    """The axis; a negative one counts from the end."""

    function: ArgReduction
    """The function."""

    keepdims: bool
    """Whether the axis stays, with size 1."""

    select_last_index: bool
    """Of equal elements, whether the last one counts and not the first."""


ArgReduction: TypeAlias = Literal["ArgMax", "ArgMin"]
"""Which extremum [`ArgReduce`] looks for."""


class Attention(Op):
    """`Y = softmax(softcap(Q · Kᵀ · scale) + mask) · V`. Q `[N, heads, L, D]` or `[N, L, heads · D]`; K, V alike
    with kv_heads heads, each shared by heads / kv_heads heads of Q; mask (optional) broadcasts to `[N, heads,
    L, S]`, added, or chosen where bool; its last dimension may be shorter than S: later keys are not seen; past
    key and past value (optional) `[N, kv_heads, P, D]` come before K and V; nonpad (optional) int64 `[N]`, the
    number of keys that are seen. Y as Q; present key and value (optional) `[N, kv_heads, S, D]`; scores
    (optional) `[N, heads, L, S]`.
    """

    guard: AttentionGuard
    """Which weights are 0 though softmax does not say so."""

    is_causal: bool
    """Whether a query sees no key after its position."""

    scores: AttentionScores
    """What the output of scores holds."""

    heads: int | None = None
    """The heads of Q; null where Q has a dimension for them."""

    kv_heads: int | None = None
    """The heads of K and V; null where they have a dimension for them."""

    left_window: int | None = None
    """How many keys before its position a query sees; null for all."""

    right_window: int | None = None
    """How many keys after its position a query sees; null for all."""

    scale: float | None = None
    """The factor of the products; null for `1 / √D`."""

    softcap: float | None = None
    """`c · tanh(score / c)` for a cap c; null for none."""


AttentionGuard: TypeAlias = Literal["Unseeing", "Nothing", "Undefined"]
"""Which weights of [`Attention`] are 0 though softmax does not say so."""


AttentionScores: TypeAlias = Literal["Product", "Capped", "Masked", "Softmax"]
"""Which scores the fourth output of [`Attention`] holds."""


class AveragePool(Op):
    """The mean of each window. X `[N, C, W]` or `[N, C, H, W]`; Y the same with the number of windows in place of
    the sizes.
    """

    count_padding: bool
    """Whether padding counts as zeros; what lies beyond it never counts."""

    window: PoolWindow
    """The window."""


class BatchNorm(Op):
    """`Y = (X − mean) / √(var + ε) · scale + B`. X `[N, C, …]` with at most two spatial dimensions; scale, B,
    mean, var `[C]`, or the dimensions of X after the batch for a normalization of single activations; Y as X.
    """

    epsilon: float
    """ε"""


class Binary(Op):
    """`Z = function(X, Y)`, element by element; `X` and `Y` broadcast as NumPy does."""

    function: BinaryFunction
    """The function."""


BinaryFunction: TypeAlias = Literal[
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Pow",
    "Mod",
    "Fmod",
    "Min",
    "Max",
    "PRelu",
    "Equal",
    "Less",
    "LessOrEqual",
    "Greater",
    "GreaterOrEqual",
    "And",
    "Or",
    "Xor",
    "BitwiseAnd",
    "BitwiseOr",
    "BitwiseXor",
    "ShiftLeft",
    "ShiftRight",
]
"""A function of two elements, `x` and `y`."""


class BitCast(Op):
    """The bits of `X` as elements of the type `to`, which is as wide."""

    to: DType
    """The type of the result."""


class Block(Struct):
    """A graph: the model's, or a nested one of a control-flow op. It sees its own values only."""

    constants: list[ConstantValue]
    """The values that are constants."""

    inputs: list[ValueId]
    """The values that the caller gives."""

    outputs: list[ValueId]
    """The values that the caller gets."""

    steps: list[Step]
    """What is computed, in order: a step's inputs stand before it."""

    values: list[ValueInfo]
    """Every value of the block; everything else refers to values by their index here."""


Case: TypeAlias = Literal["keep", "lower", "upper"]
"""What becomes of upper and lower case."""


class Cast(Op):
    """`X` with each element converted to the type `to`."""

    round: Round
    """How `float8_e8m0fnu` rounds."""

    saturate: bool
    """Whether what is too large for an 8-bit float becomes its largest number, and not an infinity or NaN."""

    to: DType
    """The type of the result."""


class CenterCropPad(Op):
    """`X` cut or padded with zeros about its center, so that axis `axes[i]` has size `shape[i]`, with `shape:
    int64 [n]` in input 1. An odd place is cut or put at the end.
    """

    axes: list[int] | None = None
    """The axes; negative ones count from the end; absent: all."""


class Clip(Op):
    """`Y = min(max(X, low), high)`, with `low` and `high` from inputs 1 and 2, of one element each; an absent one
    does not bound. Where `low > high` everything is `high`; NaN stays NaN.
    """


class Col2Im(Op):
    """`Y[n, c, p·s + i·d − before] += X[n, (c, i), p]`: the columns of a sliding window, each element added where
    it was taken.
    """

    dilations: list[int]
    """The step inside the window on each axis."""

    pads: list[list[int]]
    """`[before, after]`: what surrounds the image on each axis."""

    strides: list[int]
    """The step of the window on each axis."""


Combination: TypeAlias = Literal["none", "add", "mul", "min", "max"]
"""What an update does to the element that stands at its place."""


class Compress(Op):
    """The rows of `axis` of `X` whose entry in `condition: bool [n]` is true; rows beyond `n` are dropped. Without
    `axis`, the elements of `X` in order.
    """

    axis: int | None = None
    """The axis; a negative one counts from the end."""


class Concat(Op):
    """The inputs, equal in all dimensions but `axis`, one after the other along `axis`."""

    axis: int
    """The axis; a negative one counts from the end."""


class ConcatFromSequence(Op):
    """A sequence's tensors joined along `axis`, or, where `new_axis`, stacked along an axis that is put in there."""

    axis: int
    """The axis of the result; a negative one counts from the end."""

    new_axis: bool
    """Whether the axis is new."""


class Constant:
    """A constant: its type says dtype and shape."""

    class Tensor(Variant):
        """A tensor of the file, by this constant's index in decimal."""

        value: TensorType

    class Strings(Variant):
        """Strings, in row-major order."""

        data: list[str]
        shape: list[int]


AnyConstant: TypeAlias = Constant.Tensor | Constant.Strings
"""Any `Constant`."""


ConstantId: TypeAlias = int
"""The index of a constant in the plan."""


class ConstantValue(Struct):
    """A value that is a constant."""

    constant: ConstantId

    value: ValueId


class Conv(Op):
    """`Y[n, o, y, x] = B[o] + Σ W[o, c, i, j] · X[n, c, y·s + i·d − before, x·s + j·d − before]`, then the
    epilogue.
    """

    dilations: list[int]
    """The step inside the window on each spatial axis."""

    groups: int
    """The number of groups."""

    pads: AnyPadding
    """What surrounds the input."""

    strides: list[int]
    """The step of the window on each spatial axis."""

    epilogue: Program | None = None
    """What finishes the result."""


class ConvInteger(Op):
    """`Y = conv(X − x_zero, W − w_zero) + B` in `int32`; the padding is `x_zero`."""

    dilations: list[int]
    """The step inside the window on each spatial axis."""

    groups: int
    """The number of groups."""

    pads: AnyPadding
    """What surrounds the input."""

    strides: list[int]
    """The step of the window on each spatial axis."""


class ConvTranspose(Op):
    """`Y[n, o, y·s + i·d − before, x·s + j·d − before] += W[c, o, i, j] · X[n, c, y, x]` over the bias `B[o]`,
    then the epilogue.
    """

    dilations: list[int]
    """The step inside the window."""

    groups: int
    """The number of groups."""

    output_padding: list[int]
    """Elements added to the end of the output."""

    pads: AnyPadding
    """What is cut off the output."""

    strides: list[int]
    """The step between the outputs of neighboring inputs, on each spatial axis."""

    epilogue: Program | None = None
    """What finishes the result."""

    output_shape: list[int] | None = None
    """The output's spatial sizes, instead of explicit pads."""


Coordinates: TypeAlias = Literal[
    "HalfPixel",
    "HalfPixelSymmetric",
    "PytorchHalfPixel",
    "TfHalfPixelForNn",
    "AlignCorners",
    "Asymmetric",
    "TfCropAndResize",
]
"""Where a place `y` of the result lies in the source; `scale` is the axis's scale, `n` and `m` its old and new
size.
"""


class Cumulative(Op):
    """`Y[i] = X[0] ∘ … ∘ X[i]` along an axis. X `[D0, …]`, axis int32 or int64 `[]` or `[1]` (negative: from the
    end); Y as X.
    """

    exclusive: bool
    """Whether `X[i]` itself is left out: `Y[0]` is 0, or 1 for products."""

    function: Accumulation
    """The function."""

    reverse: bool
    """Whether it runs from the end of the axis."""


DType: TypeAlias = Literal[
    "bool",
    "int2",
    "int4",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint2",
    "uint4",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float4_e2m1fn",
    "string",
]
"""The element type of a tensor as ONNX means it, under its NumPy or `ml_dtypes` name."""


class DeformConv(Op):
    """`Y[n, o, y, x] = B[o] + Σ W[o, c, i, j] · M[n, i, j, y, x] · X(n, c, y·s + i·d − before + Δy, x·s + j·d −
    before + Δx)`, with `(Δy, Δx) = D[n, i, j, :, y, x]`: `X` between pixels is the linear combination of 2 × 2
    of them, those outside are zeros.
    """

    dilations: list[int]
    """The step inside the window."""

    groups: int
    """The number of groups of channels and outputs."""

    offset_groups: int
    """The number of groups of channels that share offsets."""

    pads: list[list[int]]
    """`[before, after]` along height and width."""

    strides: list[int]
    """The step of the window along height and width."""


class DepthToSpace(Op):
    """`Y [N, C/b², H·b, W·b]` from `X [N, C, H, W]`: each block of `b²` channels becomes a square of pixels, `Y[n,
    c, h·b + i, w·b + j] = X[n, k, h, w]` with `k = (i·b + j)·C/b² + c`, or `k = (c·b + i)·b + j` where
    `channels_first`. Source: [ONNX DepthToSpace](https://onnx.ai/onnx/operators/onnx__DepthToSpace.html).
    """

    block_size: int
    """`b`."""

    channels_first: bool
    """Whether a channel's pixels are neighbors (ONNX's mode `CRD`)."""


class DequantizeLinear(Op):
    """`Y = (X − zero)·scale`, with `scale` and `zero` as in [`QuantizeLinear`]."""

    axis: int
    """The axis of the scales; a negative one counts from the end."""

    block: int
    """How many neighbors along `axis` share a scale; 0: the scales are not blocked."""

    to: DType
    """The type of the result: a float."""


class Det(Op):
    """The determinant of each matrix of the floating-point tensor `X [.., M, M]`: `Y [..]`. Computed in float64 by
    elimination with row pivots.
    """


class Dft(Op):
    """The discrete Fourier transform along `axis` of `X [.., 1]` (real) or `[.., 2]` (complex): `Y[k] = Σₙ
    X[n]·exp(∓2πi·kn/N)`, divided by `N` where `inverse`. The signal is cut, or padded with zeros, to the length
    `N` in input 1 (absent: its own). Computed in float64.
    """

    inverse: bool
    """Whether the transform goes back from a spectrum."""

    one_sided: bool
    """Whether half of the spectrum stands for all of it."""

    axis: int | None = None
    """The axis, not the last one; a negative one counts from the end. `null`: it is input 2, one integer."""


Dim: TypeAlias = int | str
"""A dimension: a number, or a symbol or expression of symbols (`"batch"`, `"2*batch"`)."""


class Direction(Struct):
    """A direction in which a layer reads its sequences."""

    activations: list[AnyActivation]
    """The functions f, g and h, as many as the cell has."""

    reversed: bool
    """Whether each sequence is read from its end."""


class DynamicQuantizeLinear(Op):
    """`X: float32` as `Y: uint8`, with `scale: float32 []` and `zero: uint8 []` such that zero and every element
    is in range.
    """


class Einsum(Op):
    """The product of the inputs' elements, summed over the axes that the equation's result does not name."""

    equation: str
    """The equation."""


class Elementwise(Op):
    """The result of a program on `float32` inputs, which broadcast to one shape as NumPy does."""

    program: Program
    """What is computed for each element; it begins with `Load`."""


class Expand(Op):
    """`X` broadcast with a tensor of the shape in input 1, `shape: int64 [n]`: dimensions are aligned at the end,
    and those of size 1 repeated; a 1 in `shape` leaves `X`'s dimension as it is.
    """


class EyeLike(Op):
    """Ones on a diagonal of a matrix of `X`'s shape, zeros elsewhere: `Y[i, i + k] = 1`. Input: `X [M, N]`."""

    dtype: DType
    """The element type of the result."""

    k: int
    """The diagonal: 0 is the main one, positive ones lie above it."""


class Fill(Op):
    """A tensor of the shape in input 0, `shape: int64 [rank]`, every element of which is input 1, one element of
    any dtype.
    """


class Flatten(Op):
    """`Y [Π X[..axis], Π X[axis..]] = X`. Source: [ONNX
    Flatten](https://onnx.ai/onnx/operators/onnx__Flatten.html).
    """

    axis: int
    """The first axis of the second dimension, from 0 to the rank; a negative one counts from the end."""


class Gather(Op):
    """Rows of `axis` of `X`, in the order and shape of `indices`: `Y[…, i₀, …, iₖ, …] = X[…, indices[i₀, …, iₖ],
    …]`. A negative index counts from the end.
    """

    axis: int
    """The axis; a negative one counts from the end."""


class GatherElements(Op):
    """For each element of `indices`, the element of `X` at the same place but for `axis`, where the index says:
    `Y[i₀, …] = X[i₀, …, indices[i₀, …], …]`. A negative index counts from the end.
    """

    axis: int
    """The axis; a negative one counts from the end."""


class GatherNd(Op):
    """For each vector of `indices [.., k]`, the part of `X` that its numbers lead to along the `k` dimensions
    after the first `batch_dims`, which `X` and `indices` share: `Y[b, i] = X[b, indices[b, i, 0], …, indices[b,
    i, k - 1]]`.
    """

    batch_dims: int
    """The number of leading dimensions that `X` and `indices` share."""


class Gemm(Op):
    """`Y = alpha · A' · B' + beta · C`, then the epilogue, with `A'` and `B'` transposed where asked."""

    alpha: float
    """The factor of the product."""

    beta: float
    """The factor of `C`."""

    trans_a: bool
    """Whether `A` is given transposed."""

    trans_b: bool
    """Whether `B` is given transposed."""

    epilogue: Program | None = None
    """What finishes the result."""


class GridSample(Op):
    """`Y[n, c, i, j]`: the image `X[n, c]` at the point `G[n, i, j] = (x, y)`, for `X [N, C, H, W]` and a
    floating-point grid `G [N, Hout, Wout, 2]`; `Y [N, C, Hout, Wout]`. Coordinates run from -1 to 1 over the
    width and the height.
    """

    align_corners: bool
    """Whether -1 and 1 are the centers of the outermost pixels, and not their outer edges."""

    mode: Sampling
    """How a value is made of the pixels around a point."""

    outside: Outside
    """What lies outside the image."""


class GroupNorm(Op):
    """`Y = (X − mean) / √(variance + ε) · scale + bias`, mean and variance taken over groups of neighboring
    channels. X `[N, C, …]`; scale, bias `[C]` or one a group; Y as X.
    """

    epsilon: float
    """ε"""

    groups: int
    """The number of groups, which divides C."""


class Gru(Op):
    """`z, r = f(X·Wᵀ + H·Rᵀ + b)`, `n = g(X·Wᵀ + (r ∘ H)·Rᵀ + b)`, `H = (1 − z) ∘ n + z ∘ H`, step by step, in D
    directions.
    """

    batch_first: bool
    """Whether the batch is the first axis."""

    directions: list[Direction]
    """One or two directions, each of two functions."""

    hidden: int
    """H, the size of the state."""

    linear_before_reset: bool
    """Whether `n = g(X·Wᵀ + r ∘ (H·Rᵀ + b) + b)`."""

    clip: float | None = None
    """What the sums of the gates are clipped to, on both sides."""


class Identity(Op):
    """`Y = X`, for a value of any kind, sharing storage. Source: [ONNX
    Identity](https://onnx.ai/onnx/operators/onnx__Identity.html).
    """


class If(Op):
    """The outputs of `then_branch` if the first input, `bool` of one element, is true, else those of
    `else_branch`. Both blocks take all other inputs.
    """

    else_branch: Block

    then_branch: Block


class InstanceNorm(Op):
    """`Y = (X − mean) / √(variance + ε) · scale + B`, mean and variance taken over the spatial dimensions. X `[N,
    C, …]` with at most two spatial dimensions; scale, B `[C]`; Y as X.
    """

    epsilon: float
    """ε"""


class Instruction:
    """One step of a [`Program`]; `acc` is the accumulator."""

    class Load(Variant):
        """`acc = operand`"""

        value: AnyOperand

    class Save(Variant):
        """`saved[i] = acc`"""

        value: int

    class Unary(Variant):
        """`acc = function(acc)`"""

        value: AnyUnaryFunction

    class Binary(Variant):
        """`acc = function(acc, operand)`"""

        first: BinaryFunction
        second: AnyOperand

    class Reverse(Variant):
        """`acc = function(operand, acc)`"""

        first: BinaryFunction
        second: AnyOperand

    class Select(Variant):
        """`acc = first operand if acc is true, else second operand`"""

        first: AnyOperand
        second: AnyOperand


AnyInstruction: TypeAlias = (
    Instruction.Load
    | Instruction.Save
    | Instruction.Unary
    | Instruction.Binary
    | Instruction.Reverse
    | Instruction.Select
)
"""Any `Instruction`."""


class Interpolate(Op):
    """X resampled along `axes`, each place of Y taken from, or interpolated between, places of X. Inputs: X, and,
    each optional and with a number for each of `axes`: `roi [2·axes]` (all starts, then all ends; for
    `TfCropAndResize`), `scales` (float32) and `sizes` (int64).
    """

    antialias: bool
    """Whether, where an axis shrinks, the filter widens so that every place of X counts."""

    coordinates: Coordinates
    """Where a place of Y lies in X."""

    exclude_outside: bool
    """Whether places outside X count as nothing, and not as the outermost place."""

    extrapolation: float
    """The value of places outside the region, for `TfCropAndResize`."""

    mode: AnyInterpolation
    """How a value is made of the places around a coordinate."""

    size_policy: SizePolicy
    """What `sizes` mean."""

    axes: list[int] | None = None
    """The axes that the inputs are for; negative ones count from the end; null: all."""


class Interpolation:
    """How a value is made of the places around a coordinate."""

    class Nearest(Variant):
        """The nearest place's."""

        value: Rounding

    class Cubic(Variant):
        """Interpolated between four places, by cubic convolution with this coefficient (−0.75 and −0.5 are usual)."""

        value: float


AnyInterpolation: TypeAlias = Interpolation.Nearest | Interpolation.Cubic | Literal["Linear"]
"""Any `Interpolation`."""


class LabelEncoder(Op):
    """Each element of `X` as the value that belongs to its key: `Y[i] = values[k]` where `X[i] = keys[k]`, the
    last such `k`, or the default where there is none. Numbers that are not a number are equal.
    """


class LayerNorm(Op):
    """`Y = (X − Mean) · InvStdDev · Scale + B` with `InvStdDev = 1 / √(variance + ε)`, over the axes from `axis`
    on. X `[D0, …]`; Scale, B (optional) broadcast to X; Y as X; Mean, InvStdDev (optional) float32, of size 1
    in the normalized axes.
    """

    axis: int
    """The first normalized axis; a negative one counts from the end."""

    epsilon: float
    """ε"""


class LookUp(Op):
    """`Y = table[X]`, the table indexed with the bits of each code."""


class Loop(Op):
    """Runs `body` while its condition holds, at most `M` times."""

    body: Block
    """What is repeated."""

    carried: int
    """The number of carried values."""


class LpPool(Op):
    """`(Σ |x|ᵖ)^(1/p)` of each window. X `[N, C, W]` or `[N, C, H, W]`; Y the same with the number of windows in
    place of the sizes.
    """

    p: int
    """The exponent, at least 1."""

    window: PoolWindow
    """The window."""


class Lrn(Op):
    """`Y = X / (bias + alpha / size · Σ X²)^beta`, summed over the `size` channels around each: ⌊(size−1)/2⌋
    before and ⌈(size−1)/2⌉ after it. X `[N, C, …]`; Y as X.
    """

    alpha: float
    """The factor."""

    beta: float
    """The exponent."""

    bias: float
    """What is added to the sum."""

    size: int
    """The number of channels summed over, not 0."""


class Lstm(Op):
    """`i, f = f(X·Wᵀ + H·Rᵀ + b + P ∘ C)`, `C = f ∘ C + i ∘ g(X·Wᵀ + H·Rᵀ + b)`, `o = f(X·Wᵀ + H·Rᵀ + b + P ∘ C)`,
    `H = o ∘ h(C)`, step by step, in D directions.
    """

    batch_first: bool
    """Whether the batch is the first axis."""

    directions: list[Direction]
    """One or two directions, each of three functions."""

    hidden: int
    """H, the size of the state."""

    input_forget: bool
    """Whether `f = 1 − i`."""

    clip: float | None = None
    """What the sums of the gates are clipped to, on both sides."""


class MatMul(Op):
    """`Y = A · B`, then the epilogue: matrices are the last two dimensions, the dimensions before them broadcast;
    a vector is a row on the left and a column on the right, and its dimension is dropped from the result.
    """

    trans_a: bool
    """Whether the matrices of `A` are given transposed."""

    trans_b: bool
    """Whether the matrices of `B` are given transposed."""

    epilogue: Program | None = None
    """What finishes the result."""


class MatMulInteger(Op):
    """`Y = (A − a_zero) · (B − b_zero)` in `int32`, matrices and batches as in `MatMul`."""


class MaxPool(Op):
    """The largest element of each window; padding is never the largest. X `[N, C, W]` or `[N, C, H, W]`; Y the
    same with the number of windows in place of the sizes; the optional second output has Y's shape and says
    where in X, as a whole, each element stands: the first of equals.
    """

    column_major: bool
    """Whether the indices number the elements of an image column by column."""

    window: PoolWindow
    """The window."""


class MaxRoiPool(Op):
    """The greatest element of each of `height × width` bins of each region of interest: `[rois, C, height,
    width]`; 0 for a bin without pixels.
    """

    height: int
    """The height of the result."""

    scale: float
    """What coordinates are multiplied with."""

    width: int
    """The width of the result."""


class MaxUnpool(Op):
    """A tensor of zeros with each element of X where its index says. X and I (int64) `[N, C, W]` or `[N, C, H,
    W]`, and, optionally, the output's shape (int64).
    """

    kernel: list[int]
    """The elements of a window."""

    pads: list[list[int]]
    """`[before, after]` for each spatial axis."""

    strides: list[int]
    """The distances between windows."""


class MelWeightMatrix(Op):
    """The matrix `[⌊dft_length/2⌋ + 1, bins]` that sums a spectrum into triangles whose corners are equally spaced
    on the mel scale, `mel(f) = 2595·log₁₀(1 + f/700)`. Inputs, one element each: `bins`, `dft_length`,
    `sample_rate`, and the `lower` and `upper` edge in hertz.
    """

    dtype: DType
    """The element type of the result: a floating-point one."""


class Multinomial(Op):
    """`samples` classes for each row of `X [B, C]`, unnormalized logarithms of the classes' probabilities: `Y [B,
    samples]`.
    """

    dtype: DType
    """The element type of the classes: `int32` or `int64`."""

    samples: int
    """How many classes are drawn a row."""

    seed: int
    """Where the generator starts."""


class NonMaxSuppression(Op):
    """The boxes that no better box of their class overlaps: `int64 [selected, 3]` of batch, class and box."""

    centered: bool
    """Whether a box is its center, width and height, and not two corners `[y1, x1, y2, x2]`."""


class NonZero(Op):
    """Where `X` is not zero: `Y int64 [rank, n]`, a column of indices for each such element, in row-major order. A
    scalar counts as a list of one element.
    """


class OneHot(Op):
    """`Y[…, d, …] = on` where `indices[…] = d` (negative ones count from `depth`), `off` elsewhere; the new axis
    has size `depth`. Inputs: `indices`, `depth` (one element), `values [2]` = `off, on` of any dtype. Indices
    outside `-depth .. depth` give `off` only; fractions are cut off.
    """

    axis: int
    """The place of the new axis in the result; a negative one counts from the end."""


class Operand:
    """What an instruction reads beside the accumulator."""

    class Input(Variant):
        """The step's input of this index."""

        value: int

    class Constant(Variant):
        """A finite number."""

        value: float

    class Saved(Variant):
        """What [`Instruction::Save`] put into this slot."""

        value: int


AnyOperand: TypeAlias = Operand.Input | Operand.Constant | Operand.Saved
"""Any `Operand`."""


class Optional(Op):
    """The input as an optional that holds it; without an input, an optional that holds nothing."""

    type: AnyType | None = None
    """The type of what the optional could hold; needed when there is no input."""


class OptionalGetElement(Op):
    """What an optional holds, which must be something; a value that is no optional is passed on."""


class OptionalHasElement(Op):
    """Whether the input is there and, if it is an optional, holds something: `bool []`."""


class Origin(Struct):
    """Where a step came from: the nodes of the model that it does the work of, and the source lines that made
    them.
    """

    module: str
    """The path of the PyTorch module, as `encoder.0.conv`; empty where the model does not say."""

    nodes: list[str]
    """The ONNX nodes, as `Conv(encoder.0.conv)`."""

    source: str
    """File and line, relative to the project, as `model.py:118 in UNet3D.forward`; empty where the model does not
    say.
    """


OriginId: TypeAlias = int
"""The index of an origin in the plan."""


Outside: TypeAlias = Literal["Zeros", "Border", "Reflection"]
"""What lies outside an image."""


class Pad(Op):
    """`X` with `pads[a]` places before axis `a` and `pads[n + a]` after it; negative numbers cut off. Inputs: `X`,
    `pads: int64 [2n]`, `value: []` of `X`'s dtype (for mode `constant`; absent: zero), `axes: [n]` (absent: all
    axes).
    """

    mode: PadMode
    """What the new places show."""


PadMode: TypeAlias = Literal["constant", "edge", "reflect", "wrap"]
"""What padding shows."""


class Padding:
    """What surrounds the input of a sliding window."""

    class Explicit(Variant):
        """`[before, after]` for each spatial axis."""

        value: list[list[int]]


AnyPadding: TypeAlias = Padding.Explicit | Literal["SameUpper", "SameLower"]
"""Any `Padding`."""


class Plan(Struct):
    """A compiled model."""

    constants: list[AnyConstant]
    """The constants that steps refer to by index; the numeric ones are the file's tensors of the same index."""

    main: Block
    """The model's graph. Its inputs and outputs are the plan's."""

    metadata: dict[str, str]
    """The model's own metadata (`metadata_props`)."""

    origins: list[Origin]
    """Where steps came from; steps refer to these by index."""

    passes: list[str]
    """The passes that ran, in order."""

    source_sha256: str
    """SHA-256 of the model file the plan was compiled from, in hexadecimal."""

    max_memory: int | None = None
    """The most bytes that the values of a run may hold at once, beside the constants; null: as many as there are.
    """


class PoolWindow(Struct):
    """The window of a pooling, and where it stops; one number for each of the one or two spatial axes."""

    ceil: bool
    """Whether a last window may reach past the padding, as long as it begins before it."""

    dilations: list[int]
    """The distances between a window's elements."""

    kernel: list[int]
    """The elements of a window."""

    padding: AnyPadding
    """What surrounds the input."""

    strides: list[int]
    """The distances between windows."""


class Program(Struct):
    """A sequence of instructions on the accumulator; the result is the accumulator after the last one."""

    code: list[AnyInstruction]
    """The instructions, in order."""


class QLinearBinary(Op):
    """The codes of `f((A − a_zero) · a_scale, (B − b_zero) · b_scale)`: `clamp(round(… ÷ y_scale) + y_zero, low,
    high)`, ties to even.
    """

    function: QLinearFunction
    """What the two numbers become."""

    high: int
    """The largest code of the result."""

    low: int
    """The smallest code of the result."""


class QLinearConv(Op):
    """`Y = clamp(round((conv(X − x_zero, W − w_zero) + B) · scale) + y_zero, low, high)`, ties to even; without
    `y_zero`, `Y = (conv(X − x_zero, W − w_zero) + B) · scale` in `float32`. Outside, `X` is `x_zero`.
    """

    dilations: list[int]
    """The step inside the window on each spatial axis."""

    groups: int
    """The number of groups."""

    high: int
    """The largest code of the result."""

    low: int
    """The smallest code of the result."""

    pads: AnyPadding
    """What surrounds the input."""

    strides: list[int]
    """The step of the window on each spatial axis."""


QLinearFunction: TypeAlias = Literal["Add", "Mul"]
"""What two numbers become."""


class QLinearGlobalAveragePool(Op):
    """The codes of the means over the spatial axes: `saturate(round(Σ (X − x_zero) ÷ (count · scale)) + y_zero)`,
    ties to even.
    """


class QLinearMatMul(Op):
    """`Y = clamp(round(((A − a_zero) · (B − b_zero) + C) · scale) + y_zero, low, high)`, ties to even; without
    `y_zero`, `Y = ((A − a_zero) · (B − b_zero) + C) · scale` in `float32`.
    """

    high: int
    """The largest code of the result."""

    low: int
    """The smallest code of the result."""


class QuantizeLinear(Op):
    """`Y = saturate(round(X ÷ scale) + zero)`, ties to even; for small floats `Y` is the nearest to `X ÷ scale +
    zero`.
    """

    axis: int
    """The axis of the scales; a negative one counts from the end."""

    block: int
    """How many neighbors along `axis` share a scale; 0: the scales are not blocked."""

    precision: DType
    """The type whose precision `X ÷ scale` is rounded to."""

    saturate: bool
    """For 8-bit floats: whether what is too large becomes the largest number."""

    to: DType
    """The type of the result."""


class Raise(Op):
    """Fails with a message when it is run: what is left of a branch that cannot run with the shapes that are
    known.
    """

    message: str
    """Why the branch cannot run."""

    types: list[AnyType]
    """The types of the outputs that there would be."""


class RandomNormal(Op):
    """Normally distributed numbers of mean `mean` and standard deviation `scale`, in the shape of input 0, `shape:
    int64 [rank]`.
    """

    dtype: DType
    """The element type."""

    mean: float
    """The mean."""

    scale: float
    """The standard deviation."""

    seed: int
    """Where the generator starts."""


class RandomUniform(Op):
    """Uniformly distributed numbers from `low` to `high`, in the shape of input 0, `shape: int64 [rank]`."""

    dtype: DType
    """The element type."""

    high: float
    """The upper bound."""

    low: float
    """The lower bound."""

    seed: int
    """Where the generator starts."""


class Range(Op):
    """`Y[i] = start + i·delta` for `i` below `max(⌈(limit - start) / delta⌉, 0)`. Inputs: `start`, `limit`,
    `delta`, one element each; float16 and bfloat16 are computed in float32.
    """


class Reduce(Op):
    """`Y = function of X along axes`. X `[D0, …]`, axes (optional) `[A]`; Y has size 1 in the reduced dimensions,
    or lacks them.
    """

    function: Reduction
    """The function."""

    keepdims: bool
    """Whether reduced dimensions stay, with size 1."""

    noop_with_empty_axes: bool
    """Whether an empty input `axes` reduces no axis, and not all."""

    axes: list[int] | None = None
    """The reduced axes; negative ones count from the end. Null: all, or those of the input."""


Reduction: TypeAlias = Literal["Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare"]
"""What [`Reduce`] computes of the elements `x` along the reduced axes."""


class RegexFullMatch(Op):
    """Whether each string of `X`, as a whole, matches a regular expression: `bool` of `X`'s shape."""

    pattern: str
    """The expression, in [RE2's syntax](https://github.com/google/re2/wiki/Syntax)."""


class Requantize(Op):
    """`Y = saturate(round(X · a_scale · b_scale ÷ y_scale) + y_zero)`, ties to even, the factors combined first,
    in `float32`.
    """


class Reshape(Op):
    """`Y = X` under the dimensions of input 1, `shape: int64 [rank]`. A `-1` there takes what the other dimensions
    leave; a `0` is `X`'s own dimension at that place, or zero where `allow_zero`.
    """

    allow_zero: bool
    """Whether a 0 in the shape means a dimension of size 0."""


class ReverseSequence(Op):
    """`X` with the first `lengths[b]` steps of each batch member `b` in reverse order. Inputs: `X`, at least two
    axes, of which one of the first two is the batch and the other one time; `lengths: int64 [batch]`.
    """

    time_first: bool
    """Whether the first axis is time, and the second one the batch."""


class RmsNorm(Op):
    """`Y = X / √(mean of X² + ε) · scale` over the axes from `axis` on. X `[D0, …]`; scale broadcasts to X; Y has
    scale's dtype.
    """

    axis: int
    """The first normalized axis; a negative one counts from the end."""

    epsilon: float
    """ε"""


class Rnn(Op):
    """`H = f(X·Wᵀ + H·Rᵀ + b)`, step by step, in D directions."""

    batch_first: bool
    """Whether the batch is the first axis."""

    directions: list[Direction]
    """One or two directions, each of one function."""

    hidden: int
    """H, the size of the state."""

    clip: float | None = None
    """What the sum is clipped to, on both sides."""


class RoiAlign(Op):
    """Each region of interest, resampled to `[height, width]`: `[rois, C, height, width]`."""

    greatest: bool
    """Whether a bin is the greatest of its samples' weighted corners, and not the mean."""

    half_pixel: bool
    """Whether pixel centers lie at halves; without, a region is at least one pixel wide."""

    height: int
    """The height of the result."""

    samples: int
    """Samples along each side of a bin; 0: as many as pixels, rounded up."""

    scale: float
    """What coordinates are multiplied with."""

    width: int
    """The width of the result."""


class RotaryEmbedding(Op):
    """Turns pairs of elements of each head's vector by the angle of its position: `y₁ = cos · x₁ − sin · x₂`, `y₂
    = sin · x₁ + cos · x₂`.
    """

    interleaved: bool
    """Whether a pair is two neighbors, and not elements i and i + R / 2."""

    heads: int | None = None
    """The heads; null where X has a dimension for them."""

    rotary_dim: int | None = None
    """R; null for all of a vector."""


Round: TypeAlias = Literal["Up", "Down", "Nearest"]
"""How a power of two is chosen for a number."""


Rounding: TypeAlias = Literal["Floor", "Ceil", "RoundPreferFloor", "RoundPreferCeil", "CeilWhenShrinking"]
"""Which place is the nearest to a coordinate."""


Sampling: TypeAlias = Literal["Nearest", "Linear", "Cubic"]
"""How a value is made of the pixels around a point."""


class Scan(Op):
    """Runs `body` once for each slice of the scanned inputs."""

    body: Block
    """What is repeated."""

    inputs: list[Scanned]
    """How each scanned input is cut."""

    outputs: list[Scanned]
    """How each output besides the states is stacked."""

    states: int
    """The number of states."""


class Scanned(Struct):
    """The axis along which a tensor is cut or stacked, and in which order."""

    axis: int
    """The axis of the whole tensor; a negative one counts from the end."""

    reverse: bool
    """Whether the last slice comes first."""


class ScatterElements(Op):
    """`X` with updates written where the indices say: for each place `i₀, …` of `indices`, `Y[i₀, …, indices[i₀,
    …], …] ⟵ updates[i₀, …]`, the index on `axis`. A negative index counts from the end; where places repeat,
    updates follow their order. Inputs: `X`, `indices`, `updates`.
    """

    axis: int
    """The axis; a negative one counts from the end."""

    reduction: Combination
    """What an update does to the element that stands there."""


class ScatterNd(Op):
    """`X` with parts written that the vectors of `indices [.., k]` lead to: `Y[indices[i, 0], …, indices[i, k -
    1]] ⟵ updates[i]`. Inputs: `X`, `indices`, `updates`. A negative index counts from the end; where places
    repeat, updates follow their order.
    """

    reduction: Combination
    """What an update does to the element that stands there."""


class SequenceAt(Op):
    """Item `position` of a sequence; a negative one counts from the end. Inputs: the sequence, `position: []`."""


class SequenceConstruct(Op):
    """A sequence of the inputs, in order."""


class SequenceEmpty(Op):
    """A sequence without items."""

    dtype: DType
    """The element type of the items that it may get."""


class SequenceErase(Op):
    """A sequence without item `position`. Inputs: the sequence, `position: []` (absent: the last item), from `-n`
    to `n - 1` for `n` items.
    """


class SequenceInsert(Op):
    """A sequence with a tensor put in before item `position`. Inputs: the sequence, the tensor, `position: []`
    (absent: at the end), from `-n` to `n` for `n` items.
    """


class SequenceLength(Op):
    """The number of a sequence's items, as `int64 []`."""


class Shape(Op):
    """The dimensions `start .. end` of `X`, as `int64 [n]`; the range is cut to the dimensions that there are."""

    start: int
    """The first dimension; a negative one counts from the end."""

    end: int | None = None
    """One past the last dimension; a negative one counts from the end; absent: all the rest."""


class Size(Op):
    """The number of `X`'s elements, as `int64 []`. Source: [ONNX
    Size](https://onnx.ai/onnx/operators/onnx__Size.html).
    """


SizePolicy: TypeAlias = Literal["Stretch", "NotLarger", "NotSmaller"]
"""What becomes of the ratio of the sizes."""


class Slice(Op):
    """`Y = X[start : end : step, …]` with NumPy's meaning of negative and too large bounds. Inputs: `X`, `starts:
    [n]`, `ends: [n]`, and, where they are there, `axes: [n]` (else the first `n`) and `steps: [n]` (else 1).
    """


class Softmax(Op):
    """`Y = function of X along axis`. X `[D0, …]` of floating point; Y as X."""

    axis: int
    """The axis; a negative one counts from the end."""

    coerce_2d: bool
    """Whether the axes from `axis` to the last are taken together as one (then `axis` may be the rank)."""

    function: SoftmaxFunction
    """The function."""


SoftmaxFunction: TypeAlias = Literal["Softmax", "LogSoftmax", "Hardmax"]
"""What [`Softmax`] computes along the axis."""


class SpaceToDepth(Op):
    """`Y [N, C·b², H/b, W/b]` from `X [N, C, H, W]`: each square of pixels becomes a block of channels, `Y[n, k,
    h, w] = X[n, c, h·b + i, w·b + j]` with `k = (i·b + j)·C + c`, or `k = (c·b + i)·b + j` where
    `channels_first`. Source: [ONNX SpaceToDepth](https://onnx.ai/onnx/operators/onnx__SpaceToDepth.html).
    """

    block_size: int
    """`b`."""

    channels_first: bool
    """Whether a channel's pixels are neighbors (ONNX's mode `CRD`)."""


class Split(Op):
    """`X` cut along `axis` into as many parts as there are outputs: of the sizes in input 1, `split: int64
    [outputs]`, or, when it is absent, of equal sizes, the last one maybe smaller.
    """

    axis: int
    """The axis; a negative one counts from the end."""


class SplitToSequence(Op):
    """`X` cut along `axis` into a sequence. Input 1, `split`, is a list of sizes, or one size of all parts but the
    last, which may be smaller; where it is absent, the parts have size 1.
    """

    axis: int
    """The axis; a negative one counts from the end."""

    keep_axis: bool
    """Whether parts keep the axis when there is no `split`."""


class Squeeze(Op):
    """`Y = X` without some dimensions of size 1: those in `axes`, or those in input 1, `axes: int64 [n]`, or, when
    neither is there, all. Source: [ONNX Squeeze](https://onnx.ai/onnx/operators/onnx__Squeeze.html).
    """

    axes: list[int] | None = None
    """The dimensions to drop; a negative one counts from the end."""


class Step(Struct):
    """One operation."""

    inputs: list[ValueId | None]
    """The inputs; `null` for an optional one that is absent."""

    op: Op
    """What is done."""

    origin: OriginId
    """Where the step came from."""

    outputs: list[ValueId | None]
    """The outputs; `null` for one that nobody uses."""


class Stft(Op):
    """The spectra of frames of a signal `X [B, L, 1]` (real) or `[B, L, 2]` (complex): frame `f` is `X[f·step
    ..][..length]`, multiplied by the window; `Y [B, frames, length, 2]`, or the first `⌊length/2⌋ + 1` elements
    of each spectrum where `one_sided`. Computed in float64. Inputs: `X`, `step: []`, `window: [length]`
    (absent: ones), `length: []` (absent: the window's, or `L`).
    """

    one_sided: bool
    """Whether half of a spectrum stands for all of it; the signal is real then."""


class StringConcat(Op):
    """`Z = X ‖ Y`: each string of `X` followed by the string of `Y` at the same place, broadcast as NumPy does."""


class StringNormalizer(Op):
    """The strings of `X [C]` or `[1, C]` that are not stop words, in another case; one empty string where none is
    left.
    """

    case: Case
    """The case of the results."""

    ignore_case: bool
    """Whether a stop word of another case is dropped too."""

    stop_words: list[str]
    """What is dropped."""


class StringSplit(Op):
    """The parts of each string of `X` between occurrences of a delimiter: `Y [dims(X), n]`, padded with empty
    strings to the largest number of parts, and `Z: int64` of `X`'s shape, the numbers of parts. An empty string
    has no parts.
    """

    delimiter: str
    """What separates parts; empty: any white space, which is then also cut off at both ends."""

    most: int | None = None
    """After how many splits the rest stays whole; absent: never."""


class TensorScatter(Op):
    """A cache with new rows written into it: `Y[b, …, w[b] + s, …] = update[b, …, s, …]`, the place on `axis`,
    modulo the cache's size where `circular`. Inputs: `cache [B, …, S, …]`, `update [B, …, s, …]`, `w: [B]`
    (absent: zeros).
    """

    axis: int
    """The axis of rows, not the first one; a negative one counts from the end."""

    circular: bool
    """Whether rows beyond the end are written from the start again."""


class TensorType(Struct):
    """A tensor's dtype and shape."""

    dtype: DType
    """The logical element type."""

    shape: list[Dim | None] | None = None
    """The dimensions; `null` when not even the rank is known."""


class TfIdfVectorizer(Op):
    """How often each n-gram of a pool occurs in each row of `X [C]` or `[N, C]`: `Y: float32 [columns]` or `[N,
    columns]`.
    """

    columns: int
    """The number of columns."""

    longest: int
    """The most elements of an n-gram that counts."""

    max_skips: int
    """How many elements may be left out between two of an n-gram."""

    shortest: int
    """The fewest elements of an n-gram that counts."""


class Tile(Op):
    """`X` repeated `r` times along each axis, with `r` from input 1, `repeats: int64 [rank]`: `Y[i] = X[i mod
    dims]`.
    """


class TopK(Op):
    """`Values, Indices = the k greatest (or smallest) elements of X along axis, in order, and where they stand`. X
    `[…, D, …]`, k int64 `[1]`; Values of X's dtype and Indices int64 `[…, k, …]`.
    """

    axis: int
    """The axis; a negative one counts from the end."""

    largest: bool
    """Whether the greatest elements are wanted, and not the smallest."""


class Transpose(Op):
    """`Y[i₀, i₁, …] = X[j₀, j₁, …]` with `j[permutation[a]] = i[a]`: dimension `a` of `Y` is `X`'s dimension
    `permutation[a]`.
    """

    permutation: list[int] | None = None
    """The order of axes; absent: reversed."""


class Trilu(Op):
    """The upper or lower triangle of each matrix of `X [.., M, N]`, zeros elsewhere: `Y[i, j] = X[i, j]` where `j
    - i ≥ k` (upper) or `j - i ≤ k` (lower). Inputs: `X`, `k: int64 []` (absent: 0).
    """

    upper: bool
    """Whether the upper triangle is kept."""


class Type:
    """The type of a value."""

    class Tensor(Variant):
        """A tensor, of numbers or strings."""

        value: TensorType

    class Sequence(Variant):
        """A sequence whose items are all of one type."""

        value: AnyType

    class Optional(Variant):
        """A value of the type, or nothing."""

        value: AnyType


AnyType: TypeAlias = Type.Tensor | Type.Sequence | Type.Optional
"""Any `Type`."""


class Unary(Op):
    """`Y = function(X)`, element by element; `IsNaN` and `IsInf` give booleans."""

    function: AnyUnaryFunction
    """The function."""


class UnaryFunction:
    """A function of one element. Parameters are `f32`, as ONNX attributes are."""

    class Swish(Variant):
        """`x / (1 + exp(-alpha·x))`"""

        alpha: float

    class LeakyRelu(Variant):
        """`x` if `x ≥ 0`, else `alpha·x`"""

        alpha: float

    class Elu(Variant):
        """`x` if `x ≥ 0`, else `alpha·(eˣ - 1)`"""

        alpha: float

    class Selu(Variant):
        """`gamma·x` if `x > 0`, else `gamma·alpha·(eˣ - 1)`"""

        alpha: float
        gamma: float

    class Celu(Variant):
        """`max(0, x) + min(0, alpha·(exp(x/alpha) - 1))`"""

        alpha: float

    class HardSigmoid(Variant):
        """`max(0, min(1, alpha·x + beta))`"""

        alpha: float
        beta: float

    class ThresholdedRelu(Variant):
        """`x` if `x > alpha`, else 0"""

        alpha: float

    class Shrink(Variant):
        """`x + bias` if `x < -lambd`, `x - bias` if `x > lambd`, else 0"""

        bias: float
        lambd: float

    class Clip(Variant):
        """`min(max(x, min), max)`; NaN stays NaN."""

        max: float
        min: float

    class IsInf(Variant):
        """True where `x` is an infinity of a sign that counts"""

        negative: bool
        positive: bool


AnyUnaryFunction: TypeAlias = (
    UnaryFunction.Swish
    | UnaryFunction.LeakyRelu
    | UnaryFunction.Elu
    | UnaryFunction.Selu
    | UnaryFunction.Celu
    | UnaryFunction.HardSigmoid
    | UnaryFunction.ThresholdedRelu
    | UnaryFunction.Shrink
    | UnaryFunction.Clip
    | UnaryFunction.IsInf
    | Literal[
        "Abs",
        "Neg",
        "Sign",
        "Ceil",
        "Floor",
        "Round",
        "Sqrt",
        "Reciprocal",
        "Square",
        "Exp",
        "Log",
        "Sin",
        "Cos",
        "Tan",
        "Asin",
        "Acos",
        "Atan",
        "Sinh",
        "Cosh",
        "Tanh",
        "Asinh",
        "Acosh",
        "Atanh",
        "Erf",
        "Sigmoid",
        "Relu",
        "Softplus",
        "Softsign",
        "HardSwish",
        "Mish",
        "Gelu",
        "GeluTanh",
        "IsNaN",
        "Not",
        "BitwiseNot",
    ]
)
"""Any `UnaryFunction`."""


class Unique(Op):
    """The different rows of `axis` of `X` (without `axis`: the different elements), and three `int64` lists: where
    each stands first in `X`, which of them each row of `X` is, and how often each stands there. NaNs are equal,
    and larger than numbers.
    """

    sorted: bool
    """Whether the results ascend; else they stand in the order of their first occurrence."""

    axis: int | None = None
    """The axis; a negative one counts from the end."""


class Unsqueeze(Op):
    """`Y = X` with dimensions of size 1 put in, at the places of `Y` in `axes`, or in input 1, `axes: int64 [n]`.
    Source: [ONNX Unsqueeze](https://onnx.ai/onnx/operators/onnx__Unsqueeze.html).
    """

    axes: list[int] | None = None
    """The new dimensions' places in the result; a negative one counts from the end."""


ValueId: TypeAlias = int
"""The index of a value in its block."""


class ValueInfo(Struct):
    """A value's name in the model (empty where a pass made it) and its type."""

    name: str

    type: AnyType


class Where(Op):
    """`Z = X where C, else Y`, element by element; `C: bool`, `X` and `Y`, which are of one type, broadcast as
    NumPy does.
    """
