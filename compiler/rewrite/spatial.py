"""Operators that exist for one, two and three spatial dimensions: their names in messages, and their dimensions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import onnx_ir as ir

from compiler._runtime import MOST_RESIZED_AXES, MOST_WINDOW_AXES
from compiler.errors import Diagnostic
from compiler.ir import origin
from compiler.ir.graph import opset_of, rank, static_shape
from compiler.ir.views.resize import ResizeView
from compiler.ir.views.window import WindowView

__all__ = ["refusal", "spatial_dims"]


def spatial_dims(node: ir.Node, opset: int) -> int:
    """The number of spatial dimensions of a node in a model of this opset; 0 if it has none or they are unknown."""
    spatial = _SPATIAL.get(node.op_type) if node.domain == "" else None
    return 0 if spatial is None else spatial.dims(node, opset)


def refusal(node: ir.Node, count: int, advice: str, reason: str = "") -> Diagnostic:
    """The error CC0301 for an operator of `count` spatial dimensions."""
    window = WindowView[ir.Value].of(node)
    sizes: tuple[int, ...] = ()
    if window is not None:
        sizes = (static_shape(window.weights) or ())[2:] if window.kernel is None else window.kernel
    detail = f" (kernel {'×'.join(map(str, sizes))})" if sizes else ""
    message = f"{count}-D {_SPATIAL[node.op_type].title} is not supported{detail}"
    return Diagnostic("CC0301", f"{message}: {reason}" if reason else message, origin.of(node), advice)


def _image_dims(node: ir.Node, _opset: int) -> int:
    """The number of dimensions of the window or of the image `[N, C, D1, …]`, whichever is known and larger."""
    window = WindowView[ir.Value].of(node)
    values = [*node.inputs[:1], None if window is None else window.weights]
    by_kernel = 0 if window is None else len(window.kernel or ())
    return max(by_kernel, *((rank(value) or 2) - 2 for value in values))


def _block_dims(node: ir.Node, _opset: int) -> int:
    """The number of sizes of the image that `Col2Im` makes; 0 if it is unknown."""
    shape = static_shape(node.inputs[1]) if len(node.inputs) > 1 else None
    return 0 if not shape else shape[0]


def _resized_dims(node: ir.Node, opset: int) -> int:
    """The number of dimensions that change their size, or, of three spatial ones, that may change it.

    A 5-D tensor may be resized in two dimensions, and a 4-D tensor in three.
    """
    view = ResizeView[ir.Value].of(node, opset_of(node, opset))
    if view is None:
        return 0
    shapes = [None if value is None else value.shape for value in (view.x, node.outputs[0])]
    old, new = (None if shape is None else shape.dims for shape in shapes)
    changes = view.changes(old, new)
    if (
        changes.least > MOST_RESIZED_AXES
        or changes.most <= MOST_RESIZED_AXES
        or old is None
        or len(old) <= MOST_WINDOW_AXES + 2
    ):
        return changes.least
    return len(view.axes) if view.axes is not None else len(old) - 2


@dataclass(frozen=True)
class _Spatial:
    """An operator that exists for one, two and three spatial dimensions."""

    title: str
    """Its name in messages."""
    dims: Callable[[ir.Node, int], int] = _image_dims
    """The number of spatial dimensions of a node in a model of this opset; 0 if it has none or they are unknown."""


_SPATIAL = {
    "Conv": _Spatial("convolution"),
    "ConvInteger": _Spatial("convolution"),
    "QLinearConv": _Spatial("convolution"),
    "ConvTranspose": _Spatial("transposed convolution"),
    "DeformConv": _Spatial("deformable convolution"),
    "MaxPool": _Spatial("max pooling"),
    "AveragePool": _Spatial("average pooling"),
    "LpPool": _Spatial("Lp pooling"),
    "MaxUnpool": _Spatial("max unpooling"),
    "GlobalMaxPool": _Spatial("global max pooling"),
    "GlobalAveragePool": _Spatial("global average pooling"),
    "GlobalLpPool": _Spatial("global Lp pooling"),
    "BatchNormalization": _Spatial("batch normalization"),
    "InstanceNormalization": _Spatial("instance normalization"),
    "Upsample": _Spatial("upsampling", _resized_dims),
    "Resize": _Spatial("resizing", _resized_dims),
    "GridSample": _Spatial("grid sampling"),
    "Col2Im": _Spatial("column to image", _block_dims),
}
