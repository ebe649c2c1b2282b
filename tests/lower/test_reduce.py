import numpy as np
import pytest

from tests.scratch.row import KEEP, KEPT, integers, rows

FUNCTIONS = ["L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"]
CLOSE = {"rtol": 2e-6, "atol": 1e-6}


def positive(shape, dtype="float32"):
    x = np.random.default_rng(0).uniform(0.5, 2.0, shape)
    return (x * 3).astype(dtype) if np.dtype(dtype).kind in "iu" else x.astype(dtype)


AXES = [None, [0], [-1], [1, 2], [0, 2], [-4, 1, 3], [0, 1, 2, 3]]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("keepdims", [0, 1])
def test_axes(check_node, function, axes, keepdims):
    x = positive((2, 3, 4, 5))
    listed = {} if axes is None else {"axes": axes}
    check_node(f"Reduce{function}", [x], opset=12, attributes={"keepdims": keepdims, **listed}, **CLOSE)
    inputs = [x] if axes is None else [x, np.array(axes)]
    check_node(f"Reduce{function}", inputs, opset=18, attributes={"keepdims": keepdims}, **CLOSE)


@pytest.mark.parametrize("opset", [7, 11, 13, 18, 20])
def test_versions(check_node, opset):
    for function in FUNCTIONS:
        by_input = opset >= (13 if function == "Sum" else 18)
        inputs = [positive((3, 4))] + ([np.array([1])] if by_input else [])
        check_node(f"Reduce{function}", inputs, opset=opset, attributes={} if by_input else {"axes": [1]}, **CLOSE)


@pytest.mark.parametrize("dtype", ["float64", "int32", "int64"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_types(check_node, function, dtype):
    if function == "LogSumExp" and dtype == "int32":
        pytest.skip("onnxruntime truncates each exponential")
    if dtype == "int64" and function not in ("Max", "Mean", "Min", "Prod", "Sum"):
        pytest.skip("onnxruntime has no such reduction of int64")
    check_node(f"Reduce{function}", [positive((3, 4), dtype), np.array([1])], opset=18, rtol=1e-12, atol=0)


@pytest.mark.parametrize("function", ["Max", "Min"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8"])
def test_extrema_of_small_types(check_node, function, dtype):
    x = np.array([[0, 1, 1], [0, 0, 0], [1, 1, 1]]).astype(dtype)
    check_node(f"Reduce{function}", [x, np.array([1])], opset=20, rtol=0, atol=0)


def test_log_sum_exp_of_integers_is_truncated_once(check_node):
    x = np.array([[5, 5, 5, 5], [1, 2, 3, 4]], np.int32)
    check_node(
        "ReduceLogSumExp", [x, np.array([1])], opset=18, rtol=0, atol=0, expected=[np.array([[6], [4]], np.int32)]
    )


def test_half_floats_are_summed_in_float32(check_node):
    x = np.full((2, 4096), 0.1, np.float16)
    expected = x.astype(np.float32).sum(1, keepdims=True).astype(np.float16)
    check_node("ReduceSum", [x, np.array([1])], opset=13, rtol=0, atol=0, expected=[expected])


@pytest.mark.parametrize("function", FUNCTIONS)
def test_nothing_is_reduced_when_there_are_no_axes(check_node, function):
    x, opset = positive((2, 3)), 13 if function == "Sum" else 18
    expected = {"LogSum": np.log(x), "L2": np.abs(x), "SumSquare": x * x}.get(function, x)
    attributes = {"noop_with_empty_axes": 1}
    empty = np.array([], np.int64)
    check_node(f"Reduce{function}", [x], opset=opset, attributes=attributes, expected=[expected], **CLOSE)
    check_node(f"Reduce{function}", [x, empty], opset=opset, attributes=attributes, expected=[expected], **CLOSE)
    check_node(f"Reduce{function}", [x, empty], opset=opset, **CLOSE)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_elements(check_node, function):
    check_node(f"Reduce{function}", [np.zeros((2, 0, 3), np.float32), np.array([1])], opset=18, **CLOSE)


def test_a_scalar(check_node):
    check_node("ReduceSum", [np.array(3.0, np.float32)], opset=13, rtol=0, atol=0)
    check_node("ReduceMax", [np.array(3.0, np.float32)], opset=12, attributes={"keepdims": 0}, rtol=0, atol=0)


def test_a_million_elements(check_node):
    x = positive((1, 1_000_000))
    expected = x.astype(np.float64).sum(1, keepdims=True).astype(np.float32)
    check_node("ReduceSum", [x, np.array([1])], opset=13, expected=[expected], rtol=1e-6, atol=0)


REDUCTIONS = """ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum
ReduceSumSquare"""

SCRATCH = [
    *rows("float float16", "T[n, m] x, int64[1] k", "y = OP(x, k)", REDUCTIONS, k=integers(1)),
    *rows(
        "float float16 int32",
        "T[n, m] x, int64[1] k",
        "y = OP(x, k)",
        REDUCTIONS,
        opset=18,
        k=integers(0),
        n=2,
        m=1_000_000,
    ),
    *rows(
        "uint8 bool", "T[n, m] x, int64[1] k", "y = OP(x, k)", "ReduceMax ReduceMin", k=integers(0), n=2, m=6_000_000
    ),
    *rows("int32", f"T[k] x, {KEEP}", f"y = ReduceLogSumExp(x) {KEPT}", opset=18, k=8 << 20),
]
