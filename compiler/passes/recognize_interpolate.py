"""If Gathers of constant indices resize a value, replaces the Gathers with the plan's op `Interpolate`.

PyTorch's exporter writes `nearest-exact`, and `linear` of one axis, as a Gather of constant indices. The pass compares
the indices with those of Interpolate's formula, in its precision, for the factor that fits best. The expression
`low + (high - low) · part` turns infinities into NaN; Interpolate weights both elements, and returns fewer NaNs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx_ir as ir

from compiler._runtime import MOST_RESIZED_AXES
from compiler.ir.graph import PLAN_DOMAIN, rank
from compiler.ir.views.gather import GatherView
from compiler.ir.views.resize import ResizeView
from compiler.rewrite.interpolate import Change, changes_of, interpolate
from compiler.rewrite.pattern import Const, Match, Op, Var
from compiler.rewrite.report import Pass, PassReport
from compiler.rewrite.rule import FindingRule, Rewriter, apply_rules

__all__ = ["recognize_interpolate"]

_FIRST_SPATIAL = 2
_NEAREST_EXACT = {
    "mode": "nearest",
    "coordinate_transformation_mode": "half_pixel",
    "nearest_mode": "round_prefer_ceil",
}
_HALFWAY = 1e-6
"""A coordinate less than this from the middle of two elements is as near to both."""
_NEAREST = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
_LINEAR = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
_LINEAR_CORNERS = {"mode": "linear", "coordinate_transformation_mode": "align_corners"}


@dataclass(frozen=True)
class _Resized:
    """The resize of an axis, and the attributes that determine the formula."""

    how: dict[str, Any]
    change: Change

    def of(self, value: ir.Value, new: Rewriter) -> ir.Value:
        """The Interpolate node."""
        return interpolate(value, self.how, [self.change], new)


class RecognizeNearest(FindingRule[_Resized]):
    """`Gather(x, indices)` of the nearest elements along a spatial axis → `Interpolate(x)`."""

    pattern = Op("Gather", Var("x"), Const("places"))

    def check(self, match: Match) -> _Resized | str:
        """The indices are those of the formula."""
        return self._resized(match) or "the indices are not the nearest of any factor"

    def rewrite(self, match: Match, found: _Resized, new: Rewriter) -> ir.Value:
        """The Interpolate node."""
        return found.of(match["x"], new)

    def _resized(self, match: Match) -> _Resized | None:
        found = _axis_of(match.root)
        if found is None or match.constant("places").ndim != 1:
            return None
        axis, size = found
        places = match.constant("places")
        if min(size, len(places)) < 2 or (np.diff(places) < 0).any() or places[0] < 0 or places[-1] >= size:
            return None
        new = len(places)
        for how in (_NEAREST_EXACT, _NEAREST):
            for scale in (None, *_scales_between(places, size, 0.5 if how is _NEAREST_EXACT else 0.0)):
                if np.array_equal(_nearest_places(how, size, new, scale), places):
                    return _Resized(how, Change(axis, scale, new))
        return None


class RecognizeLinear(FindingRule[_Resized]):
    """`low + (high - low) · part` of Gathers of the elements around each coordinate → `Interpolate(x)`."""

    _LOW = Op("Gather", Var("x"), Const("low_places"), name="low")
    _HIGH = Op("Gather", Var("x"), Const("high_places"), name="high")
    pattern = Op("Add", _LOW, Op("Mul", Op("Sub", _HIGH, _LOW), Const("part")))

    def check(self, match: Match) -> _Resized | str:
        """Indices and parts are those of the formula; the parts may differ by float32's rounding for these sizes."""
        return self._resized(match) or "indices and parts are not those of any factor"

    def rewrite(self, match: Match, found: _Resized, new: Rewriter) -> ir.Value:
        """The Interpolate node."""
        return found.of(match["x"], new)

    def _resized(self, match: Match) -> _Resized | None:
        low, high = match.constant("low_places"), match.constant("high_places")
        found, other = _axis_of(match.node("low")), _axis_of(match.node("high"))
        # In types other than float32, the coordinates have another precision.
        if found is None or found != other or low.ndim != 1 or match["x"].dtype != ir.DataType.FLOAT:
            return None
        axis, size = found
        part = _along(match.constant("part"), axis, rank(match["x"]) or 0)
        if part is None or len(part) != len(low) or not ((low >= 0) & (low < size)).all() or len(low) < 2:
            return None
        if not np.array_equal(high, np.minimum(low + 1, size - 1)) or not ((part >= 0) & (part <= 1)).all():
            return None
        coordinates = low + np.where(high > low, part, 0).astype(np.float64)
        for how, scale in _linear_forms(coordinates, size):
            exact, rounding = _exact_coordinates(how, size, len(low), scale)
            if (np.abs(coordinates - np.clip(exact, 0, size - 1)) <= rounding).all():
                return _Resized(how, Change(axis, scale, len(low)))
        return None


def _axis_of(gather: ir.Node) -> tuple[int, int] | None:
    """The axis of a Gather and its size; `None` if the size is unknown or the axis is not spatial."""
    data = gather.inputs[0]
    if data is None or data.shape is None:
        return None
    view = GatherView[ir.Value].of(gather)
    axis = None if view is None else view.normalized_axis(len(data.shape))
    if axis is None or axis < _FIRST_SPATIAL:
        return None
    size = data.shape.dims[axis]
    return (axis, size) if isinstance(size, int) and size > 0 else None


def _along(array: np.ndarray, axis: int, dims: int) -> np.ndarray | None:
    """The elements of an array that broadcasts to rank `dims` and varies only along the axis; `None` if it does not."""
    axis += array.ndim - dims
    return array.ravel() if axis >= 0 and array.size == array.shape[axis] else None


