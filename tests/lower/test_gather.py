import numpy as np
import onnx
import onnx.parser
import pytest

import compiler
from tests.lower.moved import DTYPES, numbered
from tests.scratch.row import rows

GATHERS = [
    ((5, 4), 0, [2, -5, 4]),
    ((5, 4), 1, [[0, -1], [3, 3]]),
    ((5, 4), -1, 2),
    ((5, 4), 0, 3),
    ((2, 3, 4), 1, [2]),
    ((5,), 0, []),
    ((1, 3, 4), 1, -1),
]


@pytest.mark.parametrize("kind", [np.int64, np.int32])
@pytest.mark.parametrize(("shape", "axis", "indices"), GATHERS)
def test_gather(check_node, shape, axis, indices, kind):
    inputs = [numbered(shape), np.array(indices, kind)]
    check_node("Gather", inputs, opset=13, attributes={"axis": axis}, rtol=0, atol=0)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("shape", [(2, 3, 4), (1, 2, 2), (3, 3, 3)])
def test_gather_elements(check_node, axis, shape):
    indices = np.arange(np.prod(shape)).reshape(shape) * 5 % 6 - 3
    inputs = [numbered((3, 3, 4)), np.clip(indices, -3, 2)]
    check_node("GatherElements", inputs, opset=13, attributes={"axis": axis}, rtol=0, atol=0)


VECTORS = [
    ((2, 3, 4), 0, [[0, 1], [-1, 2]]),
    ((2, 3, 4), 0, [[[1, 2, 3]], [[0, 0, -1]]]),
    ((2, 3, 4), 0, [1]),
    ((2, 3, 4), 1, [[2], [0]]),
    ((2, 3, 4), 1, [[[2, 1], [0, 0]], [[1, 1], [-1, -1]]]),
    ((2, 3, 4), 2, [[[0], [1], [2]], [[3], [2], [1]]]),
]


@pytest.mark.parametrize(("shape", "batch_dims", "indices"), VECTORS)
def test_gather_nd(check_node, shape, batch_dims, indices):
    attributes = {"batch_dims": batch_dims}
    check_node("GatherND", [numbered(shape), np.array(indices)], opset=13, attributes=attributes, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type(check_node, dtype):
    x = numbered((3, 3), dtype)
    check_node("Gather", [x, np.array([2, 0])], opset=13, attributes={"axis": 1}, rtol=0, atol=0)
    check_node("GatherElements", [x, np.array([[2, 0, 1]])], opset=13, rtol=0, atol=0)
    check_node("GatherND", [x, np.array([[2, 0], [1, 1]])], opset=13, rtol=0, atol=0)


OUT_OF_RANGE = [
    ("Gather", [numbered((3, 2)), np.array([0, 3])], "index 3 is out of range for axis 0 of size 3"),
    ("GatherElements", [numbered((3, 2)), np.array([[-4, 0]])], "index -4 is out of range for axis 0 of size 3"),
    ("GatherND", [numbered((3, 2)), np.array([[0, 2]])], "index 2 is out of range for axis 1 of size 2"),
]


@pytest.mark.parametrize(("op_type", "inputs", "message"), OUT_OF_RANGE)
def test_indices_out_of_range(node_model, op_type, inputs, message):
    session = compiler.load(compiler.compile(node_model(op_type, inputs, opset=13)), threads=1)
    with pytest.raises(compiler.RunError, match=message):
        session.run({f"x{i}": array for i, array in enumerate(inputs)})


NEVER = [
    "(bool c, float[3] x, float[1] u) => (float[1] y) <int64[1] i = {7}> { y = If (c) <"
    "then_branch = a () => (float[1] p) { p = Gather (x, i) }, else_branch = b () => (float[1] q) { q = Neg (u) }> }",
    "(bool c, float[3] x, float[1] u) => (float[1] y) <int64[1, 1] i = {7}> { y = If (c) <"
    "then_branch = a () => (float[1] p) { p = GatherND (x, i) }, else_branch = b () => (float[1] q) { q = Neg (u) }> }",
    "(bool c, float[3] x, float[1] u) => (float[3] y) <int64[1] i = {7}> { y = If (c) <"
    "then_branch = a () => (float[3] p) { p = ScatterElements (x, i, u) },"
    "else_branch = b () => (float[3] q) { q = Neg (x) }> }",
]


@pytest.mark.parametrize("text", NEVER, ids=["Gather", "GatherND", "ScatterElements"])
def test_constant_indices_out_of_range_fail_only_if_the_step_runs(text):
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> m {text}')
    session = compiler.load(compiler.compile(model), threads=1)
    inputs = {"x": np.array([1, 2, 3], np.float32), "u": np.array([2], np.float32)}
    assert session.run({"c": np.array(False), **inputs})["y"].tolist() in ([-2], [-1, -2, -3])
    with pytest.raises(compiler.RunError, match="index 7 is out of range for axis 0 of size 3"):
        session.run({"c": np.array(True), **inputs})


SCRATCH = [
    *rows("int32 int64", "float[k] x, T[n, m] z", "y = Gather(x, z)", k=9),
    *rows("string", "string[k] x, int64[n, m] z", "y = Gather(x, z)", k=9, n=200, m=1000),
    *rows("int32 int64", "float[n, m] x, T[n, m] z", "y = GatherElements(x, z)"),
    *rows("float", "T[n, m] x, int64[k, 2] z", "y = GatherND(x, z)", k=500_000),
]
