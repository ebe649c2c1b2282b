"""Products of quantized tensors: their biases, and sums and scales that are too large for 32 bits."""

from __future__ import annotations

import numpy as np
import pytest

import compiler
from tests.passes.quantized_graph import ACTIVATION, PLAIN, RANDOM, RESULT, Graph, check

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
    codes = np.arange(1, 1 + np.prod(shape, dtype=int), dtype=np.int32).reshape(shape) * np.int32(5000)
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
