from itertools import product

import ml_dtypes
import numpy as np
import onnx.parser
import pytest

import compiler
from tests.lower.moved import DTYPES, numbered
from tests.scratch.row import ONE, integers, rows

RESHAPES = [
    ((2, 3, 4), [4, 6], 0),
    ((2, 3, 4), [0, -1], 0),
    ((2, 3, 4), [-1, 1, 3], 0),
    ((2, 3, 4), [0, 0, 2, 2], 0),
    ((1,), [], 0),
    ((0, 3), [3, 0], 1),
    ((0, 3), [0, 3, 2], 0),
]


@pytest.mark.parametrize(("shape", "target", "allow_zero"), RESHAPES)
def test_reshape(check_node, shape, target, allow_zero):
    attributes = {"allowzero": 1} if allow_zero else {}
    inputs = [numbered(shape), np.array(target, np.int64)]
    check_node("Reshape", inputs, opset=14, attributes=attributes, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_reshape_of_every_type(check_node, dtype):
    check_node("Reshape", [numbered((2, 6), dtype), np.array([3, -1])], opset=13, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "int4", "uint4", "float4_e2m1fn"])
def test_reshape_of_types_that_numpy_lacks(check_node, dtype):
    x = (np.arange(6) % 4).astype(np.float32).astype(getattr(ml_dtypes, dtype))
    check_node("Reshape", [x, np.array([2, 3])], opset=23, rtol=0, atol=0, expected=[x.reshape(2, 3)])


@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1, -3])
@pytest.mark.parametrize("opset", [11, 13])
def test_flatten(check_node, axis, opset):
    check_node("Flatten", [numbered((2, 3, 4))], opset=opset, attributes={"axis": axis}, rtol=0, atol=0)


def test_flatten_of_a_scalar(check_node):
    check_node("Flatten", [numbered(())], opset=13, attributes={"axis": 0}, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("opset", "axes"), [*product([7, 11, 13], [None, [0], [0, 2], [2, 0]]), (11, [-1]), (13, [-1])]
)
def test_squeeze(check_node, axes, opset):
    x = numbered((1, 3, 1, 5, 1) if axes is None or -1 in axes else (1, 3, 1, 5))
    if opset < 13:
        check_node("Squeeze", [x], opset=opset, attributes={"axes": axes} if axes else {}, rtol=0, atol=0)
    else:
        check_node("Squeeze", [x] + ([np.array(axes, np.int64)] if axes else []), opset=opset, rtol=0, atol=0)


UNSQUEEZES = [*product([7, 11, 13, 21], [[0], [1, 3], [3, 0]]), *product([11, 13], [[-1], [-1, 1]])]


@pytest.mark.parametrize(("opset", "axes"), UNSQUEEZES)
def test_unsqueeze(check_node, axes, opset):
    if opset < 13:
        check_node("Unsqueeze", [numbered((2, 3))], opset=opset, attributes={"axes": axes}, rtol=0, atol=0)
    else:
        check_node("Unsqueeze", [numbered((2, 3)), np.array(axes)], opset=opset, rtol=0, atol=0)


REFUSED = [
    ("Squeeze", [numbered((2, 3)), np.array([0])], "axis 0 cannot be dropped"),
    ("Unsqueeze", [numbered((2, 3)), np.array([5])], "axis 5 is out of range"),
    ("Unsqueeze", [numbered((2, 3)), np.array([1, 1])], "axis 1 is named twice"),
]


@pytest.mark.parametrize(("op_type", "inputs", "message"), REFUSED)
def test_refused(node_model, op_type, inputs, message):
    with pytest.raises(compiler.CompileError, match=message):
        compiler.compile(node_model(op_type, inputs, opset=13, constants=[1]))


@pytest.mark.parametrize("size", [1, 2])
def test_squeeze_drops_a_size_that_turns_out_to_be_one(size):
    text = "agraph (float[n, 1, 3] x) => (float[a] y) { s = Squeeze(x) y = Neg(s) }"
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 18]> {text}')
    model.graph.output[0].type.tensor_type.ClearField("shape")
    x = numbered((size, 1, 3))
    assert np.array_equal(compiler.load(compiler.compile(model)).run({"x": x})["y"], -x.squeeze())


STACKED = integers(-1)

SCRATCH = [
    *rows("float", ONE, "y = OP(x)", "Flatten"),
    *rows("float", "T[n, m] x, int64[1] k", "y = OP(x, k)", "Unsqueeze Reshape", k=STACKED),
    *rows("float", "T[n, m, 1] x, int64[1] k", "y = Squeeze(x, k)", k=STACKED),
]
