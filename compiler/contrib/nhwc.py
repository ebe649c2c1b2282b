"""Convolutions and pools of 8-bit codes, also with the channels last: QLinearConv, QLinearAveragePool, NhwcMaxPool."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from compiler.contrib.expansion.body import Body
from compiler.contrib.expansion.node import Node, expands
from compiler.contrib.expansion.quantized_tensor import QuantizedTensor, rounded
from compiler.ir.views.quantize import CODES

__all__: list[str] = []


@expands("QLinearConv")
def qlinear_conv(node: Node, new: Body) -> ir.Value:
    """`QLinearConv` of the standard. With `channels_last`, x and y are `[N, …, C]`; w is `[M, C / group, …]`."""
    x, *others = (node.input(index) for index in range(8))
    options = {"group": node.int("group", 1), **_window(node, "dilations")}
    rank = node.rank(0, "x")
    is_last = node.flag("channels_last", False)
    y = new.op("QLinearConv", _first(new, x, rank) if is_last else x, *others, node.optional(8), **options)
    return _last(new, y, rank) if is_last else y


@expands("QLinearAveragePool")
def qlinear_average_pool(node: Node, new: Body) -> ir.Value:
    """`round(average / y_scale + zero point)`, which is not QuantizeLinear's order of operations."""
    x, y = QuantizedTensor.read(node, new, 0, "X"), QuantizedTensor.of_result(node, new, 3, 0, "X")
    padded = int(node.flag("count_include_pad", False))
    options = {**_window(node), "count_include_pad": padded, "ceil_mode": int(node.flag("ceil_mode", False))}

    def pool(images: ir.Value) -> ir.Value:
        average = new.op("AveragePool", images, **options)
        scaled = new.op("Add", new.op("Div", average, y.scale), y.zero_as_float(new))
        return rounded(new, scaled, y.dtype)

    return _pooled(node, new, x.dequantize(new), pool)


@expands("QLinearGlobalAveragePool")
def qlinear_global_average_pool(node: Node, new: Body) -> ir.Value:
    """The mean of each channel, as codes."""
    x, y = QuantizedTensor.read(node, new, 0, "X"), QuantizedTensor.of_result(node, new, 3, 0, "X")
    return _pooled(node, new, x.dequantize(new), lambda images: y.quantize(new, new.op("GlobalAveragePool", images)))


@expands("NhwcMaxPool")
def nhwc_max_pool(node: Node, new: Body) -> ir.Value:
    """`MaxPool` of codes `[N, …, C]`."""
    node.dtype(0, "x", *CODES)
    options = {**_window(node, "dilations"), "ceil_mode": int(node.flag("ceil_mode", False))}
    rank = node.rank(0, "x")
    return _last(new, new.op("MaxPool", _first(new, node.input(0), rank), **options), rank)


def _window(node: Node, *more: str) -> dict[str, Any]:
    """The attributes of a window that the node has."""
    options: dict[str, Any] = {"auto_pad": node.string("auto_pad", "NOTSET")}
    for name in ("kernel_shape", "pads", "strides", *more):
        if (numbers := node.ints(name, None)) is not None:
            options[name] = numbers
    return options


def _pooled(node: Node, new: Body, images: ir.Value, pool: Any) -> ir.Value:
    """The result of `pool` for images `[N, C, …]`; with the attribute `channels_last`, the node's are `[N, …, C]`."""
    rank = node.rank(0, "X")
    if not node.flag("channels_last", False):
        result: ir.Value = pool(images)
        return result
    return _last(new, pool(_first(new, images, rank)), rank)


def _first(new: Body, images: ir.Value, rank: int) -> ir.Value:
    """`[N, …, C]` → `[N, C, …]`."""
    return new.transpose(images, 0, rank - 1, *range(1, rank - 1))


def _last(new: Body, images: ir.Value, rank: int) -> ir.Value:
    """`[N, C, …]` → `[N, …, C]`."""
    return new.transpose(images, 0, *range(2, rank), 1)
