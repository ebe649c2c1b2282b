"""Operators between DequantizeLinear and QuantizeLinear: which steps they become, and codes against onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import compiler

RANDOM = np.random.default_rng(11)
ACTIVATION, RESULT = (0.05, 120), (0.07, 100)


class Graph:
    """A graph that is written down node by node."""

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

    def model(self, shapes, result):
        kind = helper.np_dtype_to_tensor_dtype(self.dtype)
        inputs = [helper.make_tensor_value_info(name, kind, shape) for name, shape in shapes.items()]
        outputs = [helper.make_tensor_value_info(result, kind, None)]
        graph = helper.make_graph(self.nodes, "g", inputs, outputs, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        return onnx.shape_inference.infer_shapes(model)


def check(graph, shapes, result, steps, *, quanta=1):
    """The plan has these steps, transposes aside, and gives codes within so many of onnxruntime's, optimised or not."""
    model = graph.model(shapes, result)
    limits = np.iinfo(graph.dtype)
    feeds = {
        name: RANDOM.integers(limits.min, limits.max + 1, shape).astype(graph.dtype) for name, shape in shapes.items()
    }
    plan = compiler.compile(model, compiler.Options(verify_passes=True))
    found = [next(iter(step["op"])) for step in plan.document["main"]["steps"]]
    assert [step for step in found if step not in ("Transpose", "Reshape")] == steps
    (codes,) = compiler.load(plan, threads=1).run(feeds).values()
    for level in (
        onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
        onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
    ):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level, options.log_severity_level = level, 4
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        (expected,) = session.run(None, feeds)
        assert codes.dtype == expected.dtype and codes.shape == expected.shape
        assert np.abs(codes.astype(int) - expected.astype(int)).max(initial=0) <= quanta


