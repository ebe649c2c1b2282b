import numpy as np
import pytest

from tests.lower.moved import DTYPES, numbered
from tests.scratch.row import integers, rows

MOST, LEAST = np.iinfo(np.int64).max, np.iinfo(np.int64).min
SLICES = [
    ([1], [3], None, None),
    ([0, 1], [2, 3], None, None),
    ([-2], [MOST], [-1], None),
    ([1, 0], [9, -1], [2, 0], None),
    ([0], [9], [2], [2]),
    ([-1], [LEAST], [1], [-1]),
    ([4, 3], [0, -9], [2, 1], [-2, -1]),
    ([3], [1], [1], [1]),
    ([9], [10], [0], [1]),
    ([0], [1], [0], [MOST]),
]


@pytest.mark.parametrize("kind", [np.int64, np.int32])
@pytest.mark.parametrize("opset", [10, 13])
@pytest.mark.parametrize(("starts", "ends", "axes", "steps"), SLICES)
def test_slice(check_node, kind, opset, starts, ends, axes, steps):
    limits = np.iinfo(kind)
    lists = [
        None if values is None else np.clip(values, limits.min, limits.max).astype(kind)
        for values in (starts, ends, axes, steps)
    ]
    while lists[-1] is None:
        lists.pop()
    check_node("Slice", [numbered((4, 5, 6)), *lists], opset=opset, rtol=0, atol=0)


@pytest.mark.parametrize(("starts", "ends", "axes"), [([1], [3], None), ([1, -2], [-1, 9], [2, 0])])
def test_slice_by_attributes(check_node, starts, ends, axes):
    attributes = {"starts": starts, "ends": ends} | ({"axes": axes} if axes else {})
    check_node("Slice", [numbered((4, 5, 6))], opset=9, attributes=attributes, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type(check_node, dtype):
    bounds = [np.array(values) for values in ([3, 0], [0, 3], [1, 0], [-2, 1])]
    x = numbered((4, 5), dtype)
    check_node("Slice", [x, *bounds], opset=13, rtol=0, atol=0, expected=[x[0:3, 3:0:-2]])


SCRATCH = [
    *rows(
        "float uint8",
        "T[n, m] x, int64[1] a, int64[1] b, int64[1] c",
        "y = Slice(x, a, b, c)",
        n=6000,
        a=integers(3),
        b=integers(1500),
        c=integers(1),
    ),
]
