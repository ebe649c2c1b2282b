"""Merges consecutive reshapes, and drops reshapes that change nothing.

Reshape, Squeeze, Unsqueeze and Flatten change the shape only; the elements keep their order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from compiler.ir.graph import constant_of
from compiler.passes.drop_noops import DropReshape
from compiler.rewrite.pattern import Match, Op, Var
from compiler.rewrite.rule import Rewriter, Rule, rules_pass

__all__ = ["MergeReshapes", "merge_reshapes", "reshape_target"]

Dims = Sequence[int | ir.SymbolicDim]
_VIEWS = ("Reshape", "Squeeze", "Unsqueeze", "Flatten")
_INNER = Op(_VIEWS, Var("x"), rest=True, name="inner")


def reshape_target(given: Dims, wanted: Dims) -> list[int] | None:
    """The shape input of a Reshape from one shape to another of as many elements; `None` if a constant cannot say it.

    0 stands for the input's own size at that place, -1 for the one that is left.
    """
    target: list[int] = []
    for place, dim in enumerate(wanted):
        if isinstance(dim, int):
            target.append(dim)
        else:
            own = given[place] if place < len(given) else None
            target.append(0 if dim.value is not None and dim == own else -1)
    is_possible = target.count(-1) <= 1 and 0 not in list(wanted) and 0 not in list(given)
    return target if is_possible else None


class MergeReshapes(Rule):
    """`Reshape(Reshape(x, …), shape)` → `Reshape(x, shape)`, and so for Squeeze, Unsqueeze and Flatten."""

    pattern = Op(_VIEWS, _INNER, rest=True)
    keeps_inner = True

    def check(self, match: Match) -> str | None:
        """The last shape can be said without the one between."""
        return None if _target(match) is not None else "the shape is not known"

    def rewrite(self, match: Match, new: Rewriter) -> ir.Value:
        """One reshape."""
        return new.op("Reshape", match["x"], new.constant(np.array(_target(match), np.int64), "shape"))


def _target(match: Match) -> list[int] | None:
    x, output = match["x"].shape, match.root.outputs[0].shape
    if x is not None and output is not None:
        target = reshape_target(x.dims, output.dims)
        if target is not None:
            return target
    shape = constant_of(match.root.inputs[1]) if match.root.op_type == "Reshape" else None
    # Zeros would mean other sizes, or none, depending on `allowzero`.
    return [int(size) for size in shape] if shape is not None and shape.all() else None


merge_reshapes = rules_pass(
    "merge_reshapes", [DropReshape(), MergeReshapes()], result="reshapes simplified", requires=frozenset({"shapes"})
)
