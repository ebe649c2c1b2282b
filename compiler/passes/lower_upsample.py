"""Replaces Upsample and Resize with known factors with the plan's operator `Interpolate`.

`candle.plan.Interpolate(X)` has one input and these attributes: `axes`, the axes that change, ascending; `scales`,
their factors in the formula of the coordinates (absent: new size ÷ old size); `sizes`, their new sizes (absent:
⌊size · scale⌋); `mode`, `coordinate_transformation_mode`, `nearest_mode`, `cubic_coeff_a`, `exclude_outside` and
`antialias` of Resize.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from compiler.ir import onnx_schema, origin
from compiler.ir.graph import PLAN_DOMAIN, constant_of, elements_of, nodes_of, opset_of, rank
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
        target = _target(node, version)
        if isinstance(target, str):
            report.missed.append(Missed("interpolate", here, target))
            continue
        new = Rewriter(node.graph)
        result = _interpolate(node, version, target, new)
        origin.inherit(new.nodes, [node])
        insert(node.graph, node, new)
        replace_uses(node.outputs[0], result)
        node.graph.remove(node, safe=True)
        report.fired.append(Fired("interpolate", here))


@dataclass(frozen=True)
class _Axis:
    """The change of one axis; `None` for absent or unknown values."""

    axis: int
    scale: float | None
    size: int | None

    @property
    def shrinks(self) -> bool:
        return self.scale is not None and self.scale < 1


def _target(node: ir.Node, version: int) -> list[_Axis] | str:
    """The axes that change; or why they are not known."""
    dims = rank(node.inputs[0])
    if dims is None:
        return "the rank of the input is not known"
    if _text(node, "coordinate_transformation_mode", "") == "tf_crop_and_resize":
        return "it crops"
    if _text(node, "keep_aspect_ratio_policy", "stretch") != "stretch":
        return "it keeps the aspect ratio"
    axes = (
        [axis % dims for axis in node.attributes["axes"].as_ints()] if "axes" in node.attributes else list(range(dims))
    )
    shape = _dims(node.inputs[0])
    scales, sizes = _scales(node, version), elements_of(_input(node, 3))
    if scales is not None and len(scales) == len(axes):
        changes = [_by_scale(axis, scale, shape[axis]) for axis, scale in zip(axes, scales, strict=True)]
        return sorted((change for change in changes if change.scale != 1), key=lambda change: change.axis)
    if sizes is not None and len(sizes) == len(axes):
        resized = [(axis, size) for axis, size in zip(axes, sizes, strict=True) if str(size) != str(shape[axis])]
        if all(isinstance(size, int) for _, size in resized):
            return sorted((_Axis(axis, None, int(size)) for axis, size in resized), key=lambda change: change.axis)
    return "its factors or sizes are not constant"


def _dims(value: ir.Value | None) -> Sequence[object]:
    return () if value is None or value.shape is None else value.shape.dims


def _by_scale(axis: int, scale: float, size: object) -> _Axis:
    # As onnxruntime, in single precision: 10 · 0.7 is 7, though the nearest number to 0.7 is below it.
    new = int(np.floor(np.float32(scale) * np.float32(size))) if isinstance(size, int) else None
    return _Axis(axis, scale, new)


def _scales(node: ir.Node, version: int) -> list[float] | None:
    if "scales" in node.attributes:
        return list(node.attributes["scales"].as_floats())
    array = constant_of(_input(node, 2 if node.op_type == "Resize" and version >= 11 else 1))
    return None if array is None or array.size == 0 else [float(scale) for scale in array]


def _input(node: ir.Node, index: int) -> ir.Value | None:
    return node.inputs[index] if index < len(node.inputs) else None


def _interpolate(node: ir.Node, version: int, target: list[_Axis], new: Rewriter) -> ir.Value:
    given = node.inputs[0]
    if given is None:
        raise ValueError(f"{node.op_type} has no input")
    if not target:
        return new.op("Identity", given)
    if node.op_type == "Resize" and version >= 11:
        return _add(new, given, target, _modern(node))
    # Before opset 11, as onnxruntime: coordinates are x ÷ scale, rounded up where an axis shrinks.
    mode = {"bilinear": "linear"}.get(_text(node, "mode", "nearest"), _text(node, "mode", "nearest"))
    groups = [target] if mode != "nearest" else [[x for x in target if not x.shrinks], [x for x in target if x.shrinks]]
    for group in filter(None, groups):
        rounding = "ceil" if group[0].shrinks else "floor"
        how = {"mode": mode, "coordinate_transformation_mode": "asymmetric", "nearest_mode": rounding}
        given = _add(new, given, group, how)
    return given


def _modern(node: ir.Node) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        "mode": _text(node, "mode", "nearest"),
        "coordinate_transformation_mode": _text(node, "coordinate_transformation_mode", "half_pixel"),
        "nearest_mode": _text(node, "nearest_mode", "round_prefer_floor"),
    }
    for name in ("cubic_coeff_a", "exclude_outside", "antialias"):
        if name in node.attributes:
            attributes[name] = node.attributes[name].value
    return attributes


def _add(new: Rewriter, given: ir.Value, target: list[_Axis], how: dict[str, Any]) -> ir.Value:
    attributes = dict(how)
    sizes = [change.size for change in target]
    scales = [change.scale for change in target]
    if all(size is not None for size in sizes):
        attributes["sizes"] = sizes
    if all(scale is not None for scale in scales):
        attributes["scales"] = scales
    attributes["axes"] = [change.axis for change in target]
    result: ir.Value = new.op("Interpolate", given, domain=PLAN_DOMAIN, **attributes)
    return result


def _text(node: ir.Node, name: str, default: str) -> str:
    return node.attributes[name].as_string() if name in node.attributes else default


lower_upsample = Pass(
    "lower_upsample", _lower_upsample, result="resizes lowered", requires=frozenset({"shapes"}), needed=True
)
