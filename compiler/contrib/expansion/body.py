"""Creates the nodes and constants of an expansion."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from compiler.ir.graph import rank
from compiler.rewrite.rule import Rewriter

__all__ = ["END", "FLOAT", "HALVES", "INT64", "Body", "Size"]

FLOAT, INT64 = ir.DataType.FLOAT, ir.DataType.INT64
HALVES = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
"""The types in which onnxruntime's CPU provider does not compute: it converts them to float32."""
END = (1 << 63) - 1
"""The end of a slice that contains the last element."""
_OPSET = 25
"""The opset of the nodes. Its Attention has windows."""

Size = int | ir.Value
"""A number, or a value `int64 [1]`."""


class Body(Rewriter):
    """The nodes of an expansion."""

    def __init__(self, graph: ir.Graph | None) -> None:
        super().__init__(graph, _OPSET)

    def graph(self, results: Sequence[ir.Value], inputs: Sequence[ir.Value] = (), name: str = "body") -> ir.Graph:
        """A nested graph of the nodes. They may read values of an outer graph."""
        for index, value in enumerate(self.constants):
            value.name = f"{name}.{value.name}.{index}"
        return ir.Graph(
            list(inputs),
            list(results),
            nodes=self.nodes,
            initializers=self.constants,
            opset_imports={"": _OPSET},
            name=name,
        )

    def numbers(self, *numbers: int) -> ir.Value:
        """A constant `int64 [n]`."""
        return self.constant(np.array(numbers, np.int64))

    def scalar(self, number: float, dtype: ir.DataType) -> ir.Value:
        """A constant without dimensions."""
        return self.constant(np.array(number, dtype.numpy()))

    def lazy_constant(self, compute: Callable[[], np.ndarray], dtype: ir.DataType, shape: Sequence[int]) -> ir.Value:
        """A constant of this shape. `compute` runs when the elements are first read."""
        lazy = ir.LazyTensor(lambda: ir.Tensor(compute(), dtype=dtype), dtype, ir.Shape(shape), cache=True)
        value = ir.Value(name="weight", type=ir.TensorType(dtype), shape=ir.Shape(shape), const_value=lazy)
        self.constants.append(value)
        return value

    def sizes(self, *sizes: Size) -> ir.Value:
        """The sizes as one list `int64 [n]`."""
        pieces: list[ir.Value] = []
        known: list[int] = []
        for size in sizes:
            if isinstance(size, int):
                known.append(size)
                continue
            pieces += [self.numbers(*known), size] if known else [size]
            known = []
        return self.joined(*pieces, *([self.numbers(*known)] if known or not pieces else []))

    def size(self, value: ir.Value, axis: int) -> Size:
        """The size of an axis, which is not the last."""
        shape = value.shape
        known = None if shape is None or axis >= shape.rank() else shape[axis]
        return known if isinstance(known, int) else self.op("Shape", value, start=axis, end=axis + 1)

    def item(self, size: Size) -> ir.Value:
        """A size as a value `int64 []`."""
        return self.scalar(size, INT64) if isinstance(size, int) else self.op("Squeeze", size, self.numbers(0))

    def plus(self, *sizes: Size) -> Size:
        """The sum of sizes."""
        known = sum(size for size in sizes if isinstance(size, int))
        total = None
        for size in (size for size in sizes if not isinstance(size, int)):
            total = size if total is None else self.op("Add", total, size)
        return known if total is None else total if known == 0 else self.op("Add", total, self.numbers(known))

    def joined(self, *values: ir.Value, axis: int = 0) -> ir.Value:
        """The values, one after another."""
        return values[0] if len(values) == 1 else self.op("Concat", *values, axis=axis)

    def reshape(self, value: ir.Value, *sizes: Size) -> ir.Value:
        """The value in another shape. As in Reshape, 0 keeps a size, and -1 stands for the remaining size."""
        return self.op("Reshape", value, self.sizes(*sizes))

    def unsqueeze(self, value: ir.Value, *axes: int) -> ir.Value:
        """The value with more axes of size 1."""
        return self.op("Unsqueeze", value, self.numbers(*axes))

    def slice(self, value: ir.Value, axis: int, start: Size, end: Size) -> ir.Value:
        """The elements of an axis from `start` to `end` (exclusive)."""
        return self.op("Slice", value, self.sizes(start), self.sizes(end), self.numbers(axis))

    def split(self, value: ir.Value, axis: int, *sizes: int) -> list[ir.Value]:
        """The value, split along an axis into pieces of these sizes."""
        return list(self.op("Split", value, self.numbers(*sizes), axis=axis, outputs=len(sizes)))

    def positions(self, count: Size) -> ir.Value:
        """The numbers 0, 1, … of a list `int64 [count]`."""
        return self.op("Range", self.scalar(0, INT64), self.item(count), self.scalar(1, INT64))

    def cast(self, value: ir.Value, dtype: ir.DataType, found: ir.DataType | None = None) -> ir.Value:
        """The value in another type; `found` is the type of a value that this body computes."""
        return value if (found or value.dtype) == dtype else self.op("Cast", value, to=dtype)

    def upcast(self, value: ir.Value) -> ir.Value:
        """Casts a value of 16 bits to float32, because onnxruntime computes in float32."""
        return self.cast(value, FLOAT) if value.dtype in HALVES else value

    def total(self, first: ir.Value, *others: ir.Value | None) -> ir.Value:
        """The sum of the values that are given."""
        for other in others:
            first = first if other is None else self.op("Add", first, other)
        return first

    def transpose(self, value: ir.Value, *perm: int) -> ir.Value:
        """The value with its axes in another order."""
        return self.op("Transpose", value, perm=perm)

    def swap_last(self, value: ir.Value) -> ir.Value:
        """The value, whose rank is known, with its last two axes exchanged."""
        size = rank(value) or 2
        return self.transpose(value, *range(size - 2), size - 1, size - 2)
