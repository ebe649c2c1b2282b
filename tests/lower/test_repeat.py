import numpy as np
import pytest

from tests.lower.moved import DTYPES, numbered
from tests.scratch.row import integers, rows

EXPANSIONS = [
    ((3, 1), [3, 4]),
    ((3, 1), [2, 1, 6]),
    ((3,), [2, 1]),
    ((), [2, 3]),
    ((1, 1, 5), [4, 1, 1]),
    ((2, 3), [1]),
    ((1,), [0, 2]),
]


@pytest.mark.parametrize(("shape", "target"), EXPANSIONS)
def test_expand(check_node, shape, target):
    check_node("Expand", [numbered(shape), np.array(target, np.int64)], opset=13, rtol=0, atol=0)


TILES = [((2, 3), [2, 2]), ((2, 3), [1, 3]), ((2, 1, 3), [2, 3, 1]), ((3,), [0]), ((2, 2), [1, 1])]


@pytest.mark.parametrize(("shape", "repeats"), TILES)
def test_tile(check_node, shape, repeats):
    check_node("Tile", [numbered(shape), np.array(repeats, np.int64)], opset=13, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type(check_node, dtype):
    x = numbered((2, 1), dtype)
    check_node("Expand", [x, np.array([2, 3])], opset=13, rtol=0, atol=0, expected=[np.repeat(x, 3, 1)])
    check_node("Tile", [x, np.array([2, 3])], opset=13, rtol=0, atol=0, expected=[np.tile(x, (2, 3))])


SCRATCH = [
    *rows("float string", "T[1, m] x, int64[2] k", "y = OP(x, k)", "Expand Tile", k=integers(150, 1), m=1000),
    *rows("float", "T[1, m] x, int64[2] k", "y = OP(x, k)", "Expand Tile", k=integers(3000, 1), m=1000),
]
