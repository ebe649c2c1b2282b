"""The types of a plan, as Python writes them. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from typing import Literal, TypeAlias

from compiler.plan.encode import Op, Struct, Variant

TYPE_CHECKING = False
if not TYPE_CHECKING:  # otherwise any misspelled name would have a type

    def __getattr__(name):
        """Say how an op that this file lacks comes into it."""
        advice = "write `impl Operator for …` in a file of runtime/plan/src/ops, then run `make generate`"
        raise AttributeError(f"the plan has no op or type {name}: {advice}")


Accumulation: TypeAlias = Literal["Sum", "Prod"]
"""The function that [`Cumulative`] accumulates."""


class Activation:
    """An activation function."""

    class Affine(Variant):
        """`α·x + β`"""

        first: float
        second: float

    class Elu(Variant):
        """`x` if positive, else `α·(eˣ − 1)`"""

        value: float

    class HardSigmoid(Variant):
        """`max(0, min(1, α·x + β))`"""

        first: float
        second: float

    class LeakyRelu(Variant):
        """`x` if not negative, else `α·x`"""

        value: float

    class ScaledTanh(Variant):
        """`α·tanh(β·x)`"""

        first: float
        second: float

    class ThresholdedRelu(Variant):
        """`x` if `x > α`, else 0"""

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
    """Whether the result keeps the axis, with size 1."""

    select_last_index: bool
    """Whether the last of equal elements counts instead of the first."""


ArgReduction: TypeAlias = Literal["ArgMax", "ArgMin"]
"""The extremum that [`ArgReduce`] finds."""


class Attention(Op):
    """`Y = softmax(softcap(Q · Kᵀ · scale) + mask) · V`."""

    guard: AttentionGuard
    """The weights that are set to 0 after softmax."""

    is_causal: bool
    """Whether a query sees only keys up to its position."""

    scores: AttentionScores
    """The content of the fourth output."""

    heads: int | None = None
    """The number of heads of Q; null if Q has a dimension for them."""

    kv_heads: int | None = None
    """The number of heads of K and V; null if they have a dimension for them."""

    left_window: int | None = None
    """The number of keys before its position that a query sees; null means all."""

    right_window: int | None = None
    """The number of keys after its position that a query sees; null means all."""

    scale: float | None = None
    """The factor of the products; null means `1 / √D`."""

    softcap: float | None = None
    """The cap c in `c · tanh(score / c)`; null means no cap."""


AttentionGuard: TypeAlias = Literal["Unseeing", "Nothing", "Undefined"]
"""Which weights of [`Attention`] are set to 0 after softmax."""


AttentionScores: TypeAlias = Literal["Product", "Capped", "Masked", "Softmax"]
"""The scores in the fourth output of [`Attention`]."""


class AveragePool(Op):
    """The mean of each window. X `[N, C, W]` or `[N, C, H, W]`; Y as X, with the numbers of windows as spatial
    sizes.
    """

    count_padding: bool
    """Whether padding counts as zeros. Elements beyond the padding never count."""

    window: PoolWindow
    """The window."""


class BatchNorm(Op):
    """`Y = (X − mean) / √(var + ε) · scale + B`. X `[N, C, …]` with at most two spatial dimensions; scale, B,
    mean, var `[C]`, or, to normalize each activation on its own, the dimensions of X after the batch; Y as X.
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
    """`Y` has the bits of `X` as elements of the type `to`, which has the same width."""

    to: DType
    """The type of the result."""


class Block(Struct):
    """A graph: the main graph of the model, or a nested one of a control-flow op. It sees only its own values."""

    constants: list[ConstantValue]
    """The values that are constants."""

    inputs: list[ValueId]
    """The values that the caller passes in."""

    outputs: list[ValueId]
    """The values that the caller receives."""

    steps: list[Step]
    """The steps, in order. A step's inputs are defined before it."""

    values: list[ValueInfo]
    """Every value of the block; everything else refers to values by their index here."""


Case: TypeAlias = Literal["keep", "lower", "upper"]
"""The case of a result."""


class Cast(Op):
    """`Y = X`, with each element converted to the type `to`."""

    round: Round
    """The rounding for `float8_e8m0fnu`."""

    saturate: bool
    """Whether a number too large for an 8-bit float becomes its largest number instead of an infinity or NaN."""

    to: DType
    """The type of the result."""


class CenterCropPad(Op):
    """Crops `X` or pads it with zeros around its center, so that axis `axes[i]` has size `shape[i]`. Input 1 is
    `shape: int64 [n]`. If the number of elements to remove or to add is odd, the extra one is at the end.
    """

    axes: list[int] | None = None
    """The axes; a negative axis counts from the end; absent means all."""


class Clip(Op):
    """`Y = min(max(X, low), high)`. Inputs 1 and 2 are `low` and `high`, of one element each; an absent one is no
    bound. If `low > high`, every element becomes `high`. NaN stays NaN.
    """


class Col2Im(Op):
    """`Y[n, c, p·s + i·d − before] += X[n, (c, i), p]`: adds each element of a sliding window's columns at its
    place in the image.
    """

    dilations: list[int]
    """The step inside the window on each axis."""

    pads: list[list[int]]
    """`[before, after]`: the padding of the image on each axis."""

    strides: list[int]
    """The step of the window on each axis."""


Combination: TypeAlias = Literal["none", "add", "mul", "min", "max"]
"""How an update combines with the present element."""


