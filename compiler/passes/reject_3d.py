"""Refuses operators with three spatial dimensions."""

from __future__ import annotations

import onnx_ir as ir

from compiler.errors import Diagnostic
from compiler.ir import origin
from compiler.ir.graph import constant_of, nodes_of, rank, static_shape
from compiler.rewrite.report import Pass, PassReport

__all__ = ["reject_3d"]

_SPATIAL = {
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
"""Operators that cover 1-D, 2-D and 3-D, with their names in messages. The rank decides the case."""

_HELP = "candle-plan executes 1-D and 2-D operators only"


def _reject_3d(model: ir.Model, report: PassReport) -> None:
    """Refuses operators with three or more spatial dimensions, all of them at once."""
    found = [(node, count) for node in nodes_of(model) if (count := _spatial_dims(node)) > 2]
    report.refused.extend(_diagnostic(node, count) for node, count in found)


def _spatial_dims(node: ir.Node) -> int:
    """The number of spatial dimensions of the node; 0 if it has none or they are unknown."""
    if node.domain != "" or node.op_type not in _SPATIAL:
        return 0
    if node.op_type in ("Resize", "Upsample"):
        return _resized_dims(node)
    if node.op_type == "Col2Im":
        shape = static_shape(node.inputs[1]) if len(node.inputs) > 1 else None
        return 0 if not shape else shape[0]
    return max(_dims_by_attribute(node), *((rank(value) or 2) - 2 for value in node.inputs[:1]), _dims_by_weight(node))


def _dims_by_attribute(node: ir.Node) -> int:
    shape = node.attributes.get("kernel_shape")
    return 0 if shape is None or shape.type != ir.AttributeType.INTS else len(shape.as_ints())


def _dims_by_weight(node: ir.Node) -> int:
    """The weight of a convolution has two dimensions besides the spatial ones."""
    if "convolution" not in _SPATIAL[node.op_type]:
        return 0
    index = 3 if node.op_type == "QLinearConv" else 1
    return (rank(node.inputs[index]) or 2) - 2 if index < len(node.inputs) else 0


def _resized_dims(node: ir.Node) -> int:
    """The number of resized dimensions: a node may resize two dimensions of a 5-D tensor."""
    dims = rank(node.inputs[0])
    if dims is None or dims <= 4:
        return 0
    if "axes" in node.attributes:
        return len(node.attributes["axes"].as_ints())
    old, new = static_shape(node.inputs[0]), static_shape(node.outputs[0])
    if old is not None and new is not None and len(old) == len(new):
        return sum(a != b for a, b in zip(old, new, strict=True))
    scales = _scales(node)
    return dims - 2 if scales is None else sum(scale != 1 for scale in scales)


def _scales(node: ir.Node) -> list[float] | None:
    if "scales" in node.attributes:
        return list(node.attributes["scales"].as_floats())
    index = 2 if node.op_type == "Resize" and len(node.inputs) > 2 else 1
    array = constant_of(node.inputs[index]) if index < len(node.inputs) else None
    return None if array is None or array.size == 0 else [float(scale) for scale in array]


def _diagnostic(node: ir.Node, count: int) -> Diagnostic:
    kernel = node.attributes.get("kernel_shape")
    weight = static_shape(node.inputs[1]) if "onvolution" in _SPATIAL[node.op_type] and len(node.inputs) > 1 else None
    sizes = list(kernel.as_ints()) if kernel is not None else list(weight[2:]) if weight else []
    detail = f" (kernel {'×'.join(map(str, sizes))})" if sizes else ""
    message = f"{count}-D {_SPATIAL[node.op_type]} is not supported{detail}"
    return Diagnostic("CC0301", message, origin.of(node), _HELP)


reject_3d = Pass("reject_3d", _reject_3d, result="nodes refused", requires=frozenset({"shapes"}), needed=True)
