import numpy as np
import pytest

from tests.lower.moved import DTYPES, numbered
from tests.scratch.row import ONE, TWO, rows

CONCATS = [
    ([(2, 3), (2, 1), (2, 4)], 1),
    ([(2, 3), (1, 3)], 0),
    ([(2, 3), (0, 3), (2, 3)], -2),
    ([(2, 3, 4), (2, 5, 4)], 1),
    ([(3,)], 0),
    ([(1, 4, 300, 20), (1, 2, 300, 20)], 1),
]


@pytest.mark.parametrize(("shapes", "axis"), CONCATS)
def test_concat(check_node, shapes, axis):
    check_node("Concat", [numbered(shape) for shape in shapes], opset=13, attributes={"axis": axis}, rtol=0, atol=0)


SPLITS = [
    ((6, 4), 0, [1, 3, 2]),
    ((6, 4), 1, [3, 1]),
    ((6, 4), 1, [4, 0]),
    ((1, 6, 4), 1, [2, 4]),
    ((6, 4), 0, None),
]


@pytest.mark.parametrize(("shape", "axis", "sizes"), SPLITS)
@pytest.mark.parametrize("opset", [7, 11, 13, 18])
def test_split(check_node, shape, axis, sizes, opset):
    attributes = {"axis": axis}
    inputs = [numbered(shape)]
    if sizes and opset < 13:
        attributes["split"] = sizes
    elif sizes:
        inputs.append(np.array(sizes))
    elif opset == 18:
        attributes["num_outputs"] = 3
    check_node("Split", inputs, opset=opset, attributes=attributes, outputs=len(sizes or "123"), rtol=0, atol=0)


def test_split_into_parts_of_nearly_equal_size(check_node):
    attributes = {"axis": 1, "num_outputs": 3}
    check_node("Split", [numbered((2, 7))], opset=18, attributes=attributes, outputs=3, rtol=0, atol=0)


def test_split_with_an_output_that_nobody_wants(check_node):
    x = numbered((6, 2))
    check_node("Split", [x], opset=13, outputs=[True, False, True], rtol=0, atol=0, expected=[x[:2], x[4:]])


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type(check_node, dtype):
    x, y = numbered((2, 3), dtype), numbered((2, 2), dtype)
    check_node("Concat", [x, y], opset=13, attributes={"axis": 1}, rtol=0, atol=0)
    parts = [x[:, :1], x[:, 1:]]
    check_node(
        "Split", [x, np.array([1, 2])], opset=13, attributes={"axis": 1}, outputs=2, rtol=0, atol=0, expected=parts
    )


SCRATCH = [
    *rows("float uint8", TWO, "y = Concat<axis = OP>(x, z)", "0 1", n=6000),
    *rows("float uint8", ONE, "y, z = Split<axis = OP, num_outputs = 2>(x)", "0 1", n=6000),
]