class Compress(Op):
    """The rows of `axis` of `X` for which `condition: bool [n]` is true; rows beyond `n` are dropped. Without
    `axis`, the condition selects from the elements of `X` in row-major order.
    """

    axis: int | None = None
    """The axis; a negative one counts from the end."""


class Concat(Op):
    """Concatenates the inputs along `axis`. They are equal in all other dimensions."""

    axis: int
    """The axis; a negative one counts from the end."""


class ConcatFromSequence(Op):
    """A sequence's tensors joined along `axis`, or, where `new_axis`, stacked along an axis that is put in there."""

    axis: int
    """The axis of the result; a negative one counts from the end."""

    new_axis: bool
    """Whether the axis is new."""


class Constant:
    """A constant, with its dtype and shape."""

    class Tensor(Variant):
        """A tensor of the file, named by this constant's index in decimal."""

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
    """A constant value, and the constant that it holds."""

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
    """The padding of the input."""

    strides: list[int]
    """The step of the window on each spatial axis."""

    epilogue: Program | None = None
    """The program that finishes the result."""


class ConvInteger(Op):
    """`Y = conv(X − x_zero, W − w_zero) + B` in `int32`. The padding of `X` is `x_zero`."""

    dilations: list[int]
    """The step inside the window on each spatial axis."""

    groups: int
    """The number of groups."""

    pads: AnyPadding
    """The padding of the input."""

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
    """The number of elements to add at the end of the output."""

    pads: AnyPadding
    """The elements to cut off the output."""

    strides: list[int]
    """The step between the outputs of neighboring inputs, on each spatial axis."""

    epilogue: Program | None = None
    """The program that finishes the result."""

    output_shape: list[int] | None = None
    """The spatial sizes of the output, instead of explicit pads."""


Coordinates: TypeAlias = Literal[
    "HalfPixel",
    "HalfPixelSymmetric",
    "PytorchHalfPixel",
    "TfHalfPixelForNn",
    "AlignCorners",
    "Asymmetric",
    "TfCropAndResize",
]
"""The source coordinate of a position `y` of the result. `scale` is the scale of the axis, `n` and `m` are its
old and new size.
"""


class Cumulative(Op):
    """`Y[i] = X[0] ∘ … ∘ X[i]` along an axis. X `[D0, …]`, axis int32 or int64 `[]` or `[1]` (a negative axis
    counts from the end); Y as X.
    """

    exclusive: bool
    """Whether to leave out `X[i]` itself: `Y[0]` is then 0, or 1 for products."""

    function: Accumulation
    """The function."""

    reverse: bool
    """Whether to accumulate from the end of the axis."""


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
"""The element type of a tensor, as ONNX defines it, under its NumPy or `ml_dtypes` name."""


class DeformConv(Op):
    """`Y[n, o, y, x] = B[o] + Σ W[o, c, i, j] · M[n, i, j, y, x] · X(n, c, v, u)` with `v = y·s + i·d − before +
    Δy`, `u = x·s + j·d − before + Δx` and `(Δy, Δx) = D[n, i, j, :, y, x]`. Between pixels, `X` is a linear
    combination of 2 × 2 pixels; pixels outside count as zero.
    """

    dilations: list[int]
    """The step inside the window."""

    groups: int
    """The number of groups of channels and outputs."""

    offset_groups: int
    """The number of groups of channels that share offsets."""

    pads: list[list[int]]
    """The padding, `[before, after]` along height and width."""

    strides: list[int]
    """The step of the window along height and width."""


class DepthToSpace(Op):
    """`Y [N, C/b², H·b, W·b]` from `X [N, C, H, W]`: each block of `b²` channels becomes a square of pixels. `Y[n,
    c, h·b + i, w·b + j] = X[n, k, h, w]` with `k = (i·b + j)·C/b² + c`, or, with `channels_first`, `k = (c·b +
    i)·b + j`. Source: [ONNX DepthToSpace](https://onnx.ai/onnx/operators/onnx__DepthToSpace.html).
    """

    block_size: int
    """`b`."""

    channels_first: bool
    """Whether the channels that become the pixels of one channel are adjacent (ONNX's mode `CRD`)."""


class DequantizeLinear(Op):
    """`Y = (X − zero)·scale`, with `scale` and `zero` as in [`QuantizeLinear`]."""

    axis: int
    """The axis of the scales; a negative one counts from the end."""

    block: int
    """The number of neighbors along `axis` that share a scale; 0 if the scales are not blocked."""

    to: DType
    """The type of the result, a floating-point type."""


class Det(Op):
    """`Y [..]`, the determinant of each matrix of the floating-point tensor `X [.., M, M]`. It is computed in
    float64 by elimination with row pivots.
    """


class Dft(Op):
    """The discrete Fourier transform along `axis` of `X [.., 1]` (real) or `[.., 2]` (complex): `Y[k] = Σₙ
    X[n]·exp(∓2πi·kn/N)`, divided by `N` with `inverse`. The signal is truncated, or padded with zeros, to the
    length `N` in input 1 (absent: its own length). Computed in float64.
    """

    inverse: bool
    """Whether this is the inverse transform."""

    one_sided: bool
    """Whether half of the spectrum represents all of it."""

    axis: int | None = None
    """The axis, not the last one; a negative axis counts from the end. `null` means that input 2, one integer, is
    the axis.
    """


Dim: TypeAlias = int | str
"""A dimension: a number, or a symbol or expression of symbols (`"batch"`, `"2*batch"`)."""


