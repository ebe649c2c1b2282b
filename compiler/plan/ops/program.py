"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from typing import Literal, TypeAlias

from compiler.plan.encode import Struct, Variant


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


class Operand:
    """The second operand of an instruction. The first is the accumulator."""

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


class Program(Struct):
    """A sequence of instructions on the accumulator; the result is the accumulator after the last one."""

    code: list[AnyInstruction]
    """The instructions, in order."""


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
