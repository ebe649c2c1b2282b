"""Where, Clip and Dropout against onnxruntime."""

import numpy as np
import pytest

from compiler import CompileError
from tests.scratch.row import ONE, rows

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


@pytest.mark.parametrize("opset", [7, 10])
def test_dropout_with_attributes(check_node, opset):
    check_node("Dropout", [X], opset=opset, attributes={"ratio": 0.3}, rtol=0, atol=0)


def test_dropout_with_a_mask(check_node):
    wanted = [X, np.ones(X.shape, bool)]
    check_node("Dropout", [X, np.array(0.5, "f4")], opset=13, outputs=2, rtol=0, atol=0, expected=wanted)


def test_dropout_that_drops_nothing(check_node):
    inputs = [X, np.array(0, "f4"), np.array(True)]
    check_node("Dropout", inputs, opset=13, constants=[1, 2], rtol=0, atol=0, expected=[X])


def test_dropout_in_training_is_refused(node_model):
    import compiler

    inputs = [X, np.array(0.5, "f4"), np.array(True)]
    with pytest.raises(CompileError, match="inference"):
        compiler.compile(node_model("Dropout", inputs, opset=13, constants=[1, 2]))


SCRATCH = [
    *rows("float float16 uint8", "T[n, m] x, T a, T b", "y = Clip(x, a, b)", n=6000),
    *rows("float float16", ONE, "y = Dropout(x)"),
    *rows("float uint8", "bool[n, m] c, T[n, m] x, T[n, m] z", "y = Where(c, x, z)", n=6000),
    *rows("string", "bool[n, m] c, T[n, m] x, T[n, m] z", "y = Where(c, x, z)", n=200, m=1000),
]