class Direction(Struct):
    """A direction in which a layer reads its sequences, with its activations."""

    activations: list[AnyActivation]
    """The functions f, g and h, as many as the cell has."""

    reversed: bool
    """Whether the layer reads each sequence from its end."""


class DynamicQuantizeLinear(Op):
    """Quantizes `X: float32` to `Y: uint8`, with `scale: float32 []` and `zero: uint8 []` such that zero and every
    element are in range.
    """


class Einsum(Op):
    """The product of the inputs' elements, summed over the axes that the equation's result does not name."""

    equation: str
    """The equation."""


class Elementwise(Op):
    """The result of a program on `float32` inputs, which broadcast to one shape as NumPy does."""

    program: Program
    """The program for each element; it begins with `Load`."""


class Expand(Op):
    """Broadcasts `X` with a tensor of the shape in input 1, `shape: int64 [n]`. Dimensions are aligned at the end,
    and those of size 1 are repeated; a 1 in `shape` keeps the dimension of `X`.
    """


class EyeLike(Op):
    """A matrix of the shape of `X [M, N]` with ones on a diagonal and zeros elsewhere: `Y[i, i + k] = 1`."""

    dtype: DType
    """The element type of the result."""

    k: int
    """The diagonal: 0 is the main one, and a positive number is above it."""


class Fill(Op):
    """A tensor whose elements all equal input 1, one element of any dtype. Input 0 is its shape, `shape: int64
    [rank]`.
    """


class Flatten(Op):
    """`Y [Π X[..axis], Π X[axis..]] = X`. Source: [ONNX
    Flatten](https://onnx.ai/onnx/operators/onnx__Flatten.html).
    """

    axis: int
    """The first axis of the second dimension, from 0 to the rank; a negative one counts from the end."""


class Gather(Op):
    """Selects rows of `X` along `axis`, in the order and shape of `indices`: `Y[…, i₀, …, iₖ, …] = X[…,
    indices[i₀, …, iₖ], …]`. A negative index counts from the end.
    """

    axis: int
    """The axis; a negative one counts from the end."""


class GatherElements(Op):
    """Selects an element of `X` for each element of `indices`. The element has the same position, except that the
    index gives its position along `axis`: `Y[i₀, …] = X[i₀, …, indices[i₀, …], …]`. A negative index counts
    from the end.
    """

    axis: int
    """The axis; a negative one counts from the end."""


class GatherNd(Op):
    """Selects a part of `X` for each vector of `indices [.., k]`: `Y[b, i] = X[b, indices[b, i, 0], …, indices[b,
    i, k - 1]]`. `X` and `indices` share the first `batch_dims` dimensions, and the numbers of a vector are
    indices into the `k` dimensions after them.
    """

    batch_dims: int
    """The number of leading dimensions that `X` and `indices` share."""


class Gemm(Op):
    """`Y = alpha · A' · B' + beta · C`, then the epilogue. `A'` and `B'` are `A` and `B`, transposed with
    `trans_a` and `trans_b`.
    """

    alpha: float
    """The factor of the product."""

    beta: float
    """The factor of `C`."""

    trans_a: bool
    """Whether `A` is stored transposed."""

    trans_b: bool
    """Whether `B` is stored transposed."""

    epilogue: Program | None = None
    """The program that finishes the result."""


class GridSample(Op):
    """Samples an image at the points of a grid: `Y[n, c, i, j]` is the image `X[n, c]` at the point `G[n, i, j] =
    (x, y)`. Inputs: `X [N, C, H, W]` and a floating-point grid `G [N, Hout, Wout, 2]`; output: `Y [N, C, Hout,
    Wout]`. Coordinates run from -1 to 1 over the width and the height.
    """

    align_corners: bool
    """Whether -1 and 1 are the centers of the outermost pixels instead of their outer edges."""

    mode: Sampling
    """The interpolation between pixels."""

    outside: Outside
    """The pixels outside the image."""


class GroupNorm(Op):
    """`Y = (X − mean) / √(variance + ε) · scale + bias`, with mean and variance over groups of neighboring
    channels. X `[N, C, …]`; scale, bias `[C]` or with one element per group; Y as X.
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
    """The bound of the gates' sums: they are clipped to it on both sides."""


class Identity(Op):
    """`Y = X`, for a value of any kind. `Y` shares the storage of `X`. Source: [ONNX
    Identity](https://onnx.ai/onnx/operators/onnx__Identity.html).
    """


class If(Op):
    """The outputs of `then_branch` if the first input, `bool` of one element, is true, else those of
    `else_branch`. All other inputs are inputs of both blocks.
    """

    else_branch: Block

    then_branch: Block


class InstanceNorm(Op):
    """`Y = (X − mean) / √(variance + ε) · scale + B`, with mean and variance over the spatial dimensions. X `[N,
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
    """Resamples X along `axes`: each element of Y is copied from, or interpolated between, elements of X. Inputs:
    X, and, each optional and with a number for each of `axes`: `roi [2·axes]` (all starts, then all ends; for
    `TfCropAndResize`), `scales` (float32) and `sizes` (int64).
    """

    antialias: bool
    """Whether the filter widens if an axis shrinks, so that every element of X counts."""

    coordinates: Coordinates
    """The coordinate in X of a position in Y."""

    exclude_outside: bool
    """Whether positions outside X do not count. Otherwise, they count as the outermost position."""

    extrapolation: float
    """The value of places outside the region, for `TfCropAndResize`."""

    mode: AnyInterpolation
    """The interpolation of a value at a coordinate."""

    size_policy: SizePolicy
    """The meaning of `sizes`."""

    axes: list[int] | None = None
    """The axes of the inputs' numbers; a negative axis counts from the end; null means all."""


