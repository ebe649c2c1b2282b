"""Files that ONNX does not allow: they run as in onnxruntime, with a warning, and `strict` refuses them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import compiler
from compiler import CompileError, Diagnostic, Options
from compiler.accuracy.reference import Reference, ReferenceFailed

X = np.float32([[1, 2, 3, 4], [5, 6, 7, 9]])
ONES, TWOS = np.ones(4, np.float32), np.full(4, 2, np.float32)


def model(nodes: list[onnx.NodeProto], weights: tuple[tuple[str, Any], ...] = (), opset: int = 20) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, X.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in weights],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def constant(array: np.ndarray, name: str = "c") -> onnx.NodeProto:
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array, "value"))


def number(value: float) -> onnx.NodeProto:
    return helper.make_node("Constant", [], ["c"], value_float=value)


def norm(op_type: str, **attributes: Any) -> list[onnx.NodeProto]:
    return [helper.make_node(op_type, ["x", "g"], ["y"], name="norm", **attributes)]


ADD = helper.make_node("Add", ["x", "c"], ["y"])
GAMMA = (("g", ONES),)
TOLERATED = {
    "an attribute": (
        model(norm("LayerNormalization", epsion=0.5), GAMMA),
        "LayerNormalization has no attribute epsion",
    ),
    "an attribute at an older opset": (
        model(norm("LayerNormalization", epsion=0.5), GAMMA, opset=14),
        "LayerNormalization has no attribute epsion",
    ),
    "an attribute of another norm": (
        model(norm("SimplifiedLayerNormalization", epsion=0.5, axis=-1), GAMMA),
        "SimplifiedLayerNormalization has no attribute epsion",
    ),
    "constants": (model([constant(ONES), constant(ONES), ADD]), "the name 'c' stands for several constants"),
    "numbers": (model([number(2.0), number(2.0), ADD]), "the name 'c' stands for several constants"),
    "a constant and a weight": (model([constant(ONES), ADD], (("c", ONES),)), "stands for several constants"),
    "equal weights": (model([ADD], (("c", ONES), ("c", ONES))), "2 initializers have the name 'c': they are equal"),
    "other weights": (
        model([ADD], (("c", ONES), ("c", TWOS))),
        "2 initializers have the name 'c': the last one counts",
    ),
}


def warnings_of(given: onnx.ModelProto, **options: Any) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    compiler.compile(given, Options(on_pass=lambda report: found.extend(report.warnings), **options))
    return found


@pytest.mark.parametrize("name", TOLERATED)
@pytest.mark.parametrize("optimize", [True, False])
def test_runs_as_in_onnxruntime_with_a_warning(name: str, optimize: bool) -> None:
    given, message = TOLERATED[name]
    before = given.SerializeToString()
    [warning] = warnings_of(given, optimize=optimize)
    assert (warning.code, warning.severity) == ("CC0408", "warning") and message in warning.message
    assert warning.origin is not None
    found = compiler.load(compiler.compile(given, Options(optimize=optimize))).run({"x": X})["y"]
    np.testing.assert_allclose(found, Reference(given, optimize=False).run({"x": X})["y"], rtol=1e-5, atol=1e-6)
    assert given.SerializeToString() == before, "the caller's model stays as it is"


@pytest.mark.parametrize("name", TOLERATED)
def test_strict_refuses_it(name: str) -> None:
    with pytest.raises(CompileError) as raised:
        compiler.compile(TOLERATED[name][0], Options(strict=True))
    assert {each.code for each in raised.value.diagnostics} <= {"CC0106", "CC0203"}


def test_the_warning_names_the_node_and_a_similar_attribute() -> None:
    [warning] = warnings_of(TOLERATED["an attribute"][0])
    assert "LayerNormalization(norm)" in str(warning.origin)
    assert warning.help.startswith("did you mean epsilon?")


def test_in_a_branch_and_in_a_function() -> None:
    branch = helper.make_graph(
        norm("LayerNormalization", epsion=0.5), "b", [], [helper.make_empty_tensor_value_info("y")]
    )
    taken = helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)
    given = model([taken], (*GAMMA, ("c", np.array(True))))
    assert len(warnings_of(given)) == 2
    opset = [helper.make_opsetid("", 20)]
    body = helper.make_function("own", "F", ["x", "g"], ["y"], norm("LayerNormalization", epsion=0.5), opset)
    given = model([helper.make_node("F", ["x", "g"], ["y"], domain="own")], GAMMA)
    given.functions.append(body)
    given.opset_import.append(helper.make_opsetid("own", 1))
    assert len(warnings_of(given)) == 1
    found = compiler.load(compiler.compile(given)).run({"x": X})["y"]
    np.testing.assert_allclose(found, Reference(given).run({"x": X})["y"], rtol=1e-5, atol=1e-6)


REFUSED = {
    "an attribute of another operator": model([helper.make_node("Relu", ["x"], ["y"], foo=1)]),
    "an integer for a number": model([helper.make_node("LeakyRelu", ["x"], ["y"], alpha=1)]),
    "a number for an integer": model([helper.make_node("Softmax", ["x"], ["y"], axis=1.0)]),
    "an integer for a list": model([helper.make_node("Transpose", ["x"], ["y"], perm=1)]),
    "a list for an integer": model([helper.make_node("Flatten", ["x"], ["y"], axis=[1])]),
    "an integer for a number of a norm": model(norm("LayerNormalization", epsilon=1), GAMMA),
    "two nodes": model([helper.make_node("Neg", ["x"], ["c"]), helper.make_node("Neg", ["x"], ["c"]), ADD]),
}
"""onnxruntime refuses these files too."""


@pytest.mark.parametrize("name", REFUSED)
def test_what_onnxruntime_refuses_is_refused(name: str) -> None:
    with pytest.raises(ReferenceFailed):
        Reference(REFUSED[name]).run({"x": X})
    with pytest.raises(CompileError):
        compiler.compile(REFUSED[name])


def test_different_constants_of_one_name_are_refused() -> None:
    with pytest.raises(CompileError, match=r"CC0106.*2 nodes define the value 'c'"):
        compiler.compile(model([constant(ONES), constant(TWOS), ADD]))


@pytest.mark.parametrize("strict", [False, True])
def test_a_squeeze_in_a_branch_that_is_not_taken(strict: bool) -> None:
    """The size of the axis is 2, so that the squeeze would fail."""
    squeezed, same = (
        helper.make_graph([node], "b", [], [helper.make_empty_tensor_value_info("z")])
        for node in (helper.make_node("Squeeze", ["x", "a"], ["z"]), helper.make_node("Identity", ["x"], ["z"]))
    )
    chosen = helper.make_node("If", ["c"], ["y"], then_branch=squeezed, else_branch=same)
    given = model([chosen], (("a", np.array([0])),))
    given.graph.input.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    for axis, name in enumerate("NM"):
        given.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = name
    feeds = {"x": X, "c": np.array(False)}
    for dims in ({}, {"N": 2}):
        session = compiler.load(compiler.compile(given, Options(dims=dims, strict=strict)))
        np.testing.assert_array_equal(session.run(feeds)["y"], Reference(given).run(feeds)["y"])
        with pytest.raises(compiler.RunError, match="Squeeze"):
            session.run({"x": X, "c": np.array(True)})
