"""The models of the `onnx` package with one thing changed: each is compiled or refused, and never fails otherwise."""

import random
from pathlib import Path

import onnx.printer
import pytest
from onnx.backend.test.loader import load_model_tests

import compiler
from compiler import CompileError, Options

MODELS = load_model_tests(kind="node")
INT, INTS, FLOAT, STRING = (
    onnx.AttributeProto.AttributeType.Value(name) for name in ("INT", "INTS", "FLOAT", "STRING")
)
COUNT = 400


def change_attribute(model, node, choose):
    for attribute in choose.sample(list(node.attribute), len(node.attribute)):
        if attribute.type == INT:
            attribute.i = choose.choice([-3, -1, 0, 1, 2, 100])
        elif attribute.type == INTS and choose.random() < 0.5:
            attribute.ints.append(choose.choice([-1, 0, 1, 7]))
        elif attribute.type == INTS and attribute.ints:
            attribute.ints[choose.randrange(len(attribute.ints))] = choose.choice([-3, -1, 0, 1, 100])
        elif attribute.type == FLOAT:
            attribute.f = choose.choice([-1.0, 0.0, float("nan"), 1e30])
        elif attribute.type == STRING:
            attribute.s = choose.choice([b"", b"other", attribute.s.upper()])
        return


def change_inputs(model, node, choose):
    if choose.random() < 0.4 and model.graph.input:
        node.input.append(choose.choice(model.graph.input).name)
    elif node.input and choose.random() < 0.5:
        del node.input[-1]
    elif node.input:
        node.input[choose.randrange(len(node.input))] = ""


def change_type(model, node, choose):
    value = choose.choice([*model.graph.input, *model.graph.output])
    if value.type.HasField("tensor_type"):
        value.type.tensor_type.elem_type = choose.choice([0, 1, 6, 7, 9, 10, 11, 99])


def change_shape(model, node, choose):
    shaped = [value.type.tensor_type.shape.dim for value in model.graph.input if value.type.HasField("tensor_type")]
    for dims in choose.sample(shaped, min(1, len(shaped))):
        if not dims or choose.random() < 0.3:
            dims.add().dim_value = choose.choice([0, 1, 2])
        elif choose.random() < 0.5:
            del dims[-1]
        else:
            choose.choice(dims).dim_value = choose.choice([0, 1, 2, 5, 7])


@pytest.mark.parametrize(
    "change", [change_attribute, change_inputs, change_type, change_shape], ids=lambda f: f.__name__
)
def test_a_changed_model_is_compiled_or_refused(change):
    choose = random.Random(change.__name__)
    compiled = 0
    for case in choose.sample(MODELS, COUNT):
        changed = onnx.ModelProto()
        # Old versions of onnx have a file for each model.
        changed.CopyFrom(case.model or onnx.load(Path(case.model_dir) / "model.onnx"))
        change(changed, choose.choice(changed.graph.node), choose)
        try:
            compiler.compile(changed, Options(optimize=choose.random() < 0.7))
            compiled += 1
        except CompileError:
            pass
        except Exception as error:
            raise AssertionError(f"{case.name} fails otherwise: {onnx.printer.to_text(changed)}") from error
    assert 0 < compiled < COUNT
