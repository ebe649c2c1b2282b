"""Normalizes reductions: counts their axes from the end, and keeps reduced axes if a reshape restores them."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from compiler.ir.graph import constant_of
from compiler.ir.views.reduce import REDUCTIONS, axes_of, keeps_axes
from compiler.rewrite.pattern import Match, Op, Var
from compiler.rewrite.rule import FindingRule, Rewriter, Rule, rules_pass

__all__ = ["normalize_reductions"]

_REDUCTION = Op(REDUCTIONS, Var("x"), Var("axes", optional=True), name="reduction")


class CountAxesFromEnd(FindingRule[tuple[int, ...]]):
    """`Reduce(x, axes)` → `Reduce(x, sorted negative axes)`, so that equal reductions are equal nodes."""

    pattern = _REDUCTION

    def check(self, match: Match) -> tuple[int, ...] | str:
        """The axes are a constant input, and are not negative and sorted yet."""
        axes, given = axes_of(match.root), constant_of(match["axes"]) if match.has("axes") else None
        if axes is None or given is None or not given.size:
            return "the axes are unknown or absent"
        return axes if given.tolist() != list(axes) else "they are counted from the end already"

    def rewrite(self, match: Match, found: tuple[int, ...], new: Rewriter) -> ir.Value:
        """The same reduction with the new axes."""
        return new.like(match.root, match["x"], new.constant(np.array(found, np.int64), "axes"))


class KeepReducedAxes(Rule):
    """`Reshape(Reduce(x, keepdims=0))` that restores the axes with size 1 → `Reduce(x, keepdims=1)`."""

    pattern = Op(("Reshape", "Unsqueeze"), _REDUCTION, rest=True)

    def check(self, match: Match) -> str | None:
        """The result has the shape of `x`, with size 1 along the reduced axes."""
        node, x, result = match.node("reduction"), match["x"].shape, match.root.outputs[0].shape
        axes = axes_of(node)
        if keeps_axes(node) or axes is None or x is None or result is None:
            return "the axes are kept or unknown"
        kept = [1 if axis - len(x) in axes else dim for axis, dim in enumerate(x.dims)]
        is_known = all(isinstance(dim, int) or dim.value is not None for dim in kept)
        return None if is_known and kept == list(result.dims) else "the shape differs from that with kept axes"

    def rewrite(self, match: Match, new: Rewriter) -> ir.Value:
        """The reduction with `keepdims=1`."""
        node = match.node("reduction")
        result = new.like(node, match["x"], *([match["axes"]] if match.has("axes") else []))
        new.nodes[-1].attributes["keepdims"] = ir.AttrInt64("keepdims", 1)
        return result


normalize_reductions = rules_pass(
    "normalize_reductions",
    [CountAxesFromEnd(), KeepReducedAxes()],
    result="reductions rewritten",
    requires=frozenset({"shapes"}),
)
