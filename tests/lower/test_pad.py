import numpy as np
import pytest

from tests.lower.moved import DTYPES, numbered
from tests.scratch.row import integers, rows

PADS = [[0, 1, 2, 0, 3, 1], [0, 0, 0, 0, 0, 0], [1, 0, 0, 2, 0, 0], [0, 0, 2, 0, 0, 2]]


@pytest.mark.parametrize("pads", PADS)
@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_modes(check_node, mode, pads):
    inputs = [numbered((3, 5, 4)), np.array(pads)]
    check_node("Pad", inputs, opset=19, attributes={"mode": mode}, rtol=0, atol=0)


@pytest.mark.parametrize("mode", ["constant", "edge", "wrap"])
@pytest.mark.parametrize("pads", [[-1, 2, 0, -2], [-1, -1, -1, -1], [-2, 1, 1, 0]])
def test_negative_pads_cut(check_node, mode, pads):
    inputs = [numbered((4, 5)), np.array(pads)]
    check_node("Pad", inputs, opset=19, attributes={"mode": mode}, rtol=0, atol=0)


def test_reflection_of_what_is_left(check_node):
    x = numbered((5,))
    expected = np.pad(x[1:], (0, 2), mode="reflect")
    inputs = [x, np.array([-1, 2])]
    check_node("Pad", inputs, opset=19, attributes={"mode": "reflect"}, rtol=0, atol=0, expected=[expected])


@pytest.mark.parametrize(("value", "axes"), [(1.5, None), (None, [1]), (2.5, [-1, 0]), (None, [2, 0])])
def test_value_and_axes(check_node, value, axes):
    count = 3 if axes is None else len(axes)
    inputs = [
        numbered((2, 3, 4)),
        np.arange(2 * count),
        None if value is None else np.array(value, np.float32),
        None if axes is None else np.array(axes),
    ]
    check_node("Pad", inputs if axes else inputs[:3], opset=18, rtol=0, atol=0)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
def test_pads_as_attributes(check_node, mode):
    attributes = {"mode": mode, "pads": [0, 1, 2, 1]} | ({"value": 2.0} if mode == "constant" else {})
    check_node("Pad", [numbered((3, 4))], opset=7, attributes=attributes, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type(check_node, dtype):
    x, value = numbered((2, 3), dtype), numbered((8,), dtype)[7]
    expected = np.pad(x, ((1, 0), (0, 2)), constant_values=value)
    inputs = [x, np.array([1, 0, 0, 2]), np.array(value, x.dtype)]
    check_node("Pad", inputs, opset=19, rtol=0, atol=0, expected=[expected])


def centered(x, axis, size):
    place = (abs(size - x.shape[axis])) // 2
    if size <= x.shape[axis]:
        return np.take(x, range(place, place + size), axis)
    pads = [(0, 0)] * x.ndim
    pads[axis] = (place, size - x.shape[axis] - place)
    return np.pad(x, pads)


@pytest.mark.parametrize(("shape", "axes"), [([4, 3, 9], None), ([7], [1]), ([2, 6], [-1, 0]), ([5, 4, 6], None)])
def test_center_crop_pad(check_node, shape, axes):
    x = expected = numbered((5, 4, 6))
    for axis, size in zip(axes or range(3), shape, strict=True):
        expected = centered(expected, axis, size)
    attributes = {} if axes is None else {"axes": axes}
    check_node(
        "CenterCropPad", [x, np.array(shape)], opset=18, attributes=attributes, rtol=0, atol=0, expected=[expected]
    )


SCRATCH = [
    *rows(
        "float uint8",
        "T[n, m] x, int64[4] p",
        'y = Pad<mode = "OP">(x, p)',
        "constant edge reflect wrap",
        n=6000,
        p=integers(9, 99, -9, 99),
    ),
    *rows("float", "T[n, m] x, int64[2] p", "y = CenterCropPad(x, p)", p=integers(1000, 3000)),
]