class Interpolation:
    """The interpolation of a value at a coordinate."""

    class Nearest(Variant):
        """The value at the nearest position."""

        value: Rounding

    class Cubic(Variant):
        """Interpolation between four positions by cubic convolution with this coefficient (usually −0.75 or −0.5)."""

        value: float


AnyInterpolation: TypeAlias = Interpolation.Nearest | Interpolation.Cubic | Literal["Linear"]
"""Any `Interpolation`."""


class LabelEncoder(Op):
    """Replaces each element of `X` by the value of its key: `Y[i] = values[k]` for the last `k` with `keys[k] =
    X[i]`, or the default if there is none. A NaN equals a NaN.
    """


class LayerNorm(Op):
    """`Y = (X − Mean) · InvStdDev · Scale + B` over the axes from `axis` to the last, with `InvStdDev = 1 /
    √(variance + ε)`.
    """

    axis: int
    """The first normalized axis; a negative one counts from the end."""

    epsilon: float
    """ε"""


class LookUp(Op):
    """`Y = table[X]`, where the bits of a code are the index into the table."""


class Loop(Op):
    """Runs `body` while its condition holds, at most `M` times."""

    body: Block
    """The block to repeat."""

    carried: int
    """The number of carried values."""


class LpPool(Op):
    """`(Σ |x|ᵖ)^(1/p)` of each window. X `[N, C, W]` or `[N, C, H, W]`; Y as X, with the numbers of windows as
    spatial sizes.
    """

    p: int
    """The exponent, at least 1."""

    window: PoolWindow
    """The window."""


class Lrn(Op):
    """`Y = X / (bias + alpha / size · Σ X²)^beta`, with the sum over the `size` channels around each channel:
    ⌊(size−1)/2⌋ before and ⌈(size−1)/2⌉ after it. X `[N, C, …]`; Y as X.
    """

    alpha: float
    """The factor."""

    beta: float
    """The exponent."""

    bias: float
    """The number to add to the sum."""

    size: int
    """The number of channels in the sum, not 0."""


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
    """The bound of the gates' sums: they are clipped to it on both sides."""


class MatMul(Op):
    """`Y = A · B`, then the epilogue. The last two dimensions are matrices, and the dimensions before them
    broadcast. A vector is a row on the left and a column on the right; the result lacks its dimension.
    """

    trans_a: bool
    """Whether the matrices of `A` are stored transposed."""

    trans_b: bool
    """Whether the matrices of `B` are stored transposed."""

    epilogue: Program | None = None
    """The program that finishes the result."""


class MatMulInteger(Op):
    """`Y = (A − a_zero) · (B − b_zero)` in `int32`, with matrices and batches as in `MatMul`."""


class MatMulNBits(Op):
    """`Y = A · Wᵀ`, then the epilogue. A code is an integer of `bits` bits. Each row of `W [N, K]` consists of
    blocks of codes, and the last block may be partial. An element of `W` is `(code − zero) · scale`, with the
    zero point and the scale of its block.
    """

    bits: int
    """The bits of a code: 2, 4 or 8."""

    block: int
    """The codes of a block, a multiple of 16."""

    k: int
    """The number of columns of `W`, at least 1."""

    n: int
    """The number of rows of `W`, at least 1."""

    epilogue: Program | None = None
    """The program that finishes the result."""


class MaxPool(Op):
    """The largest element of each window; padding is never the largest."""

    column_major: bool
    """Whether the indices count the elements of an image column by column."""

    window: PoolWindow
    """The window."""


class MaxRoiPool(Op):
    """The maximum of each of `height × width` bins of each region of interest: `[rois, C, height, width]`. A bin
    without pixels is 0.
    """

    height: int
    """The height of the result."""

    scale: float
    """The factor of the coordinates."""

    width: int
    """The width of the result."""


class MaxUnpool(Op):
    """A tensor of zeros with each element of X at the position that its index gives. Inputs: X and I (int64) `[N,
    C, W]` or `[N, C, H, W]`, and the output's shape (int64, optional).
    """

    kernel: list[int]
    """The sizes of a window."""

    pads: list[list[int]]
    """The padding, `[before, after]` for each spatial axis."""

    strides: list[int]
    """The strides of the window."""


class MelWeightMatrix(Op):
    """The matrix `[⌊dft_length/2⌋ + 1, bins]` that sums a spectrum into triangles. Their corners have equal
    distances on the mel scale, `mel(f) = 2595·log₁₀(1 + f/700)`. Inputs, of one element each: `bins`,
    `dft_length`, `sample_rate`, and the `lower` and `upper` edge in hertz.
    """

    dtype: DType
    """The element type of the result, a floating-point type."""


class Multinomial(Op):
    """Draws `samples` classes for each row of `X [B, C]`, which holds unnormalized logarithms of the classes'
    probabilities. The result is `Y [B, samples]`.
    """

    dtype: DType
    """The element type of the classes: `int32` or `int64`."""

    samples: int
    """The number of classes to draw per row."""

    seed: int
    """The seed of the generator."""


