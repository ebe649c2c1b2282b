import numpy as np
import pytest

from tests.scratch.row import ONE, rows

OPERATORS = ["Softmax", "LogSoftmax", "Hardmax"]
CLOSE = {"rtol": 2e-6, "atol": 1e-6}


def scores(shape, dtype="float32"):
    return np.random.default_rng(0).normal(size=shape, scale=4).astype(dtype)


@pytest.mark.parametrize("op_type", OPERATORS)
@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1, -2])
@pytest.mark.parametrize("opset", [7, 11, 13])
def test_axis(check_node, op_type, axis, opset):
    if opset < 11 and axis is not None and axis < 0:
        pytest.skip("negative axes came with version 11")
    check_node(op_type, [scores((3, 4, 5))], opset=opset, attributes={} if axis is None else {"axis": axis}, **CLOSE)


@pytest.mark.parametrize("op_type", OPERATORS)
def test_types(check_node, op_type):
    for dtype, tolerance in [("float64", 1e-12), ("float16", 1e-3)]:
        x = scores((3, 40), dtype)
        wide = x.astype(np.float64)
        log = wide - np.log(np.exp(wide).sum(1, keepdims=True))
        first = np.arange(40) == x.argmax(1)[:, None]
        expected = {"Softmax": np.exp(log), "LogSoftmax": log, "Hardmax": first}[op_type].astype(dtype)
        check_node(op_type, [x], opset=13, rtol=tolerance, atol=1e-7, expected=[expected])


def test_masked_scores(check_node):
    x = scores((4, 8))
    x[0, 3:] = -np.inf
    x[1] = -np.inf
    x[2, 0] = np.inf
    for op_type in ("Softmax", "LogSoftmax"):
        check_node(op_type, [x], opset=13, **CLOSE)


def test_large_scores(check_node):
    check_node("Softmax", [scores((4, 3000)) * 1e4], opset=13, **CLOSE)
    check_node("LogSoftmax", [scores((2, 3, 70)) * 1e4], opset=13, attributes={"axis": 1}, **CLOSE)


SCRATCH = [
    *rows("float float16", ONE, "y = OP(x)", "Softmax LogSoftmax Hardmax Softmax<axis=0>"),
]
