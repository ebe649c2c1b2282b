"""Resize, Upsample, and the plan's `Interpolate`: the resized axes, scales, sizes and modes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compiler.ir.graph import PLAN_DOMAIN
from compiler.ir.views.source import Listed, Source, V, View, floats_at, floats_of, ints_at, ints_of, resolved

__all__ = ["Changes", "ResizeView"]

_MODERN = 11
"""The first version of Resize with an attribute for coordinates; version 10 is equal to Upsample."""

_CROP = "tf_crop_and_resize"


@dataclass(frozen=True)
class ResizeView(View[V]):
    """`Resize`, `Upsample` and `Interpolate`.

    The scales of Upsample are an attribute before version 9, and an input from version 9 on. The scales of Resize are
    input 1 in version 10, and input 2 from version 11 on. `Interpolate` has only attributes.

    Sources: https://onnx.ai/onnx/operators/onnx__Resize.html, https://onnx.ai/onnx/operators/onnx__Upsample.html
    """

    operators = (("", "Resize"), ("", "Upsample"), (PLAN_DOMAIN, "Interpolate"))

    x: V | None
    is_legacy: bool
    """Whether coordinates are x ÷ scale, and mode nearest rounds them up if an axis shrinks."""
    mode: str
    """`nearest`, `linear` or `cubic`; any other text if the node's mode is invalid."""
    coordinates: str
    rounding: str
    policy: str
    axes: tuple[int, ...] | None
    """The axes to which scales, sizes and region apply; `None`: all."""
    scales: Listed[V, float] | None
    sizes: Listed[V, int] | None
    cubic: float = -0.75
    """The coefficient of mode `cubic`: `cubic_coeff_a`."""
    antialias: bool = False
    excludes_outside: bool = False
    """Whether elements outside the tensor have the weight 0: `exclude_outside`."""
    extrapolation: float = 0.0
    """The result outside the region of `tf_crop_and_resize`."""
    region: Listed[V, float] | None = None
    """The region of `tf_crop_and_resize`: the starts, then the ends, as fractions of the axes; `None`: the whole."""

    @classmethod
    def read(cls, node: Source[V]) -> ResizeView[V]:
        """The view of a node. For a Resize of the graph, pass the version: its attributes do not determine it."""
        x, mode = node.optional(0), node.string("mode", "nearest")
        if node.op_type == "Upsample" or (node.op_type == "Resize" and not node.is_since(_MODERN, "scales")):
            is_first = node.op_type == "Upsample"
            scales = floats_of(node, "scales", 1, 9, required=True) if is_first else floats_at(node, 1)
            mode = {"bilinear": "linear"}.get(mode, mode)
            return cls(x, True, mode, "asymmetric", "floor", "stretch", None, scales, None)
        is_own = node.op_type == "Interpolate"
        axes = node.ints("axes", None)
        coordinates = node.string("coordinate_transformation_mode", "half_pixel")
        return cls(
            x=x,
            is_legacy=False,
            mode=mode,
            coordinates=coordinates,
            rounding=node.string("nearest_mode", "round_prefer_floor"),
            policy=node.string("keep_aspect_ratio_policy", "stretch"),
            axes=None if axes is None else tuple(axes),
            scales=floats_of(node, "scales", 2, _MODERN) if is_own else floats_at(node, 2),
            sizes=ints_of(node, "sizes", 3, _MODERN) if is_own else ints_at(node, 3),
            cubic=node.float("cubic_coeff_a", -0.75),
            antialias=node.flag("antialias", False),
            excludes_outside=node.flag("exclude_outside", False),
            extrapolation=node.float("extrapolation_value", 0.0),
            region=floats_at(node, 1) if coordinates == _CROP and not is_own else None,
        )

    def resized_axes(self, rank: int) -> list[int] | None:
        """The axes of the scales and sizes as nonnegative numbers; `None` if the tensor lacks one of them."""
        axes = range(rank) if self.axes is None else self.axes
        places = [place for axis in axes if (place := resolved(axis, rank)) is not None]
        return places if len(places) == len(axes) else None

    def changes(self, old: Sequence[object] | None, new: Sequence[object] | None) -> Changes:
        """The number of axes with a scale other than 1, with a part as region, or whose sizes before and after differ.

        `old` and `new` are the dimensions of the input and of the result; `None` if the rank is unknown.
        """
        if old is None:
            scales = () if self.scales is None else self.scales.known or ()
            old = [None] * len(scales if self.axes is None else self.axes)
        axes = self.resized_axes(len(old)) or []
        after = new if new is not None and len(new) == len(old) else [None] * len(old)
        count = len(axes)
        rows = zip(axes, _for_each(self.scales, count), _for_each(self.sizes, count), self.crops(count), strict=True)
        found = [
            _either(crops, _changes(scale, old[axis], after[axis] if size is None else size))
            for axis, scale, size, crops in rows
        ]
        return Changes(found.count(True), len(found) - found.count(False))

    def crops(self, count: int) -> list[bool | None]:
        """Whether the region is a part of each of `count` axes; `None` if unknown."""
        known = () if self.region is None else self.region.known
        if known is None or (known and len(known) != 2 * count):
            return [None] * count
        return [bool(known) and (known[axis], known[axis + count]) != (0, 1) for axis in range(count)]


@dataclass(frozen=True)
class Changes:
    """The number of axes that change: at least `least`, and at most `most`."""

    least: int
    most: int


def _changes(scale: float | None, before: object, after: object) -> bool | None:
    """Whether an axis changes; `None` if unknown."""
    if scale is not None and scale != 1:
        return True
    if isinstance(before, int) and isinstance(after, int):
        return before != after
    return None if scale is None else False


def _either(one: bool | None, other: bool | None) -> bool | None:
    """Whether one of two facts is true; `None` if unknown."""
    return True if one or other else None if one is None or other is None else False


def _for_each(listed: Listed[V, float] | Listed[V, int] | None, count: int) -> Sequence[float | None]:
    known = None if listed is None else listed.known
    return known if known is not None and len(known) == count else [None] * count
