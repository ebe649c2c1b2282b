"""Resize, Upsample, and the `Interpolate` that the compiler makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import numpy as np

from compiler.ir.graph import PLAN_DOMAIN
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


def _choice(node: Node, name: str, default: str, choices: Mapping[str, _T]) -> _T:
    text = node.string(name, default)
    if text not in choices:
        node.refuse("CC0202", f"{node.op_type}'s {name} is {text!r}, not one of {', '.join(choices)}")
    return choices[text]


def _mode(node: Node) -> ops.AnyInterpolation:
    rounding = _choice(node, "nearest_mode", "round_prefer_floor", _ROUNDINGS)
    coefficient = node.float("cubic_coeff_a", -0.75)
    modes: dict[str, ops.AnyInterpolation] = {
        "nearest": ops.Interpolation.Nearest(rounding),
        "linear": "Linear",
        "cubic": ops.Interpolation.Cubic(coefficient),
    }
    return _choice(node, "mode", "nearest", modes)


def _op(node: Node) -> ops.Interpolate:
    return ops.Interpolate(
        mode=_mode(node),
        coordinates=_choice(node, "coordinate_transformation_mode", "half_pixel", _COORDINATES),
        antialias=node.flag("antialias", False),
        exclude_outside=node.flag("exclude_outside", False),
        extrapolation=node.float("extrapolation_value", 0.0),
        axes=node.ints("axes", None),
        size_policy=_choice(node, "keep_aspect_ratio_policy", "stretch", _SIZE_POLICIES),
    )


@lowers("Resize", newest=19)
def resize(node: Node, build: PlanBuilder) -> Value:
    """`Resize`; before opset 11 it is what `Upsample` is."""
    if node.version < 11:
        return _upsample(node, build, node.input(1))
    op = _op(node)
    roi = node.optional(1) if op.coordinates == "TfCropAndResize" else None
    return build(op, node.input(0), roi, node.optional(2), node.optional(3))


@lowers("Upsample", newest=10)
def upsample(node: Node, build: PlanBuilder) -> Value:
    """`Upsample`: scales are an attribute before opset 9."""
    scales = node.input(1) if node.version >= 9 else build.constant(np.array(node.floats("scales"), np.float32))
    return _upsample(node, build, scales)


def _upsample(node: Node, build: PlanBuilder, scales: Value) -> Value:
    """Coordinates are x ÷ scale; as in onnxruntime, the nearest place is the next one where an axis shrinks."""
    modes: dict[str, ops.AnyInterpolation] = {
        "nearest": ops.Interpolation.Nearest("CeilWhenShrinking"),
        "linear": "Linear",
        "bilinear": "Linear",
    }
    op = ops.Interpolate(
        mode=_choice(node, "mode", "nearest", modes),
        coordinates="Asymmetric",
        antialias=False,
        exclude_outside=False,
        extrapolation=0.0,
        size_policy="Stretch",
    )
    return build(op, node.input(0), None, scales)


@lowers("Interpolate", newest=1, domain=PLAN_DOMAIN)
def interpolate(node: Node, build: PlanBuilder) -> Value:
    """The compiler's own: the scales of the coordinates' formula, the new sizes, or both, as attributes."""
    scales, sizes = node.floats("scales", None), node.ints("sizes", None)
    return build(
        _op(node),
        node.input(0),
        None,
        None if scales is None else build.constant(np.array(scales, np.float32)),
        None if sizes is None else build.constant(np.array(sizes, np.int64)),
    )
