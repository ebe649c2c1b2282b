"""Inverse: the inverse of square matrices, by elimination with the largest pivot of each column."""

from __future__ import annotations

import onnx_ir as ir

from compiler.contrib.expansion.body import FLOAT, INT64, Body
from compiler.contrib.expansion.node import Node, expands

__all__: list[str] = []


@expands("Inverse")
def inverse(node: Node, new: Body) -> ir.Value:
    """The inverses of matrices `[…, n, n]`. The elements of a singular matrix's inverse are not finite."""
    found = node.dtype(0, "X", ir.DataType.FLOAT16, FLOAT, ir.DataType.DOUBLE)
    rank = node.rank(0, "X")
    if rank < 2:
        node.refuse("CC0210", f"Inverse's input X has {rank} dimensions, which are fewer than 2")
    x = new.upcast(node.input(0))
    dtype = FLOAT if found == ir.DataType.FLOAT16 else found
    size = new.op("Shape", x, start=-1)
    order = new.item(size)
    matrices = new.op("Reshape", x, new.sizes(-1, size, size))
    unit = new.op("EyeLike", new.op("ConstantOfShape", new.sizes(size, size)), dtype=dtype)
    both = new.op("Concat", matrices, new.op("Expand", unit, new.op("Shape", matrices)), axis=2)
    done = new.op("Loop", order, None, both, body=_step(dtype))
    right = new.op("Slice", done, size, new.op("Add", size, size), new.numbers(2))
    result = new.op("Reshape", right, new.op("Shape", x))
    return new.cast(result, found, dtype)


def _step(dtype: ir.DataType) -> ir.Graph:
    """Step k of the elimination in `M [batch, n, 2n]`: row k becomes the row with the largest element of column k.

    Then column k becomes a column of the unit matrix.
    """
    at = ir.Value(name="k", type=ir.TensorType(INT64), shape=ir.Shape([]))
    goes_on = ir.Value(name="goes_on", type=ir.TensorType(ir.DataType.BOOL), shape=ir.Shape([]))
    given = ir.Value(name="m", type=ir.TensorType(dtype), shape=ir.Shape([None, None, None]))
    new = Body(None)
    rows = new.positions(new.op("Shape", given, start=1, end=2))
    sizes = new.op("Abs", new.op("Gather", given, at, axis=2))
    left = new.op("Where", new.op("Less", rows, at), new.scalar(-1, dtype), sizes)
    pivot = new.op("ArgMax", left, axis=1, keepdims=1)
    exchanged = new.op(
        "Where", new.op("Equal", rows, at), pivot, new.op("Where", new.op("Equal", rows, pivot), at, rows)
    )
    places = new.op("Expand", new.unsqueeze(exchanged, 2), new.op("Shape", given))
    m = new.op("GatherElements", given, places, axis=1)
    row = new.unsqueeze(new.op("Gather", m, at, axis=1), 1)
    row = new.op("Div", row, new.op("Gather", row, new.reshape(at, 1), axis=2))
    column = new.op("Gather", m, new.reshape(at, 1), axis=2)
    others = new.op("Sub", m, new.op("Mul", column, row))
    is_row = new.unsqueeze(new.op("Equal", rows, at), 1)
    return new.graph([new.op("Identity", goes_on), new.op("Where", is_row, row, others)], [at, goes_on, given], "step")
