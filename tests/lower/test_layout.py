import numpy as np
import pytest

from tests.lower.moved import DTYPES, numbered
from tests.scratch.row import IMAGE, IMAGES, ONE, rows

PERMUTATIONS = [
    ((2, 3, 4), None),
    ((2, 3, 4), [0, 2, 1]),
    ((2, 3, 4), [2, 0, 1]),
    ((1, 3, 1, 5), [2, 1, 0, 3]),
    ((2, 8, 24, 16), [0, 2, 1, 3]),
    ((1, 40, 30, 20), [0, 3, 1, 2]),
    ((1, 3, 30, 20), [0, 2, 3, 1]),
    ((2, 3, 2, 3, 4, 5), [0, 3, 1, 5, 2, 4]),
    ((70, 90), [1, 0]),
    ((2, 0, 3), [2, 1, 0]),
    ((), None),
]


@pytest.mark.parametrize(("shape", "order"), PERMUTATIONS)
def test_transpose(check_node, shape, order):
    check_node("Transpose", [numbered(shape)], opset=13, attributes={"perm": order} if order else {}, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_transpose_of_every_type(check_node, dtype):
    check_node("Transpose", [numbered((3, 10, 20), dtype)], opset=13, attributes={"perm": [0, 2, 1]}, rtol=0, atol=0)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
@pytest.mark.parametrize(
    ("shape", "block"), [((1, 8, 2, 3), 2), ((2, 18, 1, 2), 3), ((1, 4, 5, 5), 1), ((0, 4, 2, 2), 2)]
)
def test_depth_to_space(check_node, mode, shape, block):
    attributes = {"mode": mode, "blocksize": block}
    check_node("DepthToSpace", [numbered(shape)], opset=13, attributes=attributes, rtol=0, atol=0)


@pytest.mark.parametrize(("shape", "block"), [((1, 2, 4, 6), 2), ((2, 3, 6, 3), 3), ((1, 4, 5, 5), 1)])
def test_space_to_depth(check_node, shape, block):
    check_node("SpaceToDepth", [numbered(shape)], opset=13, attributes={"blocksize": block}, rtol=0, atol=0)


def test_space_to_depth_of_neighboring_pixels(check_node):
    x = numbered((2, 3, 4, 6))
    blocks = x.reshape(2, 3, 2, 2, 3, 2).transpose(0, 1, 3, 5, 2, 4).reshape(2, 12, 2, 3)
    attributes = {"mode": "CRD", "blocksize": 2}
    check_node("SpaceToDepth", [x], opset=28, attributes=attributes, rtol=0, atol=0, expected=[blocks])


@pytest.mark.parametrize(("time", "lengths"), [(0, [4, 3, 2, 0]), (1, [1, 2, 3, 4])])
@pytest.mark.parametrize("shape", [(4, 4), (4, 4, 3)])
def test_reverse_sequence(check_node, time, lengths, shape):
    attributes = {"time_axis": time, "batch_axis": 1 - time}
    inputs = [numbered(shape), np.array(lengths)]
    check_node("ReverseSequence", inputs, opset=10, attributes=attributes, rtol=0, atol=0)


SCRATCH = [
    *rows("float uint8", ONE, "y = Transpose(x)", n=6000),
    *rows("float", IMAGES, "y = OP<blocksize = 2>(x)", "DepthToSpace SpaceToDepth", **IMAGE),
    *rows("float string", "T[n, m] x, int64[m] k", "y = ReverseSequence(x, k)", n=20, m=20_000),
]
