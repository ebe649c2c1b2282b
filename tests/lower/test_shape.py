import pytest

from tests.lower.moved import DTYPES, numbered
from tests.scratch.row import ONE, rows

RANGES = [{}, {"start": 1}, {"end": -1}, {"start": -2, "end": 9}, {"start": 2, "end": 1}, {"start": -9}]


@pytest.mark.parametrize("attributes", RANGES)
def test_shape(check_node, attributes):
    check_node("Shape", [numbered((2, 3, 4))], opset=15, attributes=attributes, rtol=0, atol=0)


@pytest.mark.parametrize("op_type", ["Shape", "Size"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_of_every_type(check_node, op_type, dtype):
    for shape in [(), (0, 3), (2, 3, 4)]:
        check_node(op_type, [numbered(shape, dtype)], opset=13, rtol=0, atol=0)


SCRATCH = [
    *rows("float", ONE, "y = OP(x)", "Shape Size"),
]
