"""Random models: of operators that passes rewrite, of steps on 8-bit codes, and of images in blocks of channels."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

__all__ = ["on_axes", "on_codes", "on_images"]

Made = tuple[onnx.ModelProto, dict[str, Any]]
Shape = list[int]


class _Graph:
    """Builds a graph with one input node by node."""

    def __init__(self, chance: random.Random, shape: Shape) -> None:
        self.chance, self.random = chance, np.random.default_rng(chance.getrandbits(32))
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.shapes: dict[str, Shape] = {"x": shape}

    def op(self, op_type: str, shape: Shape, *inputs: str, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, list(inputs), [name], **attributes))
        self.shapes[name] = shape
        return name

    def constant(self, array: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def numbers(self, *shape: int, scale: float = 1.0) -> str:
        return self.constant((self.random.standard_normal(shape) * scale).astype(np.float32))

    def codes(self, dtype: type[Any], *shape: int) -> Any:
        limits = np.iinfo(dtype)
        return self.random.integers(limits.min, limits.max + 1, shape).astype(dtype)

    def made(self, x: Any, result: str) -> Made:
        kind = helper.np_dtype_to_tensor_dtype(x.dtype)
        sizes = self.chance.choice([x.shape, ["n", *x.shape[1:]], ["n", x.shape[1], *"hw"[: x.ndim - 2]]])
        inputs = [helper.make_tensor_value_info("x", kind, sizes)]
        outputs = [helper.make_tensor_value_info(result, kind, [None] * len(self.shapes[result]))]
        graph = helper.make_graph(self.nodes, "g", inputs, outputs, self.constants)
        opsets = [helper.make_opsetid("", 20)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=9), {"x": x}

    def window(self, name: str, weights: Callable[[int, int, list[int]], list[str]]) -> str:
        """A random convolution, sometimes depthwise. `weights` makes its weights and bias."""
        [n, channels, *sizes] = self.shapes[name]
        kernel = [self.chance.choice([1, 2, 3, 3])] * len(sizes)
        stride, pad = self.chance.choice([1, 1, 2]), self.chance.choice([0, 1, 1])
        groups = self.chance.choice([1, 1, channels])
        outputs = channels if groups > 1 else self.chance.choice([16, 32, 33, 64])
        shape = [n, outputs, *((size + 2 * pad - kernel[0]) // stride + 1 for size in sizes)]
        attributes = {"strides": [stride] * len(sizes), "pads": [pad] * 2 * len(sizes), "group": groups}
        return self.op("Conv", shape, name, *weights(outputs, channels // groups, kernel), **attributes)


def on_images(chance: random.Random) -> Made:
    """Models of convolutions with other operators between them. They have enough channels for blocks of channels."""
    sizes = [chance.randint(8, 24) for _ in range(chance.choice([1, 2, 2, 2]))]
    shape = [chance.randint(1, 2), chance.choice([3, 16, 32, 64]), *sizes]
    graph = _Graph(chance, shape)

    def weights(outputs: int, channels: int, kernel: list[int]) -> list[str]:
        numbers = graph.numbers(outputs, channels, *kernel, scale=(channels * kernel[0] ** len(kernel)) ** -0.5)
        return [numbers, graph.numbers(outputs)][: chance.choice([1, 2])]

    values = [graph.window("x", weights)]
    for _ in range(chance.randint(3, 7)):
        values.append(_next_image(graph, values, weights))
    return graph.made(graph.random.standard_normal(shape).astype(np.float32), values[-1])


def _next_image(graph: _Graph, values: list[str], weights: Callable[[int, int, list[int]], list[str]]) -> str:
    chance, value = graph.chance, values[-1]
    [n, channels, *sizes] = shape = graph.shapes[value]
    kind = chance.choice(["Conv"] * 4 + ["Relu", "Sigmoid", "Add", "Mul", "Concat", "Pool", "Resize", "Mean"])
    if kind == "Conv" and min(sizes) > 3:
        return graph.window(value, weights)
    if kind in ("Add", "Mul"):
        others = [name for name in values if graph.shapes[name] == shape]
        other = chance.choice([*others, graph.numbers(channels, *[1] * len(sizes))])
        return graph.op(kind, shape, value, other)
    if kind == "Concat":
        return graph.op("Concat", [n, 2 * channels, *sizes], value, value, axis=1)
    if kind == "Pool" and min(sizes) > 3:
        halves = [n, channels, *(size // 2 for size in sizes)]
        attributes = {"kernel_shape": [2] * len(sizes), "strides": [2] * len(sizes)}
        return graph.op(chance.choice(["MaxPool", "AveragePool"]), halves, value, **attributes)
    if kind == "Resize" and max(sizes) < 25:
        scales = graph.constant(np.array([1, 1, *[2] * len(sizes)], np.float32))
        mode = chance.choice(["nearest", "linear"])
        return graph.op("Resize", [n, channels, *(2 * size for size in sizes)], value, "", scales, mode=mode)
    if kind == "Mean":
        mean = graph.op("GlobalAveragePool", [n, channels, *[1] * len(sizes)], value)
        return graph.op("Mul", shape, value, mean)
    return graph.op("Sigmoid" if kind == "Sigmoid" else "Relu", shape, value)


def on_codes(chance: random.Random) -> Made:
    """Models that passes turn into convolutions, products, sums, means and tables of 8-bit codes."""
    dtype = chance.choice([np.uint8, np.int8])
    sizes = [chance.randint(4, 9) for _ in range(chance.choice([0, 1, 2, 2]))]
    shape = [chance.randint(1, 2), chance.choice([3, 4, 16, 17]), *sizes]
    graph = _Graph(chance, shape)
    values = ["x"]
    for _ in range(chance.randint(1, 4)):
        values.append(_next_codes(graph, values, dtype))
    return graph.made(graph.codes(dtype, *shape), values[-1])


def _next_codes(graph: _Graph, values: list[str], dtype: type[Any]) -> str:
    """`QuantizeLinear(f(DequantizeLinear(x), …))`; all codes have the same scale and zero point but some results'."""
    chance, value = graph.chance, values[-1]
    zero = graph.constant(dtype(chance.choice([0, 7, np.iinfo(dtype).max])))
    parameters = graph.constant(np.float32(0.05)), graph.constant(dtype(7))
    x = graph.op("DequantizeLinear", graph.shapes[value], value, *parameters)
    y = _of_numbers(graph, x, [name for name in values if graph.shapes[name] == graph.shapes[value]], parameters)
    if chance.random() < 0.3:
        y = graph.op("Relu", graph.shapes[y], y)
    codes = graph.op("QuantizeLinear", graph.shapes[y], y, graph.constant(np.float32(0.2)), zero)
    if chance.random() < 0.5:
        return codes
    y = graph.op("DequantizeLinear", graph.shapes[y], codes, graph.constant(np.float32(0.2)), zero)
    return graph.op("QuantizeLinear", graph.shapes[y], y, *parameters)


