"""CDist: distances between rows."""

from __future__ import annotations

import onnx_ir as ir

from compiler.contrib.expansion.body import FLOAT, Body
from compiler.contrib.expansion.node import Node, expands

__all__: list[str] = []


@expands("CDist")
def cdist(node: Node, new: Body) -> ir.Value:
    """The distance, or its square, between each row of A `[m, k]` and each row of B `[n, k]`, `[m, n]`."""
    dtype = node.dtype(0, "A", FLOAT, ir.DataType.DOUBLE)
    node.rank(0, "A", 2)
    node.rank(1, "B", 2)
    metric = node.string("metric", "sqeuclidean")
    if metric not in ("euclidean", "sqeuclidean"):
        node.refuse("CC0202", f"CDist has no metric {metric!r}; it is 'euclidean' or 'sqeuclidean'")
    squares = [
        new.op("ReduceSumSquare", node.input(index), new.numbers(1), keepdims=keep) for index, keep in ((0, 1), (1, 0))
    ]
    product = new.op("MatMul", node.input(0), new.transpose(node.input(1), 1, 0))
    total = new.op("Sub", new.op("Add", *squares), new.op("Mul", product, new.scalar(2, dtype)))
    square = new.op("Relu", total)
    return square if metric == "sqeuclidean" else new.op("Sqrt", square)
