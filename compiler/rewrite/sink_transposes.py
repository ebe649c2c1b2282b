"""Rules that move transposes below reshapes, Split, Gather and matrix products."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from compiler.ir.graph import constant_of, rank
from compiler.ir.views.concat import ConcatView
from compiler.ir.views.gather import GatherView
from compiler.ir.views.source import resolved
from compiler.ir.views.split import SplitView
from compiler.rewrite.pattern import Const, Match, Op, Var
from compiler.rewrite.permutation import Permutation, inverse, permutation_of, reordered_shape, typed
from compiler.rewrite.reshape import reshape_target
from compiler.rewrite.rule import FindingRule, Rewriter

__all__ = [
    "DropUnitAxis",
    "MovedAxis",
    "SinkBelowGather",
    "SinkBelowMatMul",
    "SinkBelowReshape",
    "SinkBelowSplit",
    "moved_axis",
]

_AlongAxis = ConcatView[ir.Value] | GatherView[ir.Value] | SplitView[ir.Value]
_TRANSPOSE = Op("Transpose", Var("x"), name="transpose")


def _is_read_only_by(transpose: ir.Node, fits: Callable[[ir.Node], bool]) -> bool:
    """Whether every reader is a Transpose or satisfies `fits`, so that no transpose is duplicated."""
    value = transpose.outputs[0]
    return not value.is_graph_output() and all(
        use.node.op_identifier() == ("", "Transpose", "") or fits(use.node) for use in value.uses()
    )


class SinkBelowMatMul(FindingRule[Permutation]):
    """`MatMul(Transpose(x, p), w)` → `Transpose(MatMul(x, w), p)`, if `w` is a matrix and `p` keeps the last axis."""

    pattern = Op("MatMul", _TRANSPOSE, Var("w"))
    allow_shared_intermediates = True

    def check(self, match: Match) -> Permutation | str:
        """The transpose moves whole rows, and its other readers are also products with matrices."""
        perm = permutation_of(match.node("transpose"))
        if perm is None or perm[-1] != len(perm) - 1 or len(perm) < 3 or not _is_rows_times_matrix(match.root):
            return "the transpose does not move whole rows, or the right operand is not a matrix"
        is_alone = _is_read_only_by(match.node("transpose"), _is_rows_times_matrix)
        return perm if is_alone else "the transposed input is needed elsewhere too"

    def rewrite(self, match: Match, found: Permutation, new: Rewriter) -> ir.Value:
        """The product, then the transpose."""
        perm, output = found, match.root.outputs[0]
        inner = new.like(match.root, match["x"], match["w"])
        typed(inner, output.type, reordered_shape(output.shape, inverse(perm)))
        return new.op("Transpose", inner, perm=list(perm))


def _is_rows_times_matrix(node: ir.Node) -> bool:
    return node.op_identifier() == ("", "MatMul", "") and rank(node.inputs[1]) == 2


@dataclass(frozen=True)
class MovedAxis:
    """The permutation of a transpose, and the axis of its reader, as an axis of the transpose's input."""

    perm: Permutation
    axis: int


def moved_axis(match: Match, view: _AlongAxis | None) -> MovedAxis | str:
    """The axis of the root, as an axis of the input of the node `transpose`; or the reason why it is unknown."""
    perm = permutation_of(match.node("transpose"))
    if perm is None:
        return "the rank is not known"
    axis = None if view is None else resolved(view.axis, len(perm))
    return "the axis is not known" if axis is None else MovedAxis(perm, perm[axis])


class SinkBelowSplit(FindingRule[MovedAxis]):
    """`Split(Transpose(x, p), axis)` → `Transpose(Split(x, p[axis]), p)` of every part."""

    pattern = Op("Split", _TRANSPOSE, Var("sizes", optional=True))

    def check(self, match: Match) -> MovedAxis | str:
        """The permutation is known."""
        return moved_axis(match, SplitView[ir.Value].of(match.root))

    def rewrite(self, match: Match, found: MovedAxis, new: Rewriter) -> Sequence[ir.Value]:
        """The parts, each transposed."""
        root, perm = match.root, found.perm
        attributes: dict[str, Any] = {**root.attributes, "axis": found.axis}
        sizes = match.values.get("sizes")
        parts = new.op("Split", match["x"], sizes, outputs=len(root.outputs), version=root.version, **attributes)
        for part, output in zip(parts, root.outputs, strict=True):
            typed(part, output.type, reordered_shape(output.shape, inverse(perm)))
        return [new.op("Transpose", part, perm=list(perm)) for part in parts]


class SinkBelowGather(FindingRule[MovedAxis]):
    """`Gather(Transpose(x, p), i, axis)` of one index → `Transpose(Gather(x, i, p[axis]))` of the remaining axes."""

    pattern = Op("Gather", _TRANSPOSE, Var("places"))
    allow_shared_intermediates = True

    def check(self, match: Match) -> MovedAxis | str:
        """All readers of the transposed value take single indices."""
        found = moved_axis(match, GatherView[ir.Value].of(match.root))
        if isinstance(found, MovedAxis) and not _is_read_only_by(match.node("transpose"), _takes_one):
            return "readers need more than single indices"
        return found

    def rewrite(self, match: Match, found: MovedAxis, new: Rewriter) -> ir.Value:
        """The Gather, then the transpose of the remaining axes."""
        root, axis = match.root, found.axis
        output = root.outputs[0]
        left = tuple(other - (other > axis) for other in found.perm if other != axis)
        inner = new.op("Gather", match["x"], match["places"], version=root.version, axis=axis)
        typed(inner, output.type, reordered_shape(output.shape, inverse(left)))
        return new.op("Transpose", inner, perm=list(left))


