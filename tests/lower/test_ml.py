"""Operators of the domain `ai.onnx.ml` against onnxruntime."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import compiler
from tests.lower.conftest import assert_same, reference
from tests.scratch.row import ONE, rows


def texts(*values):
    return np.array(values, object)


def model_of(op_type, inputs, output, version, **attributes):
    types = {"O": TensorProto.STRING}
    value = [
        helper.make_tensor_value_info(
            f"x{i}", types.get(array.dtype.kind) or helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for i, array in enumerate(inputs)
    ]
    node = helper.make_node(op_type, [v.name for v in value], ["y"], domain="ai.onnx.ml", **attributes)
    result = helper.make_tensor_value_info("y", output, None)
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", version)]
    return helper.make_model(helper.make_graph([node], "ml", value, [result]), opset_imports=opsets, ir_version=10)


def check(op_type, inputs, output, version, expected=None, **attributes):
    model = model_of(op_type, inputs, output, version, **attributes)
    feeds = {f"x{i}": array for i, array in enumerate(inputs)}
    found = list(compiler.load(compiler.compile(model), threads=1).run(feeds).values())
    wanted = reference(model, feeds) if expected is None else [expected]
    assert_same(found[0], wanted[0], 0, 0, op_type)


STRINGS = {"keys_strings": ["a", "b", "c"]}
X = texts("b", "?", "a", "c")


@pytest.mark.parametrize("version", [2, 4])
def test_label_encoder(version):
    check("LabelEncoder", [X], TensorProto.INT64, version, **STRINGS, values_int64s=[5, 6, 7], default_int64=42)
    check("LabelEncoder", [X.reshape(2, 2)], TensorProto.INT64, version, **STRINGS, values_int64s=[5, 6, 7])
    check("LabelEncoder", [X], TensorProto.FLOAT, version, **STRINGS, values_floats=[0.5, 1.5, -2.0])
    check("LabelEncoder", [X], TensorProto.STRING, version, **STRINGS, values_strings=["x", "y", "z"])
    numbers = {"keys_int64s": [3, 1, 2], "values_strings": ["three", "one", "two"]}
    check("LabelEncoder", [np.array([[1, 2], [3, 4]])], TensorProto.STRING, version, **numbers, default_string="many")
    reals = {"keys_floats": [1.5, float("nan"), 0.0], "values_int64s": [1, 2, 3]}
    expected = np.array([2, 3, 1, -1])
    check("LabelEncoder", [np.float32([np.nan, 0, 1.5, 2])], TensorProto.INT64, version, expected, **reals)


def test_label_encoder_with_tensors():
    tensors = {
        "keys_tensor": numpy_helper.from_array(np.array([1.5, 2.5]), "keys"),
        "values_tensor": numpy_helper.from_array(np.int16([10, 20]), "values"),
        "default_tensor": numpy_helper.from_array(np.int16([-7]), "default"),
    }
    check("LabelEncoder", [np.array([2.5, 0, 1.5])], TensorProto.INT16, 4, np.int16([20, -7, 10]), **tensors)


def test_the_first_label_encoder():
    classes = {"classes_strings": ["a", "b"], "default_int64": -3, "default_string": "none"}
    check("LabelEncoder", [X], TensorProto.INT64, 1, np.array([1, -3, 0, -3]), **classes)
    check("LabelEncoder", [np.array([1, 0, 5])], TensorProto.STRING, 1, texts("b", "a", "none"), **classes)


@pytest.mark.parametrize("x", [np.arange(12.0).reshape(3, 4).astype(np.float32), np.arange(5), texts("a", "b", "c")])
def test_array_feature_extractor(x):
    kind = TensorProto.STRING if x.dtype == object else helper.np_dtype_to_tensor_dtype(x.dtype)
    check("ArrayFeatureExtractor", [x, np.array([2, 0, 2])], kind, 1)
    check("ArrayFeatureExtractor", [x, np.array([[1]])], kind, 1)


def test_binarizer():
    x = np.float32([[-1, 0.5, 1.25], [-np.inf, np.inf, 1]])
    check("Binarizer", [x], TensorProto.FLOAT, 1, threshold=1.0)
    check("Binarizer", [x], TensorProto.FLOAT, 1)
    check("Binarizer", [np.array([0, 1, 2])], TensorProto.INT64, 1, np.array([0, 0, 1]), threshold=1.5)
    check("Binarizer", [np.array([-2, -1, 0])], TensorProto.INT64, 1, np.array([0, 1, 1]), threshold=-1.5)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"keys_strings": ["a"]}, "needs one attribute values"),
        ({**STRINGS, "values_int64s": [1]}, "3 keys, 1 values"),
        ({"keys_int64s": [1], "values_int64s": [1]}, "the keys must have X's type, .* found string, int64"),
    ],
)
def test_refusals(attributes, message):
    model = model_of("LabelEncoder", [X], TensorProto.INT64, 2, **attributes)
    with pytest.raises(compiler.CompileError, match=message):
        compiler.compile(model)


SCRATCH = [
    *rows("float", ONE, "y = ai.onnx.ml.Binarizer(x)"),
    *rows("float", "T[n, m] x, int64[k] z", "y = ai.onnx.ml.ArrayFeatureExtractor(x, z)", k=1500),
    *rows(
        "int64", "T[k] x", "y = ai.onnx.ml.LabelEncoder<keys_int64s = [1, 2], values_int64s = [1, 2]>(x)", k=1_000_000
    ),
    *rows(
        "string", "T[k] x", 'y = ai.onnx.ml.LabelEncoder<keys_strings = ["1"], values_strings = ["one"]>(x)', k=200_000
    ),
]
