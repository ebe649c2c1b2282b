"""Replaces Upsample and Resize with known factors with the plan's op `Interpolate`.

`candle.plan.Interpolate(X)` has one input and these attributes: `axes`, the axes that change, ascending; `scales`,
their factors in the formula of the coordinates (absent: new size ÷ old size); `sizes`, their new sizes (absent:
⌊size · scale⌋); `mode`, `coordinate_transformation_mode`, `nearest_mode`, `cubic_coeff_a`, `exclude_outside` and
`antialias` of Resize.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from compiler.ir import onnx_schema, origin
from compiler.ir.graph import elements_of, nodes_of, opset_of, rank
from compiler.ir.views.resize import ResizeView
from compiler.rewrite.interpolate import Change, interpolate
from compiler.rewrite.report import Fired, Missed, Pass, PassReport
from compiler.rewrite.rule import Rewriter, insert, replace_uses

__all__ = ["lower_upsample"]


def _lower_upsample(model: ir.Model, report: PassReport) -> None:
    """Upsample, and Resize with constant factors or sizes → `Interpolate`."""
    for node in list(nodes_of(model)):
        if node.domain != "" or node.op_type not in ("Upsample", "Resize") or node.graph is None:
            continue
        here = origin.of(node)
        opset = opset_of(node, model.opset_imports.get("", 1))
        version = onnx_schema.since_version("", node.op_type, opset) or opset
        view = ResizeView[ir.Value].of(node, version)
        if view is None:
            continue  # the lowering reports its invalid attributes
        target = _target(view)
        if isinstance(target, str):
            report.missed.append(Missed("interpolate", here, target))
            continue
        new = Rewriter(node.graph)
        result = _interpolate(node, view, target, new)
        origin.inherit(new.nodes, [node])
        insert(node.graph, node, new)
        replace_uses(node.outputs[0], result)
        node.graph.remove(node, safe=True)
        report.fired.append(Fired("interpolate", here))


def _target(view: ResizeView[ir.Value]) -> list[Change] | str:
    """The axes that change; or the reason why they are not known."""
    dims = rank(view.x)
    axes = None if dims is None else view.resized_axes(dims)
    if dims is None or axes is None:
        return "the rank of the input is not known"
    if view.coordinates == "tf_crop_and_resize":
        return "it crops"
    if view.policy != "stretch":
        return "it keeps the aspect ratio"
    shape = _dims(view.x)
    scales = None if view.scales is None else view.scales.known
    sizes = None if view.sizes is None else elements_of(view.sizes.value)
    if scales is not None and len(scales) == len(axes):
        changes = [_by_scale(axis, scale, shape[axis]) for axis, scale in zip(axes, scales, strict=True)]
        return sorted((change for change in changes if change.scale != 1), key=lambda change: change.axis)
    if sizes is not None and len(sizes) == len(axes):
        resized = [(axis, size) for axis, size in zip(axes, sizes, strict=True) if str(size) != str(shape[axis])]
        if all(isinstance(size, int) for _, size in resized):
            return sorted((Change(axis, None, int(size)) for axis, size in resized), key=lambda change: change.axis)
    return "its factors or sizes are not constant"


def _dims(value: ir.Value | None) -> Sequence[object]:
    return () if value is None or value.shape is None else value.shape.dims


def _by_scale(axis: int, scale: float, size: object) -> Change:
    # In single precision, as in onnxruntime: 10 · 0.7 is 7, although the float32 nearest to 0.7 is less than 0.7.
    new = int(np.floor(np.float32(scale) * np.float32(size))) if isinstance(size, int) else None
    return Change(axis, scale, new)


def _shrinks(change: Change) -> bool:
    return change.scale is not None and change.scale < 1


def _interpolate(node: ir.Node, view: ResizeView[ir.Value], target: list[Change], new: Rewriter) -> ir.Value:
    given = view.x
    if given is None:
        raise ValueError(f"{node.op_type} has no input")
    if not target:
        return new.op("Identity", given)
    if not view.is_legacy:
        return interpolate(given, _modern(node, view), target, new)
    # Before opset 11, as in onnxruntime: coordinates are x ÷ scale, rounded up if the axis shrinks.
    groups = [target]
    if view.mode == "nearest":
        groups = [[each for each in target if _shrinks(each) is shrinks] for shrinks in (False, True)]
    groups = [group for group in groups if group]
    for group in groups:
        rounding = "ceil" if _shrinks(group[0]) else "floor"
        how = {"mode": view.mode, "coordinate_transformation_mode": view.coordinates, "nearest_mode": rounding}
        source, given = given, interpolate(given, how, group, new)
        if group is not groups[-1] and source.shape is not None:  # the last result has the node's own shape
            sizes = {change.axis: change.size for change in group}
            dims = [sizes.get(axis, dim) for axis, dim in enumerate(source.shape.dims)]
            given.type, given.shape = source.type, ir.Shape(dims)
    return given


def _modern(node: ir.Node, view: ResizeView[ir.Value]) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        "mode": view.mode,
        "coordinate_transformation_mode": view.coordinates,
        "nearest_mode": view.rounding,
    }
    for name in ("cubic_coeff_a", "exclude_outside", "antialias"):
        if name in node.attributes:
            attributes[name] = node.attributes[name].value
    return attributes


lower_upsample = Pass(
    "lower_upsample", _lower_upsample, result="resizes lowered", requires=frozenset({"shapes"}), needed=True
)
