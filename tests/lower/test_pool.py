import numpy as np
import pytest

import compiler
from tests.scratch.row import IMAGE, IMAGES, rows


def image(*shape, dtype=np.float32, seed=0):
    numbers = np.random.default_rng(seed).normal(size=shape) * 20
    return numbers.astype(dtype)


WINDOWS = [
    {"kernel_shape": [2, 2], "strides": [2, 2]},
    {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
    {"kernel_shape": [3, 3]},
    {"kernel_shape": [3, 2], "strides": [1, 3], "pads": [1, 0, 2, 1]},
    {"kernel_shape": [5, 5], "strides": [1, 1], "pads": [2, 2, 2, 2]},
    {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
    {"kernel_shape": [2, 4], "strides": [1, 2], "auto_pad": "SAME_LOWER"},
    {"kernel_shape": [2, 3], "strides": [2, 1], "auto_pad": "VALID"},
    {"kernel_shape": [1, 7], "strides": [1, 5]},
]
CEIL = [
    {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
    {"kernel_shape": [3, 2], "strides": [2, 3], "pads": [1, 0, 1, 1], "ceil_mode": 1},
]
DILATED = [
    {"kernel_shape": [3, 3], "dilations": [2, 1]},
    {"kernel_shape": [2, 3], "dilations": [3, 2], "strides": [2, 1], "pads": [1, 2, 0, 1]},
]


@pytest.mark.parametrize("window", WINDOWS + CEIL + DILATED)
def test_max(check_node, window):
    for opset in (12, 22):
        check_node("MaxPool", [image(2, 3, 11, 18)], opset=opset, attributes=window, rtol=0, atol=0)


@pytest.mark.parametrize("window", WINDOWS)
def test_before_ceil_mode(check_node, window):
    check_node("MaxPool", [image(2, 3, 11, 18)], opset=8, attributes=window, rtol=0, atol=0)
    check_node("AveragePool", [image(2, 3, 11, 18)], opset=7, attributes=window, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("window", WINDOWS + CEIL)
@pytest.mark.parametrize("order", [0, 1])
def test_max_with_indices(check_node, window, order):
    attributes = {**window, "storage_order": order}
    check_node("MaxPool", [image(2, 3, 11, 18)], opset=12, attributes=attributes, outputs=2, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int8, np.uint8])
def test_max_of_other_types(check_node, dtype):
    check_node("MaxPool", [image(1, 3, 9, 8, dtype=dtype)], opset=12, attributes=WINDOWS[1], rtol=0, atol=0)


@pytest.mark.parametrize("window", WINDOWS + CEIL)
@pytest.mark.parametrize("padding", [0, 1])
def test_average(check_node, window, padding):
    attributes = {**window, "count_include_pad": padding}
    for opset in (11, 19):
        check_node("AveragePool", [image(2, 3, 11, 18)], opset=opset, attributes=attributes, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("window", DILATED)
def test_average_dilated(check_node, window):
    check_node("AveragePool", [image(2, 3, 11, 18)], opset=19, attributes=window, rtol=1e-5, atol=1e-5)


def test_average_of_half_floats(check_node):
    x = image(1, 3, 9, 8, dtype=np.float16)
    check_node("AveragePool", [x], opset=19, attributes=WINDOWS[1], rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("window", [*WINDOWS, CEIL[0], DILATED[0]])
@pytest.mark.parametrize("p", [1, 2, 3])
def test_lp(check_node, window, p):
    check_node("LpPool", [image(2, 3, 11, 18)], opset=18, attributes={**window, "p": p}, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("op_type", ["MaxPool", "AveragePool"])
def test_one_axis(check_node, op_type):
    for window in ({"kernel_shape": [3], "strides": [2], "pads": [1, 1]}, {"kernel_shape": [5], "strides": [3]}):
        check_node(op_type, [image(2, 3, 41)], opset=12, attributes=window, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("op_type", ["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"])
@pytest.mark.parametrize("shape", [(2, 3, 7, 9), (2, 3, 100)])
def test_global(check_node, op_type, shape):
    check_node(op_type, [image(*shape)], opset=13, rtol=1e-5, atol=1e-5)


def test_global_norm_of_any_exponent(check_node):
    check_node("GlobalLpPool", [image(2, 3, 7, 9)], opset=13, attributes={"p": 3}, symbolic=False, rtol=1e-5, atol=1e-5)


def test_unpool(check_node):
    x, indices = image(1, 1, 2, 2), np.array([[[[5, 7], [13, 15]]]])
    attributes = {"kernel_shape": [2, 2], "strides": [2, 2]}
    check_node("MaxUnpool", [x, indices], opset=11, attributes=attributes, rtol=0, atol=0)


def test_three_axes_are_refused(node_model):
    model = node_model("MaxPool", [image(1, 1, 4, 4, 4)], opset=12, attributes={"kernel_shape": [2, 2, 2]})
    with pytest.raises(compiler.CompileError):
        compiler.compile(model)


SCRATCH = [
    *rows("float float16", IMAGES, "y = OP(x)", "GlobalAveragePool GlobalLpPool GlobalMaxPool", **IMAGE),
    *rows("float float16", IMAGES, "y = OP<kernel_shape = [3, 3]>(x)", "AveragePool LpPool MaxPool", **IMAGE),
    *rows("float uint8", IMAGES, "y, i = MaxPool<kernel_shape = [2, 2]>(x)", **IMAGE),
    *rows(
        "float float16",
        IMAGES,
        "p, i = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(x)"
        " y = MaxUnpool<kernel_shape = [2, 2], strides = [2, 2]>(p, i)",
        **IMAGE,
    ),
]
