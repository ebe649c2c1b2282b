"""Drops transposes that move no elements, and pairs that cancel each other, also across elementwise operators.

The pass moves a transpose below elementwise operators, Concat and reductions, toward the outputs. There the transpose
meets its inverse or an operator that needs it. A graph converted from channels-last layout loses all but the outermost
transposes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from compiler.ir import onnx_schema
from compiler.ir.graph import CODES_ELEMENTWISE, PLAN_DOMAIN, constant_of, same_shape
from compiler.ir.views.concat import ConcatView
from compiler.ir.views.reduce import REDUCTIONS, ReduceView
from compiler.passes.drop_noops import DropReshape
from compiler.passes.merge_reshapes import MergeReshapes
from compiler.rewrite.pattern import AnyOf, Match, Op, Var
from compiler.rewrite.permutation import (
    Permutation,
    inverse,
    permutation_of,
    permuted_constant,
    reordered_shape,
    typed,
)
from compiler.rewrite.reshape import reshape_target
from compiler.rewrite.rule import FindingRule, Rewriter, can_be_renamed, rules_pass
from compiler.rewrite.sink_transposes import (
    DropUnitAxis,
    MovedAxis,
    SinkBelowGather,
    SinkBelowMatMul,
    SinkBelowReshape,
    SinkBelowSplit,
    moved_axis,
)

__all__ = ["cancel_transposes"]

_TRANSPOSE = Op("Transpose", Var("x"), name="transpose")


class MergeTransposes(FindingRule[Permutation]):
    """`Transpose(Transpose(x, p), q)` → `Transpose(x, p[q])`."""

    pattern = Op("Transpose", _TRANSPOSE)
    allow_shared_intermediates = True

    def check(self, match: Match) -> Permutation | str:
        """Both permutations are known. Returns their composition."""
        first, second = permutation_of(match.node("transpose")), permutation_of(match.root)
        if first is None or second is None:
            return "the rank is not known"
        return tuple(first[axis] for axis in second)

    def rewrite(self, match: Match, found: Permutation, new: Rewriter) -> ir.Value:
        """One transpose."""
        return new.op("Transpose", match["x"], perm=list(found))


@dataclass(frozen=True)
class _Replacement:
    """The shape input of the Reshape that replaces a transpose; `None` if the input itself replaces it."""

    target: list[int] | None


class DropTranspose(FindingRule[_Replacement]):
    """`Transpose(x)` that moves only axes of size 1 → `x`, or `Reshape(x)`, which copies nothing."""

    pattern = Op("Transpose", Var("x"))

    def check(self, match: Match) -> _Replacement | str:
        """Axes of other sizes keep their order, and a constant can describe the new shape."""
        perm, shape = permutation_of(match.root), match["x"].shape
        if perm is None:
            return "the rank is not known"
        if _keeps_order(perm, match.root):
            return _Replacement(None)
        if shape is None or len(shape) != len(perm):
            return "it moves elements"
        moved = [axis for axis in perm if shape.dims[axis] != 1]
        if moved != sorted(moved):
            return "it moves elements"
        target = reshape_target(shape.dims, [shape.dims[axis] for axis in perm])
        return "the shape is not known" if target is None else _Replacement(target)

    def rewrite(self, match: Match, found: _Replacement, new: Rewriter) -> ir.Value:
        """The input itself, or its reshape to the permuted sizes."""
        if found.target is None:
            return match["x"]
        return new.op("Reshape", match["x"], new.constant(np.array(found.target, np.int64), "shape"))


def _keeps_order(perm: Permutation, node: ir.Node) -> bool:
    """Whether the node returns its input unchanged, and the input can take the output's name."""
    output, given = node.outputs[0], node.inputs[0]
    is_named = output.is_graph_output() and (given is None or not can_be_renamed(output, given))
    return perm == tuple(sorted(perm)) and not is_named


_BELOW = AnyOf(
    Op(onnx_schema.ELEMENTWISE, _TRANSPOSE, rest=True),
    Op(onnx_schema.ELEMENTWISE, Var(), _TRANSPOSE, rest=True),
    Op(onnx_schema.ELEMENTWISE, Var(), Var(), _TRANSPOSE, rest=True),
    Op(tuple(CODES_ELEMENTWISE), _TRANSPOSE, rest=True, domain=PLAN_DOMAIN),
    Op(tuple(CODES_ELEMENTWISE), Var(), _TRANSPOSE, rest=True, domain=PLAN_DOMAIN),
)


class SinkBelowElementwise(FindingRule[Permutation]):
    """`f(Transpose(x, p), Transpose(y, p), c)` → `Transpose(f(x, y, c'), p)`."""

    pattern = _BELOW
    allow_shared_intermediates = True

    def check(self, match: Match) -> Permutation | str:
        """All inputs are constant or transposed alike, the result has their shape, and no transpose is duplicated."""
        transpose, output = match.node("transpose"), match.root.outputs[0]
        perm = permutation_of(transpose)
        if perm is None or not same_shape(transpose.outputs[0], output):
            return "the shape of the result differs from that of the transposed input"
        for value in _operands(match.root):
            if value is not None and not _is_transposed_by(value, perm):
                return f"{value.name!r} is not transposed in the same way"
        if (
            any(not _may_sink(use.node) for use in transpose.outputs[0].uses())
            or transpose.outputs[0].is_graph_output()
        ):
            return "the transposed input is needed elsewhere too"
        return perm

    def rewrite(self, match: Match, found: Permutation, new: Rewriter) -> ir.Value:
        """The function of the untransposed values, then the transpose."""
        root, perm = match.root, found
        operands = _operands(root)
        inputs = [None if value is None else _before_transpose(value, perm, new) for value in operands]
        output = root.outputs[0]
        inner = typed(
            new.like(root, *inputs, *root.inputs[len(operands) :]),
            output.type,
            reordered_shape(output.shape, inverse(perm)),
        )
        return new.op("Transpose", inner, perm=list(perm))


