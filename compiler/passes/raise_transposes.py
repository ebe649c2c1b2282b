"""If a transpose follows an enlarging resize, moves the transpose before the resize, where it moves less data."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import onnx_ir as ir

from compiler.ir.graph import PLAN_DOMAIN
from compiler.ir.views.resize import ResizeView
from compiler.rewrite.interpolate import Change, changes_of, interpolate
from compiler.rewrite.pattern import Match, Op, Var
from compiler.rewrite.permutation import Permutation, inverse, permutation_of, reordered_shape, typed
from compiler.rewrite.rule import FindingRule, Rewriter, rules_pass

__all__ = ["raise_transposes"]


@dataclass(frozen=True)
class _Resize:
    """The permutation after the resize, and the resized axes before it."""

    perm: Permutation
    changes: list[Change]


class RaiseAboveInterpolate(FindingRule[_Resize]):
    """`Transpose(Interpolate(x, axes), p)` → `Interpolate(Transpose(x, p), p⁻¹[axes])`."""

    pattern = Op("Transpose", Op("Interpolate", Var("x"), domain=PLAN_DOMAIN, name="interpolate"))

    def check(self, match: Match) -> _Resize | str:
        """The result of the resize is larger than its input."""
        perm = permutation_of(match.root)
        before, after = (_count(value) for value in (match["x"], match["interpolate"]))
        if perm is None or before is None or after is None or after <= before:
            return "the result is not known to be larger"
        view = ResizeView[ir.Value].of(match.node("interpolate"))
        changes = None if view is None else changes_of(view)
        return "the resized axes are not known" if changes is None else _Resize(perm, changes)

    def rewrite(self, match: Match, found: _Resize, new: Rewriter) -> ir.Value:
        """The transpose, then the resize of the permuted axes."""
        x, perm, places = match["x"], found.perm, inverse(found.perm)
        moved = typed(new.op("Transpose", x, perm=list(perm)), x.type, reordered_shape(x.shape, perm))
        changes = [replace(change, axis=places[change.axis]) for change in found.changes]
        return interpolate(moved, match.node("interpolate").attributes, changes, new)


def _count(value: ir.Value) -> int | None:
    if value.shape is None:
        return None
    sizes = [size for size in value.shape if isinstance(size, int)]
    return math.prod(sizes) if len(sizes) == len(value.shape) else None


raise_transposes = rules_pass(
    "raise_transposes", [RaiseAboveInterpolate()], result="transposes moved", requires=frozenset({"shapes"})
)
