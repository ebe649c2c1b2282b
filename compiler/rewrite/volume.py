"""Lowers operators of three spatial dimensions to operators of two.

A lowering is a function that creates the nodes that replace one node. `lowering_pass` makes a pass of lowerings, and
reports the price of each. In comments, an image is `[N, C, D, H, W]`.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from compiler._runtime import MOST_WINDOW_AXES
from compiler.ir import origin
from compiler.ir.graph import graph_of, nodes_of, opset_of, rank
from compiler.ir.inference import NewNodes
from compiler.ir.symbols import shown
from compiler.rewrite.prices import Price
from compiler.rewrite.report import Fired, Pass, PassReport
from compiler.rewrite.rule import Rewriter, insert, replace_uses
from compiler.rewrite.spatial import refusal, spatial_dims

__all__ = ["Lowering", "Size", "Sizes", "UnloweredError", "Volumes", "lowering_pass", "volume"]

Size = int | tuple[ir.Value, int]
"""A size: a number, or the size of a value along an axis."""
Sizes = Sequence[Sequence[Size]]
"""The sizes of a result: each is a product."""

_VERSION = 18
"""The oldest opset of new nodes: the first whose Pad and Resize have axes."""
_ADVICE = "run that part of the model in onnxruntime"


class UnloweredError(Exception):
    """A node cannot be lowered. The text is the reason."""

    def __init__(self, reason: str, unknown: ir.SymbolicDim | None = None) -> None:
        """`unknown` is the size that would have to be known."""
        super().__init__(reason)
        self.unknown = unknown


class Volumes(Rewriter):
    """Creates the nodes of a lowering, and infers their types and shapes at once."""

    def __init__(self, graph: ir.Graph, opset: int, infer: NewNodes) -> None:
        super().__init__(graph, None if opset >= _VERSION else _VERSION)
        self.opset, self._infer = opset, infer

    def add(self, op_type: str, *inputs: ir.Value | None, version: int | None = None, **attributes: Any) -> ir.Value:
        """Creates a node. Returns its only output."""
        result: ir.Value = self.op(op_type, *inputs, version=version, **attributes)
        self._infer.infer(self.nodes[-1:])
        return result

    def again(self, node: ir.Node, *inputs: ir.Value | None, outputs: int = 1, **changes: Any) -> list[ir.Value]:
        """Creates a node with the operator and opset of `node`, and with its attributes except for these changes.

        A change to `None` drops an attribute. Returns the outputs.
        """
        given: dict[str, Any] = {**node.attributes, **changes}
        kept = {name: value for name, value in given.items() if value is not None}
        results = self.op(node.op_type, *inputs, outputs=outputs, version=self.opset, **kept)
        self._infer.infer(self.nodes[-1:])
        return [*results]

    def ints(self, *numbers: int) -> ir.Value:
        """A list of numbers as an initializer."""
        return self.constant(np.array(numbers, dtype=np.int64), "numbers")

    def reshape(self, x: ir.Value, sizes: Sizes, *, allows_zero: bool = True) -> ir.Value:
        """`x` with these sizes. A size that is not known when compiling is computed in the run.

        Unless `allows_zero`, a run fails if a computed size is 0, except where `x` has the size 0 along the same axis.
        """
        numbers = [_number(size, x, axis) for axis, size in enumerate(sizes)]
        unknown = numbers.count(None)
        if unknown == 0 or (unknown == 1 and 0 not in numbers):  # beside a size that is 0 in a run, -1 has no meaning
            return self.add("Reshape", x, self.ints(*(-1 if number is None else number for number in numbers)))
        return self.add("Reshape", x, self._computed(sizes, numbers), allowzero=int(allows_zero))

    def size(self, value: ir.Value, axis: int) -> ir.Value:
        """The size of a value along an axis, as a list of one number."""
        return self.add("Shape", value, start=axis, end=axis + 1)

    def _computed(self, sizes: Sizes, numbers: Sequence[int | None]) -> ir.Value:
        """The list of the sizes. Neighboring sizes of a value are one part of its shape."""
        parts: list[ir.Value] = []
        axis = 0
        while axis < len(sizes):
            number, first = numbers[axis], sizes[axis]
            if number is None and len(first) == 1 and isinstance(first[0], tuple):
                value, start = first[0]
                end = start + 1
                while axis + end - start < len(sizes) and [*sizes[axis + end - start]] == [(value, end)]:
                    end += 1
                parts.append(self.add("Shape", value, start=start, end=end))
                axis += end - start
                continue
            parts.append(self._product(first) if number in (None, 0) else self.ints(number or 0))
            axis += 1
        return parts[0] if len(parts) == 1 else self.add("Concat", *parts, axis=0)

    def _product(self, size: Sequence[Size]) -> ir.Value:
        factors = [self.ints(each) if isinstance(each, int) else self.size(*each) for each in size]
        result = factors[0]
        for factor in factors[1:]:
            result = self.add("Mul", result, factor)
        return result


def _known(size: Size) -> int | None:
    """A size as a number, if it is known and positive. In a Reshape, 0 has another meaning."""
    dim: object = size
    if isinstance(size, tuple):
        value, axis = size
        dim = None if value.shape is None else value.shape.dims[axis]
    return dim if isinstance(dim, int) and dim > 0 else None


def _number(size: Sequence[Size], x: ir.Value, axis: int) -> int | None:
    """The number of a size in a Reshape of `x`: 0 is the size of `x` along the same axis. `None` if it is unknown."""
    factors = [_known(each) for each in size]
    known = [factor for factor in factors if factor is not None]
    if len(known) == len(factors):
        return math.prod(known)
    return 0 if list(size) == [(x, axis)] else None


Lowering = Callable[[ir.Node, Volumes], Sequence[ir.Value]]
"""A function that creates the nodes that replace a node, and returns their results.

