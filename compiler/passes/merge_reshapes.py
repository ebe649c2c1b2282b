"""Merges consecutive reshapes, and drops reshapes to the same shape.

Reshape, Squeeze, Unsqueeze and Flatten change only the shape; the elements keep their order.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from compiler.ir.views.reshape import ReshapeView
from compiler.passes.drop_noops import DropReshape
from compiler.rewrite.pattern import Match, Op, Var
from compiler.rewrite.reshape import reshape_target
from compiler.rewrite.rule import FindingRule, Rewriter, rules_pass

__all__ = ["MergeReshapes", "merge_reshapes"]

_VIEWS = ("Reshape", "Squeeze", "Unsqueeze", "Flatten")
_INNER = Op(_VIEWS, Var("x"), rest=True, name="inner")


class MergeReshapes(FindingRule[list[int]]):
    """`Reshape(Reshape(x, …), shape)` → `Reshape(x, shape)`, and so for Squeeze, Unsqueeze and Flatten."""

    pattern = Op(_VIEWS, _INNER, rest=True)
    allow_shared_intermediates = True

    def check(self, match: Match) -> list[int] | str:
        """A shape input can describe the last shape without the intermediate one."""
        target = _target(match)
        return "the shape is not known" if target is None else target

    def rewrite(self, match: Match, found: list[int], new: Rewriter) -> ir.Value:
        """One reshape."""
        return new.op("Reshape", match["x"], new.constant(np.array(found, np.int64), "shape"))


def _target(match: Match) -> list[int] | None:
    x, output = match["x"].shape, match.root.outputs[0].shape
    if x is not None and output is not None:
        target = reshape_target(x.dims, output.dims)
        if target is not None:
            return target
    view = ReshapeView[ir.Value].of(match.root)
    shape = None if view is None or view.shape is None else view.shape.known
    # Depending on `allowzero`, a zero means the size of the input, which the merge changes, or an empty axis.
    return list(shape) if shape is not None and all(shape) else None


merge_reshapes = rules_pass(
    "merge_reshapes", [DropReshape(), MergeReshapes()], result="reshapes simplified", requires=frozenset({"shapes"})
)