CONVOLUTIONS = [
    ([1, 16, 9, 9], [24, 16, 1, 1], {}),
    ([2, 3, 11, 10], [8, 3, 3, 3], {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    ([1, 40, 8, 7], [40, 1, 3, 3], {"group": 40, "pads": [1, 1, 1, 1]}),
    ([1, 8, 8, 8], [12, 4, 3, 3], {"group": 2, "auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    ([1, 5, 20], [6, 5, 3], {"dilations": [2], "pads": [2, 2]}),
]


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize(("x", "w", "attributes"), CONVOLUTIONS)
@pytest.mark.parametrize("axis", [None, 0])
def test_convolutions(dtype, x, w, attributes, axis):
    graph = Graph(dtype)
    weights, scale = graph.weights(*w, axis=axis)
    bias = graph.bias(ACTIVATION[0], scale, w[0])
    y = graph.op("Conv", graph.dequantized("x", *ACTIVATION), weights, bias, **attributes)
    check(graph, {"x": x}, graph.quantized(y, 2.0, 100), ["QLinearConv"])


def test_weights_may_be_numbers_that_are_quantised():
    graph = Graph()
    numbers = graph.constant(RANDOM.standard_normal((8, 16, 1, 1)).astype(np.float32))
    parameters = [graph.constant(np.full(8, number)) for number in (np.float32(0.02), np.int8(0))]
    weights = graph.op("QuantizeLinear", numbers, *parameters, axis=0)
    weights = graph.op("DequantizeLinear", weights, *parameters, axis=0)
    y = graph.op("Conv", graph.dequantized("x", *ACTIVATION), weights)
    check(graph, {"x": [1, 16, 5, 5]}, graph.quantized(y, 0.5, 100), ["QLinearConv"])


@pytest.mark.parametrize("activation", ["Relu", "Clip"])
def test_limits_are_the_convolutions(activation):
    graph = Graph()
    y = graph.op("Conv", graph.dequantized("x", *ACTIVATION), graph.weights(8, 16, 1, 1)[0])
    bounds = [graph.constant(np.float32(bound)) for bound in (0, 6)] if activation == "Clip" else []
    y = graph.quantized(graph.op(activation, y, *bounds), 0.1, 30)
    check(graph, {"x": [1, 16, 5, 5]}, y, ["QLinearConv"])


def test_a_float_bias_is_rounded_to_the_products_unit():
    graph = Graph()
    bias = graph.constant(RANDOM.standard_normal(8).astype(np.float32))
    y = graph.op("Conv", graph.dequantized("x", *ACTIVATION), graph.weights(8, 16, 1, 1)[0], bias)
    check(graph, {"x": [1, 16, 5, 5]}, graph.quantized(y, 0.3, 100), ["QLinearConv"])


def test_transposes_between_convolutions_cancel():
    graph = Graph()
    x = graph.quantized(graph.op("Conv", graph.dequantized("x", *ACTIVATION), graph.weights(8, 8, 3, 3)[0]), 0.5, 128)
    left = graph.op("Conv", graph.dequantized(x, 0.5, 128), graph.weights(8, 8, 1, 1)[0])
    left = graph.dequantized(graph.quantized(left, 0.5, 90), 0.5, 90)
    total = graph.quantized(graph.op("Relu", graph.op("Add", graph.dequantized(x, 0.5, 128), left)), 0.4, 0)
    mean = graph.quantized(graph.op("GlobalAveragePool", graph.dequantized(total, 0.4, 0)), 0.4, 0)
    steps = ["QLinearConv", "QLinearConv", "QLinearBinary", "QLinearGlobalAveragePool"]
    check(graph, {"x": [1, 8, 9, 9]}, mean, steps, quanta=2)


@pytest.mark.parametrize(("op_type", "axis"), [("MatMul", None), ("MatMul", 1), ("Gemm", None), ("Gemm", 0)])
def test_products(op_type, axis):
    graph = Graph()
    a = graph.dequantized("x", *ACTIVATION)
    if op_type == "MatMul":
        y = graph.op("MatMul", a, graph.weights(33, 20, axis=axis)[0])
    else:
        weights, scale = graph.weights(20, 33, axis=axis)
        y = graph.op("Gemm", a, weights, graph.bias(ACTIVATION[0], scale, 20), transB=1)
    shape = [2, 7, 33] if op_type == "MatMul" else [7, 33]
    check(graph, {"x": shape}, graph.quantized(y, 1.5, 100), ["QLinearMatMul"])


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("op_type", ["Add", "Mul"])
@pytest.mark.parametrize("other", [[2, 6, 5], [1, 6, 1]])
def test_pairs(dtype, op_type, other):
    graph = Graph(dtype)
    y = graph.op(op_type, graph.dequantized("x", *ACTIVATION), graph.dequantized("z", 0.03, 60))
    check(graph, {"x": [2, 6, 5], "z": other}, graph.quantized(y, *RESULT), ["QLinearBinary"])


@pytest.mark.parametrize("chain", [["Sigmoid"], ["LeakyRelu"], ["HardSigmoid", "Tanh"], ["Relu"], []], ids="-".join)
def test_functions_of_one_input_are_tables(chain):
    graph = Graph()
    value = graph.dequantized("x", *ACTIVATION)
    for op_type in chain:
        value = graph.op(op_type, value)
    check(graph, {"x": [1, 300]}, graph.quantized(value, 0.02, 9), ["LookUp"])


MOVES = [
    ("MaxPool", {"kernel_shape": [2, 2], "strides": [2, 2]}, "MaxPool"),
    ("DepthToSpace", {"blocksize": 2}, "DepthToSpace"),
    ("Flatten", {}, None),
]


@pytest.mark.parametrize(("op_type", "attributes", "step"), MOVES)
def test_moves_are_done_to_codes(op_type, attributes, step):
    graph = Graph()
    y = graph.op(op_type, graph.dequantized("x", *ACTIVATION), **attributes)
    check(graph, {"x": [1, 8, 6, 6]}, graph.quantized(y, *ACTIVATION), [step] if step else ["Flatten"], quanta=0)


def test_what_is_joined_has_the_results_codes():
    graph = Graph()
    parts = [graph.dequantized("x", *ACTIVATION), graph.dequantized("z", 0.02, 10)]
    y = graph.quantized(graph.op("Concat", *parts, axis=1), *ACTIVATION)
    check(graph, {"x": [1, 3, 5, 5], "z": [1, 2, 5, 5]}, y, ["LookUp", "Concat"], quanta=0)


@pytest.mark.parametrize("op_type", ["Conv", "MatMul", "Gemm"])
def test_what_is_needed_as_numbers_is_given_so(op_type):
    graph = Graph()
    x = graph.dequantized("x", *ACTIVATION)
    weights, scale = graph.weights(
        *([8, 16, 1, 1] if op_type == "Conv" else [16, 8]), axis=0 if op_type == "Conv" else 1
    )
    bias = [graph.bias(ACTIVATION[0], scale, 8)] if op_type != "MatMul" else []
    y = graph.op(op_type, x, weights, *bias)
    both = graph.op("Sub", y, graph.op("Sigmoid", y))
    shape = [1, 16, 5, 5] if op_type == "Conv" else [5, 16]
    steps = ["QLinearConv" if op_type == "Conv" else "QLinearMatMul", "Elementwise", "QuantizeLinear"]
    check(graph, {"x": shape}, graph.quantized(both, 0.2, 100), steps)


def test_a_float_bias_stays_one_where_numbers_are_needed():
    graph = Graph()
    bias = graph.constant(RANDOM.standard_normal(8).astype(np.float32))
    y = graph.op("Conv", graph.dequantized("x", *ACTIVATION), graph.weights(8, 16, 1, 1)[0], bias)
    both = graph.op("Sub", y, graph.op("Sigmoid", y))
    model = graph.model({"x": [1, 16, 5, 5]}, graph.quantized(both, 0.2, 100))
    found = [next(iter(step["op"])) for step in compiler.compile(model).document["main"]["steps"]]
    assert "Conv" in found and "QLinearConv" not in found


def test_operators_on_codes():
    graph = Graph()
    x = [*graph.parameters(*ACTIVATION)]
    codes = [graph.constant(RANDOM.integers(-128, 128, shape).astype(np.int8)) for shape in ([8, 3, 3, 3], [6, 5])]
    scales = [graph.constant(np.float32(0.02)), graph.constant(np.int8(0))]
    y = graph.op("QLinearConv", "x", *x, codes[0], *scales, *graph.parameters(0.5, 90), pads=[1, 1, 1, 1])
    y = graph.op("QLinearMatMul", y, *graph.parameters(0.5, 90), codes[1], *scales, *graph.parameters(2.0, 128))
    check(graph, {"x": [1, 3, 6, 6]}, y, ["QLinearConv", "QLinearMatMul"])
