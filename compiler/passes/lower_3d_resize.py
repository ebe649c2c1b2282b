"""Replaces Resize and Upsample of three and more axes with a chain of resizes of two axes each.

A resize is separable: the weights of an element are the products of its weights along the axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from compiler._runtime import MOST_RESIZED_AXES
from compiler.ir import onnx_schema
from compiler.ir.graph import constant_of, elements_of, rank, static_shape
from compiler.ir.views.resize import ResizeView
from compiler.rewrite.volume import UnloweredError, Volumes, lowering_pass

__all__ = ["lower_3d_resize"]

_CROP = "tf_crop_and_resize"


def _resize(node: ir.Node, new: Volumes) -> list[ir.Value]:
    """`Resize` or `Upsample`."""
    view = ResizeView[ir.Value].of(node, onnx_schema.since_version("", node.op_type, new.opset) or new.opset)
    if view is None or view.x is None:
        raise UnloweredError("an attribute or input is missing or has the wrong type")
    if view.policy != "stretch":
        raise UnloweredError("it keeps the aspect ratio")
    if view.mode != "nearest" and (view.x.dtype is None or not view.x.dtype.is_floating_point()):
        raise UnloweredError("it would round the interpolated integers twice")
    axes, result = _axes(view), view.x
    changed = [place for place in range(len(axes)) if not _is_unchanged(view, axes, place)]
    while changed:
        changed, last = changed[:-MOST_RESIZED_AXES], changed[-MOST_RESIZED_AXES:]
        result = _resized(node, view, result, axes, last, new)
    return [result]


def _axes(view: ResizeView[ir.Value]) -> list[int]:
    """The axes of the scales and sizes."""
    dims = rank(view.x)
    if dims is None:
        raise UnloweredError("the rank of its input is not known")
    axes = view.resized_axes(dims)
    if axes is None or len(set(axes)) != len(axes):
        raise UnloweredError("its axes are not different axes of its input")
    return axes


def _is_unchanged(view: ResizeView[ir.Value], axes: Sequence[int], place: int) -> bool:
    """Whether the axis at a place in the list of axes keeps its elements."""
    if view.crops(len(axes))[place] is not False:
        return False
    scales = None if view.scales is None else view.scales.known
    if scales:
        return len(scales) == len(axes) and scales[place] == 1
    sizes = None if view.sizes is None else elements_of(view.sizes.value)
    if sizes is None or len(sizes) != len(axes) or view.x is None or view.x.shape is None:
        return False
    return str(sizes[place]) == str(view.x.shape.dims[axes[place]])


def _resized(
    node: ir.Node, view: ResizeView[ir.Value], x: ir.Value, axes: Sequence[int], places: Sequence[int], new: Volumes
) -> ir.Value:
    """`x` with new sizes along the axes at these places in the list of axes."""
    count = len(axes)
    if view.is_legacy:
        return _scaled(node, view, x, places, new)
    roi = node.inputs[1] if view.coordinates == _CROP else None
    inputs = [
        x,
        None if roi is None else _taken(roi, [*places, *(place + count for place in places)], new),
        None if view.scales is None else _taken(view.scales.value, places, new),
        None if view.sizes is None else _taken(view.sizes.value, places, new),
    ]
    given: dict[str, Any] = {**node.attributes, "axes": [axes[place] for place in places]}
    return new.add("Resize", *inputs, **given)


def _taken(values: ir.Value | None, places: Sequence[int], new: Volumes) -> ir.Value | None:
    """The numbers at these places of a list."""
    array = constant_of(values)
    if array is None and static_shape(values) != (0,):
        return None if values is None else new.add("Gather", values, new.ints(*places), axis=0)
    if array is None or not array.size:  # in version 11, an empty list means that there is none
        return None
    if array.ndim != 1 or len(array) <= max(places):
        raise UnloweredError(f"a list of {array.size} numbers is too short for its axes")
    return new.constant(array[[*places]], "numbers")


def _scaled(node: ir.Node, view: ResizeView[ir.Value], x: ir.Value, places: Sequence[int], new: Volumes) -> ir.Value:
    """The same for the first versions, whose scales are for all axes."""
    scales = None if view.scales is None else view.scales.known
    if scales is None:
        raise UnloweredError("its scales are not constant")
    some = [scale if place in places else 1.0 for place, scale in enumerate(scales)]
    if "scales" in node.attributes:
        return new.again(node, x, scales=some)[0]
    return new.again(node, x, new.constant(np.array(some, np.float32), "scales"))[0]


lower_3d_resize = lowering_pass(
    "lower_3d_resize", {"Resize": _resize, "Upsample": _resize}, result="3-D resizes lowered"
)