class NonMaxSuppression(Op):
    """Selects the boxes that no better box of their class overlaps. The result is `int64 [selected, 3]`: batch,
    class and box.
    """

    centered: bool
    """Whether a box is given by its center, width and height instead of two corners `[y1, x1, y2, x2]`."""


class NonZero(Op):
    """The indices of the nonzero elements of `X`: `Y int64 [rank, n]`, with a column of indices for each element,
    in row-major order. A scalar counts as a list of one element.
    """


class OneHot(Op):
    """`Y[…, d, …] = on` if `indices[…] = d`, else `off`; the new axis has size `depth`. Inputs: `indices`, `depth`
    (one element), `values [2]` = `off, on` of any dtype. Negative indices count from `depth`. An index outside
    `-depth .. depth` gives only `off`. Fractions are truncated.
    """

    axis: int
    """The position of the new axis in the result; a negative one counts from the end."""


class Operand:
    """What an instruction reads besides the accumulator."""

    class Input(Variant):
        """The step's input with this index."""

        value: int

    class Constant(Variant):
        """A finite number."""

        value: float

    class Saved(Variant):
        """The value that [`Instruction::Save`] saved in this slot."""

        value: int


AnyOperand: TypeAlias = Operand.Input | Operand.Constant | Operand.Saved
"""Any `Operand`."""


class Optional(Op):
    """An optional that holds the input, or that holds nothing if there is no input."""

    type: AnyType | None = None
    """The type of the optional's value; needed if there is no input."""


class OptionalGetElement(Op):
    """The value of an optional, which must hold one. A value that is not an optional is passed on."""


class OptionalHasElement(Op):
    """Whether the input is present and, if it is an optional, holds a value: `bool []`."""


class Origin(Struct):
    """The origin of a step: the nodes of the model that it computes, and the source lines that made them."""

    module: str
    """The path of the PyTorch module, as `encoder.0.conv`; empty if the model does not record it."""

    nodes: list[str]
    """The ONNX nodes, as `Conv(encoder.0.conv)`."""

    source: str
    """File and line, relative to the project, as `model.py:118 in UNet3D.forward`; empty if the model does not
    record them.
    """


OriginId: TypeAlias = int
"""The index of an origin in the plan."""


Outside: TypeAlias = Literal["Zeros", "Border", "Reflection"]
"""The pixels outside an image."""


class Pad(Op):
    """Adds `pads[a]` elements before axis `a` of `X` and `pads[n + a]` after it; negative numbers remove elements.
    Inputs: `X`, `pads: int64 [2n]`, `value: []` of the dtype of `X` (for mode `constant`; absent: zero), `axes:
    [n]` (absent: all axes).
    """

    mode: PadMode
    """The values of the new elements."""


PadMode: TypeAlias = Literal["constant", "edge", "reflect", "wrap"]
"""The values of the elements that padding adds."""


class Padding:
    """The padding of a sliding window's input."""

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
    """The origins of steps; steps refer to these by index."""

    passes: list[str]
    """The passes that ran, in order."""

    source_sha256: str
    """SHA-256 of the model file the plan was compiled from, in hexadecimal."""

    state: list[StatePair]
    """The outputs that a caller would feed back as inputs of its next run; left out if there are none."""

    max_memory: int | None = None
    """The most bytes that the values of a run may hold at once, beside the constants; null for no bound."""


class PoolWindow(Struct):
    """The window of a pooling op, with a number for each of the one or two spatial axes."""

    ceil: bool
    """Whether the last window may extend past the padding. It must begin inside the input or the padding before
    it.
    """

    dilations: list[int]
    """The dilations: the distances between the elements of a window."""

    kernel: list[int]
    """The sizes of a window."""

    padding: AnyPadding
    """The padding of the input."""

    strides: list[int]
    """The strides of the window."""


class Program(Struct):
    """A sequence of instructions on the accumulator; the result is the accumulator after the last one."""

    code: list[AnyInstruction]
    """The instructions, in order."""


class QLinearBinary(Op):
    """The codes of `f((A − a_zero) · a_scale, (B − b_zero) · b_scale)`: `clamp(round(… ÷ y_scale) + y_zero, low,
    high)`, with ties to even.
    """

    function: QLinearFunction
    """The function of the two numbers."""

    high: int
    """The largest code of the result."""

    low: int
    """The smallest code of the result."""


class QLinearConv(Op):
    """`Y = clamp(round((conv(X − x_zero, W − w_zero) + B) · scale) + y_zero, low, high)`, with ties to even.
    Without `y_zero`, `Y = (conv(X − x_zero, W − w_zero) + B) · scale` in `float32`. The padding of `X` is
    `x_zero`.
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
    """The padding of the input."""

    strides: list[int]
    """The step of the window on each spatial axis."""


QLinearFunction: TypeAlias = Literal["Add", "Mul"]
"""A function of two numbers."""


class QLinearGlobalAveragePool(Op):
    """The codes of the means over the spatial axes: `saturate(round(Σ (X − x_zero) ÷ (count · scale)) + y_zero)`,
    with ties to even.
    """


class QLinearMatMul(Op):
    """`Y = clamp(round(((A − a_zero) · (B − b_zero) + C) · scale) + y_zero, low, high)`, with ties to even.
    Without `y_zero`, `Y = ((A − a_zero) · (B − b_zero) + C) · scale` in `float32`.
    """

    high: int
    """The largest code of the result."""

    low: int
    """The smallest code of the result."""


class QuantizeLinear(Op):
    """`Y = saturate(round(X ÷ scale) + zero)`, with ties to even. If `Y` is a small float, it is the one nearest
    to `X ÷ scale + zero`.
    """

    axis: int
    """The axis of the scales; a negative one counts from the end."""

    block: int
    """The number of neighbors along `axis` that share a scale; 0 if the scales are not blocked."""

    precision: DType
    """The type to whose precision `X ÷ scale` is rounded."""

    saturate: bool
    """For 8-bit floats: whether a number that is too large becomes the largest number."""

    to: DType
    """The type of the result."""


class Raise(Op):
    """Fails with a message. The compiler puts it in place of a branch that cannot run with the known shapes."""

    message: str
    """Why the branch cannot run."""

    types: list[AnyType]
    """The types of the branch's outputs."""


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
    """The seed of the generator."""


