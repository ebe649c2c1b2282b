"""Drops transposes that move nothing, and pairs that undo each other, also with elementwise operators between them.

The pass moves a transpose below elementwise operators, joins and reductions, toward the outputs. There the transpose
meets its inverse or an operator that needs it. A graph converted from channels-last layout loses all but the outermost
transposes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from compiler.ir import onnx_schema
from compiler.ir.graph import CODES_ELEMENTWISE, PLAN_DOMAIN, constant_of, same_shape
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
from compiler.rewrite.reduction import axes_of, keeps_axes
from compiler.rewrite.reshape import reshape_target
from compiler.rewrite.rule import Rewriter, Rule, can_be_renamed, rules_pass
from compiler.rewrite.sink_transposes import (
    DropUnitAxis,
    SinkBelowGather,
    SinkBelowMatMul,
    SinkBelowReshape,
    SinkBelowSplit,
)

__all__ = ["cancel_transposes"]

_TRANSPOSE = Op("Transpose", Var("x"), name="transpose")


class MergeTransposes(Rule):
    """`Transpose(Transpose(x, p), q)` → `Transpose(x, p[q])`."""

    pattern = Op("Transpose", _TRANSPOSE)
    allow_shared_intermediates = True

    def check(self, match: Match) -> str | None:
        """Both orders have to be known."""
        if permutation_of(match.root) is None or permutation_of(match.node("transpose")) is None:
            return "the rank is not known"
        return None

    def rewrite(self, match: Match, new: Rewriter) -> ir.Value:
        """One transpose."""
        first, second = permutation_of(match.node("transpose")), permutation_of(match.root)
        return new.op("Transpose", match["x"], perm=[first[axis] for axis in second or ()] if first else [])


class DropTranspose(Rule):
    """`Transpose(x)` that moves only axes of size 1 → `x`, or `Reshape(x)`, which copies nothing."""

    pattern = Op("Transpose", Var("x"))

    def check(self, match: Match) -> str | None:
        """Axes of other sizes keep their order; the new shape can be said in one constant."""
        perm, shape = permutation_of(match.root), match["x"].shape
        if perm is None:
            return "the rank is not known"
        if _keeps_order(perm, match.root):
            return None
        if shape is None or len(shape) != len(perm):
            return "it moves elements"
        moved = [axis for axis in perm if shape.dims[axis] != 1]
        if moved != sorted(moved):
            return "it moves elements"
        return None if _new_shape(shape, perm) is not None else "the shape is not known"

    def rewrite(self, match: Match, new: Rewriter) -> ir.Value:
        """The input itself, or a reshape to the sizes in their new order."""
        perm, shape = permutation_of(match.root), match["x"].shape
        if perm is None or _keeps_order(perm, match.root):
            return match["x"]
        dims = None if shape is None else _new_shape(shape, perm)
        return new.op("Reshape", match["x"], new.constant(np.array(dims, np.int64), "shape"))


def _keeps_order(perm: Permutation, node: ir.Node) -> bool:
    """Whether the node gives its input as it is, and that input can have the output's name."""
    output, given = node.outputs[0], node.inputs[0]
    is_named = output.is_graph_output() and (given is None or not can_be_renamed(output, given))
    return perm == tuple(sorted(perm)) and not is_named


def _new_shape(shape: ir.Shape, perm: Permutation) -> list[int] | None:
    return reshape_target(shape.dims, [shape.dims[axis] for axis in perm])


_BELOW = AnyOf(
    Op(onnx_schema.ELEMENTWISE, _TRANSPOSE, rest=True),
    Op(onnx_schema.ELEMENTWISE, Var(), _TRANSPOSE, rest=True),
    Op(onnx_schema.ELEMENTWISE, Var(), Var(), _TRANSPOSE, rest=True),
    Op(tuple(CODES_ELEMENTWISE), _TRANSPOSE, rest=True, domain=PLAN_DOMAIN),
    Op(tuple(CODES_ELEMENTWISE), Var(), _TRANSPOSE, rest=True, domain=PLAN_DOMAIN),
)


class SinkBelowElementwise(Rule):
    """`f(Transpose(x, p), Transpose(y, p), c)` → `Transpose(f(x, y, c'), p)`."""

    pattern = _BELOW
    allow_shared_intermediates = True

    def check(self, match: Match) -> str | None:
        """All inputs have the same transpose or are constant, the result is not larger, and no transpose runs twice."""
        transpose, output = match.node("transpose"), match.root.outputs[0]
        perm = permutation_of(transpose)
        if perm is None or not same_shape(transpose.outputs[0], output):
            return "the result has another shape than the transposed input"
        for value in _operands(match.root):
            if value is not None and not _is_like(value, perm):
                return f"{value.name!r} is not transposed alike"
        if (
            any(not _may_sink(use.node) for use in transpose.outputs[0].uses())
            or transpose.outputs[0].is_graph_output()
        ):
            return "the transposed input is needed elsewhere too"
        return None

    def rewrite(self, match: Match, new: Rewriter) -> ir.Value:
        """The function of the values before the transposes, then the transpose."""
        root, perm = match.root, permutation_of(match.node("transpose")) or ()
        operands = _operands(root)
        inputs = [None if value is None else _without(value, perm, new) for value in operands]
        output = root.outputs[0]
        inner = typed(
            new.like(root, *inputs, *root.inputs[len(operands) :]),
            output.type,
            reordered_shape(output.shape, inverse(perm)),
        )
        return new.op("Transpose", inner, perm=list(perm))


