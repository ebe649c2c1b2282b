"""If, Loop and Scan against onnxruntime: captures, growing states, zero iterations, reversed axes."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import parser

import compiler
from tests.scratch.row import ONE, rows

X = np.arange(6, dtype=np.float32).reshape(2, 3)

BRANCHES = """
<ir_version: 8, opset_import: ["" : 18]>
m (float[n, 3] x, bool c) => (float[k, 3] y) {
  twice = Concat<axis=0>(x, x)
  y = If(c) <
    then_branch = t () => (float[p, 3] ty) { ty = Concat<axis=0>(twice, x) },
    else_branch = e () => (float[q, 3] ey) { ey = Identity(x) }>
}"""

GROWING = """
<ir_version: 8, opset_import: ["" : 18]>
m (float[n, 3] x, int64 count, bool c) => (float[p, 3] state, float[q, n, 3] seen) {
  state, seen = Loop(count, c, x) <
    body = b (int64 i, bool go, float[s, 3] old) => (bool on, float[t, 3] new, float[n, 3] kept) {
    on = Identity(go)
    new = Concat<axis=0>(old, x)
    kept = Identity(x)
  }>
}"""

SCANNED = """
<ir_version: 8, opset_import: ["" : 18]>
m (float[1, 2] first, float[2, 3] x) => (float[1, 2] last, float[2, 3] y) {
  last, y = Scan<num_scan_inputs=1, scan_input_axes=[1], scan_input_directions=[1], scan_output_axes=[-1],
    scan_output_directions=[1], body = b (float[1, 2] s, float[2] v) => (float[1, 2] t, float[2] w) {
    axes = Constant<value_ints=[0]>()
    t = Unsqueeze(v, axes)
    w = Squeeze(s, axes)
  }>(first, x)
}"""

BATCH = """
<ir_version: 8, opset_import: ["" : 8]>
m (float[2, 2] first, float[2, 3, 2] x, float[2, 3, 2] z, float[2] bias) =>
  (float[2, 2] last, float[2, 3, 2] y, float[2, 3, 2] w) {
  twice = Add(bias, bias)
  last, y, w = Scan<num_scan_inputs=2, directions=[0, 1],
    body = b (float[2] s, float[2] a, float[2] c) => (float[2] t, float[2] v, float[2] u) {
    sum = Add(s, a)
    t = Add(sum, twice)
    v = Mul(t, c)
    u = Identity(c)
  }>("", first, x, z)
}"""

SEQUENCES = np.linspace(-1, 2, 12, dtype=np.float32).reshape(2, 3, 2)

CASES = {
    "then": (BRANCHES, {"x": X, "c": np.array(True)}),
    "else": (BRANCHES, {"x": X, "c": np.array(False)}),
    "three times": (GROWING, {"x": X, "count": np.array(3), "c": np.array(True)}),
    "never": (GROWING, {"x": X, "count": np.array(0), "c": np.array(True)}),
    "not even once": (GROWING, {"x": X, "count": np.array(5), "c": np.array(False)}),
    "every sequence of a batch": (
        BATCH,
        {"first": X[:, :2].copy(), "x": SEQUENCES, "z": SEQUENCES[::-1].copy(), "bias": np.float32([1, -2])},
    ),
    "backwards": (SCANNED, {"first": np.ones((1, 2), np.float32), "x": X}),
}


@pytest.mark.parametrize("name", CASES)
def test_control_flow(name: str) -> None:
    text, inputs = CASES[name]
    model = parser.parse_model(text)
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, inputs)
    outputs = compiler.load(compiler.compile(model)).run(inputs)
    for got, want in zip(outputs.values(), expected, strict=True):
        assert got.shape == want.shape
        np.testing.assert_array_equal(got, want)


def test_body_that_changes_a_dtype_is_refused() -> None:
    text = GROWING.replace("new = Concat<axis=0>(old, x)", "new = Shape(old)").replace(
        "float[t, 3] new", "int64[2] new"
    )
    with pytest.raises(compiler.CompileError, match="carried"):
        compiler.compile(parser.parse_model(text))


def test_lengths_of_the_sequences_of_a_batch_are_refused() -> None:
    text = BATCH.replace("float[2] bias)", "float[2] bias, int64[2] lengths)").replace(
        '>("", first', ">(lengths, first"
    )
    with pytest.raises(compiler.CompileError, match="lengths of its sequences"):
        compiler.compile(parser.parse_model(text))


LATER = """
<ir_version: 10, opset_import: ["" : 20]>
model (float[2, 3] x, bool c) => (float[A, B] y) <float[4, 1] w = {1, 1, 1, 1}>
{
    y = If (c) <
        then_branch = yes () => (float[A, B] a) { a = MatMul (x, w) },
        else_branch = no () => (float[A, B] b) { b = Neg (x) }
    >
}
"""


def test_a_branch_that_cannot_run_fails_when_it_is_taken():
    x = np.ones((2, 3), np.float32)
    session = compiler.load(compiler.compile(parser.parse_model(LATER)))
    assert np.array_equal(session.run({"x": x, "c": np.array(False)})["y"], -x)
    with pytest.raises(compiler.RunError, match="MatMul: a matrix of 3 columns"):
        session.run({"x": x, "c": np.array(True)})


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ("Reshape (x, five)", r"Reshape: cannot view \[2, 3\] as \[5, 1\]"),
        ("Slice (x, zero, one, zero, zero)", "Slice: the step of a slice is 0"),
    ],
)
@pytest.mark.parametrize("optimize", [True, False])
def test_constants_that_fit_nowhere_fail_where_they_are_read(node: str, message: str, optimize: bool) -> None:
    constants = "int64[2] five = {5, 1}, int64[1] zero = {0}, int64[1] one = {1}"
    text = LATER.replace("MatMul (x, w)", node).replace("float[4, 1] w = {1, 1, 1, 1}", constants)
    x = np.ones((2, 3), np.float32)
    session = compiler.load(compiler.compile(parser.parse_model(text), compiler.Options(optimize=optimize)))
    assert np.array_equal(session.run({"x": x, "c": np.array(False)})["y"], -x)
    with pytest.raises(compiler.RunError, match=message):
        session.run({"x": x, "c": np.array(True)})
    text = text[: text.index("{\n")] + f"{{ y = {node} }}"
    with pytest.raises(compiler.CompileError) as error:
        compiler.compile(parser.parse_model(text), compiler.Options(optimize=optimize))
    assert [each.code for each in error.value.diagnostics] == ["CC0210"]


def test_shapes_that_fit_nowhere_are_refused():
    text = LATER[: LATER.index("{\n")] + "{ y = MatMul (x, w) }"
    with pytest.raises(compiler.CompileError) as error:
        compiler.compile(parser.parse_model(text))
    assert [each.code for each in error.value.diagnostics] == ["CC0210"]


SCRATCH = [
    *rows(
        "float",
        "T[n, m] x, bool k",
        "y = If(k) <then_branch = t () => (T[a, b] u) { u = Neg(x) },"
        " else_branch = e () => (T[a, b] v) { v = Abs(x) }>",
        k=np.array(True),
    ),
    *rows(
        "float",
        "T[n, m] x, int64 k",
        "z, y = Loop(k, , x) <body = b (int64 i, bool d, T[a, b] v) => (bool e, T[a, b] w, T[a, b] u)"
        " { e = Identity(d) w = Neg(v) u = Exp(w) }>",
        k=np.int64(4),
    ),
    *rows("float", ONE, "y = Scan<num_scan_inputs = 1, body = b (T[a] v) => (T[a] w) { w = Neg(v) }>(x)"),
]
