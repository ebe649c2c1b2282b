"""NonMaxSuppression, RoiAlign, MaxRoiPool: operators on boxes."""

from __future__ import annotations

import math

from compiler.lower.node import Node, lowers
from compiler.plan import PlanBuilder, Value, ops


@lowers("NonMaxSuppression", newest=11)
def non_max_suppression(node: Node, build: PlanBuilder) -> Value:
    """`NonMaxSuppression`; all thresholds are inputs."""
    inputs = [node.input(0), node.input(1), node.optional(2), node.optional(3), node.optional(4)]
    return build(ops.NonMaxSuppression(centered=node.flag("center_point_box", False)), *inputs)


@lowers("RoiAlign", newest=22)
def roi_align(node: Node, build: PlanBuilder) -> Value:
    """`RoiAlign`; version 10 has no half-pixel coordinates."""
    default = "half_pixel" if node.version >= 16 else "output_half_pixel"
    transform, mode = node.string("coordinate_transformation_mode", default), node.string("mode", "avg")
    if transform not in ("half_pixel", "output_half_pixel") or mode not in ("avg", "max"):
        node.refuse("CC0202", f"RoiAlign has no mode {mode!r} with coordinates {transform!r}")
    op = ops.RoiAlign(
        height=node.int("output_height", 1),
        width=node.int("output_width", 1),
        scale=node.float("spatial_scale", 1.0),
        samples=node.int("sampling_ratio", 0),
        half_pixel=transform == "half_pixel",
        greatest=mode == "max",
    )
    return build(op, node.input(0), node.input(1), node.input(2))


@lowers("MaxRoiPool", newest=22)
def max_roi_pool(node: Node, build: PlanBuilder) -> Value:
    """`MaxRoiPool`."""
    shape, scale = node.ints("pooled_shape"), node.float("spatial_scale", 1.0)
    if len(shape) != 2 or min(shape) < 1 or not 0 < scale < math.inf:
        node.refuse("CC0202", f"MaxRoiPool cannot have pooled_shape {shape} and spatial_scale {scale}")
    return build(ops.MaxRoiPool(height=shape[0], width=shape[1], scale=scale), node.input(0), node.input(1))
