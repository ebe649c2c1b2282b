"""The tables of cosines and sines of rotary embeddings that a model computes with elementary operators."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from compiler.ir.graph import constant_of, rank
from compiler.ir.views.gather import GatherView
from compiler.rewrite.last_axis import last_size
from compiler.rewrite.permutation import typed
from compiler.rewrite.rule import Rewriter

__all__ = ["RotaryTable"]

_UNCHANGED_BY = ("Cos", "Sin", "Cast", "Identity", "Unsqueeze", "Squeeze", "Gather")
"""Operators that keep two equal halves of the last axis equal, if they keep that axis."""


@dataclass(frozen=True)
class RotaryTable:
    """A table for `x [N, heads, L, D]`, which broadcasts to `x`, or to half of its last axis."""

    value: ir.Value = field(compare=False)
    dims: tuple[int | ir.SymbolicDim, ...]
    """`[…, L, D]` or `[…, L, D / 2]`. The batch is N or 1, and the axis of heads has size 1."""
    half: int

    @staticmethod
    def of(value: ir.Value, x: ir.Value) -> RotaryTable | str:
        """The view of a value as a table; or the reason why it is none."""
        half = (last_size(x) or 0) // 2
        if value.shape is None or x.shape is None or not 2 <= len(value.shape) <= 4:
            return "the shape of a table is not known"
        dims = tuple(value.shape.dims)
        batch, heads, positions, width = (1,) * (4 - len(dims)) + dims
        if heads != 1 or positions != x.shape[2] or batch not in (1, x.shape[0]) or width not in (half, 2 * half):
            return f"a table of {value.shape} does not fit {x.shape}"
        if width == 2 * half and not _halves_are_equal(value):
            return "the halves of a table are not known to be equal"
        return RotaryTable(value, dims, half)

    def halved(self, new: Rewriter) -> ir.Value:
        """The table as `[N or 1, L, D / 2]`."""
        value, dims = self.value, [*self.dims[:-1], self.half]
        if self.dims[-1] != self.half:
            bounds = (new.constant(np.array([bound], np.int64), "bound") for bound in (0, self.half, -1))
            value = typed(new.op("Slice", value, *bounds, version=13), value.type, ir.Shape(dims))
        if len(dims) == 3:
            return value
        operator, axis = ("Squeeze", 1) if len(dims) == 4 else ("Unsqueeze", 0)
        shape = [1 if len(dims) == 2 else dims[0], *dims[-2:]]
        axes = new.constant(np.array([axis], np.int64), "axes")
        return typed(new.op(operator, value, axes, version=13), value.type, ir.Shape(shape))


def _halves_are_equal(value: ir.Value | None) -> bool:
    """Whether the two halves of the last axis are known to be equal."""
    array = constant_of(value)
    if array is not None:
        first, second = np.split(array, 2, axis=-1)
        return bool(np.array_equal(first, second))
    node = None if value is None else value.producer()
    if node is None or node.domain or last_size(value) is None:
        return False
    inputs = node.inputs
    if node.op_type == "Concat" and len(inputs) == 2 and inputs[0] is inputs[1]:
        return last_size(inputs[0]) != last_size(value)
    if node.op_type in ("Mul", "Div"):
        numbers = [constant_of(each) for each in inputs]
        inputs = [each for each, number in zip(inputs, numbers, strict=True) if number is None or number.size != 1]
        return len(inputs) == 1 and _halves_are_equal(inputs[0])
    is_kept = node.op_type in _UNCHANGED_BY and last_size(inputs[0]) == last_size(value)
    return is_kept and _keeps_last_axis(node) and _halves_are_equal(inputs[0])


def _keeps_last_axis(node: ir.Node) -> bool:
    """Whether the node keeps the last axis: a Gather indexes another axis, and other operators keep its size."""
    view, size = GatherView[ir.Value].of(node), rank(node.inputs[0]) or 1
    return view is None or view.normalized_axis(size) != size - 1