def _of_numbers(graph: _Graph, x: str, others: list[str], parameters: tuple[str, str]) -> str:
    chance, shape = graph.chance, graph.shapes[x]
    [n, channels, *sizes] = shape

    def weights(outputs: int, channels: int, kernel: list[int]) -> list[str]:
        """Weights with a scale and a zero point for all outputs or for each output, and sometimes a bias."""
        each = chance.choice([[], [outputs]])
        parts = [graph.codes(chance.choice([np.int8, np.uint8]), outputs, channels, *kernel)]
        parts += [np.full(each, 0.01, np.float32), np.full(each, chance.choice([0, 100]), parts[0].dtype)]
        given = [graph.constant(part) for part in parts]
        numbers = graph.op("DequantizeLinear", [], *given, **({"axis": 0} if each else {}))
        return [numbers, graph.numbers(outputs)][: chance.choice([1, 2])]

    kind = chance.choice(["Product"] * 5 + ["Add", "Mul", "Mean", "Sigmoid", "Concat"])
    if kind == "Product" and sizes and min(sizes) > 3:
        return graph.window(x, weights)
    if kind == "Product" and not sizes:
        outputs = chance.choice([1, 8, 17])
        return graph.op("Gemm", [n, outputs], x, *weights(outputs, channels, []), transB=1)
    if kind in ("Add", "Mul"):
        other = graph.op("DequantizeLinear", shape, chance.choice(others), *parameters)
        return graph.op(kind, shape, x, other)
    if kind == "Mean" and sizes:
        return graph.op("GlobalAveragePool", [n, channels, *[1] * len(sizes)], x)
    if kind == "Concat":
        return graph.op("Concat", [n, 2 * channels, *sizes], x, x, axis=1)
    return graph.op("Sigmoid", shape, x)


def on_axes(chance: random.Random) -> Made:
    """Models that transpose, reshape, slice, join, reduce and multiply. Their values have several readers."""
    shape = [chance.randint(1, 4) for _ in range(chance.randint(2, 4))]
    graph = _Graph(chance, shape)
    values = ["x"]
    for _ in range(chance.randint(6, 16)):
        values.append(_next_axes(graph, chance.choice([values[-1], values[-1], chance.choice(values)]), values))
    return graph.made(graph.random.standard_normal(shape).astype(np.float32), values[-1])


