"""Creation of the plan's `Interpolate` from the change of each axis, and the changes of such a node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from compiler.ir.graph import PLAN_DOMAIN
from compiler.ir.views.resize import ResizeView
from compiler.rewrite.rule import Rewriter

__all__ = ["Change", "changes_of", "interpolate"]


@dataclass(frozen=True)
class Change:
    """The resize of one axis; without a scale, the scale is new size ÷ old size, and without a size, it is unknown."""

    axis: int
    scale: float | None = None
    size: int | None = None


def interpolate(x: ir.Value, how: Mapping[str, Any], changes: Sequence[Change], new: Rewriter) -> ir.Value:
    """`Interpolate(x)` of these axes, in ascending order; `how` are its other attributes.

    The node has scales, or sizes, only if they are known for all axes.
    """
    ordered = sorted(changes, key=lambda change: change.axis)
    attributes = {name: value for name, value in how.items() if name not in ("axes", "scales", "sizes")}
    attributes["axes"] = [change.axis for change in ordered]
    scales = [change.scale for change in ordered if change.scale is not None]
    sizes = [change.size for change in ordered if change.size is not None]
    attributes |= {"scales": scales} if len(scales) == len(ordered) else {}
    attributes |= {"sizes": sizes} if len(sizes) == len(ordered) else {}
    result: ir.Value = new.op("Interpolate", x, domain=PLAN_DOMAIN, **attributes)
    return result


def changes_of(view: ResizeView[ir.Value]) -> list[Change] | None:
    """The changes of an `Interpolate`; `None` if its lists are missing or have different lengths."""
    if view.axes is None:
        return None
    nothing = (None,) * len(view.axes)
    scales = nothing if view.scales is None else view.scales.known
    sizes = nothing if view.sizes is None else view.sizes.known
    if scales is None or sizes is None or not len(scales) == len(sizes) == len(view.axes):
        return None
    return [Change(*each) for each in zip(view.axes, scales, sizes, strict=True)]
