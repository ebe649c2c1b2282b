"""Reads sizes from graph inputs instead of from computed values of the same size.

The computed values then need not stay alive for their sizes, and the sizes do not wait for the values.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from compiler.ir.views.shape import ShapeView
from compiler.ir.views.slice import SliceView
from compiler.rewrite.pattern import AnyOf, Const, Match, Op, Var
from compiler.rewrite.rule import FindingRule, Rewriter, rules_pass

__all__ = ["move_shapes_to_inputs"]

_SHAPE = Op("Shape", Var("x"), name="shape")


class ReadSize(FindingRule[list[int | ir.SymbolicDim]]):
    """Elements of `Shape(x)` that are sizes of graph inputs → `Shape(input)` of these axes."""

    pattern = AnyOf(Op("Gather", _SHAPE, Const("place")), Op("Slice", _SHAPE, rest=True))
    allow_shared_intermediates = True

    def check(self, match: Match) -> list[int | ir.SymbolicDim] | str:
        """Each size is a number or the symbol of an input's axis; `x` is not an input."""
        if match["x"].producer() is None:
            return "they are read from an input already"
        dims = _dims(match)
        is_known = dims and all(isinstance(dim, int) or _input_with(dim, match) for dim in dims)
        return dims if is_known else "they are not sizes of inputs"

    def rewrite(self, match: Match, found: list[int | ir.SymbolicDim], new: Rewriter) -> ir.Value:
        """The sizes, with the same rank."""
        sizes = [_size(dim, match, new) for dim in found]
        size = sizes[0] if len(sizes) == 1 else new.op("Concat", *sizes, version=13, axis=0)
        if match.root.op_type == "Gather" and not match.constant("place").ndim:
            size = new.op("Squeeze", size, new.constant(np.array([0], np.int64), "axes"), version=13)
        return size


def _size(dim: int | ir.SymbolicDim, match: Match, new: Rewriter) -> ir.Value:
    found = None if isinstance(dim, int) else _input_with(dim, match)
    if found is None:
        return new.constant(np.array([dim], np.int64), "size")
    value, axis = found
    return new.op("Shape", value, version=15, start=axis, end=axis + 1)


def _input_with(dim: ir.SymbolicDim, match: Match) -> tuple[ir.Value, int] | None:
    """The input that has the dimension, and its axis."""
    graph = match.root.graph
    for value in graph.inputs if isinstance(graph, ir.Graph) and dim.value is not None else ():
        for axis, other in enumerate(() if value.shape is None else value.shape.dims):
            if other == dim:
                return value, axis
    return None


def _dims(match: Match) -> list[int | ir.SymbolicDim]:
    """The dimensions that the root reads; an empty list if unknown."""
    shape, read_axes = match["x"].shape, ShapeView[ir.Value].of(match.node("shape"))
    if shape is None or read_axes is None:
        return []
    read = shape.dims[read_axes.start : read_axes.end]
    if match.root.op_type == "Gather":
        place = match.constant("place")
        return [read[int(place.item())]] if place.size == 1 and -len(read) <= place.item() < len(read) else []
    view = SliceView[ir.Value].of(match.root)
    taken = None if view is None else (view.ranges([len(read)]) or {}).get(0)
    return [] if taken is None or taken.step != 1 else list(read[taken.start : taken.end])


move_shapes_to_inputs = rules_pass(
    "move_shapes_to_inputs", [ReadSize()], result="sizes read from inputs", requires=frozenset({"shapes"})
)
