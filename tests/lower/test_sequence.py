import numpy as np
import onnx
import onnxruntime
import pytest
from moved import numbered
from onnx import parser

import compiler


def check(body, feeds, expected=None):
    """The outputs of a graph are onnxruntime's, or `expected`."""
    model = parser.parse_model(f'<ir_version: 9, opset_import: ["" : 18]> {body}')
    if expected is None:
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        expected = session.run(None, feeds)
    found = list(compiler.load(compiler.compile(model), threads=1).run(feeds).values())
    for one, other in zip(found, expected, strict=True):
        items = zip(one, other, strict=True) if isinstance(other, list) else [(one, other)]
        for item, wanted in items:
            np.testing.assert_array_equal(item, wanted)
            assert item.dtype == np.asarray(wanted).dtype


X, Y = numbered((2, 3)), -numbered((1, 3)) - 1
BODIES = [
    "s = SequenceConstruct(x, y, x) n = SequenceLength(s)",
    "r = SequenceConstruct(x, y) s = SequenceInsert(r, x, i) n = SequenceLength(s)",
    "r = SequenceConstruct(x, y) s = SequenceInsert(r, x) n = SequenceLength(s)",
    "r = SequenceConstruct(x, y, x) s = SequenceErase(r, i) n = SequenceLength(s)",
    "r = SequenceConstruct(x, y, x) s = SequenceErase(r) n = SequenceLength(s)",
    "r = SequenceEmpty() s = SequenceInsert(r, x) n = SequenceLength(s)",
    "s = SplitToSequence<axis = 1>(x) n = SequenceLength(s)",
    "s = SplitToSequence<axis = 1, keepdims = 0>(x) n = SequenceLength(s)",
]


@pytest.mark.parametrize("position", [0, 1, -1, -2])
@pytest.mark.parametrize("body", BODIES)
def test_sequences(body, position):
    inputs = "float[a, b] x, float[c, b] y, int64 i"
    model = f"test ({inputs}) => (seq(float[d, b]) s, int64 n) {{ {body} }}"
    check(model, {"x": X, "y": Y, "i": np.array(position)})


@pytest.mark.parametrize("sizes", [np.array([2, 1]), np.array([0, 3]), np.array(2), np.array(5)])
def test_split_to_sequence(sizes):
    dims = "" if sizes.ndim == 0 else "[n]"
    model = f"test (float[a, b] x, int64{dims} n) => (seq(float[a, c]) s) {{ s = SplitToSequence<axis = 1>(x, n) }}"
    check(model, {"x": X, "n": sizes})


@pytest.mark.parametrize(("axis", "new"), [(0, 0), (1, 0), (-1, 0), (0, 1), (1, 1), (2, 1), (-1, 1)])
def test_concat_from_sequence(axis, new):
    body = f"s = SequenceConstruct(x, x) y = ConcatFromSequence<axis = {axis}, new_axis = {new}>(s)"
    output = "float[a, b, c] y" if new else "float[a, b] y"
    check(f"test (float[a, b] x) => ({output}) {{ {body} }}", {"x": X})


@pytest.mark.parametrize("position", [2, -3])
def test_positions_out_of_range(position):
    body = "s = SequenceConstruct(x, x) y = SequenceAt(s, i)"
    model = parser.parse_model(
        f'<ir_version: 9, opset_import: ["" : 18]> test (float[a] x, int64 i) => (float[a] y) {{ {body} }}'
    )
    session = compiler.load(compiler.compile(model), threads=1)
    with pytest.raises(compiler.RunError, match="no such position in a sequence of 2"):
        session.run({"x": np.zeros(1, np.float32), "i": np.array(position)})


def test_items_of_one_type_only():
    node = onnx.helper.make_node("SequenceConstruct", ["x", "y"], ["s"])
    infos = [
        onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2]),
        onnx.helper.make_tensor_value_info("y", onnx.TensorProto.INT64, [2]),
    ]
    output = onnx.helper.make_tensor_sequence_value_info("s", onnx.TensorProto.FLOAT, None)
    graph = onnx.helper.make_graph([node], "test", infos, [output])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9)
    with pytest.raises(compiler.CompileError, match="float32"):
        compiler.compile(model)
