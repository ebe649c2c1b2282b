"""The declarations of values in a model's file: repeated names, wrong types and wrong kinds."""

import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper

import compiler
from compiler import CompileError, Options
from compiler.frontend.load import load_model
from compiler.ir import origin

HEAD = '<ir_version: 10, opset_import: ["": 20, "own": 1]> '


def parsed(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(HEAD + text)


def findings(model, **options):
    """The findings without their advice."""
    with pytest.raises(CompileError) as error:
        compiler.compile(model, Options(**options))
    return [str(each).partition("\n  help")[0] for each in error.value.diagnostics]


TWICE = {
    "two nodes": ("y = Neg(x) y = Abs(x)", "2 nodes define the value 'y'\n  --> Neg(y) + Abs(y)"),
    "a node and an input": (
        "x = Neg(x) y = Abs(x)",
        "a node defines the value 'x', which the graph is given\n  --> Neg(x)",
    ),
    "in a branch": (
        """y = If (c) <then_branch = t () => (float[2] a) { a = Neg(x) a = Abs(x) },
                      else_branch = e () => (float[2] b) { b = Neg(x) }>""",
        "2 nodes define the value 'a'\n  --> Neg(a) + Abs(a)",
    ),
}


@pytest.mark.parametrize("case", TWICE)
def test_names_that_are_there_twice(case):
    nodes, expected = TWICE[case]
    model = parsed(f"g (float[2] x, bool c) => (float[2] y) {{ {nodes} }}")
    assert findings(model) == [f"error[CC0106]: {expected}"]


OUTPUTS = {
    "a node's": (
        "g (float[2] x) => (double[2] y) { y = Neg(x) }",
        "the file declares the output 'y' as float64, but the operators give float32",
    ),
    "an input": (
        "g (float[2] x) => (int64[2] x) { y = Neg(x) }",
        "the file declares the output 'x' as int64, but the operators give float32",
    ),
    "a weight": (
        "g (float[2] x) => (float[2] y, float16[2] w) <float[2] w = {1, 2}> { y = Add(x, w) }",
        "the file declares the output 'w' as float16, but the operators give float32",
    ),
    "a function's": (
        """g (float[2] x) => (double[2] y) { y = own.F(x) }
        <domain: "own", opset_import: ["": 20]> F (x) => (y) { y = Neg(x) }""",
        "the file declares the output 'y' as float64, but the operators give float32",
    ),
    "an operator's that is expanded": (
        "g (float[2, 2] x) => (double[2, 2] y) { y = MeanVarianceNormalization<axes = [1]>(x) }",
        "the file declares the output 'y' as float64, but the operators give float32",
    ),
    "a tensor for a sequence": (
        "g (float[2] x) => (seq(float[2]) y) { y = Neg(x) }",
        "the file declares the output 'y' as sequence of float32, but the operators give float32",
    ),
    "a sequence of others": (
        "g (float[2] x) => (seq(double[2]) y) { y = SequenceConstruct(x) }",
        "the file declares the output 'y' as sequence of float64, but the operators give sequence of float32",
    ),
}


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("case", OUTPUTS)
def test_an_output_is_of_its_declared_type(case, optimize):
    text, expected = OUTPUTS[case]
    [found] = findings(parsed(text), optimize=optimize)
    assert found.splitlines()[0] == f"error[CC0404]: {expected}"


def test_an_output_without_a_type_has_that_of_its_operator():
    model = parsed("g (float[2] x) => (float[2] y) { y = Neg(x) }")
    model.graph.output[0].ClearField("type")
    assert compiler.compile(model).outputs[0].dtype == "float32"


def test_an_input_that_is_an_output_keeps_its_shape():
    model = parsed("g (float[n, 3] x) => (float[a, b] x, float[n, 3] y) { y = Neg(x) }")
    assert compiler.compile(model).inputs[0].shape == ("n", 3)


def test_a_wrong_type_in_between_is_reported():
    model = parsed("g (float[2] x) => (float[2] y) { a = Neg(x) y = Abs(a) }")
    model.graph.value_info.append(helper.make_tensor_value_info("a", TensorProto.DOUBLE, [2]))
    warnings = []
    plan = compiler.compile(model, Options(on_pass=lambda report: warnings.extend(report.warnings)))
    assert [each.message for each in warnings] == ["the file declares 'a' as float64, but the operators give float32"]
    assert plan.outputs[0].dtype == "float32"


def test_a_model_without_outputs():
    assert findings(parsed("g (float[2] x) => () { y = Neg(x) }")) == ["error[CC0106]: the model has no outputs"]


MAP = helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
KINDS = {
    "maps": MAP,
    "sequences of maps": helper.make_sequence_type_proto(MAP),
    "optional sequences of maps": helper.make_optional_type_proto(helper.make_sequence_type_proto(MAP)),
    "sparse tensors": helper.make_sparse_tensor_type_proto(TensorProto.FLOAT, [2]),
    "opaque values": onnx.TypeProto(opaque_type=onnx.TypeProto.Opaque(name="thing")),
    "sequences of values of no type": onnx.TypeProto(sequence_type=onnx.TypeProto.Sequence()),
    "tensors of an unknown type": helper.make_tensor_type_proto(99, [2]),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", ["input", "output", "value_info"])
def test_kinds_of_values_that_no_plan_has(kind, place):
    model = parsed("g (float[2] x) => (float[2] y) { a = Neg(x) y = Abs(a) }")
    model.graph.value_info.add(name="a")
    value = getattr(model.graph, place)[0]
    value.type.CopyFrom(KINDS[kind])
    what = {"value_info": "value"}.get(place, place)
    assert findings(model) == [f"error[CC0205]: the {what} {value.name!r} holds {kind}, which are not supported"]


def damaged(model: onnx.ModelProto, text: bytes) -> bytes:
    """The file of the model with a byte that is not UTF-8 in place of each `?` of the text."""
    data = model.SerializeToString()
    assert text in data
    return data.replace(text, text.replace(b"?", b"\xe9"))


@pytest.mark.parametrize("name", [b"in?put", b"out?put", b"weight?", b"node?", b"dim?", b"maker?"])
def test_names_that_are_not_utf8_are_refused(name):
    node = helper.make_node("Add", ["in?put", "weight?"], ["out?put"], name="node?")
    values = [helper.make_tensor_value_info(each, TensorProto.FLOAT, ["dim?"]) for each in ("in?put", "out?put")]
    weight = helper.make_tensor("weight?", TensorProto.FLOAT, [1], [1])
    graph = helper.make_graph([node], "g", values[:1], values[1:], [weight])
    found = findings(damaged(helper.make_model(graph, producer_name="maker?"), name))
    broken = name.replace(b"?", b"\xe9")
    assert found == [f"error[CC0101]: this is not a valid ONNX model: {broken!r} is not UTF-8"]


def test_a_stack_trace_that_is_not_utf8_is_read():
    model = parsed("g (float[2] x) => (float[2] y) { y = Neg(x) }")
    trace = 'File "caf?/net.py", line 3, in forward'
    model.graph.node[0].metadata_props.add(key="pkg.torch.onnx.stack_trace", value=trace)
    [node] = load_model(damaged(model, trace.encode())).model.graph
    assert origin.of(node).source == "caf\N{REPLACEMENT CHARACTER}/net.py:3 in forward"


CONSTANTS = {
    "none": ("Constant()", "error[CC0202]: Constant needs exactly one attribute, its value, found none"),
    "two": (
        "Constant<value_float = 2.0, value_int = 1>()",
        "error[CC0202]: Constant needs exactly one attribute, its value, found value_float, value_int",
    ),
    "unknown": ("Constant<value_floaz = 2.0>()", "error[CC0203]: Constant does not support the attribute value_floaz"),
}


@pytest.mark.parametrize("case", CONSTANTS)
def test_a_constant_has_one_known_attribute(case):
    text, expected = CONSTANTS[case]
    top = f"g (float[2] x) => (float[2] y) {{ c = {text} y = Mul(x, c) }}"
    inside = f"""g (float[2] x) => (float[2] y) {{ y = own.F(x) }}
        <domain: "own", opset_import: ["": 20]> F (x) => (y) {{ c = {text} y = Mul(x, c) }}"""
    for model in (top, inside):
        assert findings(parsed(model)) == [f"{expected}\n  --> Constant(c)"]


def test_a_constant_needs_the_attribute_that_its_function_is_given():
    text = """g (float[2] x) => (float[2] y) { y = own.F(x) }
        <domain: "own", opset_import: ["": 20]> F <number> (x) => (y) {
            c = Constant<value_float: float = @number>() y = Mul(x, c)
        }"""
    [found] = findings(parsed(text))
    assert found.startswith("error[CC0202]: Constant has no value\n  --> Constant(")
