"""Operators between DequantizeLinear and QuantizeLinear: which steps they become, and codes against onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import compiler
from compiler.accuracy.reference import Reference

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
    """The plan has these steps, transposes aside; its result is that of the plain plan and of onnxruntime.

    Codes are within so many of these, numbers within 1e-5 of the largest. Inputs are random, but all `code` where that
    is given; a symbolic size is 4.
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


FLOAT_STEPS = ["DequantizeLinear", "Gemm", "QuantizeLinear"]


def product(graph, rows, outputs, *, c=None, unit=0.01, scale=None, code=None):
    """`Gemm` or, without `c`, `MatMul` of `x [n, rows]`; weights: random or all `code`, of scales `unit` or others."""
    codes = RANDOM.integers(-128, 128, (rows, outputs)) if code is None else np.full((rows, outputs), code)
    parts = [codes.astype(np.int8), np.asarray(unit if scale is None else scale, np.float32)]
    weights = graph.op("DequantizeLinear", *map(graph.constant, parts), axis=1)
    operands = graph.dequantized("x", unit, 0), weights
    return graph.op("MatMul", *operands) if c is None else graph.op("Gemm", *operands, c)


def whole(graph, shape, unit=1e-4):
    """A dequantized `C` of `Gemm`, in units of the products."""
    codes = np.arange(1, 1 + np.prod(shape, dtype=int), dtype=np.int32).reshape(shape) * 5000
    return graph.op("DequantizeLinear", graph.constant(codes), graph.constant(np.float32(unit)))


def finer(graph, shape):
    """A float `C` of `Gemm`."""
    numbers = 0.5 * np.arange(1, 1 + np.prod(shape, dtype=int)) + 0.123456
    return graph.constant(numbers.reshape(shape).astype(np.float32))


@pytest.mark.parametrize("make", [whole, finer])
@pytest.mark.parametrize("numbers", [False, True])
@pytest.mark.parametrize("m", [4, "m"])
@pytest.mark.parametrize("shape", [[], [1], [1, 1], [4], [1, 4], [4, 1], [4, 4]], ids=str)
def test_what_is_added_to_a_product_keeps_its_shape(make, numbers, m, shape):
    graph = Graph()
    y = product(graph, 8, 4, c=make(graph, shape))
    fused = shape not in ([4, 1], [4, 4]) and (make is whole or not numbers)
    steps = ["QLinearMatMul"] if fused else ["DequantizeLinear", "Gemm"] + ["QuantizeLinear"] * (not numbers)
    check(graph, {"x": [m, 8]}, y if numbers else graph.quantized(y, 0.05, 100), steps, numbers=numbers)


@pytest.mark.parametrize(("columns", "axis", "fused"), [(3, 0, False), (4, 0, False), (3, 1, False), (None, 0, True)])
def test_what_is_added_has_its_scales_along_its_own_axis(columns, axis, fused):
    graph = Graph()
    codes = np.arange(4 * (columns or 1), dtype=np.int32).reshape([4, columns] if columns else [4]) * 5000
    parts = [codes, np.linspace(1e-4, 2e-4, codes.shape[axis], dtype=np.float32)]
    c = graph.op("DequantizeLinear", *map(graph.constant, parts), axis=axis)
    y = product(graph, 8, codes.shape[-1], c=c, scale=np.linspace(0.01, 0.02, codes.shape[-1]))
    steps = ["QLinearMatMul"] if fused else FLOAT_STEPS
    check(graph, {"x": [4, 8]}, graph.quantized(y, 0.05, 100), steps)


BIASES = [  # in units of the products, the result's scale; None: the result is numbers
    ([0.5, 0.4, -0.3], 0.1, False),
    ([5, 4, -3], 0.1, True),
    ([5, 4, -3], None, True),
    ([5 + 1e-6, 4, -3], None, True),  # as float32 rounds it
    ([5.001, 4, -3], None, False),
    ([0.5, 0.4, -0.3], 32.0, True),  # half a unit is 1/64 of a code
    ([0.5, 0.4, -0.3], 31.0, False),
    ([0.5, 0.4, np.nan], 100.0, False),
    ([0.5, 0.4, np.inf], 100.0, False),
    ([0.5, 0.4, 3e9], 1e8, False),
]


