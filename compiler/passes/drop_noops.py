"""Drops operators that return their input unchanged, such as a Slice of the whole range.

Other examples are a Reshape to the input's own shape, a Concat of one input and a multiplication by one.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from compiler.ir import onnx_schema
from compiler.ir.graph import constant_of, same_shape
from compiler.ir.views.blocks import BlocksView
from compiler.ir.views.gather import GatherView
from compiler.ir.views.pad import PadView
from compiler.ir.views.slice import SliceView
from compiler.rewrite.pattern import AnyOf, Const, Match, Op, Var
from compiler.rewrite.rule import FindingRule, Rewriter, Rule, can_be_renamed, rules_pass

__all__ = ["DropReshape", "drop_noops"]


class _Drop(Rule):
    """The base of rules whose root returns `x`."""

    def why_not(self, match: Match) -> str | None:
        """The reason why the root's result differs from `x`, or `None`."""
        return None

    def check(self, match: Match) -> str | None:
        """The result equals `x`, and `x` can take the name of a graph output."""
        output = match.root.outputs[0]
        reason = self.why_not(match)
        if reason is None and output.is_graph_output() and not can_be_renamed(output, match["x"]):
            reason = f"the output {output.name!r} needs a name of its own"
        return reason

    def rewrite(self, match: Match, new: Rewriter) -> ir.Value:
        """The input itself."""
        return match["x"]


class DropSlice(_Drop):
    """`Slice(x)` of the whole range → `x`."""

    pattern = Op("Slice", Var("x"), rest=True)

    def why_not(self, match: Match) -> str | None:
        """The result has as many elements as the input, in steps of one."""
        view = SliceView[ir.Value].of(match.root)
        if view is None or not (view.steps is None or set(view.steps.known or [0]) == {1}):
            return "the steps are not one"
        return None if same_shape(match["x"], match.root.outputs[0]) else "the shape changes"


class DropReshape(_Drop):
    """`Reshape(x)`, `Squeeze(x)`, `Unsqueeze(x)`, `Flatten(x)`, `Expand(x)` to the shape of `x` → `x`."""

    pattern = Op(("Reshape", "Squeeze", "Unsqueeze", "Flatten", "Expand"), Var("x"), rest=True)

    def why_not(self, match: Match) -> str | None:
        """The shapes are equal."""
        return None if same_shape(match["x"], match.root.outputs[0]) else "the shape changes"


_EXPAND = Op("Expand", Var(), Var())


class DropExpand(FindingRule[list[ir.Value | None]]):
    """`f(x, Expand(y))` → `f(x, y)`, where `f` is elementwise and its result has the shape of `x`."""

    pattern = AnyOf(
        Op(onnx_schema.ELEMENTWISE, Var(), _EXPAND, rest=True),
        Op(onnx_schema.ELEMENTWISE, _EXPAND, Var(), rest=True),
        Op(onnx_schema.ELEMENTWISE, Var(), Var(), _EXPAND, rest=True),
    )
    allow_shared_intermediates = True

    def check(self, match: Match) -> list[ir.Value | None] | str:
        """An input without an Expand has the shape of the result, so that the others broadcast to it."""
        inputs, output = match.root.inputs, match.root.outputs[0]
        sources = [_expanded(value) for value in inputs]
        is_full = any(not source and same_shape(value, output) for source, value in zip(sources, inputs, strict=True))
        return sources if is_full else "the Expand may determine the shape of the result"

    def rewrite(self, match: Match, found: list[ir.Value | None], new: Rewriter) -> ir.Value:
        """The function of the unexpanded inputs."""
        return new.like(match.root, *(source or value for source, value in zip(found, match.root.inputs, strict=True)))


def _expanded(value: ir.Value | None) -> ir.Value | None:
    """The input of the Expand that produces the value; `None` if there is none."""
    node = None if value is None else value.producer()
    return node.inputs[0] if node is not None and node.op_identifier() == ("", "Expand", "") else None