def _takes_one(node: ir.Node) -> bool:
    view = GatherView[ir.Value].of(node) if node.op_type == "Gather" else None
    places = None if view is None else constant_of(view.indices)
    return places is not None and places.ndim == 0


class DropUnitAxis(FindingRule[Permutation]):
    """`Squeeze(Transpose(Unsqueeze(x, a), p), b)` of the same axis → `Transpose(x)` of the other axes."""

    pattern = Op(
        "Squeeze", Op("Transpose", Op("Unsqueeze", Var("x"), Const("added")), name="transpose"), Const("dropped")
    )

    def check(self, match: Match) -> Permutation | str:
        """The dropped axis is the added one."""
        perm, added, dropped = (
            permutation_of(match.node("transpose")),
            match.constant("added"),
            match.constant("dropped"),
        )
        if perm is None or added.size != 1 or dropped.size != 1:
            return "it does not add and drop one axis"
        is_same = perm[int(dropped.item())] == int(added.item()) % len(perm)
        if not is_same:
            return "the dropped axis is not the added one"
        unit = int(added.item()) % len(perm)
        return tuple(axis - (axis > unit) for axis in perm if axis != unit)

    def rewrite(self, match: Match, found: Permutation, new: Rewriter) -> ir.Value:
        """The transpose without that axis."""
        return new.op("Transpose", match["x"], perm=list(found))


@dataclass(frozen=True)
class _Reshaped:
    """The reshape before the transpose: the new shape, the shape input of the Reshape, and the permutation."""

    shape: ir.Shape
    target: list[int]
    perm: Permutation


class SinkBelowReshape(FindingRule[_Reshaped]):
    """`Reshape(Transpose(x, p))` → `Transpose(Reshape(x))`, if it joins only axes that are adjacent in `x`."""

    pattern = Op(("Reshape", "Squeeze", "Unsqueeze", "Flatten"), _TRANSPOSE, rest=True)

    def check(self, match: Match) -> _Reshaped | str:
        """The Reshape joins only axes that are adjacent in `x`, and a constant can describe the new shape."""
        return _reshaped(match)

    def rewrite(self, match: Match, found: _Reshaped, new: Rewriter) -> ir.Value:
        """The reshape, then the transpose."""
        shape = new.constant(np.array(found.target, np.int64), "shape")
        inner = typed(new.op("Reshape", match["x"], shape, version=14), match.root.outputs[0].type, found.shape)
        return new.op("Transpose", inner, perm=list(found.perm))


_Dim = int | ir.SymbolicDim


def _reshaped(match: Match) -> _Reshaped | str:
    perm, x, result = permutation_of(match.node("transpose")), match["x"].shape, match.root.outputs[0].shape
    if perm is None or x is None or result is None or not all(map(_is_known, (*x.dims, *result.dims))):
        return "the shapes are not known"
    runs = list(_runs(perm))
    parts = _parts([[x.dims[axis] for axis in run] for run in runs], list(result.dims))
    if parts is None:
        return "it joins axes that are not adjacent before the transpose"
    order = sorted(range(len(runs)), key=lambda index: runs[index])
    dims = [dim for index in order for dim in parts[index]]
    starts = {index: sum(len(parts[other]) for other in order[:place]) for place, index in enumerate(order)}
    places = [starts[index] + offset for index in range(len(runs)) for offset in range(len(parts[index]))]
    target = reshape_target(x.dims, dims)
    return "the shape is not known" if target is None else _Reshaped(ir.Shape(dims), target, tuple(places))


def _is_known(dim: _Dim) -> bool:
    """Whether the dimension has a name, or is a number other than 0."""
    return dim != 0 if isinstance(dim, int) else dim.value is not None


def _runs(perm: Permutation) -> Iterator[list[int]]:
    """The axes of the result in order, grouped into runs that are also consecutive in the input."""
    run: list[int] = []
    for axis in perm:
        if run and axis != run[-1] + 1:
            yield run
            run = []
        run.append(axis)
    yield run


def _parts(groups: list[list[_Dim]], dims: list[_Dim]) -> list[list[_Dim]] | None:
    """Splits the dimensions into one part per group, with the same number of elements; `None` if that is impossible."""
    parts, begin = [], 0
    for group in groups:
        wanted, end = _product(group), begin
        while _product(dims[begin:end]) != wanted:
            end += 1
            if end > len(dims):
                return None
        parts.append(dims[begin:end])
        begin = end
    if any(dim != 1 for dim in dims[begin:]):
        return None
    parts[-1] += dims[begin:]
    return parts


def _product(dims: Sequence[_Dim]) -> tuple[int, tuple[str, ...]]:
    """The product of dimensions: its numeric factor, and its sorted symbols."""
    number, symbols = 1, []
    for dim in dims:
        if isinstance(dim, int):
            number *= dim
            continue
        factors = str(dim.value).split("*")
        factors = (
            factors if all(factor.isidentifier() or factor.isdecimal() for factor in factors) else [str(dim.value)]
        )
        for factor in factors:
            number *= int(factor) if factor.isdecimal() else 1
        symbols += [factor for factor in factors if not factor.isdecimal()]
    return number, tuple(sorted(symbols))