@pytest.mark.parametrize(("bias", "scale", "fused"), BIASES)
def test_a_bias_is_rounded_where_that_changes_next_to_nothing(bias, scale, fused):
    graph = Graph()
    y = product(graph, 8, 3, c=graph.constant(np.array(bias, np.float32)), unit=1)
    steps = ["QLinearMatMul"] if fused else FLOAT_STEPS[: 2 if scale is None else 3]
    y = y if scale is None else graph.quantized(y, scale, 100)
    check(graph, {"x": [4, 8]}, y, steps, numbers=scale is None, levels=[PLAIN])


@pytest.mark.parametrize(("off", "fused"), [(0, True), (1e-7, True), (9e-5, False)])
def test_numbers_have_their_bias_with_the_precision_of_float32(off, fused):
    graph = Graph()
    parts = [np.array([100000, 1, 2], np.int32), np.float32(1 + off)]
    y = product(graph, 8, 3, c=graph.op("DequantizeLinear", *map(graph.constant, parts)), unit=1)
    check(graph, {"x": [4, 8]}, y, ["QLinearMatMul"] if fused else FLOAT_STEPS[:2], numbers=True, levels=[PLAIN])


SUMS = [  # products, each of 255 · 127, units of the bias
    (66_000, 0, True),
    (70_000, 0, False),
    (140_000, 0, False),
    (8, 2.147e9, True),
    (4_608, 2.1e9, False),
    (4_608, -2.1e9, False),
]


@pytest.mark.parametrize(("count", "bias", "fused"), SUMS)
def test_sums_that_may_not_fit_32_bits_stay_in_float(count, bias, fused):
    graph = Graph()
    c = graph.constant(np.array([bias * 1e-8], np.float32)) if bias else None
    y = graph.quantized(product(graph, count, 1, c=c, unit=1e-4, code=127), 0.2, 0)
    steps = ["QLinearMatMul"] if fused else ["DequantizeLinear", "Gemm" if bias else "MatMul", "QuantizeLinear"]
    check(graph, {"x": [1, count]}, y, steps, levels=[PLAIN], code=255)


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


SCALES = [(1e30, 1e-30), (1e25, 1e-25), (1e-30, 1e27), (1e-30, 1e30), (1e-37, 1e-39), (3e37, 1.0)]
CODES_OF_ONE = np.ones((2, 3, 1, 1), np.int8), np.float32(1), np.int8(0)


@pytest.mark.parametrize(("x", "y"), SCALES)
def test_scales_that_float32_does_not_hold_together_stay_apart(x, y):
    graph = Graph()
    mean = graph.quantized(graph.op("GlobalAveragePool", graph.dequantized("x", x, 7)), y, 7)
    check(graph, {"x": [1, 3, 4, 4]}, mean, ["DequantizeLinear", "Reduce", "QuantizeLinear"], levels=[PLAIN])
    graph = Graph()
    weights = graph.op("DequantizeLinear", *map(graph.constant, CODES_OF_ONE))
    sums = graph.quantized(graph.op("Conv", graph.dequantized("x", x, 7), weights), y, 7)
    steps = ["QLinearConv"] if x < 1e28 else ["DequantizeLinear", "Conv"]
    check(graph, {"x": [1, 3, 4, 4]}, sums, [*steps, "QuantizeLinear"], levels=[PLAIN])


def test_means_of_more_than_32_bits_sum_stay_in_float():
    graph = Graph()
    y = graph.op("GlobalAveragePool", graph.dequantized("x", *ACTIVATION))
    model = graph.model({"x": [1, 1, 3000, 3000]}, graph.quantized(y, *RESULT))
    found = [next(iter(step["op"])) for step in compiler.compile(model).document["main"]["steps"]]
    assert found == ["DequantizeLinear", "Reduce", "QuantizeLinear"]


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
