"""Rules that move transposes below views, parts and products that keep the order of axes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from compiler.ir.graph import constant_of, rank
from compiler.rewrite.pattern import Const, Match, Op, Var
from compiler.rewrite.permutation import Permutation, inverse, permutation_of, reordered_shape, typed
from compiler.rewrite.reshape import reshape_target
from compiler.rewrite.rule import Rewriter, Rule

__all__ = ["DropUnitAxis", "SinkBelowGather", "SinkBelowMatMul", "SinkBelowReshape", "SinkBelowSplit"]

_TRANSPOSE = Op("Transpose", Var("x"), name="transpose")


def _is_read_only_by(transpose: ir.Node, fits: Callable[[ir.Node], bool]) -> bool:
    """Whether every reader of the transposed value is a Transpose or such a node: no transpose is then done twice."""
    value = transpose.outputs[0]
    return not value.is_graph_output() and all(
        use.node.op_identifier() == ("", "Transpose", "") or fits(use.node) for use in value.uses()
    )


class SinkBelowMatMul(Rule):
    """`MatMul(Transpose(x, p), w)` → `Transpose(MatMul(x, w), p)`, where `w` is a matrix, and the last axis stays."""

    pattern = Op("MatMul", _TRANSPOSE, Var("w"))
    allow_shared_intermediates = True

    def check(self, match: Match) -> str | None:
        """The rows are moved as they are, and nothing but products with matrices reads them."""
        perm = permutation_of(match.node("transpose"))
        if perm is None or perm[-1] != len(perm) - 1 or len(perm) < 3 or not _is_rows_times_matrix(match.root):
            return "the transpose does not move whole rows, or the right side is not a matrix"
        is_alone = _is_read_only_by(match.node("transpose"), _is_rows_times_matrix)
        return None if is_alone else "the transposed input is needed elsewhere too"

    def rewrite(self, match: Match, new: Rewriter) -> ir.Value:
        """The product, then the transpose."""
        perm, output = permutation_of(match.node("transpose")) or (), match.root.outputs[0]
        inner = new.like(match.root, match["x"], match["w"])
        typed(inner, output.type, reordered_shape(output.shape, inverse(perm)))
        return new.op("Transpose", inner, perm=list(perm))


def _is_rows_times_matrix(node: ir.Node) -> bool:
    return node.op_identifier() == ("", "MatMul", "") and rank(node.inputs[1]) == 2


class SinkBelowSplit(Rule):
    """`Split(Transpose(x, p), axis)` → `Transpose(Split(x, p[axis]), p)` of every part."""

    pattern = Op("Split", _TRANSPOSE, Var("sizes", optional=True))

    def check(self, match: Match) -> str | None:
        """The order of axes is known."""
        return None if permutation_of(match.node("transpose")) is not None else "the rank is not known"

    def rewrite(self, match: Match, new: Rewriter) -> Sequence[ir.Value]:
        """The parts, each transposed."""
        root, perm = match.root, permutation_of(match.node("transpose")) or ()
        attributes: dict[str, Any] = {**root.attributes}
        attributes["axis"] = perm[attributes["axis"].as_int() if "axis" in attributes else 0]
        sizes = match.values.get("sizes")
        parts = new.op("Split", match["x"], sizes, outputs=len(root.outputs), version=root.version, **attributes)
        for part, output in zip(parts, root.outputs, strict=True):
            typed(part, output.type, reordered_shape(output.shape, inverse(perm)))
        return [new.op("Transpose", part, perm=list(perm)) for part in parts]


class SinkBelowGather(Rule):
    """`Gather(Transpose(x, p), i, axis)` of one place → `Transpose(Gather(x, i, p[axis]))` of the axes left."""

    pattern = Op("Gather", _TRANSPOSE, Var("places"))
    allow_shared_intermediates = True

    def check(self, match: Match) -> str | None:
        """Only single places are taken of what is transposed."""
        if permutation_of(match.node("transpose")) is None:
            return "the rank is not known"
        return (
            None if _is_read_only_by(match.node("transpose"), _takes_one) else "readers need more than single indices"
        )

    def rewrite(self, match: Match, new: Rewriter) -> ir.Value:
        """The place, then the transpose of what it has."""
        root, perm = match.root, permutation_of(match.node("transpose")) or ()
        axis = perm[root.attributes["axis"].as_int() if "axis" in root.attributes else 0]
        output = root.outputs[0]
        left = tuple(other - (other > axis) for other in perm if other != axis)
        inner = new.op("Gather", match["x"], match["places"], version=root.version, axis=axis)
        typed(inner, output.type, reordered_shape(output.shape, inverse(left)))
        return new.op("Transpose", inner, perm=list(left))


def _takes_one(node: ir.Node) -> bool:
    places = constant_of(node.inputs[1]) if node.op_identifier() == ("", "Gather", "") else None
    return places is not None and places.ndim == 0


class DropUnitAxis(Rule):
    """`Squeeze(Transpose(Unsqueeze(x, a), p), b)` of the same axis → `Transpose(x)` of the others."""

    pattern = Op(
        "Squeeze", Op("Transpose", Op("Unsqueeze", Var("x"), Const("added")), name="transpose"), Const("dropped")
    )

    def check(self, match: Match) -> str | None:
        """The axis that is dropped is the one that was added."""
        perm, added, dropped = (
            permutation_of(match.node("transpose")),
            match.constant("added"),
            match.constant("dropped"),
        )
        if perm is None or added.size != 1 or dropped.size != 1:
            return "it does not add and drop one axis"
        is_same = perm[int(dropped.item())] == int(added.item()) % len(perm)
        return None if is_same else "the dropped axis is not the added one"

    def rewrite(self, match: Match, new: Rewriter) -> ir.Value:
        """The transpose without that axis."""
        perm = permutation_of(match.node("transpose")) or ()
        unit = int(match.constant("added").item()) % len(perm)
        return new.op("Transpose", match["x"], perm=[axis - (axis > unit) for axis in perm if axis != unit])


class SinkBelowReshape(Rule):
    """`Reshape(Transpose(x, p))` → `Transpose(Reshape(x))`, where axes that stay together have their own reshape."""

    pattern = Op(("Reshape", "Squeeze", "Unsqueeze", "Flatten"), _TRANSPOSE, rest=True)

    def check(self, match: Match) -> str | None:
        """Axes that were apart are not joined, and a constant can say the new shape."""
        found = _reshaped(match)
        if found is None:
            return "axes that were apart are joined"
        x = match["x"].shape
        return None if x and reshape_target(x.dims, found.shape.dims) is not None else "the shape is not known"

    def rewrite(self, match: Match, new: Rewriter) -> ir.Value:
        """The reshape, then the transpose."""
        found, x = _reshaped(match), match["x"].shape
        target = None if found is None or x is None else reshape_target(x.dims, found.shape.dims)
        if found is None or target is None:
            raise ValueError("check comes first")
        shape = new.constant(np.array(target, np.int64), "shape")
        inner = typed(new.op("Reshape", match["x"], shape, version=14), match.root.outputs[0].type, found.shape)
        return new.op("Transpose", inner, perm=list(found.perm))


@dataclass(frozen=True)
class _Reshaped:
    """The shape of what is reshaped before it is transposed, and the order of its axes then."""

    shape: ir.Shape
    perm: Permutation


_Dim = int | ir.SymbolicDim


def _reshaped(match: Match) -> _Reshaped | None:
    perm, x, result = permutation_of(match.node("transpose")), match["x"].shape, match.root.outputs[0].shape
    if perm is None or x is None or result is None or not all(map(_is_known, (*x.dims, *result.dims))):
        return None
    runs = list(_runs(perm))
    parts = _parts([[x.dims[axis] for axis in run] for run in runs], list(result.dims))
    if parts is None:
        return None
    order = sorted(range(len(runs)), key=lambda index: runs[index])
    dims = [dim for index in order for dim in parts[index]]
    starts = {index: sum(len(parts[other]) for other in order[:place]) for place, index in enumerate(order)}
    places = [starts[index] + offset for index in range(len(runs)) for offset in range(len(parts[index]))]
    return _Reshaped(ir.Shape(dims), tuple(places))


def _is_known(dim: _Dim) -> bool:
    """Whether the dimension has a name, or is a number but 0."""
    return dim != 0 if isinstance(dim, int) else dim.value is not None


def _runs(perm: Permutation) -> Iterator[list[int]]:
    """The axes in order, those together that follow one another in the input too."""
    run: list[int] = []
    for axis in perm:
        if run and axis != run[-1] + 1:
            yield run
            run = []
        run.append(axis)
    yield run


def _parts(groups: list[list[_Dim]], dims: list[_Dim]) -> list[list[_Dim]] | None:
    """The dimensions cut up into as many parts as there are groups, each of as many elements as its group."""
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
    """The product of dimensions: its number, and its symbols in order."""
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
