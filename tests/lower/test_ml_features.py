"""CategoryMapper and FeatureVectorizer against onnxruntime."""

import numpy as np
import pytest

import compiler
from tests.lower.ml_node import FLOAT, INT64, STRING, check, model_of
from tests.scratch.row import rows

CATEGORIES = {"cats_strings": ["a", "b", "c"], "cats_int64s": [5, 7, -2]}
TEXTS = np.array([["b", "?"], ["c", "a"]], object)
NUMBERS = np.array([[7, 6], [-2, 5]])
A, B = np.float32([[1, 2], [3, 4]]), np.float32([[5, 6, 7], [8, 9, 10]])


@pytest.mark.parametrize("default", [{}, {"default_string": "none", "default_int64": 42}])
def test_categories(default):
    check("CategoryMapper", [TEXTS], INT64, 1, **CATEGORIES, **default)
    check("CategoryMapper", [NUMBERS], STRING, 1, **CATEGORIES, **default)
    check("CategoryMapper", [NUMBERS[0]], STRING, 1, **CATEGORIES, **default)


def test_repeated_categories_have_the_last_value():
    check("CategoryMapper", [TEXTS], INT64, 1, cats_strings=["a", "b", "a"], cats_int64s=[1, 2, 3])
    check("CategoryMapper", [NUMBERS], STRING, 1, cats_strings=["x", "y", "z"], cats_int64s=[7, 5, 7])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize("widths", [[2, 3], [3, 2], [1, 5]])
def test_features(dtype, widths):
    check("FeatureVectorizer", [A.astype(dtype), B.astype(dtype)], FLOAT, 1, inputdimensions=widths)


def test_features_of_one_input_and_of_other_ranks():
    check("FeatureVectorizer", [A], FLOAT, 1, inputdimensions=[2])
    for width in (3, 4, 6):
        check("FeatureVectorizer", [np.arange(8, dtype=np.float32).reshape(2, 2, 2)], FLOAT, 1, inputdimensions=[width])
    model = model_of("FeatureVectorizer", [A[0], B[0]], FLOAT, 1, inputdimensions=[2, 3])
    found = compiler.load(compiler.compile(model)).run({"x0": A[0], "x1": B[0]})["y0"]
    np.testing.assert_array_equal(found, [[1, 2, 5, 6, 7]])


@pytest.mark.parametrize(
    ("op_type", "inputs", "attributes", "message"),
    [
        ("CategoryMapper", [TEXTS], {"cats_strings": ["a"], "cats_int64s": [1, 2]}, "1 strings, 2 integers"),
        ("FeatureVectorizer", [A, B], {"inputdimensions": [2]}, r"a positive dimension for each input, found \[2\]"),
        ("FeatureVectorizer", [A], {"inputdimensions": [0]}, r"a positive dimension for each input, found \[0\]"),
    ],
)
def test_refusals(op_type, inputs, attributes, message):
    with pytest.raises(compiler.CompileError, match=message):
        compiler.compile(model_of(op_type, inputs, FLOAT, 1, **attributes))


def test_an_unknown_number_of_columns_is_refused():
    model = model_of("FeatureVectorizer", [A], FLOAT, 1, inputdimensions=[2])
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "columns"
    with pytest.raises(compiler.CompileError, match="a known number of columns"):
        compiler.compile(model)


SCRATCH = [
    *rows("string", "T[k] x", 'y = ai.onnx.ml.CategoryMapper<cats_strings = ["1"], cats_int64s = [1]>(x)', k=200_000),
    *rows("int64", "T[k] x", 'y = ai.onnx.ml.CategoryMapper<cats_strings = ["1"], cats_int64s = [1]>(x)', k=200_000),
    *rows("float double int64", "T[n, 1536] x", "y = ai.onnx.ml.FeatureVectorizer<inputdimensions = [1536]>(x)"),
]
