"""Refuses operators with three spatial dimensions."""

from __future__ import annotations

import onnx_ir as ir

from compiler._runtime import MOST_RESIZED_AXES, MOST_WINDOW_AXES
from compiler.errors import Diagnostic
from compiler.ir import origin
from compiler.ir.graph import nodes_of, opset_of, rank, static_shape
from compiler.ir.views.resize import ResizeView
from compiler.ir.views.window import WindowView
from compiler.rewrite.report import Pass, PassReport

__all__ = ["reject_3d"]

_NAMES = {
    "Conv": "convolution",
    "ConvInteger": "convolution",
    "QLinearConv": "convolution",
    "ConvTranspose": "transposed convolution",
    "DeformConv": "deformable convolution",
    "MaxPool": "max pooling",
    "AveragePool": "average pooling",
    "LpPool": "Lp pooling",
    "MaxUnpool": "max unpooling",
    "GlobalMaxPool": "global max pooling",
    "GlobalAveragePool": "global average pooling",
    "GlobalLpPool": "global Lp pooling",
    "BatchNormalization": "batch normalization",
    "InstanceNormalization": "instance normalization",
    "Upsample": "upsampling",
    "Resize": "resizing",
    "GridSample": "grid sampling",
    "Col2Im": "column to image",
}
"""Operators that cover 1-D, 2-D and 3-D, with their names in messages."""

_HELP = "plans support only 1-D and 2-D operators"


def _reject_3d(model: ir.Model, report: PassReport) -> None:
    """Refuses all operators with three or more spatial dimensions."""
    opset = model.opset_imports.get("", 1)
    found = [(node, count) for node in nodes_of(model) if (count := _spatial_dims(node, opset)) > MOST_WINDOW_AXES]
    report.refused.extend(_diagnostic(node, count) for node, count in found)


def _spatial_dims(node: ir.Node, opset: int) -> int:
    """The number of spatial dimensions of the node; 0 if it has none or they are unknown."""
    if node.domain != "" or node.op_type not in _NAMES:
        return 0
    if node.op_type in ("Resize", "Upsample"):
        return _resized_dims(node, opset_of(node, opset))
    if node.op_type == "Col2Im":
        shape = static_shape(node.inputs[1]) if len(node.inputs) > 1 else None
        return 0 if not shape else shape[0]
    window = WindowView[ir.Value].of(node)
    values = [*node.inputs[:1], None if window is None else window.weights]
    by_kernel = 0 if window is None else len(window.kernel or ())
    return max(by_kernel, *((rank(value) or 2) - 2 for value in values))


def _resized_dims(node: ir.Node, opset: int) -> int:
    """The number of dimensions that change their size, or, of three spatial ones, that may change it.

    A 5-D tensor may be resized in two dimensions, and a 4-D tensor in three.
    """
    view = ResizeView[ir.Value].of(node, opset)
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


def _diagnostic(node: ir.Node, count: int) -> Diagnostic:
    window = WindowView[ir.Value].of(node)
    sizes: tuple[int, ...] = ()
    if window is not None:
        sizes = (static_shape(window.weights) or ())[2:] if window.kernel is None else window.kernel
    detail = f" (kernel {'×'.join(map(str, sizes))})" if sizes else ""
    message = f"{count}-D {_NAMES[node.op_type]} is not supported{detail}"
    return Diagnostic("CC0301", message, origin.of(node), _HELP)


reject_3d = Pass("reject_3d", _reject_3d, result="nodes refused", requires=frozenset({"shapes"}), needed=True)
