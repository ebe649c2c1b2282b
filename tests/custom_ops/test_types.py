"""Rules for the types of custom operators, and what the compiler refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx.parser
import pytest

import compiler
from compiler import CompileError, TensorInfo
from compiler.frontend.load import load_model
from compiler.ir.text import graph_text
from compiler.pipeline import optimize, passes
from tests.custom_ops.models import DOUBLE, like, model_of, plan_of, register_double

X = np.ones((3, 2), np.float32)

WRONG: dict[str, tuple[Callable[..., Any], str]] = {
    "an exception": (lambda x: 1 / 0, "raised ZeroDivisionError: division by zero"),
    "another signature": (lambda: ("float32", ()), "raised TypeError: "),
    "nothing": (lambda x: None, "returned None: expected a pair of a dtype and a shape"),
    "a shape": (lambda x: x.shape, "returned ('n', 2): expected the name of a dtype, such as float32, found 'n'"),
    "a type of NumPy": (lambda x: (np.float32, (2,)), "expected the name of a dtype, such as float32, found"),
    "an unknown dtype": (lambda x: ("float33", (2,)), "expected the name of a dtype, such as float32, found 'float33'"),
    "another symbol": (lambda x: ("float32", ("m", 2)), "no input has the symbol 'm': use None for a size"),
    "an expression": (lambda x: ("float32", ("2*n", 2)), "no input has the symbol '2*n'"),
    "a negative size": (lambda x: ("float32", (-1, 2)), "-1 is no size"),
    "a truth": (lambda x: ("float32", (True, 2)), "True is no size"),
    "a fraction": (lambda x: ("float32", (1.5, 2)), "'float' object cannot be interpreted as an integer"),
    "a number": (lambda x: ("float32", 2), "'int' object is not iterable"),
    "a sequence": (lambda x: TensorInfo("y", "float32", (2,), "sequence"), "an output is a tensor"),
    "no outputs": (lambda x: [], "own::Double has 0 outputs by the rule for its types, and the node 1"),
}


@pytest.mark.parametrize(("types", "said"), WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("optimize", [True, False])
def test_a_wrong_rule_is_refused(types: Callable[..., Any], said: str, optimize: bool) -> None:
    compiler.custom_op("own::Double", types)(lambda x: x)
    with pytest.raises(CompileError) as raised:
        plan_of(DOUBLE, optimize=optimize)
    (found,) = raised.value.diagnostics
    assert (found.code, found.origin and found.origin.nodes) == ("CC0209", ("Double(y)",))
    assert said in found.message


def test_a_rule_gets_the_types_of_the_inputs() -> None:
    seen = []

    def types(*given: TensorInfo | None, **attributes: Any) -> tuple[str, tuple[int, ...]]:
        seen.append((*map(str, given), attributes))
        return "int64", ()

    compiler.custom_op("own::Look", types)(lambda *given, **_: np.array(len(given)))
    graph = """(float[batch_size, 3] x, seq(int32[2]) s, float16[4] z) => (int64 y) {
        y = own.Look <axis = 1, t = float[1] {2}> (x, , s, z)
    }"""
    session = compiler.load(plan_of(graph))
    outputs = session.run({"x": np.ones((1, 3), np.float32), "s": [], "z": np.ones(4, np.float16)})
    assert outputs["y"] == 4
    types_ = ("float32 [batch_size, 3]", "None", "sequence of int32", "float16 [4]")
    assert {each[:4] for each in seen} >= {types_}
    assert all(each[4] == {"axis": 1, "t": np.float32([2])} for each in seen)


def test_symbols_with_odd_names_pass_through() -> None:
    register_double()
    model = model_of(DOUBLE)
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "batch-size"
    plan = compiler.compile(model)
    assert plan.outputs[0].shape == ("batch-size", 2)
    session = compiler.load(plan)
    np.testing.assert_array_equal(session.run({"x": X})["y"], 2 * X)


def test_shapes_reach_later_operators() -> None:
    """A reshape with the sizes of the result needs no step that computes them."""
    register_double()
    graph = """(float[n, 2] x) => (float[m, k] y) {
        a = own.Double (x)
        b = Relu (x)
        shape = Shape (a)
        y = Reshape (b, shape)
    }"""
    document = plan_of(graph).document
    assert [next(iter(step["op"])) for step in document["main"]["steps"]] == ["Unary"]
    compiler.custom_op("own::Double", lambda x: (x.dtype, (None, 2)))(lambda x: 2 * x)
    plan = plan_of(graph)
    assert plan.custom_ops == ["own::Double"]  # its output may have another number of rows
    np.testing.assert_array_equal(compiler.load(plan).run({"x": X})["y"], X)


def test_passes_change_nothing_when_they_run_again() -> None:
    compiler.custom_op("own::Rows", lambda x: [(x.dtype, (None, *x.shape[1:])), ("int64", (None,))])(lambda x: [x, x])
    graph = """(float[n, 2] x) => (float[a, b] y, int64[c] z) {
        rows, places = own.Rows (x)
        y = Relu (rows)
        twice, z = own.Rows (rows)
    }"""
    model, options = load_model(model_of(graph)).model, compiler.Options()
    optimize(model, options)
    before = graph_text(model.graph)
    assert before.count("own.Rows") == 2
    for step in passes(options):
        step.run(model)
        assert graph_text(model.graph) == before, f"{step.name} changes what it made"


def test_a_type_that_the_file_declares_is_checked() -> None:
    compiler.custom_op("own::Double", lambda x: ("int32", x.shape))(lambda x: x.astype(np.int32))
    with pytest.raises(CompileError) as raised:
        plan_of(DOUBLE)
    assert [each.code for each in raised.value.diagnostics] == ["CC0404"]
    found = plan_of("(float[n, 2] x) => (int32[n, 2] y) { y = own.Double (x) }")
    assert compiler.load(found).run({"x": X})["y"].dtype == np.int32


def test_attributes_that_a_plan_lacks_are_refused() -> None:
    compiler.custom_op("own::Double", lambda x, **_: x)(lambda x, **_: x)
    graph = (
        "(float[n, 2] x) => (float[n, 2] y) { y = own.Double <g = b (float[2] a) => (float[2] c) { c = Neg (a) }> (x) }"
    )
    with pytest.raises(CompileError, match="Double's attribute g is GRAPH: custom operators take numbers, strings"):
        plan_of(graph)
    model = model_of("(float[n, 2] x) => (float[n, 2] y) { y = own.Double <f = 1.0> (x) }")
    model.graph.node[0].attribute[0].f = float("inf")
    with pytest.raises(CompileError, match="an attribute of Custom is infinite or not a number"):
        compiler.compile(model)


@pytest.mark.parametrize("optimize", [True, False])
def test_a_known_operator_is_not_registered_too(optimize: bool) -> None:
    register_double()
    compiler.custom_op("com.microsoft::FastGelu", like)(lambda x: x)
    text = """<ir_version: 10, opset_import: ["": 21, "own": 1, "com.microsoft": 1]>
    m (float[n, 2] x) => (float[n, 2] y) { a = own.Double (x) y = com.microsoft.FastGelu (a) }
    <domain: "own", opset_import: ["": 21]> Double (v) => (w) { w = Add (v, v) }"""
    with pytest.raises(CompileError) as raised:
        compiler.compile(onnx.parser.parse_model(text), compiler.Options(optimize=optimize))
    assert [(each.code, each.message.partition(",")[0]) for each in raised.value.diagnostics] == [
        ("CC0209", "the model defines own::Double already"),
        ("CC0209", "the compiler defines com.microsoft::FastGelu already"),
    ]


def test_the_message_of_an_unknown_operator_says_how() -> None:
    with pytest.raises(CompileError) as raised:
        plan_of(DOUBLE)
    (found,) = raised.value.diagnostics
    assert (found.code, found.help) == (
        "CC0201",
        'compiler.custom_op("own::Double", …) registers a function of your own for it',
    )


NAMES = {
    "": "expected a domain and an operator",
    "Double": "as \"my.domain::Name\", found 'Double'",
    "::Double": "expected a domain and an operator",
    "own::": "expected a domain and an operator",
    "ai.onnx::Relu": "a custom operator has a domain of its own, but ai.onnx is taken",
    "candle.plan::LookUp": "candle.plan is taken",
}


@pytest.mark.parametrize(("name", "said"), NAMES.items())
def test_names_have_a_domain(name: str, said: str) -> None:
    with pytest.raises(ValueError, match=r"^name: ") as raised:
        compiler.custom_op(name, like)
    assert said in str(raised.value)


def test_other_arguments_are_checked() -> None:
    wrong: Any
    for wrong, said in ((7, "name: expected a string, found int"), (None, "name: expected a string")):
        with pytest.raises(TypeError, match=said):
            compiler.custom_op(wrong, like)
    wrong = "float32"
    with pytest.raises(TypeError, match="types: expected a function, found str"):
        compiler.custom_op("own::Double", wrong)
    with pytest.raises(TypeError, match="the decorated object of own::Double: expected a function, found str"):
        compiler.custom_op("own::Double", like)(wrong)
    with pytest.raises(ValueError, match="as_: expected 'numpy' or 'torch', found 'float32'"):
        compiler.custom_op("own::Double", like, as_=wrong)
