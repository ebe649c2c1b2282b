"""Operators between DequantizeLinear and QuantizeLinear: their steps, and codes against onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

import compiler
from tests.passes.quantized_graph import ACTIVATION, LEVELS, RANDOM, RESULT, Graph, check

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


def test_weights_may_be_numbers_that_are_quantized():
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


def test_a_bias_may_be_computed_of_constants():
    graph = Graph()
    bias = graph.op("Cast", graph.constant(RANDOM.standard_normal(8).astype(np.float16)), to=onnx.TensorProto.FLOAT)
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


@pytest.mark.parametrize("bounds", [(0, np.nan), (np.nan, 6), (5, 1)])
def test_limits_that_are_none_stay(bounds):
    graph = Graph()
    y = graph.op("Conv", graph.dequantized("x", *ACTIVATION), graph.weights(8, 16, 1, 1)[0])
    y = graph.op("Clip", y, *[graph.constant(np.float32(bound)) for bound in bounds])
    check(graph, {"x": [1, 16, 5, 5]}, graph.quantized(y, 0.1, 30), ["QLinearConv", "Clip", "QuantizeLinear"])


def test_several_scales_need_an_axis():
    graph = Graph()
    x = graph.op("DequantizeLinear", "x", graph.constant(np.ones(2, np.float32)), axis=0)
    model = graph.model({"x": []}, graph.quantized(graph.op("Relu", x), 1, 0))
    with pytest.raises((compiler.CompileError, compiler.RunError), match="out of range for a tensor of rank 0"):
        compiler.load(compiler.compile(model)).run({"x": np.array(3, np.uint8)})


@pytest.mark.parametrize("shape", [["n", 16, 5, 5], ["n", 16, "h", "w"], [0, 16, 5, 5]], ids=str)
def test_sizes_may_be_symbols_and_batches_empty(shape):
    graph = Graph()
    weights, scale = graph.weights(8, 16, 3, 3, axis=0)
    bias = graph.bias(ACTIVATION[0], scale, 8)
    y = graph.op("Conv", graph.dequantized("x", *ACTIVATION), weights, bias, pads=[1, 1, 1, 1])
    y = graph.dequantized(graph.quantized(y, 2.0, 100), 2.0, 100)
    y = graph.quantized(graph.op("Add", y, y), 4.0, 100)
    levels = LEVELS if 0 not in shape else []
    check(graph, {"x": shape}, y, ["QLinearConv", "QLinearBinary"], levels=levels)


def test_branches_compute_on_codes_too():
    graph = Graph()
    y = graph.op("Conv", graph.dequantized("x", *ACTIVATION), graph.weights(8, 16, 1, 1)[0])
    y = graph.quantized(y, 0.5, 100)
    results = [helper.make_tensor_value_info(name, onnx.TensorProto.UINT8, None) for name in (y, "same")]
    branch = helper.make_graph(graph.nodes, "then", [], results[:1])
    other = helper.make_graph([helper.make_node("Identity", ["z"], ["same"])], "else", [], results[1:])
    graph.nodes = [helper.make_node("Cast", ["c"], ["condition"], to=onnx.TensorProto.BOOL)]
    y = graph.op("If", "condition", then_branch=branch, else_branch=other)
    shapes = {"x": [1, 16, 5, 5], "z": [1, 8, 5, 5], "c": []}
    check(graph, shapes, y, ["Cast", "If"], code=200)
    choice = compiler.compile(graph.model(shapes, y)).document["main"]["steps"][-1]["op"]["If"]
    assert "QLinearConv" in [next(iter(step["op"])) for step in choice["then_branch"]["steps"]]
