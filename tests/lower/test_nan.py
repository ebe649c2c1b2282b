"""NaN, infinities and zeros: results equal onnxruntime's, except for the documented differences below."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import onnxruntime
import pytest

import compiler
from compiler import lower  # noqa: F401  (whose modules fill the tables)
from compiler.contrib import FAMILIES
from compiler.lower.node import LOWERINGS, REMARKS

THEIR_VERSION = tuple(map(int, onnxruntime.__version__.split(".")[:2]))
NAN, INF = np.nan, np.inf
ROWS = np.array(
    [
        [1, NAN, 3, 2],
        [NAN, NAN, NAN, NAN],
        [INF, -INF, 1, 0],
        [INF, INF, 2, -0.0],
        [-INF, -INF, -INF, -INF],
        [NAN, INF, -INF, 1],
        [3, 2, 1, NAN],
    ]
)
TURNED = ROWS[::-1, ::-1].copy()
# Some units in the last place for functions that are computed by series; other functions are exact.
CLOSE = {"float16": 1e-3, "float32": 1e-6, "float64": 1e-13}


def axes(axis: int) -> np.ndarray:
    return np.array([axis])


# operator, attributes, further inputs (those of the first one's dtype as functions of it), outputs
CASES: list[tuple[str, dict[str, Any], list[Any], int]] = [
    *[(f"Reduce{name}", {}, [axes(axis)], 1) for name in ("L1", "L2", "LogSumExp", "Mean", "Prod") for axis in (0, 1)],
    *[(f"Reduce{name}", {}, [axes(axis)], 1) for name in ("LogSum", "Sum", "SumSquare") for axis in (0, 1)],
    *[
        (name, {"axis": axis, "select_last_index": last}, [], 1)
        for name in ("ArgMax", "ArgMin")
        for axis in (0, 1)
        for last in (0, 1)
    ],
    ("Clip", {}, [-1.0, 1.0], 1),
    ("Clip", {}, [1.0, -1.0], 1),
    ("Clip", {}, [-INF, INF], 1),
    *[
        (name, {}, [TURNED], 1)
        for name in ("Max", "Min", "Sum", "Equal", "Less", "Greater", "LessOrEqual", "Add", "Mul")
    ],
    *[(name, {}, [TURNED], 1) for name in ("GreaterOrEqual", "Sub", "Div", "Pow")],
    *[(name, {}, [ROWS], 1) for name in ("Equal", "Less", "Sub", "Div", "Pow")],
    ("Max", {}, [1.0], 1),
    ("Min", {}, [NAN], 1),
    ("Mod", {"fmod": 1}, [TURNED], 1),
    *[(name, {}, [], 1) for name in ("IsNaN", "IsInf", "Relu", "Abs", "Neg", "Floor", "Ceil", "Round", "Sqrt", "Exp")],
    *[(name, {}, [], 1) for name in ("Log", "Sigmoid", "Tanh", "Reciprocal", "Sin", "Cos", "Trilu")],
    *[("Softmax", {"axis": axis}, [], 1) for axis in (0, 1)],
    ("CumSum", {}, [axes(1)], 1),
    ("IsInf", {"detect_negative": 0}, [], 1),
]


def given(dtype: str, others: list[Any]) -> list[np.ndarray]:
    """The inputs of a node. Converts inputs of float64 to the dtype."""
    further = [np.asarray(other) for other in others]
    return [ROWS.astype(dtype), *(other.astype(dtype) if other.dtype == np.float64 else other for other in further)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize(("operator", "attributes", "others", "outputs"), CASES)
def test_as_in_onnxruntime(check_node, operator, attributes, others, outputs, dtype):
    inputs = given(dtype, others)
    with np.errstate(all="ignore"):
        check_node(operator, inputs, opset=20, attributes=attributes, outputs=outputs, rtol=CLOSE[dtype], atol=0)


def test_where(check_node):
    x = ROWS.astype(np.float32)
    check_node("Where", [x > 0, x, TURNED.astype(np.float32)], opset=20, rtol=0, atol=0)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_log_softmax(check_node, dtype, axis):
    x = ROWS.astype(dtype)
    check_node("LogSoftmax", [x], opset=20, attributes={"axis": axis}, rtol=CLOSE[dtype], atol=0)


FLOATS = np.array([NAN, INF, -INF, 3e9, -3e9, 300, -300, 2.7, -2.7, -0.0])
SMALL = [2, 3, 4, 5]  # uint8, int8, uint16, int16


@pytest.mark.parametrize("to", [*SMALL, 6, 7, 9])  # and int32, int64, bool
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_casts(check_node, dtype, to):
    check_node("Cast", [FLOATS.astype(dtype)], opset=20, attributes={"to": to}, rtol=0, atol=0)


PICTURE = ROWS[None, None].astype(np.float32)
UNIQUE = np.array([2, NAN, -INF, NAN, 2, INF], np.float32)
OF_INFINITY = np.array([NAN, INF, -INF, 3, -0.0], np.float32)
FIVE = OF_INFINITY.astype(np.float16)
# Differences from present or earlier versions of onnxruntime, by reason: operator, attributes, inputs, outputs.
DIFFERENT = {
    "NaN is the largest, as in NumPy; in onnxruntime it depends on where it stands": [
        ("ReduceMax", {"keepdims": 0}, [ROWS.astype(np.float32), axes(1)], [[NAN, NAN, INF, INF, -INF, NAN, NAN]]),
        ("ReduceMax", {"keepdims": 0}, [ROWS.astype(np.float64), axes(0)], [[NAN, NAN, NAN, NAN]]),
        ("GlobalMaxPool", {}, [PICTURE[0]], [[[[NAN], [NAN], [INF], [INF], [-INF], [NAN], [NAN]]]]),
    ],
    "NaN is the smallest too, as in NumPy": [
        ("ReduceMin", {"keepdims": 0}, [ROWS.astype(np.float32), axes(1)], [[NAN, NAN, -INF, 0, -INF, NAN, NAN]]),
        ("ReduceMin", {"keepdims": 0}, [ROWS.astype(np.float16), axes(0)], [[NAN, NAN, NAN, NAN]]),
    ],
    "NaN is no maximum of a window; in onnxruntime it depends on where it stands": [
        (
            "MaxPool",
            {"kernel_shape": [2, 2]},
            [PICTURE],
            [[[[[1, 3, 3], [INF, 1, 1], [INF, INF, 2], [INF, INF, 2], [INF, INF, 1], [INF, INF, 1]]]]],
        ),
    ],
    "NaN sorts behind all numbers, as in NumPy and PyTorch; in onnxruntime before 1.32 it depends on where it stands": [
        ("TopK", {}, [OF_INFINITY, np.array([3])], [[NAN, INF, 3], [0, 1, 3]]),
        ("TopK", {"largest": 0}, [OF_INFINITY, np.array([5])], [[-INF, 0, 3, INF, NAN], [2, 4, 3, 1, 0]]),
        ("TopK", {}, [FIVE[::-1].copy(), np.array([1])], [[NAN], [4]]),
    ],
    "NaNs are one value, the largest, as in NumPy; onnxruntime counts them as numbers beside them": [
        ("Unique", {}, [UNIQUE], [[-INF, 2, INF, NAN], [2, 0, 5, 1], [1, 3, 0, 3, 1, 2], [1, 2, 1, 2]]),
        ("Unique", {"sorted": 0}, [UNIQUE], [[2, NAN, -INF, INF], [0, 1, 2, 5], [0, 1, 2, 1, 0, 3], [2, 2, 1, 1]]),
    ],
    "a bound that is absent bounds nothing, as in ONNX's reference; onnxruntime makes infinity the largest number": [
        ("Clip", {}, [OF_INFINITY, None, np.array(1, np.float32)], [[NAN, 1, -INF, 1, 0]]),
        ("Clip", {}, [OF_INFINITY, np.array(-1, np.float32)], [[NAN, INF, -1, 3, 0]]),
    ],
    "NaN stays NaN, as in the other activations; onnxruntime gives zero": [
        ("Shrink", {}, [OF_INFINITY], [[NAN, INF, -INF, 3, 0]]),
        ("Sign", {}, [FIVE], [[NAN, 1, -1, 1, 0]]),
    ],
    "a row with NaN or infinity is NaN, as onnxruntime has it in float32; in float64 it gives numbers": [
        ("LogSoftmax", {"axis": 1}, [np.array([[1, NAN, 3], [INF, 1, 2]])], [np.full((2, 3), NAN)]),
    ],
    "the first of the largest, as ArgMax finds it; onnxruntime marks none in a row with NaN": [
        (
            "Hardmax",
            {"axis": 1},
            [ROWS.astype(np.float32)],
            [np.eye(4)[[2, 0, 0, 0, 0, 0, 0]]],
        ),
    ],
    "what does not fit is what the bits of a 64-bit integer are; the standard leaves it open": [
        ("Cast", {"to": 12}, [OF_INFINITY], [np.array([0, 0, 0, 3, 0], np.uint32)]),
        ("Cast", {"to": 13}, [OF_INFINITY], [np.array([0, 2**64 - 1, 2**63, 3, 0], np.uint64)]),
    ],
    "infinity is the largest code, as the standard says; onnxruntime before 1.32 gives the smallest": [
        ("QuantizeLinear", {}, [FIVE, np.array(0.5, np.float16), np.array(3, np.uint8)], [[0, 255, 0, 9, 3]]),
    ],
}


@pytest.mark.parametrize(
    ("reason", "operator", "attributes", "inputs", "expected"),
    [(reason, *case) for reason, cases in DIFFERENT.items() for case in cases],
)
def test_different_from_onnxruntime(check_node, node_model, reference, reason, operator, attributes, inputs, expected):
    outputs = len(expected)
    model = node_model(operator, inputs, opset=20, attributes=attributes, outputs=outputs)
    theirs = reference(model, {f"x{i}": array for i, array in enumerate(inputs) if array is not None})
    wanted = [np.asarray(one, other.dtype) for one, other in zip(expected, theirs, strict=True)]
    check_node(operator, inputs, opset=20, attributes=attributes, outputs=outputs, expected=wanted, rtol=0, atol=0)
    same = all(np.array_equal(one, other, equal_nan=True) for one, other in zip(wanted, theirs, strict=True))
    before = re.search(r"onnxruntime before (\d+)\.(\d+)", reason)
    expects_same = before is not None and tuple(map(int, before.groups())) <= THEIR_VERSION
    assert same == expects_same, f"onnxruntime {onnxruntime.__version__} gives {theirs}: {reason}"


@pytest.mark.parametrize("value", [INF, NAN])
def test_infinities_stay_near_in_convolutions(node_model, reference, value):
    """Convolutions with 3 × 3 windows compute tiles of 4 × 4 results. An infinity changes only tiles that read it."""
    generator = np.random.default_rng(0)
    x, w = (generator.standard_normal(shape).astype(np.float32) for shape in [(1, 32, 40, 40), (32, 32, 3, 3)])
    x[0, 5, 17, 22] = value
    model = node_model("Conv", [x, w], opset=20, attributes={"pads": [1, 1, 1, 1]}, constants=[1])
    (theirs,) = reference(model, {"x0": x})
    (ours,) = compiler.load(compiler.compile(model)).run({"x0": x}).values()
    lost = ~np.isfinite(ours)
    assert lost[~np.isfinite(theirs)].all()
    _, _, rows, columns = np.nonzero(lost)
    assert max(np.abs(rows - 17).max(), np.abs(columns - 22).max()) <= 4
    np.testing.assert_allclose(ours[~lost], theirs[~lost], rtol=1e-4, atol=1e-3)


def test_what_differs_is_documented():
    different = {operator for cases in DIFFERENT.values() for operator, *_ in cases}
    assert different <= REMARKS.keys()
    assert REMARKS.keys() <= {name for domain, name in [*LOWERINGS, *FAMILIES]}
