"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from typing import Literal, TypeAlias

from compiler.plan.encode import Op, Struct, Variant


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


Dim: TypeAlias = int | str
"""A dimension: a number, or a symbol or expression of symbols (`"batch"`, `"2*batch"`)."""


class NamedWeight(Struct):
    """A constant that is a weight of the model, with its elements. No decision of the compiler depends on the
    elements, so that the plan computes the model with any other ones.
    """

    constant: ConstantId
    """The constant, which is no other weight."""

    name: str
    """The name that the model gives it."""


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

    weights: list[NamedWeight]
    """The constants that are weights of the model, which a session may replace; left out if there are none."""

    max_memory: int | None = None
    """The most bytes that the values of a run may hold at once, beside the constants; null for no bound."""


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


class TensorType(Struct):
    """A tensor's dtype and shape."""

    dtype: DType
    """The logical element type."""

    shape: list[Dim | None] | None = None
    """The dimensions; `null` if even the rank is unknown."""


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


ValueId: TypeAlias = int
"""The index of a value in its block."""


class ValueInfo(Struct):
    """A value's name in the model (empty if a pass made the value) and its type."""

    name: str

    type: AnyType
