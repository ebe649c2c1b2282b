"""The invariants of a graph: every violation is found."""

import onnx
import onnx.parser
import onnx_ir as ir
import pytest

from compiler.frontend.invariants import violations
from compiler.frontend.load import load_model

SOUND = "y = Conv(x, w, b)"


def model_of(nodes):
    inputs = "float[1, 1, 4, 4] x, float[1, 1, 2, 2] w, float[1] b"
    return load_model(
        onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 11]> g ({inputs}) => (y) {{ {nodes} }}')
    ).model


@pytest.mark.parametrize(
    ("nodes", "messages"),
    [
        (SOUND, []),
        ("y = Conv(x, w)", []),
        ("y = Relu(nowhere)", ["CC0106 the value 'nowhere' is not defined"]),
        ("y = Relu(a) a = Relu(x)", ["CC0106 the value 'a' is read before it is defined"]),
        ("y = Resize(x, , b)", []),
        ("y = Conv(x, , b)", ["CC0205 Conv needs the input W"]),
        ("y = Conv( , w, b)", ["CC0205 Conv needs the input X"]),
        ("y = Conv(x)", ["CC0205 Conv takes 2 to 3 inputs, found 1"]),
        ("y = Conv(x, w, b, b)", ["CC0205 Conv takes 2 to 3 inputs, found 4"]),
        ("y, z = Relu(x)", ["CC0205 Relu has at most 1 outputs, found 2"]),
        ("y = Cast(x)", ["CC0202 Cast needs the attribute to"]),
        ("y = Concat<axis = 1.5>(x)", ["CC0202 Concat's attribute axis is FLOAT, not INT"]),
    ],
)
def test_violations_in_a_file_are_found(nodes, messages):
    assert [f"{each.code} {each.message}" for each in violations(model_of(nodes))] == messages


def forget_graph(model):
    next(iter(model.graph))._graph = None


def forget_producer(model):
    next(iter(model.graph)).outputs[0]._producer = None


def forget_use(model):
    model.graph.inputs[0]._uses.clear()


def forget_input(model):
    model.graph.inputs[0]._is_graph_input = False


def name_twice(model):
    model.graph.inputs[1].name = model.graph.inputs[0].name


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (forget_graph, "Conv does not know its graph"),
        (forget_producer, "a value of Conv does not know the node"),
        (forget_use, "a value of Conv does not know the node"),
        (forget_input, "the value 'x' does not know that a graph has it"),
        (name_twice, "2 inputs have the name 'x'"),
    ],
    ids=lambda part: getattr(part, "__name__", ""),
)
def test_violations_by_a_pass_are_found(spoil, message):
    model = model_of(SOUND)
    assert violations(model) == []
    spoil(model)
    assert [each.message for each in violations(model)] == [message]


def test_a_value_that_every_node_reads_is_looked_at_once(monkeypatch):
    model = model_of("y = Neg(x)")
    x = model.graph.inputs[0]
    for _ in range(1000):
        model.graph.append(ir.Node("", "Neg", [x]))
    looked, uses = [], ir.Value.uses
    monkeypatch.setattr(ir.Value, "uses", lambda value: looked.append(value) or uses(value))
    assert violations(model) == []
    assert looked.count(x) == 1
