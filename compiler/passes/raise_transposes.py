"""If a transpose follows an enlarging resize, moves the transpose before the resize, where it moves less data."""

from __future__ import annotations

import math

import onnx_ir as ir

from compiler.ir.graph import PLAN_DOMAIN
from compiler.rewrite.pattern import Match, Op, Var
from compiler.rewrite.permutation import Permutation, inverse, permutation_of, reordered_shape, typed
from compiler.rewrite.rule import FindingRule, Rewriter, rules_pass

__all__ = ["raise_transposes"]

_BY_AXIS = ("axes", "scales", "sizes")


class RaiseAboveInterpolate(FindingRule[Permutation]):
    """`Transpose(Interpolate(x, axes), p)` → `Interpolate(Transpose(x, p), p⁻¹[axes])`."""

    pattern = Op("Transpose", Op("Interpolate", Var("x"), domain=PLAN_DOMAIN, name="interpolate"))

    def check(self, match: Match) -> Permutation | str:
        """The result of the resize is larger than its input."""
        perm = permutation_of(match.root)
        before, after = (_count(value) for value in (match["x"], match["interpolate"]))
        if perm is None or before is None or after is None or after <= before:
            return "the result is not known to be larger"
        return perm

    def rewrite(self, match: Match, found: Permutation, new: Rewriter) -> ir.Value:
        """The transpose, then the resize of the permuted axes."""
        interpolate, x, perm = match.node("interpolate"), match["x"], found
        moved = typed(new.op("Transpose", x, perm=list(perm)), x.type, reordered_shape(x.shape, perm))
        given = {name: item.value for name, item in interpolate.attributes.items()}
        places = inverse(perm)
        order = sorted(range(len(given["axes"])), key=lambda i: places[given["axes"][i]])
        given["axes"] = [places[axis] for axis in given["axes"]]
        given |= {name: [given[name][i] for i in order] for name in _BY_AXIS if name in given}
        result: ir.Value = new.op("Interpolate", moved, domain=PLAN_DOMAIN, **given)
        return result


def _count(value: ir.Value) -> int | None:
    if value.shape is None:
        return None
    sizes = [size for size in value.shape if isinstance(size, int)]
    return math.prod(sizes) if len(sizes) == len(value.shape) else None


raise_transposes = rules_pass(
    "raise_transposes", [RaiseAboveInterpolate()], result="transposes moved", requires=frozenset({"shapes"})
)
