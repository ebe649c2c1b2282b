"""Functions of two elements, and of any number."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from compiler.ir import dtypes
from compiler.lower.node import Node, lowers, remark
from compiler.plan import PlanBuilder, Value, ops

__all__ = ["CHAINS", "function_of"]

_PLAIN: dict[ops.BinaryFunction, int] = {
    "Add": 14,
    "And": 7,
    "BitwiseAnd": 18,
    "BitwiseOr": 18,
    "BitwiseXor": 18,
    "Div": 14,
    "Equal": 19,
    "Greater": 13,
    "GreaterOrEqual": 16,
    "Less": 13,
    "LessOrEqual": 16,
    "Mul": 14,
    "Or": 7,
    "PRelu": 16,
    "Pow": 15,
    "Sub": 14,
    "Xor": 7,
}
"""Functions of operators with the same name and without attributes, and the newest version of each."""


def _mod(node: Node) -> ops.BinaryFunction:
    return "Fmod" if node.flag("fmod", False) else "Mod"


def _bit_shift(node: Node) -> ops.BinaryFunction:
    direction = node.string("direction")
    if direction not in ("LEFT", "RIGHT"):
        node.refuse("CC0202", f"BitShift has no direction {direction!r}; it is 'LEFT' or 'RIGHT'")
    return "ShiftLeft" if direction == "LEFT" else "ShiftRight"


_WITH_ATTRIBUTES: dict[str, tuple[Callable[[Node], ops.BinaryFunction], int]] = {
    "BitShift": (_bit_shift, 28),
    "Mod": (_mod, 28),
}
"""Operators with attributes: the function that reads them, and the newest version."""

_FUNCTIONS: dict[str, Callable[[Node], ops.BinaryFunction]] = {
    **{str(function): lambda _, function=function: function for function in _PLAIN},  # type: ignore[misc]
    **{op_type: read for op_type, (read, _) in _WITH_ATTRIBUTES.items()},
}

CHAINS: dict[str, ops.BinaryFunction] = {"Max": "Max", "Min": "Min", "Sum": "Add"}
"""Operators of any number of inputs, and the function that combines two."""


def function_of(node: Node) -> ops.BinaryFunction | None:
    """The function of two elements that a node of two inputs computes; `None` for any other node."""
    if node.domain != "" or len(node.inputs) != 2:
        return None
    if node.op_type in CHAINS:
        return CHAINS[node.op_type]
    read = _FUNCTIONS.get(node.op_type)
    return read(node) if read else None


def _binary(node: Node, build: PlanBuilder) -> Value:
    return build(ops.Binary(function=_FUNCTIONS[node.op_type](node)), node.input(0), node.input(1))


def _chain(node: Node, build: PlanBuilder) -> Value:
    """The inputs combined two by two, from first to last; for a mean, their sum."""
    join = ops.Binary(function=CHAINS.get(node.op_type, "Add"))
    return reduce(lambda x, y: build(join, x, y), (node.input(i) for i in range(len(node.inputs))))


def _mean(node: Node, build: PlanBuilder) -> Value:
    total = _chain(node, build)
    count = build.constant(np.array(len(node.inputs), dtypes.numpy_dtype(total.dtype)))
    return build(ops.Binary(function="Div"), total, count)


for _name, _newest in [*_PLAIN.items(), *((name, newest) for name, (_, newest) in _WITH_ATTRIBUTES.items())]:
    lowers(str(_name), newest=_newest)(_binary)
for _name in CHAINS:
    lowers(_name, newest=13)(_chain)
lowers("Mean", newest=13)(_mean)
remark("Mod", "Unlike the standard, plans allow floats with `fmod = 0`. The result has the sign of the divisor.")


@lowers("SwiGLU", newest=28)
def swiglu(node: Node, build: PlanBuilder) -> Value:
    """`SwiGLU`: the Swish of the first input times the second input."""
    swish = ops.UnaryFunction.Swish(alpha=node.float("alpha", 1.0))
    gate = build(ops.Unary(function=swish), node.input(0))
    return build(ops.Binary(function="Mul"), gate, node.input(1))
