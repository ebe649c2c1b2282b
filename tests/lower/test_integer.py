"""Products and convolutions of 8-bit integers against onnxruntime."""

import numpy as np
import pytest

from tests.scratch.row import ALONE, DEEP, FLAT, IMAGES, ONE, PRODUCT, TALL, TAPS, TWO, WIDE, rows

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
LIMITS = "low = 0, high = 255"
"""The attributes of nodes that the compiler creates, which are products and convolutions of codes in one step."""
IMAGES_LAST = "T[1, n, m, c] x"

SCRATCH = [
    *rows(
        "uint8",
        f"{IMAGES}, T[c, 1, 3, 3] w, {CODED}",
        "y = QLinearConv<group = 400000>(x, one, nil, w, one, nil, one, nil)",
        **ALONE,
        **CODES,
    ),
    *(
        row
        for constants in ("", "w one nil")
        for sizes in (WIDE, DEEP)
        for row in (
            *rows("uint8", f"{IMAGES}, {TAPS}", "y = ConvInteger(x, w)", constants=constants[:1], **sizes),
            *rows(
                "uint8",
                f"{IMAGES}, {TAPS}, {CODED}",
                "y = QLinearConv(x, one, nil, w, one, nil, one, nil)",
                constants=constants,
                **sizes,
                **CODES,
            ),
            *rows(
                "uint8",
                f"{IMAGES_LAST}, {TAPS}, {CODED}",
                f"y = candle.plan.QLinearConv<{LIMITS}>(x, w, one, nil, nil, nil)",
                constants=constants,
                **sizes,
                **CODES,
            ),
        )
    ),
    *(
        row
        for constants in ("", "w one nil")
        for row in rows(
            "uint8",
            f"{IMAGES_LAST}, T[c, 1, 3, 3] w, {CODED}",
            f"y = candle.plan.QLinearConv<{LIMITS}, group = 16>(x, w, one, nil, nil, nil)",
            constants=constants,
            **DEEP,
            **CODES,
        )
    ),
    *(
        row
        for constants in ("", "z one nil")
        for sizes in (TALL, FLAT)
        for row in (
            *rows("uint8", PRODUCT, "y = MatMulInteger(x, z)", constants=constants[:1], **sizes),
            *rows(
                "uint8",
                f"{PRODUCT}, {CODED}",
                "y = OP",
                "QLinearMatMul(x,one,nil,z,one,nil,one,nil) "
                "candle.plan.QLinearMatMul<low=0,high=255>(x,z,one,nil,nil,nil)",
                constants=constants,
                **sizes,
                **CODES,
            ),
        )
    ),
    *rows(
        "uint8",
        f"{TWO}, {CODED}",
        f"y = candle.plan.QLinearBinary<function = OP, {LIMITS}>(x, z, one, nil, one, nil, one, nil)",
        '"Add" "Mul"',
        n=3000,
        m=3000,
        **CODES,
    ),
    *rows(
        "uint8",
        f"T[n, 1] x, T[1, m] z, {CODED}",
        f'y = candle.plan.QLinearBinary<function = "Add", {LIMITS}>(x, z, one, nil, one, nil, one, nil)',
        n=3000,
        m=3000,
        **CODES,
    ),
    *rows("uint8", f"{ONE}, T[256] w", "y = candle.plan.LookUp(x, w)", n=3000, m=3000),
    *(
        row
        for sizes in ({"n": 3000, "m": 3000, "c": 1}, {"n": 1, "m": 1, "c": 9_000_000})
        for row in rows(
            "uint8",
            f"{IMAGES_LAST}, {CODED}",
            "y = candle.plan.QLinearGlobalAveragePool(x, one, nil, nil)",
            **sizes,
            **CODES,
        )
    ),
]
