"""Graphs with quantized tensors, and the check of the results of the pass `fuse_quantization`."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper, numpy_helper

import compiler
from compiler.accuracy.reference import Reference

RANDOM = np.random.default_rng(11)
ACTIVATION, RESULT = (0.05, 120), (0.07, 100)


class Graph:
    """Builds a graph node by node."""

    def __init__(self, dtype=np.uint8):
        self.nodes, self.constants, self.dtype = [], [], np.dtype(dtype)

    def op(self, op_type, *inputs, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, list(inputs), [name], **attributes))
        return name

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def zero(self, zero):
        return np.array(zero - 128 if self.dtype == np.int8 else zero, self.dtype)

    def parameters(self, scale, zero):
        return self.constant(np.array(scale, np.float32)), self.constant(self.zero(zero))

    def dequantized(self, value, scale, zero):
        return self.op("DequantizeLinear", value, *self.parameters(scale, zero))

    def quantized(self, value, scale, zero):
        return self.op("QuantizeLinear", value, *self.parameters(scale, zero))

    def weights(self, *shape, axis=None, dtype=np.int8):
        codes = RANDOM.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, shape).astype(dtype)
        scale = np.float32(0.01) if axis is None else (RANDOM.random(shape[axis]) * 0.02 + 0.001).astype(np.float32)
        zero = np.full(scale.shape, 128 if dtype == np.uint8 else 0, dtype)
        parts = [self.constant(array) for array in (codes, scale, zero)]
        return self.op("DequantizeLinear", *parts, **({} if axis is None else {"axis": axis})), scale

    def bias(self, x_scale, w_scale, size):
        scale = np.broadcast_to(np.float32(x_scale) * w_scale, (size,)).astype(np.float32)
        codes = RANDOM.integers(-2000, 2000, size).astype(np.int32)
        zero = np.zeros(size, np.int32)
        return self.op("DequantizeLinear", *map(self.constant, (codes, scale, zero)), axis=0)

    def model(self, shapes, result, *, numbers=False):
        kind = helper.np_dtype_to_tensor_dtype(self.dtype)
        inputs = [helper.make_tensor_value_info(name, kind, shape) for name, shape in shapes.items()]
        outputs = [helper.make_tensor_value_info(result, onnx.TensorProto.FLOAT if numbers else kind, None)]
        graph = helper.make_graph(self.nodes, "g", inputs, outputs, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        return onnx.shape_inference.infer_shapes(model)


PLAIN = False
LEVELS = [True, PLAIN]
"""Whether onnxruntime optimizes."""


def check(graph, shapes, result, steps, *, quanta=1, numbers=False, levels=LEVELS, code=None):
    """Checks that the plan has these steps, besides transposes, and the results of the plain plan and of onnxruntime.

    Codes may differ by `quanta`, numbers by 1e-5 of the largest. The inputs are random; with `code`, every element is
    `code`. A symbolic size is 4.
    """
    model = graph.model(shapes, result, numbers=numbers)
    limits = np.iinfo(graph.dtype)
    low, high = (limits.min, limits.max) if code is None else (code, code)
    feeds = {}
    for name, shape in shapes.items():
        sizes = [size if isinstance(size, int) else 4 for size in shape]
        feeds[name] = np.asarray(RANDOM.integers(low, high + 1, sizes), graph.dtype)
    plan = compiler.compile(model, compiler.Options(verify_passes=True))
    found = [next(iter(step["op"])) for step in plan.document["main"]["steps"]]
    assert [step for step in found if step not in ("Transpose", "Reshape")] == steps
    (result,) = compiler.load(plan, threads=1).run(feeds).values()
    plain = compiler.compile(model, compiler.Options(optimize=False))
    assert_near(result, *compiler.load(plain, threads=1).run(feeds).values(), quanta)
    for level in levels:
        assert_near(result, *Reference(model, optimize=level).run(feeds).values(), quanta)


def assert_near(found, expected, quanta):
    assert found.dtype == expected.dtype and found.shape == expected.shape
    within = quanta if found.dtype.kind in "iu" else 1e-5 * np.abs(expected).max(initial=0)
    assert np.abs(found.astype(float) - expected.astype(float)).max(initial=0) <= within
