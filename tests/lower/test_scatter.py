import numpy as np
import pytest

import compiler
from tests.lower.moved import DTYPES, numbered
from tests.scratch.row import rows

REDUCED = ["int8", "int32", "int64", "uint8", "uint64", "float32", "float64"]


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize(("op_type", "opset"), [("Scatter", 9), ("ScatterElements", 11), ("ScatterElements", 18)])
def test_elements(check_node, op_type, opset, axis):
    indices = np.array([[[2, 0], [1, 1]], [[0, 2], [2, 0]]])
    inputs = [numbered((3, 3, 3)), indices, -numbered((2, 2, 2)) - 1]
    check_node(op_type, inputs, opset=opset, attributes={"axis": axis}, rtol=0, atol=0)


def test_elements_counted_from_the_end(check_node):
    inputs = [numbered((3, 4)), np.array([[-1, -3]]), np.array([[50, 60]], np.float32)]
    check_node("ScatterElements", inputs, opset=13, rtol=0, atol=0)


@pytest.mark.parametrize("reduction", ["add", "mul", "min", "max"])
@pytest.mark.parametrize("dtype", REDUCED)
def test_reductions(check_node, reduction, dtype):
    attributes = {"reduction": reduction}
    inputs = [
        numbered((2, 3), dtype),
        np.array([[0, 1, 1], [1, 1, 0]]),
        numbered((6,), dtype)[::-1].reshape(2, 3).copy(),
    ]
    check_node("ScatterElements", inputs, opset=18, attributes=attributes, rtol=0, atol=0)
    inputs = [numbered((2, 3), dtype), np.array([[0], [1], [0]]), numbered((3, 3), dtype)]
    check_node("ScatterND", inputs, opset=18, attributes=attributes, rtol=0, atol=0)


def test_what_does_not_compare_is_overwritten(check_node):
    inputs = [np.float32([np.nan, 1, np.nan, 1]), np.arange(4), np.float32([1, np.nan, np.nan, 2])]
    for reduction in ("min", "max"):
        check_node("ScatterElements", inputs, opset=18, attributes={"reduction": reduction}, rtol=0, atol=0)


@pytest.mark.parametrize(("reduction", "expected"), [("add", [0, 1, 1, 1]), ("mul", [0, 0, 0, 1])])
def test_reductions_of_booleans(check_node, reduction, expected):
    inputs = [np.array([0, 0, 1, 1], bool), np.arange(4), np.array([0, 1, 0, 1], bool)]
    attributes = {"reduction": reduction}
    check_node(
        "ScatterElements", inputs, opset=18, attributes=attributes, rtol=0, atol=0, expected=[np.array(expected, bool)]
    )


@pytest.mark.parametrize("opset", [11, 16, 18])
@pytest.mark.parametrize("indices", [[[0], [2]], [[[0, 1], [2, 2]]], [[1, 2, 0], [-1, 0, 1]], [1]])
def test_parts(check_node, indices, opset):
    indices = np.array(indices)
    x = numbered((3, 3, 2))
    updates = -numbered(indices.shape[:-1] + x.shape[indices.shape[-1] :]) - 1
    check_node("ScatterND", [x, indices, updates], opset=opset, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type(check_node, dtype):
    x, updates = numbered((3, 2), dtype), numbered((6,), dtype)[4:].reshape(1, 2)
    check_node("ScatterElements", [x, np.array([[2, 0]]), updates], opset=13, rtol=0, atol=0)
    check_node("ScatterND", [x, np.array([[1]]), updates], opset=13, rtol=0, atol=0)


@pytest.mark.parametrize(("mode", "first"), [("linear", [1, 0]), ("linear", None), ("circular", [3, 5])])
def test_cache(check_node, mode, first):
    cache, update = numbered((2, 3, 4, 2)), -numbered((2, 3, 2, 2)) - 1
    expected = cache.copy()
    for batch in range(2):
        rows = [((first or [0, 0])[batch] + row) % 4 for row in range(2)]
        expected[batch][:, rows] = update[batch]
    inputs = [cache, update] + ([] if first is None else [np.array(first)])
    check_node("TensorScatter", inputs, opset=24, attributes={"mode": mode}, rtol=0, atol=0, expected=[expected])


def test_the_input_stays_as_it_is(node_model):
    inputs = [numbered((3,)), np.array([1]), np.float32([9])]
    session = compiler.load(compiler.compile(node_model("ScatterElements", inputs, opset=13)), threads=1)
    feeds = {f"x{i}": array for i, array in enumerate(inputs)}
    for _ in range(2):
        assert session.run(feeds)["y0"].tolist() == [0, 9, 2]
    assert inputs[0].tolist() == [0, 1, 2]


SCRATCH = [
    *rows("int32 int64", "float[n, m] x, T[n, m] z, float[n, m] u", "y = ScatterElements(x, z, u)"),
    *rows("float float16", "T[n, m] x, int64[n, m] z, T[n, m] u", 'y = ScatterElements<reduction = "add">(x, z, u)'),
    *rows("float", "T[n, m] x, int64[n, m] z, T[n, m] u", "y = Scatter(x, z, u)", opset=10),
    *rows("float", "T[n, m] x, int64[k, 2] z, T[k] u", "y = ScatterND(x, z, u)", k=500_000),
    *rows("float", "T[k, n, m] x, T[k, 8, m] u, int64[k] z", "y = TensorScatter<axis = 1>(x, u, z)", k=2),
]
