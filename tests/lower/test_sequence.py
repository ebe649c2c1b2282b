import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser

import compiler
from tests.lower.moved import numbered
from tests.running import grows_linearly
from tests.scratch.row import ONE, rows


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


COLLECTED = """test (int64 n, bool go, int64[k] x) => (seq(int64[k]) s) {
    none = SequenceEmpty<dtype = 7>()
    s = Loop(n, go, none) <body = turn (int64 i, bool more, seq(int64[k]) v) => (bool on, seq(int64[k]) w) {
        on = Identity(more) y = Add(x, i) BODY } >
}"""
BODIES_OF_LOOPS = {
    "at the end": "w = SequenceInsert(v, y)",
    "at the front": "zero = Constant<value_int = 0>() w = SequenceInsert(v, y, zero)",
    "taken out again": "a = SequenceInsert(v, y) b = SequenceInsert(a, x) w = SequenceErase(b)",
    "both kept": "a = SequenceInsert(v, y) b = SequenceInsert(v, x) c = SequenceAt(b, i) w = SequenceInsert(a, c)",
    "in a branch": "two = Constant<value_int = 2>() odd = Mod(i, two) c = Cast<to = 9>(odd)"
    " w = If(c) <then_branch = t () => (seq(int64[k]) p) { p = SequenceInsert(v, y) },"
    " else_branch = e () => (seq(int64[k]) q) { q = Identity(v) }>",
}


@pytest.mark.parametrize("name", BODIES_OF_LOOPS)
def test_sequences_that_grow_in_a_loop(name):
    graph = COLLECTED.replace("BODY", BODIES_OF_LOOPS[name])
    check(graph, {"n": np.array(5), "go": np.array(True), "x": np.array([1, 10])})


@pytest.mark.parametrize(
    ("body", "max_memory", "most"),
    [
        ("at the end", None, 1_000_000),
        ("at the end", 1 << 30, 1_000_000),
        ("in a branch", None, 256_000),
        ("in a branch", 1 << 30, 256_000),
    ],
)
def test_many_insertions_neither_copy_nor_recount_what_is_there(body, max_memory, most):
    graph = COLLECTED.replace("BODY", BODIES_OF_LOOPS[body]).replace("(seq(int64[k]) s) {", "(int64 count) {")
    graph = graph[: graph.rindex("}")] + " count = SequenceLength(s) }"
    plan = compiler.compile(parser.parse_model(f'<ir_version: 9, opset_import: ["" : 18]> {graph}'))
    session = compiler.load(plan, threads=1, max_memory=max_memory)

    def insert(turns):
        count = session.run({"n": np.array(turns), "go": np.array(True), "x": np.array([1])})["count"]
        assert count == (turns if body == "at the end" else turns // 2)

    assert grows_linearly(insert, most // 16, most)


def test_a_sequence_that_grows_counts_its_items():
    graph = COLLECTED.replace("BODY", BODIES_OF_LOOPS["at the end"])
    plan = compiler.compile(parser.parse_model(f'<ir_version: 9, opset_import: ["" : 18]> {graph}'))
    feeds, size = {"go": np.array(True), "x": np.zeros(1000, np.int64)}, 8000
    session = compiler.load(plan, max_memory=100 * size)
    assert len(session.run({"n": np.array(80), **feeds})["s"]) == 80
    with pytest.raises(compiler.RunError, match="max_memory leaves"):
        session.run({"n": np.array(100), **feeds})


def test_a_sequence_that_is_held_elsewhere_keeps_its_items():
    model = parser.parse_model("""<ir_version: 9, opset_import: ["" : 18]>
        test (seq(float[n]) s, float[n] x) => (seq(float[n]) s1, seq(float[n]) longer, seq(float[n]) shorter) {
            s1 = Identity(s) longer = SequenceInsert(s, x) shorter = SequenceErase(longer) }""")
    session = compiler.load(compiler.compile(model, compiler.Options(optimize=False)))
    given, x = [np.ones(2, np.float32)], np.zeros(2, np.float32)
    outputs = session.run({"s": given, "x": x})
    assert [len(items) for items in outputs.values()] == [1, 2, 1]
    assert len(given) == 1
    np.testing.assert_array_equal(outputs["longer"][1], x)
    np.testing.assert_array_equal(outputs["s1"][0], given[0])


PARTS = {"n": 6000, "k": np.int64(8)}
CUT = "q = SplitToSequence<axis = 0>(x, k)"
BODY = "(T[a, b] v) => (T[a, b] w) { w = Neg(v) }"

SCRATCH = [
    *rows("float uint8", "T[n, m] x, int64 k", "q = SplitToSequence<axis = 1>(x, k) s = SequenceLength(q)", **PARTS),
    *rows("float", "T[n, m] x, int64 k", f"{CUT} y = OP(q, k)", "SequenceAt", **PARTS),
    *rows("float", "T[n, m] x, int64 k", f"{CUT} y = ConcatFromSequence<axis = OP>(q)", "0 1", **PARTS | {"n": 1600}),
    *rows("float", "T[n, m] x, int64 k", f"{CUT} r = OP(q, k) s = SequenceLength(r)", "SequenceErase", **PARTS),
    *rows("float", "T[n, m] x, int64 k", f"{CUT} r = SequenceInsert(q, x, k) s = SequenceLength(r)", **PARTS),
    *rows("float", ONE, "q = SequenceConstruct(x, x) s = SequenceLength(q)"),
    *rows("float", ONE, "e = SequenceEmpty() q = SequenceInsert(e, x) s = SequenceLength(q)"),
    *rows("float", "T[n, m] x, int64 k", f"{CUT} r = SequenceMap<body = b {BODY}>(q) s = SequenceLength(r)", **PARTS),
]
