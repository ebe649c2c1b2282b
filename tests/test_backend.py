"""The onnx package's backend interface."""

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import helper

import compiler
from compiler import backend

MODEL = """
<ir_version: 10, opset_import: ["" : 20]>
agraph (float[2] a, float[2] b) => (float[4] ab, float[4] ba) {
    ab = Concat<axis=0>(a, b)
    ba = Concat<axis=0>(b, a)
}
"""
A, B = np.float32([1, 2]), np.float32([3, 4])


@pytest.mark.parametrize("inputs", [[A, B], (A, B), {"b": B, "a": A}])
def test_run_model(inputs):
    outputs = backend.run_model(onnx.parser.parse_model(MODEL), inputs)
    np.testing.assert_array_equal(outputs.ab, [1, 2, 3, 4])
    np.testing.assert_array_equal(outputs[1], [3, 4, 1, 2])


@pytest.mark.parametrize("inputs", [A, [A], [A, B, A]])
def test_the_number_of_inputs_is_checked(inputs):
    with pytest.raises(ValueError, match=r"inputs: expected 2 \(a, b\), found [13]"):
        backend.prepare(onnx.parser.parse_model(MODEL)).run(inputs)


def test_run_node():
    node = helper.make_node("Transpose", ["x"], ["y"], perm=[1, 0])
    x = np.arange(6, dtype=np.int64).reshape(2, 3)
    for opset in (13, 21):
        np.testing.assert_array_equal(backend.run_node(node, x, opset_version=opset)[0], x.T)


def test_run_node_reads_an_input_twice():
    node, a = helper.make_node("Concat", ["a", "b", "a"], ["y"], axis=0), np.float32([1, np.nan])
    for inputs in ([a, B, a], [a, B]):
        np.testing.assert_array_equal(backend.run_node(node, inputs)[0], [1, np.nan, 3, 4, 1, np.nan])
    for inputs in ([a, B, B], [a], [a, B, a, B]):
        with pytest.raises(ValueError, match=r"two different arrays|reads 3 inputs"):
            backend.run_node(node, inputs)


def test_it_states_which_models_and_devices_it_supports():
    model = onnx.parser.parse_model(MODEL)
    assert backend.is_compatible(model)
    model.graph.node[0].op_type = "Nonsense"
    assert not backend.is_compatible(model)
    assert backend.supports_device("CPU") and backend.supports_device("CPU:0")
    assert not backend.supports_device("ABACUS")


def test_it_is_there_without_an_import_of_its_own():
    assert compiler.backend.prepare is backend.prepare
