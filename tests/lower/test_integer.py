"""Products and convolutions of 8-bit integers against onnxruntime."""

import numpy as np
import pytest

from tests.scratch.row import ALONE, DEEP, FLAT, IMAGES, PRODUCT, TALL, TAPS, WIDE, rows

RANDOM = np.random.default_rng(5)


def codes(dtype, *shape):
    limits = np.iinfo(dtype)
    return RANDOM.integers(limits.min, limits.max + 1, shape).astype(dtype)


def scale(*shape):
    return (RANDOM.random(shape) * 0.02 + 0.001).astype(np.float32)


@pytest.mark.parametrize(("a", "b"), [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)])
@pytest.mark.parametrize("depth", [4, 700])
def test_matmul_integer(check_node, depth, a, b):
    inputs = [codes(a, 2, 5, depth), codes(b, depth, 6), np.asarray(codes(a)), codes(b, 6)]
    check_node("MatMulInteger", inputs, opset=10, rtol=0, atol=0)


def test_a_zero_point_for_each_row(check_node):
    a, b, zero = codes(np.uint8, 3, 4), codes(np.uint8, 4, 2), codes(np.uint8, 3)
    expected = (a.astype(np.int32) - zero[:, None].astype(np.int32)) @ b.astype(np.int32)
    check_node("MatMulInteger", [a, b, zero], opset=10, rtol=0, atol=0, expected=[expected])


@pytest.mark.parametrize("attributes", [{}, {"pads": [1, 1, 1, 1], "strides": [2, 1]}, {"group": 2}])
def test_conv_integer(check_node, attributes):
    groups = attributes.get("group", 1)
    inputs = [codes(np.uint8, 1, 4, 6, 5), codes(np.uint8, 6, 4 // groups, 3, 2), np.array(7, np.uint8)]
    inputs.append(np.array(3, np.uint8))
    check_node("ConvInteger", inputs, opset=10, attributes=attributes, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_qlinear_matmul(check_node, dtype):
    a, b = codes(dtype, 5, 40), codes(dtype, 40, 6)
    zero = np.array(3, dtype)
    inputs = [a, scale(), zero, b, scale(), zero, scale() * np.float32(50), zero]
    check_node("QLinearMatMul", [np.asarray(x) for x in inputs], opset=10, rtol=0, atol=0)


@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_qlinear_conv(check_node, bias, each):
    x, w = codes(np.uint8, 1, 4, 6, 5), codes(np.int8, 8, 4, 3, 3)
    w_scale, w_zero = (scale(8), np.zeros(8, np.int8)) if each else (np.asarray(scale()), np.array(0, np.int8))
    y_scale = np.array(0.1, np.float32)
    inputs = [x, np.asarray(scale()), np.array(120, np.uint8), w, w_scale, w_zero, y_scale, np.array(100, np.uint8)]
    inputs += [RANDOM.integers(-999, 999, 8).astype(np.int32)] if bias else []
    check_node("QLinearConv", inputs, opset=10, attributes={"pads": [1, 0, 1, 2]}, rtol=0, atol=0)


CODED, CODES = "float one, uint8 nil", {"one": np.float32(1), "nil": np.uint8(4)}

SCRATCH = [
    *rows(
        "uint8",
        f"{IMAGES}, T[c, 1, 3, 3] w, {CODED}",
        "y = QLinearConv<group = 200000>(x, one, nil, w, one, nil, one, nil)",
        **ALONE,
        **CODES,
    ),
    *(
        row
        for sizes in (WIDE, DEEP)
        for row in (
            *rows("uint8", f"{IMAGES}, {TAPS}", "y = ConvInteger(x, w)", **sizes),
            *rows(
                "uint8",
                f"{IMAGES}, {TAPS}, {CODED}",
                "y = QLinearConv(x, one, nil, w, one, nil, one, nil)",
                **sizes,
                **CODES,
            ),
        )
    ),
    *(
        row
        for sizes in (TALL, FLAT)
        for row in (
            *rows("uint8", PRODUCT, "y = MatMulInteger(x, z)", **sizes),
            *rows(
                "uint8",
                f"{PRODUCT}, {CODED}",
                "y = QLinearMatMul(x, one, nil, z, one, nil, one, nil)",
                **sizes,
                **CODES,
            ),
        )
    ),
]
