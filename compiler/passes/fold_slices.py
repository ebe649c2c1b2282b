"""Replaces a convolution of strided slices of an image (YOLO's Focus) with a strided convolution of the image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from compiler.ir.graph import constant_of, sole_user
from compiler.ir.views.concat import ConcatView
from compiler.ir.views.slice import ranges_of
from compiler.ir.views.window import WindowView
from compiler.rewrite.pattern import Match, Op
from compiler.rewrite.rule import FindingRule, Rewriter, rules_pass

__all__ = ["fold_slices"]


@dataclass(frozen=True)
class _Parts:
    """The image `[N, C, H, W]`, the step of the slices, the start of each, and the convolution's weights and window."""

    image: ir.Value
    step: int
    places: list[tuple[int, int]]
    weights: np.ndarray
    window: WindowView[ir.Value]


class FoldSlicesIntoConv(FindingRule[_Parts]):
    """`Conv(Concat(x[:, :, a::s, b::s], …), w)` → `Conv(x, v)` with strides and a window `s` times as large."""

    pattern = Op("Conv", Op("Concat", Op("Slice", rest=True), rest=True, name="concat"), rest=True)

    def check(self, match: Match) -> _Parts | str:
        """The parts are strided slices of one image; the weights are constants of one group."""
        conv, parts = match.root, _parts(match.node("concat"))
        if isinstance(parts, str):
            return parts
        x, step, places = parts
        w = constant_of(conv.inputs[1])
        if w is None or w.ndim != 4 or x.shape is None or w.shape[1] != len(places) * x.shape.dims[1]:
            return "the weights are not constants of one group"
        window = WindowView[ir.Value].of(conv)
        if window is None or window.auto_pad != "NOTSET":
            return "Conv has auto_pad"
        if any(dilation != 1 for dilation in window.dilations_of(2)):
            return f"a dilated window does not fit slices with step {step}"
        return _Parts(x, step, places, w, window)

    def rewrite(self, match: Match, found: _Parts, new: Rewriter) -> ir.Value:
        """The convolution of the image, with the weights of each slice at its positions and zeros elsewhere."""
        conv, step, places, w = match.root, found.step, found.places, found.weights
        outputs, _, height, width = w.shape
        window = np.zeros((outputs, w.shape[1] // len(places), height * step, width * step), w.dtype)
        for (top, left), part in zip(places, np.split(w, len(places), axis=1), strict=True):
            window[:, :, top::step, left::step] += part
        attributes: dict[str, Any] = {name: item for name, item in conv.attributes.items() if name != "auto_pad"}
        attributes["kernel_shape"] = list(window.shape[2:])
        attributes["strides"] = [step * stride for stride in found.window.strides_of(2)]
        attributes["pads"] = [step * pad for pad in found.window.pads_of(2)]
        weights = new.constant(window, "weights")
        result: ir.Value = new.op("Conv", found.image, weights, *conv.inputs[2:], version=conv.version, **attributes)
        return result


def _parts(concat: ir.Node) -> tuple[ir.Value, int, list[tuple[int, int]]] | str:
    """The image, the step of the slices, and the start of each; or the reason why there are none."""
    sliced = [value.producer() for value in concat.inputs if value is not None]
    slices = [node for node in sliced if node is not None and node.op_identifier() == ("", "Slice", "")]
    image = slices[0].inputs[0]
    if len(slices) != len(concat.inputs) or any(node.inputs[0] is not image for node in slices):
        return "an input of Concat is not a slice of the image"
    if any(sole_user(node.outputs[0]) is not concat for node in slices):
        return "a slice has other readers"
    if image is None or image.shape is None or len(image.shape) != 4:
        return "the image's rank is not known to be 4"
    view = ConcatView[ir.Value].of(concat)
    if view is None or view.axis not in (1, -3):
        return "Concat does not join channels"
    sizes = [size for size in image.shape.dims[1:] if isinstance(size, int)]
    if len(sizes) != 3:
        return "the image's sizes are not known"
    found = [ranges_of(node) for node in slices]
    steps = {each.step for ranges in found if ranges for each in ranges.values()}
    (step,) = steps if len(steps) == 1 else (1,)
    if step == 1 or any(size % step for size in sizes[1:]):
        return "the slices have different steps, or their steps do not divide the image"
    places: list[tuple[int, int]] = []
    for ranges in found:
        if ranges is None or set(ranges) != {2, 3}:
            return "a slice is not of rows and columns"
        if any(each.start >= step or each.end < sizes[axis - 1] for axis, each in ranges.items()):
            return "a slice does not cover the whole axis"
        places.append((ranges[2].start, ranges[3].start))
    return image, step, places


fold_slices = rules_pass(
    "fold_slices", [FoldSlicesIntoConv()], result="convolutions of slices folded", requires=frozenset({"shapes"})
)
