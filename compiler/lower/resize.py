"""Resize, Upsample, and the compiler's operator `Interpolate`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from compiler.ir.graph import PLAN_DOMAIN
from compiler.ir.views.resize import ResizeView
from compiler.lower.lists import floats, ints
from compiler.lower.node import Node, lowers
from compiler.plan import PlanBuilder, Value, ops

_T = TypeVar("_T")

_COORDINATES: dict[str, ops.Coordinates] = {
    "half_pixel": "HalfPixel",
    "half_pixel_symmetric": "HalfPixelSymmetric",
    "pytorch_half_pixel": "PytorchHalfPixel",
    "tf_half_pixel_for_nn": "TfHalfPixelForNn",
    "align_corners": "AlignCorners",
    "asymmetric": "Asymmetric",
    "tf_crop_and_resize": "TfCropAndResize",
}
_ROUNDINGS: dict[str, ops.Rounding] = {
    "floor": "Floor",
    "ceil": "Ceil",
    "round_prefer_floor": "RoundPreferFloor",
    "round_prefer_ceil": "RoundPreferCeil",
}
_SIZE_POLICIES: dict[str, ops.SizePolicy] = {
    "stretch": "Stretch",
    "not_larger": "NotLarger",
    "not_smaller": "NotSmaller",
}


def _choice(node: Node, name: str, text: str, choices: Mapping[str, _T]) -> _T:
    if text not in choices:
        node.refuse("CC0202", f"{node.op_type}'s {name} is {text!r}, not one of {', '.join(choices)}")
    return choices[text]


def _op(node: Node, view: ResizeView[Value]) -> ops.Interpolate:
    rounding = _choice(node, "nearest_mode", view.rounding, _ROUNDINGS)
    modes: dict[str, ops.AnyInterpolation] = {
        "nearest": ops.Interpolation.Nearest(rounding),
        "linear": "Linear",
        "cubic": ops.Interpolation.Cubic(view.cubic),
    }
    return ops.Interpolate(
        mode=_choice(node, "mode", view.mode, modes),
        coordinates=_choice(node, "coordinate_transformation_mode", view.coordinates, _COORDINATES),
        antialias=view.antialias,
        exclude_outside=view.excludes_outside,
        extrapolation=view.extrapolation,
        axes=None if view.axes is None else list(view.axes),
        size_policy=_choice(node, "keep_aspect_ratio_policy", view.policy, _SIZE_POLICIES),
    )


@lowers("Resize", newest=19)
def resize(node: Node, build: PlanBuilder) -> Value:
    """`Resize`; before opset 11 it is equal to `Upsample`."""
    view = ResizeView.read(node)
    if view.is_legacy:
        return _upsample(node, build, view)
    op = _op(node, view)
    roi = node.optional(1) if op.coordinates == "TfCropAndResize" else None
    return build(op, node.input(0), roi, floats(build, view.scales), ints(build, view.sizes))


@lowers("Upsample", newest=10)
def upsample(node: Node, build: PlanBuilder) -> Value:
    """`Upsample`."""
    return _upsample(node, build, ResizeView.read(node))


def _upsample(node: Node, build: PlanBuilder, view: ResizeView[Value]) -> Value:
    """Coordinates are x ÷ scale. As in onnxruntime, mode nearest rounds them up along an axis that shrinks."""
    modes: dict[str, ops.AnyInterpolation] = {
        "nearest": ops.Interpolation.Nearest("CeilWhenShrinking"),
        "linear": "Linear",
    }
    op = ops.Interpolate(
        mode=_choice(node, "mode", view.mode, modes),
        coordinates="Asymmetric",
        antialias=False,
        exclude_outside=False,
        extrapolation=0.0,
        size_policy="Stretch",
    )
    return build(op, node.input(0), None, floats(build, view.scales) or node.input(1))


@lowers("Interpolate", newest=1, domain=PLAN_DOMAIN)
def interpolate(node: Node, build: PlanBuilder) -> Value:
    """`Interpolate`; attributes: the scales in the formula of the coordinates, the new sizes, or both."""
    view = ResizeView.read(node)
    return build(_op(node, view), node.input(0), None, floats(build, view.scales), ints(build, view.sizes))