class RandomUniform(Op):
    """Uniformly distributed numbers from `low` to `high`, in the shape of input 0, `shape: int64 [rank]`."""

    dtype: DType
    """The element type."""

    high: float
    """The upper bound."""

    low: float
    """The lower bound."""

    seed: int
    """The seed of the generator."""


class Range(Op):
    """`Y[i] = start + i·delta` for `0 ≤ i < max(⌈(limit - start) / delta⌉, 0)`. Inputs: `start`, `limit` and
    `delta`, of one element each. float16 and bfloat16 are computed in float32.
    """


class Reduce(Op):
    """`Y = function of X along axes`. X `[D0, …]`, axes (optional) `[A]`; Y has size 1 in the reduced dimensions,
    or lacks them.
    """

    function: Reduction
    """The function."""

    keepdims: bool
    """Whether the result keeps the reduced dimensions, with size 1."""

    noop_with_empty_axes: bool
    """Whether an empty input `axes` reduces no axis instead of all."""

    axes: list[int] | None = None
    """The reduced axes; a negative axis counts from the end. Null means all axes, or those of the input."""


Reduction: TypeAlias = Literal["Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare"]
"""The function of the elements `x` along the reduced axes that [`Reduce`] computes."""


class RegexFullMatch(Op):
    """Whether each string of `X`, as a whole, matches a regular expression: `bool`, of the shape of `X`."""

    pattern: str
    """The expression, in [RE2's syntax](https://github.com/google/re2/wiki/Syntax)."""


class Requantize(Op):
    """`Y = saturate(round(X · a_scale · b_scale ÷ y_scale) + y_zero)`, with ties to even. The factors are combined
    first, in `float32`.
    """


class Reshape(Op):
    """`Y = X` with the dimensions in input 1, `shape: int64 [rank]`. A `-1` stands for the size that the other
    dimensions leave. A `0` stands for the dimension of `X` at the same position, or, with `allow_zero`, for
    zero.
    """

    allow_zero: bool
    """Whether a 0 in the shape means a dimension of size 0."""


class ReverseSequence(Op):
    """`X` with the first `lengths[b]` steps of each batch member `b` in reverse order. Inputs: `X`, whose first
    two axes are the batch and time, or time and the batch; `lengths: int64 [batch]`.
    """

    time_first: bool
    """Whether the first axis is time, and the second one the batch."""


class RmsNorm(Op):
    """`Y = X / √(mean of X² + ε) · scale` over the axes from `axis` to the last. X `[D0, …]`; scale broadcasts to
    X; Y has the dtype of scale.
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
    """The bound of the sum: it is clipped to it on both sides."""


class RoiAlign(Op):
    """Each region of interest, resampled to `[height, width]`: `[rois, C, height, width]`."""

    greatest: bool
    """Whether a bin is the maximum of its samples' weighted corners instead of the mean."""

    half_pixel: bool
    """Whether pixel centers lie at halves. If not, a region is at least one pixel wide."""

    height: int
    """The height of the result."""

    samples: int
    """The number of samples along each side of a bin; 0 means one per pixel, rounded up."""

    scale: float
    """The factor of the coordinates."""

    width: int
    """The width of the result."""


class RotaryEmbedding(Op):
    """Rotates pairs of elements of each head's vector by the angle of its position: `y₁ = cos · x₁ − sin · x₂`,
    `y₂ = sin · x₁ + cos · x₂`.
    """

    interleaved: bool
    """Whether a pair is two adjacent elements instead of elements i and i + R / 2."""

    heads: int | None = None
    """The number of heads; null if X has a dimension for them."""

    rotary_dim: int | None = None
    """R, the number of rotated elements; null means all elements of a vector."""


Round: TypeAlias = Literal["Up", "Down", "Nearest"]
"""The rounding of a number to a power of two."""


Rounding: TypeAlias = Literal["Floor", "Ceil", "RoundPreferFloor", "RoundPreferCeil", "CeilWhenShrinking"]
"""The rounding of a coordinate to the nearest position."""


Sampling: TypeAlias = Literal["Nearest", "Linear", "Cubic"]
"""The interpolation between pixels."""


class Scan(Op):
    """Runs `body` once for each slice of the scanned inputs."""

    body: Block
    """The block to repeat."""

    inputs: list[Scanned]
    """The axis and order of the slices of each scanned input."""

    outputs: list[Scanned]
    """The axis and order in which each output other than the states is stacked."""

    states: int
    """The number of states."""


class Scanned(Struct):
    """The axis along which a tensor is sliced or stacked, and the order of the slices."""

    axis: int
    """The axis of the whole tensor; a negative axis counts from the end."""

    reverse: bool
    """Whether the order is from the last slice to the first."""


