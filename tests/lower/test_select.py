import numpy as np
import pytest

from tests.lower.moved import DTYPES, numbered
from tests.scratch.row import ONE, rows

NUMBERS = [dtype for dtype in DTYPES if dtype != "string"]


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("k", [None, 0, 1, -2, 9, -9])
def test_trilu(check_node, upper, k):
    inputs = [numbered((2, 3, 4)) + 1] + ([] if k is None else [np.array(k)])
    check_node("Trilu", inputs, opset=14, attributes={"upper": upper}, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_trilu_of_every_type(check_node, dtype):
    x = numbered((3, 3), dtype)
    check_node("Trilu", [x], opset=14, rtol=0, atol=0, expected=[np.triu(x)])


@pytest.mark.parametrize(
    ("axis", "condition"), [(0, [0, 1, 1]), (1, [1, 0, 1, 1]), (-1, [0, 1]), (None, [0, 1, 0, 0, 1, 1])]
)
@pytest.mark.parametrize("dtype", ["float32", "string"])
def test_compress(check_node, axis, condition, dtype):
    attributes = {} if axis is None else {"axis": axis}
    inputs = [numbered((3, 4), dtype), np.array(condition, bool)]
    check_node("Compress", inputs, opset=11, attributes=attributes, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_non_zero(check_node, dtype):
    x = numbered((3, 4), dtype)
    x[1, 2] = 0
    check_node("NonZero", [x], opset=13, rtol=0, atol=0, expected=[np.array(np.nonzero(x))])


@pytest.mark.parametrize("shape", [(), (0, 2), (2, 3, 4)])
def test_non_zero_of_every_rank(check_node, shape):
    check_node("NonZero", [numbered(shape)], opset=13, rtol=0, atol=0)


UNIQUES = [
    (None, [[2, 1, 1], [3, 4, 3]]),
    (0, [[1, 0, 0], [1, 0, 0], [2, 3, 4], [0, 9, 9]]),
    (1, [[1, 0, 1, 0], [2, 5, 2, 4]]),
    (-1, [[1, 0, 1, 0], [2, 5, 2, 4]]),
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int64", "string"])
@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize(("axis", "rows"), UNIQUES)
def test_unique(check_node, axis, rows, order, dtype):
    x = np.array(rows).astype(str).astype(object) if dtype == "string" else np.array(rows, dtype)
    attributes = {"sorted": order} | ({} if axis is None else {"axis": axis})
    check_node("Unique", [x], opset=11, attributes=attributes, outputs=4, rtol=0, atol=0)


def test_unique_without_the_lists(check_node):
    check_node("Unique", [np.array([2, 1, 1, 3])], opset=11, outputs=[True, False, False, True], rtol=0, atol=0)


SCRATCH = [
    *rows("float", ONE, "y = OP(x)", "Trilu"),
    *rows("float", "T[n, m] x, bool[n] c", "y = Compress<axis = 0>(x, c)"),
    *rows("float", "T[k] x, bool[k] c", "y = Compress(x, c)", k=4_000_000),
    *rows("float uint8", ONE, "y = NonZero(x)"),
    *rows("float int64 string", ONE, "y, a, b, c = Unique(x)", n=200, m=1000),
    *rows("float", ONE, "y, a, b, c = Unique<axis = 0>(x)"),
]