class DropBlock(_Drop):
    """`DepthToSpace(x)`, `SpaceToDepth(x)` with a block size of 1 → `x`."""

    pattern = Op(("DepthToSpace", "SpaceToDepth"), Var("x"))

    def why_not(self, match: Match) -> str | None:
        """The block size is 1."""
        view = BlocksView[ir.Value].of(match.root, complete=True)
        return None if view is not None and view.size == 1 else "the blocks are larger"


class DropPad(_Drop):
    """`Pad(x, 0)` → `x`."""

    pattern = Op("Pad", Var("x"), rest=True)

    def why_not(self, match: Match) -> str | None:
        """All pads are zero."""
        view = PadView[ir.Value].of(match.root)
        pads = None if view is None or view.pads is None else view.pads.known
        return None if pads is not None and not any(pads) else "it pads"


class DropTile(_Drop):
    """`Tile(x, 1)` → `x`."""

    pattern = Op("Tile", Var("x"), Const("repeats", equal=1))


class DropSingle(_Drop):
    """`Concat(x)`, `Sum(x)`, `Max(x)` and other operators with one input → `x`."""

    pattern = Op(("Concat", "Sum", "Max", "Min", "Mean"), Var("x"))


class DropSplit(_Drop):
    """`Split(x)` into one part → `x`."""

    pattern = Op("Split", Var("x"), Var(optional=True))

    def why_not(self, match: Match) -> str | None:
        """There is one part."""
        return None if len(match.root.outputs) == 1 else "there are several parts"


class DropDropout(_Drop):
    """`Dropout(x)` in inference mode → `x`."""

    pattern = Op("Dropout", Var("x"), Var(optional=True), Var("training", optional=True))
    notable = True

    def why_not(self, match: Match) -> str | None:
        """The mask has no reader, and the node is not in training mode."""
        if any(value.uses() or value.is_graph_output() for value in match.root.outputs[1:]):
            return "its mask is read"
        is_off = not match.has("training") or _all(match["training"], 0)
        return None if is_off else "it may be in training mode"


class DropNeutral(_Drop):
    """`x · 1`, `x / 1`, `x ^ 1`, `x - 0` → `x`."""

    pattern = AnyOf(
        Op("Mul", Var("x"), Const("c", equal=1)),
        Op(("Div", "Pow"), Var("x"), Const("c", equal=1)),
        Op("Sub", Var("x"), Const("c", equal=0)),
    )
    notable = True

    def why_not(self, match: Match) -> str | None:
        """The constant is exactly neutral and does not enlarge the result."""
        exact = 0 if match.root.op_type == "Sub" else 1
        if not (match.constant("c") == exact).all():
            return "the constant is only nearly neutral"
        return None if same_shape(match["x"], match.root.outputs[0]) else "the constant may enlarge the result"


class DropGather(_Drop):
    """`Gather(x, (0, 1, …, n - 1))` → `x`."""

    pattern = Op("Gather", Var("x"), Const("indices"))

    def why_not(self, match: Match) -> str | None:
        """The indices are all indices of the axis, in order."""
        shape, indices = _size_along(match), match.constant("indices")
        if shape is None or indices.ndim != 1 or not np.array_equal(indices % max(shape, 1), np.arange(shape)):
            return "it takes only some elements, or in another order"
        return None


def _size_along(match: Match) -> int | None:
    """The size of the axis of the root, a Gather; `None` if unknown."""
    view, shape = GatherView[ir.Value].of(match.root), match["x"].shape
    axis = None if view is None or shape is None else view.normalized_axis(len(shape))
    if shape is None or axis is None:
        return None
    size = shape.dims[axis]
    return size if isinstance(size, int) else None


def _all(value: ir.Value | None, number: int) -> bool:
    array = constant_of(value)
    return array is not None and bool((array == number).all())


drop_noops = rules_pass(
    "drop_noops",
    [
        DropSlice(),
        DropReshape(),
        DropExpand(),
        DropBlock(),
        DropPad(),
        DropTile(),
        DropSingle(),
        DropSplit(),
        DropDropout(),
        DropNeutral(),
        DropGather(),
    ],
    result="nodes dropped",
    requires=frozenset({"shapes"}),
)
