"""Cast, CastLike and BitCast."""

from __future__ import annotations

from typing import cast

from compiler.lower.node import Node, lowers, remark
from compiler.plan import PlanBuilder, Value, ops

_ROUNDS = {"up": "Up", "down": "Down", "nearest": "Nearest"}


@lowers("Cast", newest=28)
def cast_(node: Node, build: PlanBuilder) -> Value:
    """`Cast` to the type that the attribute `to` names."""
    return _cast(node, build, node.dtype_attr("to"))


remark(
    "Cast",
    "The standard does not define the cast of a number outside the range of the type. For uint32 and uint64, if the "
    "number fits a signed 64-bit integer, the result is the low bits of this integer: −1 becomes the largest number. A "
    "cast of a fraction to int2, uint2, int4 or uint4 drops the digits after the point, like a cast to any other "
    "integer. onnxruntime rounds to the nearest integer.",
)


@lowers("CastLike", newest=28)
def cast_like(node: Node, build: PlanBuilder) -> Value:
    """`CastLike` to the type of the second input, whose elements are not read."""
    return _cast(node, build, node.input(1).dtype)


@lowers("BitCast", newest=26)
def bit_cast(node: Node, build: PlanBuilder) -> Value:
    """`BitCast`: the same bits as another type."""
    return build(ops.BitCast(to=cast(ops.DType, node.dtype_attr("to"))), node.input(0))


def _cast(node: Node, build: PlanBuilder, to: str) -> Value:
    saturate, mode = node.flag("saturate", True), node.string("round_mode", "up")
    if mode not in _ROUNDS:
        node.refuse("CC0202", f"{node.op_type} has no rounding mode {mode!r}", help=f"use one of {', '.join(_ROUNDS)}")
    return converted(build, node.input(0), to, saturate=saturate, rounding=cast(ops.Round, _ROUNDS[mode]))


def converted(build: PlanBuilder, value: Value, to: str, *, saturate: bool = True, rounding: ops.Round = "Up") -> Value:
    """The value cast to a type; the value itself if it has that type."""
    if value.dtype == to:
        return value
    return build(ops.Cast(to=cast(ops.DType, to), saturate=saturate, round=rounding), value)