It raises `UnloweredError` if the node cannot be lowered.
"""


def volume(node: ir.Node) -> ir.Value:
    """The image of a node, of rank 5.

    Raises:
        UnloweredError: it has another rank, or an unknown one.
    """
    x = node.inputs[0] if node.inputs else None
    if x is None or rank(x) is None:
        raise UnloweredError("the rank of its input is not known")
    if rank(x) != MOST_WINDOW_AXES + 3:
        raise UnloweredError(f"its input has {rank(x)} dimensions")
    return x


def lowering_pass(name: str, lowerings: Mapping[str, Lowering], *, result: str) -> Pass:
    """The pass that lowers the nodes of these operators that have three spatial dimensions, and refuses the others."""

    def apply(model: ir.Model, report: PassReport) -> None:
        opset, infer = model.opset_imports.get("", 1), NewNodes(model)
        for node in list(nodes_of(model)):
            count = spatial_dims(node, opset) if node.op_type in lowerings else 0
            if count <= MOST_WINDOW_AXES or node.graph is None:
                continue
            new = Volumes(node.graph, opset_of(node, opset), infer)
            try:
                results = lowerings[node.op_type](node, new)
            except UnloweredError as reason:
                advice = _ADVICE if reason.unknown is None else _dim_advice(model, reason.unknown)
                report.refused.append(refusal(node, count, advice, f"it is not lowered, because {reason}"))
                continue
            report.fired.append(_replaced(node, results, new))

    facts = frozenset({"shapes", "sorted"})
    return Pass(name, apply, result=result, requires=facts, needed=True)


def _dim_advice(model: ir.Model, unknown: ir.SymbolicDim) -> str:
    """How to make a size known: by sizes for the symbols of the inputs in it."""
    dims = [dim for value in model.graph.inputs if value.shape is not None for dim in value.shape.dims]
    given = {dim.value for dim in dims if isinstance(dim, ir.SymbolicDim)}
    options = [f"--dim {shlex.quote(f'{shown(name)}=8')}" for name in sorted(unknown.free_symbols() & given)]
    return f"set the depth, for example with `{' '.join(options)}`" if options else "set the sizes of inputs with --dim"


def _replaced(node: ir.Node, results: Sequence[ir.Value], new: Volumes) -> Fired:
    """Replaces a node with the nodes of its lowering. Returns the report of it, with its price."""
    graph, here, price = graph_of(node), origin.of(node), Price.of(new.nodes) - Price.of([node])
    origin.inherit(new.nodes, [node])
    insert(graph, node, new)
    for old, value in zip(node.outputs, results, strict=False):
        replace_uses(old, value)
    graph.remove(node, safe=True)
    return Fired(node.op_type, here, f"{node.op_type}: {price}")