def _operands(node: ir.Node) -> Sequence[ir.Value | None]:
    """The inputs that the node reads element by element."""
    count = CODES_ELEMENTWISE.get(node.op_type) if node.domain == PLAN_DOMAIN else None
    return node.inputs[:count]


def _may_sink(node: ir.Node) -> bool:
    kinds = {"": (*onnx_schema.ELEMENTWISE, "Transpose"), PLAN_DOMAIN: CODES_ELEMENTWISE}
    return node.op_type in kinds.get(node.domain, ())


def _transpose_above(value: ir.Value, perm: Permutation) -> ir.Node | None:
    node = value.producer()
    is_one = node is not None and node.op_identifier() == ("", "Transpose", "") and permutation_of(node) == perm
    return node if is_one else None


def _is_transposed_by(value: ir.Value, perm: Permutation) -> bool:
    array = constant_of(value)
    return _transpose_above(value, perm) is not None if array is None else array.ndim <= len(perm)


def _before_transpose(value: ir.Value, perm: Permutation, new: Rewriter) -> ir.Value | None:
    """The untransposed value; for a constant, a permuted copy."""
    above = _transpose_above(value, perm)
    if above is not None:
        return above.inputs[0]
    array = constant_of(value)
    if array is None or array.size == 1:
        return value
    return new.constant(permuted_constant(array, inverse(perm)), value.name or "constant")


class SinkBelowConcat(FindingRule[MovedAxis]):
    """`Concat(Transpose(x, p), Transpose(y, p), axis)` → `Transpose(Concat(x, y, p[axis]), p)`."""

    pattern = Op("Concat", _TRANSPOSE, rest=True)

    def check(self, match: Match) -> MovedAxis | str:
        """All inputs have the same transpose."""
        found = moved_axis(match, ConcatView[ir.Value].of(match.root))
        if isinstance(found, str):
            return found
        for value in match.root.inputs:
            if value is None or _transpose_above(value, found.perm) is None:
                return f"{value.name if value else ''!r} is not transposed in the same way"
        return found

    def rewrite(self, match: Match, found: MovedAxis, new: Rewriter) -> ir.Value:
        """The parts, concatenated along the permuted axis, then the transpose."""
        root, perm = match.root, found.perm
        inputs = [_before_transpose(value, perm, new) for value in root.inputs if value is not None]
        output = root.outputs[0]
        inner = new.op("Concat", *inputs, version=root.version, axis=found.axis)
        typed(inner, output.type, reordered_shape(output.shape, inverse(perm)))
        return new.op("Transpose", inner, perm=list(perm))


@dataclass(frozen=True)
class _Reduced:
    """The permutation of a reduction's input, its view, and the reduced axes, which are negative."""

    perm: Permutation
    view: ReduceView[ir.Value]
    axes: tuple[int, ...]


class SinkBelowReduction(FindingRule[_Reduced]):
    """`Reduce(Transpose(x, p), axes)` → `Transpose(Reduce(x, p[axes]))` of the remaining axes."""

    pattern = Op(REDUCTIONS, _TRANSPOSE, Var(optional=True))

    def check(self, match: Match) -> _Reduced | str:
        """The axes are known constants."""
        perm, view = permutation_of(match.node("transpose")), ReduceView[ir.Value].of(match.root)
        axes = None if perm is None or view is None else view.known_axes(len(perm))
        return "the axes are not known" if perm is None or view is None or axes is None else _Reduced(perm, view, axes)

    def rewrite(self, match: Match, found: _Reduced, new: Rewriter) -> ir.Value:
        """The reduction of the untransposed value, then the transpose."""
        root, perm = match.root, found.perm
        reduced = sorted(perm[axis] for axis in found.axes)
        arrays, attributes = found.view.with_axes(reduced)
        inner = new.like(root, match["x"], *(new.constant(array, "axes") for array in arrays), **attributes)
        left = perm if found.view.keepdims else _renumbered([axis for axis in perm if axis not in reduced])
        output = root.outputs[0]
        shape = reordered_shape(output.shape, inverse(left))
        return new.op("Transpose", typed(inner, output.type, shape), perm=list(left))


def _renumbered(axes: list[int]) -> Permutation:
    """The permutation of the remaining axes, numbered without the removed ones."""
    return tuple(sorted(axes).index(axis) for axis in axes)


cancel_transposes = rules_pass(
    "cancel_transposes",
    [
        DropTranspose(),
        MergeTransposes(),
        SinkBelowElementwise(),
        SinkBelowConcat(),
        SinkBelowReduction(),
        DropUnitAxis(),
        SinkBelowGather(),
        SinkBelowMatMul(),
        SinkBelowReshape(),
        SinkBelowSplit(),
        DropReshape(),
        MergeReshapes(),  # transposes can then pass
    ],
    result="transposes moved or dropped",
    requires=frozenset({"shapes"}),
)
