"""If a Reshape and an Expand, Tile or Concat together repeat elements, replaces both with the op `Interpolate`."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from compiler._runtime import MOST_RESIZED_AXES
from compiler.rewrite.interpolate import Change, interpolate
from compiler.rewrite.pattern import Match, Op, Var
from compiler.rewrite.rule import FindingRule, Rewriter, rules_pass

__all__ = ["recognize_repeat"]

_FIRST_SPATIAL = 2
_NEAREST = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}

_Dims = list[int | str | None]
"""Sizes, symbols, and `None` for unknown dimensions."""


@dataclass(frozen=True)
class _Repeated:
    """The repeated value, and the factor of each of its axes."""

    source: ir.Value
    factors: list[int]

    @property
    def axes(self) -> list[int]:
        """The repeated axes: those with a factor other than 1."""
        return [axis for axis, factor in enumerate(self.factors) if factor > 1]


class RecognizeRepeat(FindingRule[_Repeated]):
    """`Reshape(Expand(Unsqueeze(x)))` that repeats each element of a spatial axis → `Interpolate(x)`.

    A Tile, or a Concat of the same value, may replace the Expand.
    """

    pattern = Op("Reshape", Op(("Expand", "Tile", "Concat"), Var("single"), rest=True, name="repeat"), rest=True)
    looks_above = 2  # reshapes before the repetition

    def check(self, match: Match) -> _Repeated | str:
        """The pattern repeats only axes of size 1 after spatial axes."""
        found = _repeated(match)
        if found is None:
            return "it does not repeat each element of an axis"
        if not found.axes or found.axes[0] < _FIRST_SPATIAL or len(found.axes) > MOST_RESIZED_AXES:
            return "it does not repeat one or two spatial axes"
        return found

    def rewrite(self, match: Match, found: _Repeated, new: Rewriter) -> ir.Value:
        """The Interpolate node."""
        dims = _dims(found.source)
        changes = [
            Change(axis, float(factor), size * factor if isinstance(size, int) else None)
            for axis, size, factor in ((axis, dims[axis], found.factors[axis]) for axis in found.axes)
        ]
        return interpolate(found.source, _NEAREST, changes, new)


def _repeated(match: Match) -> _Repeated | None:
    repeat, single = match.node("repeat"), match["single"]
    if repeat.op_type == "Concat" and any(value is not single for value in repeat.inputs):
        return None
    ones, many, result = _dims(single), _dims(repeat.outputs[0]), _dims(match.root.outputs[0])
    if len(ones) != len(many):
        return None
    kept: _Dims = []
    factors: list[int] = []
    for one, full in zip(ones, many, strict=True):
        if one == full and one is not None:
            kept.append(one)
            factors.append(1)
        elif one == 1 and isinstance(full, int) and full > 0 and factors:
            factors[-1] *= full
        else:
            return None
    source = _before_views(single, kept)
    return _Repeated(source, factors) if source is not None and _is_repeated(kept, factors, result) else None


def _is_repeated(kept: _Dims, factors: list[int], result: _Dims) -> bool:
    """Whether the result's shape is the source's shape, each axis multiplied by its factor."""
    if len(result) != len(kept):
        return False
    sizes = [size * factor if isinstance(size, int) else size for size, factor in zip(kept, factors, strict=True)]
    unknown = [isinstance(size, str) and factor > 1 for size, factor in zip(sizes, factors, strict=True)]
    # The number of elements determines one unknown size.
    return sum(unknown) <= 1 and all(
        is_unknown or size == other for is_unknown, size, other in zip(unknown, sizes, result, strict=True)
    )


def _before_views(value: ir.Value, dims: _Dims) -> ir.Value | None:
    """A value with these dimensions and the same elements in the same order."""
    node = value.producer()
    while node is not None and node.domain == "" and node.op_type in ("Unsqueeze", "Reshape") and node.inputs[0]:
        if _dims(node.inputs[0]) == dims:
            return node.inputs[0]
        node = node.inputs[0].producer()
    return None


def _dims(value: ir.Value) -> _Dims:
    dims = () if value.shape is None else value.shape.dims
    return [dim if isinstance(dim, int) else dim.value for dim in dims]


recognize_repeat = rules_pass(
    "recognize_repeat", [RecognizeRepeat()], result="resizes found", requires=frozenset({"shapes"})
)