def _next_axes(graph: _Graph, value: str, values: list[str]) -> str:
    chance, shape = graph.chance, graph.shapes[value]
    make = chance.choice([_moved, _moved, _viewed, _viewed, _cut, _joined, _computed, _computed, _reduced, _multiplied])
    return make(graph, value, shape, values)


def _moved(graph: _Graph, value: str, shape: Shape, _: list[str]) -> str:
    perm = graph.chance.sample(range(len(shape)), len(shape))
    return graph.op("Transpose", [shape[axis] for axis in perm], value, perm=perm)


def _viewed(graph: _Graph, value: str, shape: Shape, _: list[str]) -> str:
    """A Reshape that merges two axes or splits one, or an Unsqueeze."""
    axis = graph.chance.randrange(len(shape))
    if len(shape) > 3 or (len(shape) > 1 and axis and graph.chance.random() < 0.3):
        axis = max(axis, 1)
        after = [*shape[: axis - 1], shape[axis - 1] * shape[axis], *shape[axis + 1 :]]
    elif shape[axis] % 2 == 0:
        after = [*shape[:axis], 2, shape[axis] // 2, *shape[axis + 1 :]]
    else:
        return graph.op("Unsqueeze", [*shape[:axis], 1, *shape[axis:]], value, graph.constant(np.array([axis])))
    return graph.op("Reshape", after, value, graph.constant(np.array(after)))


def _cut(graph: _Graph, value: str, shape: Shape, _: list[str]) -> str:
    """A Slice; or both parts of a Split, joined in either order."""
    axis = graph.chance.randrange(len(shape))
    size = shape[axis]
    if size == 1 or graph.chance.random() < 0.5:
        bounds = [0, graph.chance.choice([max(size - 1, 1), size]), axis]
        after = [*shape[:axis], bounds[1], *shape[axis + 1 :]]
        return graph.op("Slice", after, value, *(graph.constant(np.array([bound])) for bound in bounds))
    parts = [f"{value}.{len(graph.nodes)}.{index}" for index in range(2)]
    sizes = graph.constant(np.array([1, size - 1]))
    graph.nodes.append(helper.make_node("Split", [value, sizes], parts, axis=axis))
    return graph.op("Concat", shape, *graph.chance.sample(parts, 2), axis=axis)


def _joined(graph: _Graph, value: str, shape: Shape, values: list[str]) -> str:
    axis = graph.chance.randrange(len(shape))
    other = graph.chance.choice([name for name in values if graph.shapes[name] == shape])
    after = [*shape[:axis], 2 * shape[axis], *shape[axis + 1 :]]
    return value if np.prod(after) > 512 else graph.op("Concat", after, value, other, axis=axis)


def _computed(graph: _Graph, value: str, shape: Shape, values: list[str]) -> str:
    """An elementwise function, or the nodes of Swish. Other nodes may read the Swish's gate."""
    chance = graph.chance
    kind = chance.choice(["Relu", "Neg", "Identity", "Sigmoid", "Swish", "Add", "Mul", "Sub"])
    if kind == "Swish":
        return graph.op("Mul", shape, graph.op("Sigmoid", shape, value), value)
    if kind in ("Add", "Mul", "Sub"):
        others = [name for name in values if graph.shapes[name] == shape]
        sizes = [size if chance.random() < 0.5 else 1 for size in shape]
        return graph.op(
            kind, shape, value, chance.choice([*others, graph.numbers(*sizes), graph.constant(np.float32(1))])
        )
    return graph.op(kind, shape, value)


def _reduced(graph: _Graph, value: str, shape: Shape, _: list[str]) -> str:
    axis, keeps = graph.chance.randrange(len(shape)), graph.chance.choice([0, 1])
    if len(shape) < 3 and not keeps:
        return graph.op("Softmax", shape, value, axis=axis)
    after = [*shape[:axis], *[1] * keeps, *shape[axis + 1 :]]
    kind = graph.chance.choice(["ReduceMean", "ReduceSum", "ReduceMax"])
    return graph.op(kind, after, value, graph.constant(np.array([axis])), keepdims=keeps)


def _multiplied(graph: _Graph, value: str, shape: Shape, _: list[str]) -> str:
    """A product with constant weights, or of the rows with themselves."""
    if len(shape) < 2 or graph.chance.random() < 0.6:
        columns = graph.chance.randint(1, 4)
        return graph.op("MatMul", [*shape[:-1], columns], value, graph.numbers(shape[-1], columns, scale=0.5))
    perm = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
    turned = graph.op("Transpose", [shape[axis] for axis in perm], value, perm=perm)
    return graph.op("MatMul", [*shape[:-1], shape[-2]], value, turned)