class ScatterElements(Op):
    """`X` with updates at the positions that the indices give: `Y[i₀, …, indices[i₀, …], …] ⟵ updates[i₀, …]` for
    each position `i₀, …` of `indices`, with the index on `axis`. A negative index counts from the end. Updates
    of the same position apply in order. Inputs: `X`, `indices`, `updates`.
    """

    axis: int
    """The axis; a negative one counts from the end."""

    reduction: Combination
    """How an update combines with the present element."""


class ScatterNd(Op):
    """`X` with updates of the parts that the vectors of `indices [.., k]` select: `Y[indices[i, 0], …, indices[i,
    k - 1]] ⟵ updates[i]`. Inputs: `X`, `indices`, `updates`. A negative index counts from the end. Updates of
    the same part apply in order.
    """

    reduction: Combination
    """How an update combines with the present element."""


class SequenceAt(Op):
    """Item `position` of a sequence; a negative one counts from the end. Inputs: the sequence, `position: []`."""


class SequenceConstruct(Op):
    """A sequence of the inputs, in order."""


class SequenceEmpty(Op):
    """A sequence without items."""

    dtype: DType
    """The element type of the items that it can hold."""


class SequenceErase(Op):
    """Removes item `position` from a sequence. Inputs: the sequence, `position: []` (absent: the last item), from
    `-n` to `n - 1` for `n` items.
    """


class SequenceInsert(Op):
    """Inserts a tensor into a sequence before item `position`. Inputs: the sequence, the tensor, `position: []`
    (absent: at the end), from `-n` to `n` for `n` items.
    """


class SequenceLength(Op):
    """The number of items of a sequence, as `int64 []`."""


class Shape(Op):
    """The dimensions `start .. end` of `X`, as `int64 [n]`; the range is clamped to the rank."""

    start: int
    """The first dimension; a negative one counts from the end."""

    end: int | None = None
    """One past the last dimension; a negative one counts from the end; absent means the rank."""


class Size(Op):
    """The number of `X`'s elements, as `int64 []`. Source: [ONNX
    Size](https://onnx.ai/onnx/operators/onnx__Size.html).
    """


SizePolicy: TypeAlias = Literal["Stretch", "NotLarger", "NotSmaller"]
"""The treatment of sizes that change the aspect ratio."""


class Slice(Op):
    """`Y = X[start : end : step, …]`, with negative and too large bounds as in NumPy. Inputs: `X`, `starts: [n]`,
    `ends: [n]`, `axes: [n]` (absent: the first `n`) and `steps: [n]` (absent: 1).
    """


class Softmax(Op):
    """`Y = function of X along axis`. X `[D0, …]`, floating-point; Y as X."""

    axis: int
    """The axis; a negative one counts from the end."""

    coerce_2d: bool
    """Whether the axes from `axis` to the last count as one axis; `axis` may then be the rank."""

    function: SoftmaxFunction
    """The function."""


SoftmaxFunction: TypeAlias = Literal["Softmax", "LogSoftmax", "Hardmax"]
"""The function that [`Softmax`] computes along the axis."""


class SpaceToDepth(Op):
    """`Y [N, C·b², H/b, W/b]` from `X [N, C, H, W]`: each square of pixels becomes a block of channels. `Y[n, k,
    h, w] = X[n, c, h·b + i, w·b + j]` with `k = (i·b + j)·C + c`, or, with `channels_first`, `k = (c·b + i)·b +
    j`. Source: [ONNX SpaceToDepth](https://onnx.ai/onnx/operators/onnx__SpaceToDepth.html).
    """

    block_size: int
    """`b`."""

    channels_first: bool
    """Whether the channels made from the pixels of one channel are adjacent (ONNX's mode `CRD`)."""


class Split(Op):
    """Splits `X` along `axis` into as many parts as there are outputs. Input 1, `split: int64 [outputs]`, holds
    their sizes. If it is absent, the parts have equal sizes, except for the last one, which may be smaller.
    """

    axis: int
    """The axis; a negative one counts from the end."""


class SplitToSequence(Op):
    """Splits `X` along `axis` into a sequence. Input 1, `split`, is a list of sizes, or one size for all parts, of
    which the last may be smaller. If it is absent, the parts have size 1.
    """

    axis: int
    """The axis; a negative one counts from the end."""

    keep_axis: bool
    """Whether parts keep the axis if `split` is absent."""


class Squeeze(Op):
    """`Y = X` without some dimensions of size 1: those in `axes`, or those in input 1, `axes: int64 [n]`, or, if
    both are absent, all. Source: [ONNX Squeeze](https://onnx.ai/onnx/operators/onnx__Squeeze.html).
    """

    axes: list[int] | None = None
    """The dimensions to drop; a negative one counts from the end."""


class StatePair(Struct):
    """An output of the plan that is an input of its next run with the same state."""

    input: ValueId
    """The input, a value of the main block."""

    output: ValueId
    """The output, a value of the main block."""

    axis: int | None = None
    """The axis along which the value grows from run to run; null if none is known to grow."""


class Step(Struct):
    """One operation."""

    inputs: list[ValueId | None]
    """The inputs; `null` for an absent optional one."""

    op: Op
    """The op."""

    origin: OriginId
    """The origin of the step."""

    outputs: list[ValueId | None]
    """The outputs; `null` for an unused one."""