def _coordinates(
    how: dict[str, Any], size: int, new: int, scale: float | None, *, kind: type[np.floating] = np.float32
) -> np.ndarray:
    """The coordinate of each new element, computed as in Interpolate: in float32, in this order."""
    at, half = np.arange(new, dtype=kind), kind(0.5)
    factor = kind(new) / kind(size) if scale is None else kind(np.float32(scale))
    by = {
        "align_corners": lambda: at * kind(size - 1) / kind(max(new - 1, 1)),
        "asymmetric": lambda: at / factor,
        "half_pixel": lambda: (at + half) / factor - half,
    }
    return np.asarray(by[how["coordinate_transformation_mode"]](), np.float64)


def _multiplied_coordinates(how: dict[str, Any], size: int, new: int, scale: float | None) -> np.ndarray:
    """The coordinates as PyTorch computes them: multiplied by the rounded inverse of the factor."""
    at, half = np.arange(new, dtype=np.float32), np.float32(0.5)
    if how is _LINEAR_CORNERS:
        return np.asarray(at * np.float32((size - 1) / max(new - 1, 1)), np.float64)
    inverse = np.float32(size) / np.float32(new) if scale is None else np.float32(1 / scale)
    return np.asarray((at + half) * inverse - half, np.float64)


def _exact_coordinates(how: dict[str, Any], size: int, new: int, scale: float | None) -> tuple[np.ndarray, float]:
    """The coordinates in double precision, and the largest rounding error of both float32 computations."""
    exact = _coordinates(how, size, new, scale, kind=np.float64)
    rounded = (_coordinates(how, size, new, scale), _multiplied_coordinates(how, size, new, scale))
    return exact, max(float(np.abs(each - exact).max()) for each in rounded)


def _nearest_places(how: dict[str, Any], size: int, new: int, scale: float | None) -> np.ndarray:
    coordinates = _coordinates(how, size, new, scale)
    below = np.floor(coordinates)
    rounded = below + (coordinates - below > 0.5 - _HALFWAY) if how is _NEAREST_EXACT else below
    return np.asarray(np.clip(rounded, 0, size - 1), np.int64)


def _scales_between(places: np.ndarray, size: int, offset: float) -> Iterator[float]:
    """Scales with few digits for which `⌊(i + offset) / scale⌋` are the indices, or beyond the last element."""
    at = np.arange(len(places)) + offset
    above = np.max(at / (places + 1), initial=0, where=places < size - 1)
    below = np.min(at / np.maximum(places, 1), initial=np.inf, where=places > 0)
    if above < below < np.inf:
        yield from _rounded_scales((above + below) / 2, size, len(places))


def _linear_forms(coordinates: np.ndarray, size: int) -> Iterator[tuple[dict[str, Any], float | None]]:
    """The attributes and scales that may have produced the coordinates."""
    yield _LINEAR, None
    yield _LINEAR_CORNERS, None
    inside = np.flatnonzero((coordinates > 0) & (coordinates < size - 1))
    if len(inside):
        last = inside[-1]
        for scale in _rounded_scales((last + 0.5) / (coordinates[last] + 0.5), size, len(coordinates)):
            yield _LINEAR, scale


def _rounded_scales(scale: float, size: int, new: int) -> Iterator[float]:
    """The scale rounded to 1 to 8 digits, wherever it results in the new size."""
    for digits in range(1, 9):
        simple = float(f"{scale:.{digits}g}")
        if np.floor(np.float32(size) * np.float32(simple)) == new:
            yield simple


class MergeNearest(FindingRule[list[Change]]):
    """`Interpolate(Interpolate(x, axis i), axis j)` of mode nearest → `Interpolate(x, axes i and j)`."""

    pattern = Op(
        "Interpolate",
        Op("Interpolate", Var("x"), domain=PLAN_DOMAIN, name="inner"),
        domain=PLAN_DOMAIN,
    )

    def check(self, match: Match) -> list[Change] | str:
        """Both have the mode nearest, the same formula and different axes."""
        inner, outer = (ResizeView[ir.Value].of(node) for node in (match.node("inner"), match.root))
        if inner is None or outer is None or _has(inner) != _has(outer):
            return "one has scales and the other has sizes"
        if inner.mode != "nearest" or _formula(inner) != _formula(outer):
            return "they do not take the nearest elements by the same formula"
        first, second = changes_of(inner), changes_of(outer)
        if first is None or second is None:
            return "the resized axes are not known"
        changes = [*first, *second]
        is_small = len({change.axis for change in changes}) == len(changes) <= MOST_RESIZED_AXES
        return changes if is_small else "there are more than two axes"

    def rewrite(self, match: Match, found: list[Change], new: Rewriter) -> ir.Value:
        """The Interpolate node of both axes, in ascending order."""
        return interpolate(match["x"], match.root.attributes, found, new)


def _has(view: ResizeView[ir.Value]) -> tuple[bool, bool]:
    """Whether a resize has scales, and whether it has sizes."""
    return view.scales is not None, view.sizes is not None


def _formula(view: ResizeView[ir.Value]) -> ResizeView[ir.Value]:
    """The view without the value, its axes and their changes."""
    return replace(view, x=None, axes=None, scales=None, sizes=None)


def _recognize_interpolate(model: ir.Model, report: PassReport) -> None:
    """Replaces Gathers of Interpolate's indices with `Interpolate`."""
    # First, because each Gather of a linear resize may also match the nearest elements of a factor.
    apply_rules(model, [RecognizeLinear()], report)
    apply_rules(model, [RecognizeNearest(), MergeNearest()], report)


recognize_interpolate = Pass(
    "recognize_interpolate", _recognize_interpolate, result="resize parts found", requires=frozenset({"shapes"})
)
