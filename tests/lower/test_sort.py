import numpy as np
import pytest

from tests.scratch.row import ONE, integers, rows

EXACT = {"rtol": 0, "atol": 0}


def repeating(shape, dtype="float32"):
    return np.random.default_rng(1).integers(0, 5, shape).astype(dtype)


@pytest.mark.parametrize("op_type", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize(("axis", "keepdims", "last"), [(0, 1, 0), (-1, 0, 1), (1, 1, 1), (2, 0, 0)])
def test_arg_reduce(check_node, op_type, axis, keepdims, last):
    attributes = {"axis": axis, "keepdims": keepdims}
    check_node(op_type, [repeating((3, 4, 6))], opset=11, attributes=attributes, **EXACT)
    attributes["select_last_index"] = last
    check_node(op_type, [repeating((3, 4, 6))], opset=13, attributes=attributes, **EXACT)


@pytest.mark.parametrize("dtype", ["float64", "int32", "int8", "uint8"])
def test_arg_reduce_types(check_node, dtype):
    for op_type in ("ArgMax", "ArgMin"):
        check_node(op_type, [repeating((3, 4), dtype)], opset=13, attributes={"axis": 1}, **EXACT)


@pytest.mark.parametrize(("axis", "k"), [(0, 1), (1, 3), (-1, 6), (2, 0), (1, 4)])
@pytest.mark.parametrize("largest", [0, 1])
def test_top_k(check_node, axis, k, largest):
    inputs = [repeating((3, 4, 6)), np.array([k])]
    check_node("TopK", inputs, opset=11, attributes={"axis": axis, "largest": largest}, outputs=2, **EXACT)


@pytest.mark.parametrize("dtype", ["float64", "int32", "int64"])
def test_top_k_types(check_node, dtype):
    check_node("TopK", [repeating((3, 7), dtype), np.array([4])], opset=11, outputs=2, **EXACT)


def test_top_k_versions(check_node):
    x = repeating((3, 7))
    check_node("TopK", [x], opset=9, attributes={"k": 3}, outputs=2, **EXACT)
    check_node("TopK", [x, np.array([3])], opset=10, outputs=2, **EXACT)


def test_the_order_of_unsorted_results_is_free(check_node):
    x = np.array([1, 3, 2, 5, 4], np.float32)
    expected = [np.array([5, 4, 3], np.float32), np.array([3, 4, 1])]
    check_node("TopK", [x, np.array([3])], opset=11, attributes={"sorted": 0}, outputs=2, expected=expected, **EXACT)


SCRATCH = [
    *rows("float uint8", ONE, "y = OP<axis = 0>(x)", "ArgMax ArgMin", n=3, m=1_000_000),
    *rows(
        "float int64", "T[n, m] x, int64[1] k", "y, z = TopK<axis = OP>(x, k)", "0 1", k=integers(200), n=200, m=4000
    ),
]