def _operands(node: ir.Node) -> Sequence[ir.Value | None]:
    """The inputs that the node goes through element by element."""
    count = CODES_ELEMENTWISE.get(node.op_type) if node.domain == PLAN_DOMAIN else None
    return node.inputs[:count]


def _may_sink(node: ir.Node) -> bool:
    kinds = {"": (*onnx_schema.ELEMENTWISE, "Transpose"), PLAN_DOMAIN: CODES_ELEMENTWISE}
    return node.op_type in kinds.get(node.domain, ())


def _transpose_above(value: ir.Value, perm: Permutation) -> ir.Node | None:
    node = value.producer()
    is_one = node is not None and node.op_identifier() == ("", "Transpose", "") and permutation_of(node) == perm
    return node if is_one else None


def _is_like(value: ir.Value, perm: Permutation) -> bool:
    array = constant_of(value)
    return _transpose_above(value, perm) is not None if array is None else array.ndim <= len(perm)


def _without(value: ir.Value, perm: Permutation, new: Rewriter) -> ir.Value | None:
    """The value before its transpose; for a constant, its elements in the order before the transpose."""
    above = _transpose_above(value, perm)
    if above is not None:
        return above.inputs[0]
    array = constant_of(value)
    if array is None or array.size == 1:
        return value
    return new.constant(permuted_constant(array, inverse(perm)), value.name or "constant")


class SinkBelowConcat(Rule):
    """`Concat(Transpose(x, p), Transpose(y, p), axis)` → `Transpose(Concat(x, y, p[axis]), p)`."""

    pattern = Op("Concat", _TRANSPOSE, rest=True)

    def check(self, match: Match) -> str | None:
        """All inputs are transposed alike."""
        perm = permutation_of(match.node("transpose"))
        if perm is None:
            return "the rank is not known"
        for value in match.root.inputs:
            if value is None or _transpose_above(value, perm) is None:
                return f"{value.name if value else ''!r} is not transposed alike"
        return None

    def rewrite(self, match: Match, new: Rewriter) -> ir.Value:
        """The parts joined along the axis that the order names, then the transpose."""
        root, perm = match.root, permutation_of(match.node("transpose")) or ()
        inputs = [_without(value, perm, new) for value in root.inputs if value is not None]
        axis = perm[root.attributes["axis"].as_int()]
        output = root.outputs[0]
        inner = new.op("Concat", *inputs, version=root.version, axis=axis)
        typed(inner, output.type, reordered_shape(output.shape, inverse(perm)))
        return new.op("Transpose", inner, perm=list(perm))


_REDUCTIONS = tuple(
    f"Reduce{kind}" for kind in ("Mean", "Sum", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare")
)


class SinkBelowReduction(Rule):
    """`Reduce(Transpose(x, p), axes)` → `Transpose(Reduce(x, p[axes]))`, of the axes that are left."""

    pattern = Op(_REDUCTIONS, _TRANSPOSE, Var(optional=True))

    def check(self, match: Match) -> str | None:
        """The axes are known constants."""
        if permutation_of(match.node("transpose")) is None or axes_of(match.root) is None:
            return "the axes are not known"
        return None

    def rewrite(self, match: Match, new: Rewriter) -> ir.Value:
        """The reduction along the axes where they were."""
        root, perm = match.root, permutation_of(match.node("transpose")) or ()
        reduced = sorted(perm[axis] for axis in axes_of(root) or ())
        inner = new.like(root, match["x"], *_axes(root, reduced, new))
        if "axes" in root.attributes:
            new.nodes[-1].attributes["axes"] = ir.AttrInt64s("axes", reduced)
        left = perm if keeps_axes(root) else _renumbered([axis for axis in perm if axis not in reduced])
        output = root.outputs[0]
        shape = reordered_shape(output.shape, inverse(left))
        return new.op("Transpose", typed(inner, output.type, shape), perm=list(left))


def _axes(root: ir.Node, reduced: list[int], new: Rewriter) -> list[ir.Value]:
    """The input that names the axes, where the operator has it."""
    given = root.inputs[1] if len(root.inputs) > 1 else None
    return [] if given is None else [new.constant(np.array(reduced, np.int64), "axes")]


def _renumbered(axes: list[int]) -> Permutation:
    """The order of the axes that are left, numbered without those that are gone."""
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
        MergeReshapes(),  # which lets transposes pass
    ],
    result="transposes moved or dropped",
    requires=frozenset({"shapes"}),
)