class Stft(Op):
    """The spectra of the frames of a signal `X [B, L, 1]` (real) or `[B, L, 2]` (complex). Frame `f` is `X[f·step
    ..][..length]`, multiplied by the window. The result is `Y [B, frames, length, 2]`, or, with `one_sided`,
    the first `⌊length/2⌋ + 1` elements of each spectrum. Computed in float64. Inputs: `X`, `step: []`, `window:
    [length]` (absent: ones), `length: []` (absent: that of the window, or `L`).
    """

    one_sided: bool
    """Whether half of a spectrum represents all of it; the signal must then be real."""


class StringConcat(Op):
    """`Z = X ‖ Y`: each string of `X`, followed by the string of `Y` at the same position. The shapes broadcast as
    in NumPy.
    """


class StringNormalizer(Op):
    """The strings of `X [C]` or `[1, C]` that are not stop words, with their case changed. If none are left, the
    result is one empty string.
    """

    case: Case
    """The case of the results."""

    ignore_case: bool
    """Whether a stop word matches in any case."""

    stop_words: list[str]
    """The words to drop."""


class StringSplit(Op):
    """Splits each string of `X` at a delimiter. `Y [dims(X), n]` holds the parts, padded with empty strings to the
    largest number of parts; `Z: int64`, of the shape of `X`, holds the numbers of parts. An empty string has no
    parts.
    """

    delimiter: str
    """The delimiter. An empty one means any white space, which is then also removed at both ends."""

    most: int | None = None
    """The maximum number of splits, after which the rest stays whole; absent means no maximum."""


class TensorScatter(Op):
    """A cache with new rows written into it: `Y[b, …, w[b] + s, …] = update[b, …, s, …]`, with the position on
    `axis`. With `circular`, the position is taken modulo the size of the cache. Inputs: `cache [B, …, S, …]`,
    `update [B, …, s, …]`, `w: [B]` (absent: zeros).
    """

    axis: int
    """The axis of rows, not the first one; a negative axis counts from the end."""

    circular: bool
    """Whether rows beyond the end continue at the start."""


class TensorType(Struct):
    """A tensor's dtype and shape."""

    dtype: DType
    """The logical element type."""

    shape: list[Dim | None] | None = None
    """The dimensions; `null` if even the rank is unknown."""


class TfIdfVectorizer(Op):
    """Counts each n-gram of a pool in each row of `X [C]` or `[N, C]`: `Y: float32 [columns]` or `[N, columns]`."""

    columns: int
    """The number of columns."""

    longest: int
    """The maximum number of elements of an n-gram that counts."""

    max_skips: int
    """The maximum number of elements to skip between two elements of an n-gram."""

    shortest: int
    """The minimum number of elements of an n-gram that counts."""


class Tile(Op):
    """Repeats `X` along each axis: `Y[i] = X[i mod dims]`. Input 1, `repeats: int64 [rank]`, holds the number of
    repeats.
    """


class TopK(Op):
    """`Values, Indices = the k greatest (or smallest) elements of X along axis, in order, and their indices`. X
    `[…, D, …]`, k int64 `[1]`; Values with the dtype of X, and Indices int64, `[…, k, …]`.
    """

    axis: int
    """The axis; a negative one counts from the end."""

    largest: bool
    """Whether to select the greatest elements instead of the smallest."""


class Transpose(Op):
    """`Y[i₀, i₁, …] = X[j₀, j₁, …]` with `j[permutation[a]] = i[a]`: dimension `a` of `Y` is dimension
    `permutation[a]` of `X`.
    """

    permutation: list[int] | None = None
    """The order of the axes; absent means reversed."""


class Trilu(Op):
    """The upper or lower triangle of each matrix of `X [.., M, N]`, with zeros elsewhere: `Y[i, j] = X[i, j]` if
    `j - i ≥ k` (upper) or `j - i ≤ k` (lower). Inputs: `X`, `k: int64 []` (absent: 0).
    """

    upper: bool
    """Whether the upper triangle is kept."""


class Type:
    """The type of a value."""

    class Tensor(Variant):
        """A tensor, of numbers or strings."""

        value: TensorType

    class Sequence(Variant):
        """A sequence of items of one type."""

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
    """A function of one element. Parameters are `f32`, like ONNX attributes."""

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
        """True if `x` is infinite and its sign is selected"""

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
    """The distinct rows of `axis` of `X` (without `axis`: the distinct elements), and three `int64` lists: the
    index of the first occurrence of each in `X`, the index of each row of `X` among the distinct rows, and the
    number of occurrences of each. NaNs are equal, and larger than numbers.
    """

    sorted: bool
    """Whether the results are in ascending order instead of the order of their first occurrence."""

    axis: int | None = None
    """The axis; a negative one counts from the end."""


class Unsqueeze(Op):
    """`Y = X` with new dimensions of size 1, at the positions in `Y` that `axes`, or input 1, `axes: int64 [n]`,
    gives. Source: [ONNX Unsqueeze](https://onnx.ai/onnx/operators/onnx__Unsqueeze.html).
    """

    axes: list[int] | None = None
    """The positions of the new dimensions in the result; a negative one counts from the end."""


ValueId: TypeAlias = int
"""The index of a value in its block."""


class ValueInfo(Struct):
    """A value's name in the model (empty if a pass made the value) and its type."""

    name: str

    type: AnyType


class Where(Op):
    """`Z = X if C else Y`, element by element; `C: bool`, `X` and `Y` broadcast as NumPy does."""
