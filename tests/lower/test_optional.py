import numpy as np
import pytest
from onnx import parser

import compiler
from tests.scratch.row import ONE, rows


def session_of(graph):
    model = parser.parse_model(f'<ir_version: 9, opset_import: ["" : 18]> {graph}')
    return compiler.load(compiler.compile(model), threads=1)


@pytest.mark.parametrize(("value", "there"), [(np.float32([1, 2]), True), (None, False)])
def test_inputs_that_may_be_missing(value, there):
    session = session_of("test (optional(float[n]) x) => (bool y) { y = OptionalHasElement(x) }")
    assert session.run({"x": value})["y"] == there


def test_nothing_given():
    assert not session_of("test () => (bool y) { y = OptionalHasElement() }").run({})["y"]


def test_elements_come_out():
    body = "o = Optional(x) y = OptionalGetElement(o) there = OptionalHasElement(o)"
    session = session_of(f"test (float[n] x) => (float[n] y, bool there) {{ {body} }}")
    found = session.run({"x": np.float32([1, 2])})
    assert found["y"].tolist() == [1, 2] and found["there"]


def test_nothing_to_get():
    session = session_of("test (optional(float[n]) x) => (float[n] y) { y = OptionalGetElement(x) }")
    assert session.run({"x": np.float32([3])})["y"].tolist() == [3]
    with pytest.raises(compiler.RunError, match="holds nothing"):
        session.run({"x": None})


SCRATCH = [
    *rows("float", ONE, "o = Optional(x) y = OptionalGetElement(o)"),
    *rows("float", ONE, "o = Optional(x) y = OptionalHasElement(o)"),
    *rows(
        "float",
        f"{ONE}, bool e",
        "o = If(e) <then_branch = g () => (optional(T[n, m]) t) { t = Optional(x) },"
        " else_branch = g () => (optional(T[n, m]) u) { z = Neg(x) u = Optional(z) }>"
        " y = OptionalHasElement(o) s = Cast<to = 7>(y)",
    ),
]
