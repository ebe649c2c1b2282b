"""Where and Clip against onnxruntime."""

import numpy as np
import pytest

from tests.scratch.row import rows

X = np.array([[-3, -0.5, 0], [0.5, np.nan, 9]], "f4")


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8", object])
def test_where(check_node, dtype):
    condition = np.array([[True], [False]])
    x, y = np.array([1, 2, 3]).astype(dtype), np.array([[7], [8]]).astype(dtype)
    if dtype is object:
        x, y = x.astype(str).astype(object), y.astype(str).astype(object)
    check_node("Where", [condition, x, y], opset=16, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        ("float32", -1, 1),
        ("float32", None, 1),
        ("float32", -1, None),
        ("float64", 0, 2),
        ("int64", -2, 3),
        ("uint8", 2, 5),
    ],
)
def test_clip(check_node, dtype, low, high):
    x = np.array([[-3, 0, 1], [4, 5, 9]], "f4").astype(dtype) if dtype != "float32" else X
    bounds = [None if bound is None else np.array(bound, dtype) for bound in (low, high)]
    check_node("Clip", [x, *bounds], opset=13, rtol=0, atol=0)


@pytest.mark.parametrize("attributes", [{}, {"min": -1.0}, {"max": 0.25}, {"min": -1.0, "max": 0.25}])
def test_clip_with_attributes(check_node, attributes):
    check_node("Clip", [X], opset=6 + 3, attributes=attributes, rtol=0, atol=0)


SCRATCH = [
    *rows("float float16 uint8", "T[n, m] x, T a, T b", "y = Clip(x, a, b)", n=6000),
    *rows("float uint8", "bool[n, m] c, T[n, m] x, T[n, m] z", "y = Where(c, x, z)", n=6000),
    *rows("string", "bool[n, m] c, T[n, m] x, T[n, m] z", "y = Where(c, x, z)", n=200, m=1000),
]
