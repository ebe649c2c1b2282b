"""inline_functions and expand_functions."""

import numpy as np
import onnx
import onnx.parser
import pytest

import compiler
from compiler import CompileError
from compiler.frontend.load import load_model
from compiler.ir.text import graph_text
from compiler.passes.expand_functions import expand_functions
from compiler.passes.infer_shapes import infer_shapes
from compiler.passes.inline_functions import inline_functions

MODEL = """
<ir_version: 10, opset_import: ["" : 20, "own" : 1]>
agraph (float[N] x) => (float[N] y) {
    a = own.twice<slope: float = 0.5>(x)
    y = own.outer(a, x)
}
<domain: "own", opset_import: ["" : 17]>
twice <slope: float = 0.25> (x) => (y) {
    s = LeakyRelu<alpha: float = @slope>(x)
    y = Add(s, s)
}
<domain: "own", opset_import: ["" : 20, "own" : 1]>
outer (a, b, absent) => (y, b) {
    t = own.twice(a)
    y = Clip(t, absent, b)
}
"""


def model_of(text):
    return load_model(onnx.parser.parse_model(text)).model


def test_functions_of_the_model(check_pass):
    model = model_of(MODEL)
    report = check_pass(inline_functions, model, same_results=None)
    assert [fired.origin.nodes for fired in report.fired] == [("twice(a)",), ("outer(y)",), ("twice(t)",)]
    lines = graph_text(model.graph).splitlines()
    operators = [line.split(" = ")[1].split("(")[0] for line in lines if " = " in line]
    assert operators[:4] == ["LeakyRelu:17", "Add:17", "LeakyRelu:17", "Add:17"] and "Clip" in operators
    assert "alpha=0.5" in lines[1] and "alpha=0.25" in lines[3]
    assert all("own." not in line for line in lines)


def test_functions_that_call_each_other():
    model = model_of(
        MODEL.replace("s = LeakyRelu<alpha: float = @slope>(x)", "s = own.outer(x, x)").replace(
            '["" : 17]', '["" : 20, "own" : 1]'
        )
    )
    with pytest.raises(CompileError) as error:
        inline_functions.run(model)
    assert [item.code for item in error.value.diagnostics] == ["CC0107"]


BODIES = [
    (20, "y = HardSwish(x)"),
    (20, "y = Celu<alpha=2.0>(x)"),
    (20, "y = Gelu(x)"),
    (20, "y = LayerNormalization(x, x)"),
    (18, "y = MeanVarianceNormalization<axes=[0]>(x)"),
    (20, "y = Softplus(x)"),
]


@pytest.mark.parametrize(("opset", "node"), BODIES)
def test_bodies_of_the_standard(check_pass, parse, opset, node):
    model = parse(f"agraph (float[3] x) => (float[3] y) {{ {node} }}", opset=opset)
    name = node.split(" = ")[1].split("(")[0].split("<")[0]
    infer_shapes.run(model)
    report = check_pass(expand_functions(lambda node: node.op_type != name), model, same_results=(1e-5, 1e-6))
    assert [fired.rule for fired in report.fired] == [f"expand {name}"]
    assert name + "(" not in graph_text(model.graph)


def test_an_expanded_node_keeps_its_origin(parse):
    from compiler.ir import origin

    model = parse("agraph (float[3] x) => (float[3] y) { y = HardSwish(x) }")
    infer_shapes.run(model)
    expand_functions(lambda node: node.op_type != "HardSwish").run(model)
    assert {origin.of(node).nodes for node in model.graph} == {("HardSwish(y)",)}


def test_map_whose_body_declares_no_types_and_uses_an_outer_value():
    text = """
        <ir_version: 10, opset_import: ["" : 20]>
        agraph (float[2, 3] x) => (float[2, 3] y) <int64 zero = {0}> {
            s = SequenceConstruct(x, x)
            t = SequenceMap<body = inner (item) => (result) { n = Neg(item) result = Sub(n, x) }>(s)
            y = SequenceAt(t, zero)
        }
    """
    plan = compiler.compile(onnx.parser.parse_model(text))
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(compiler.load(plan).run({"x": x})["y"], -2 * x)


def test_map_whose_body_has_an_unknown_type_is_refused():
    text = """
        <ir_version: 10, opset_import: ["" : 20, "own" : 1]>
        agraph (float[2, 3] x) => (float[2, 3] y) <int64 zero = {0}> {
            s = SequenceConstruct(x, x)
            t = SequenceMap<body = inner (item) => (result) { result = own.Unknown(item) }>(s)
            y = SequenceAt(t, zero)
        }
    """
    with pytest.raises(CompileError) as error:
        compiler.compile(onnx.parser.parse_model(text))
    assert "CC0201" in {item.code for item in error.value.diagnostics}
