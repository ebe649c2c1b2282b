"""Operators of the domain `ai.onnx.ml` against onnxruntime."""

import numpy as np
import onnx.parser
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import compiler
from tests.lower.ml_node import FLOAT, INT64, check, model_of
from tests.scratch.row import ONE, rows


def texts(*values):
    return np.array(values, object)


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


@pytest.mark.parametrize("version", [2, 4])
def test_repeated_keys(version):
    check("LabelEncoder", [X], INT64, version, keys_strings=["a", "b", "a", "c"], values_int64s=[5, 6, 7, 8])
    check("LabelEncoder", [np.array([3, 1, 2])], FLOAT, version, keys_int64s=[1, 3, 1], values_floats=[0.5, 1.5, 2.5])
    nan = float("nan")
    keys, expected = [nan, 2.0, 2.0, nan], np.array([5, 4, -1])
    check(
        "LabelEncoder",
        [np.float32([2, nan, 0])],
        INT64,
        version,
        expected,
        keys_floats=keys,
        values_int64s=[4, 5, 6, 7],
    )


def test_label_encoder_with_tensors():
    tensors = {
        "keys_tensor": numpy_helper.from_array(np.array([1.5, 2.5]), "keys"),
        "values_tensor": numpy_helper.from_array(np.int16([10, 20]), "values"),
        "default_tensor": numpy_helper.from_array(np.int16([-7]), "default"),
    }
    check("LabelEncoder", [np.array([2.5, 0, 1.5])], TensorProto.INT16, 4, np.int16([20, -7, 10]), **tensors)


@pytest.mark.parametrize(
    ("values", "attributes", "message"),
    [
        (np.uint64([1]), {}, "needs the attribute default_tensor for values of uint64"),
        (np.array([True]), {}, "needs the attribute default_tensor for values of bool"),
        (np.int8([1]), {"default_int64": 200}, "the number 200, which int8 does not hold"),
        (np.complex64([1]), {}, "complex64 is not a supported element type"),
    ],
)
def test_values_without_a_default(values, attributes, message):
    given = {"keys_int64s": [1], "values_tensor": numpy_helper.from_array(values, "values"), **attributes}
    with pytest.raises(compiler.CompileError, match=message) as error:
        compiler.compile(model_of("LabelEncoder", [np.array([1])], INT64, 4, **given))
    assert "(node)" in str(error.value)


def test_the_first_label_encoder():
    classes = {"classes_strings": ["a", "b"], "default_int64": -3, "default_string": "none"}
    check("LabelEncoder", [X], TensorProto.INT64, 1, np.array([1, -3, 0, -3]), **classes)
    check("LabelEncoder", [np.array([1, 0, 5])], TensorProto.STRING, 1, texts("b", "a", "none"), **classes)


@pytest.mark.parametrize("x", [np.arange(12.0).reshape(3, 4).astype(np.float32), np.arange(5), texts("a", "b", "c")])
def test_array_feature_extractor(x):
    kind = TensorProto.STRING if x.dtype == object else helper.np_dtype_to_tensor_dtype(x.dtype)
    check("ArrayFeatureExtractor", [x, np.array([2, 0, 2])], kind, 1)
    check("ArrayFeatureExtractor", [x, np.array([[1]])], kind, 1)


@pytest.mark.parametrize("x", ["3", "2, 3", "n, 3", "2, 2, 3"])
@pytest.mark.parametrize("indices", ["4", "m", "2, 2", "m, 2"])
@pytest.mark.parametrize(
    "reader", ["Shape (a)", "Reshape (a, line)", "ReduceSum <keepdims = 0> (a, first)", "Transpose (a)"]
)
def test_readers_of_extracted_features(x, indices, reader):
    text = f"""<ir_version: 10, opset_import: ["": 21, "ai.onnx.ml": 3]>
    features (float[{x}] x, int64[{indices}] i) => (y) <int64[1] line = {{-1}}, int64[1] first = {{0}}>
    {{ a = ai.onnx.ml.ArrayFeatureExtractor (x, i) y = {reader} }}"""
    model = onnx.parser.parse_model(text)
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64 if "Shape (a)" in reader else TensorProto.FLOAT
    sizes = {"n": 2, "m": 2}
    numbers = [[sizes.get(size) or int(size) for size in text.split(", ")] for text in (x, indices)]
    given = {"x": np.random.default_rng(0).random(numbers[0], np.float32), "i": np.full(numbers[1], 1)}
    [expected] = onnxruntime.InferenceSession(model.SerializeToString()).run(None, given)
    [found] = compiler.load(compiler.compile(model), threads=1).run(given).values()
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_binarizer():
    x = np.float32([[-1, 0.5, 1.25], [-np.inf, np.inf, 1]])
    check("Binarizer", [x], TensorProto.FLOAT, 1, threshold=1.0)
    check("Binarizer", [x], TensorProto.FLOAT, 1)
    check("Binarizer", [np.array([0, 1, 2])], TensorProto.INT64, 1, np.array([0, 0, 1]), threshold=1.5)
    check("Binarizer", [np.array([-2, -1, 0])], TensorProto.INT64, 1, np.array([0, 1, 1]), threshold=-1.5)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_a_threshold_beyond_the_integers(dtype):
    limits = np.iinfo(dtype)
    x = np.array([[limits.min, -1, 0, limits.max]], dtype)
    for threshold in (3e9, -3e9, 1e30, -1e30, 2.0**31, -(2.0**31), 2.0**63, -(2.0**63)):
        expected = np.array([[int(number) > threshold for number in x[0].tolist()]], dtype)
        kind = helper.np_dtype_to_tensor_dtype(x.dtype)
        check("Binarizer", [x], kind, 1, expected, threshold=threshold)


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


TRANSFORMS = ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"]
DRAWN = np.random.default_rng(0)
ROWS = DRAWN.normal(size=(7, 3)).astype(np.float32)
ROWS[2] = 0
WHOLE = np.array([[1, -2, 3], [0, 5, 7]])
I32 = WHOLE.astype(np.int32)


@pytest.mark.parametrize(
    "x", [ROWS, ROWS.astype(np.float64), WHOLE, WHOLE.astype(np.int32)], ids=lambda x: x.dtype.name
)
def test_scaler(x):
    for offset, scale in [([0.5], [2.0]), ([1.0, 2.0, -3.0], [0.25, 3.0, 1e-3])]:
        check("Scaler", [x], FLOAT, 1, offset=offset, scale=scale, rtol=1e-6)


@pytest.mark.parametrize(
    "x", [ROWS, ROWS.astype(np.float64), WHOLE, WHOLE.astype(np.int32)], ids=lambda x: x.dtype.name
)
@pytest.mark.parametrize("norm", ["MAX", "L1", "L2", None])
def test_normalizer(x, norm):
    check("Normalizer", [x], FLOAT, 1, norm=norm, rtol=1e-6)
    check("Normalizer", [x[0]], FLOAT, 1, norm=norm, rtol=1e-6)


def test_imputer():
    x = np.float32([[1, np.nan, -0.0], [0, 5, np.nan]])
    for values in ([9.0], [7.0, 8.0, 9.0]):
        for replaced in (float("nan"), 0.0, 5.0):
            check("Imputer", [x], FLOAT, 1, imputed_value_floats=values, replaced_value_float=replaced)
    for values in ([9], [7, 8, 9]):
        check("Imputer", [WHOLE], INT64, 1, imputed_value_int64s=values, replaced_value_int64=5)
    wide = np.array([[np.nan, 2.0]])
    expected = np.array([[0.5, 2.0]])
    attributes = {"imputed_value_floats": [0.5], "replaced_value_float": float("nan")}
    check("Imputer", [wide], TensorProto.DOUBLE, 1, expected, **attributes)


@pytest.mark.parametrize("x", [np.array([3, 1, 9]), np.array([[3.0, 1.5]]), np.float32([[1], [3]]), np.array(3)])
def test_one_hot_encoder(x):
    check("OneHotEncoder", [x], FLOAT, 1, cats_int64s=[1, 3, 5])
    check("OneHotEncoder", [x], FLOAT, 1, cats_int64s=[1, 3, 9], zeros=0)


def test_one_hot_encoder_of_strings():
    check("OneHotEncoder", [texts("a", "c", "?")], FLOAT, 1, cats_strings=["a", "b", "c"])
    model = model_of("OneHotEncoder", [texts("a", "?")], FLOAT, 1, cats_strings=["a", "b"], zeros=0)
    session = compiler.load(compiler.compile(model))
    with pytest.raises(compiler.RunError, match="index 2"):
        session.run({"x0": texts("a", "?")})


@pytest.mark.parametrize("transform", [*TRANSFORMS, "PROBIT", None])
@pytest.mark.parametrize("targets", [1, 3])
def test_linear_regressor(targets, transform):
    x = np.float32([[0.5, 0.25, 0.125], [0.3, 0.2, 0]])
    coefficients = [0.5, 0.25, 0.125, 0.3, 0.2, 0.1, 0.4, 0.0, 0.2][: 3 * targets]
    for intercepts in (None, [0.1, 0.2, 0.05][:targets], [0.1, 0.2]):
        attributes = {"coefficients": coefficients, "intercepts": intercepts, "post_transform": transform}
        check("LinearRegressor", [x], FLOAT, 1, targets=targets, **attributes, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize(
    "x", [ROWS, ROWS.astype(np.float64), WHOLE, WHOLE.astype(np.int32)], ids=lambda x: x.dtype.name
)
def test_linear_classifier(x, transform):
    attributes = {"coefficients": [0.5, -0.25, 0.125, 0.3, 0.2, -0.1, -0.4, 0.0, 0.2], "post_transform": transform}
    attributes["intercepts"] = [0.1, 0.0, -0.05]
    for labels in ({"classlabels_ints": [3, 5, 7]}, {"classlabels_strings": ["a", "b", "c"]}):
        kind = INT64 if "classlabels_ints" in labels else TensorProto.STRING
        check("LinearClassifier", [x], [kind, FLOAT], 1, **attributes, **labels, rtol=1e-5, atol=1e-6)
        two = {name: values[1:] for name, values in labels.items()}
        for count in (1, 2):
            numbers = {
                name: attributes[name][: count * size] for name, size in (("coefficients", 3), ("intercepts", 1))
            }
            check("LinearClassifier", [x], [kind, FLOAT], 1, **attributes | numbers, **two, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("op_type", "x", "attributes", "message"),
    [
        ("Scaler", ROWS, {"offset": [1.0]}, "1 offsets and 0 scales"),
        ("Scaler", ROWS, {"offset": [1.0] * 2, "scale": [1.0] * 2}, "2 numbers for 3 columns"),
        ("Normalizer", ROWS[None], {}, "rank 1 or 2; found MAX, 3"),
        ("Normalizer", ROWS, {"norm": "L3"}, "found L3"),
        ("Imputer", ROWS, {"imputed_value_int64s": [1]}, "of the input's kind, float32"),
        ("Imputer", ROWS, {"imputed_value_floats": [1.0] * 2}, "2 numbers for 3 columns"),
        (
            "Imputer",
            I32,
            {"imputed_value_int64s": [1], "replaced_value_int64": 2**40},
            f"{2**40}, which int32 does not",
        ),
        ("Imputer", I32, {"imputed_value_int64s": [-(2**40)]}, f"{-(2**40)}, which int32 does not hold"),
        ("OneHotEncoder", ROWS, {"cats_strings": ["a"]}, "as fits float32"),
        ("LinearRegressor", ROWS, {"coefficients": [1.0] * 4, "targets": 3}, "4 coefficients for 3"),
        ("LinearRegressor", ROWS, {"coefficients": [1.0] * 3, "post_transform": "SIN"}, "no post_transform 'SIN'"),
        ("LinearRegressor", ROWS[0], {"coefficients": [1.0] * 3}, "needs a matrix of numbers"),
        ("LinearClassifier", ROWS, {"coefficients": [1.0] * 3, "classlabels_ints": [1, 2]}, "2 class labels and 0"),
    ],
)
def test_refused_models(op_type, x, attributes, message):
    kinds = [INT64, FLOAT] if op_type == "LinearClassifier" else FLOAT
    with pytest.raises(compiler.CompileError, match=message):
        compiler.compile(model_of(op_type, [x], kinds, 1, **attributes))


SCRATCH = [
    *rows("float double int64", ONE, "y = ai.onnx.ml.OP<offset = [1.0], scale = [2.0]>(x)", "Scaler"),
    *rows("float double int64", ONE, 'y = ai.onnx.ml.Normalizer<norm = "L2">(x)'),
    *rows("float double", ONE, "y = ai.onnx.ml.Imputer<imputed_value_floats = [1.0], replaced_value_float = 2.0>(x)"),
    *rows("int64 float", "T[k] x", "y = ai.onnx.ml.OneHotEncoder<cats_int64s = [1, 2, 3]>(x)", k=500_000),
    *rows("string", "T[k] x", 'y = ai.onnx.ml.OneHotEncoder<cats_strings = ["1", "2"]>(x)', k=200_000),
    *rows(
        "float double int64",
        "T[k, 3] x",
        "y = ai.onnx.ml.LinearRegressor<coefficients = [1.0, 2.0, 3.0]>(x)",
        k=400_000,
    ),
    *rows(
        "float double int64",
        "T[k, 3] x",
        "y, z = ai.onnx.ml.LinearClassifier"
        "<coefficients = [1.0, 2.0, 3.0], intercepts = [1.0], classlabels_ints = [4, 5]>(x)",
        k=400_000,
    ),
    *rows("float", ONE, "y = ai.onnx.ml.Binarizer(x)"),
    *rows("float", "T[n, m] x, int64[k] z", "y = ai.onnx.ml.ArrayFeatureExtractor(x, z)", k=1500),
    *rows(
        "int64", "T[k] x", "y = ai.onnx.ml.LabelEncoder<keys_int64s = [1, 2], values_int64s = [1, 2]>(x)", k=1_000_000
    ),
    *rows(
        "string", "T[k] x", 'y = ai.onnx.ml.LabelEncoder<keys_strings = ["1"], values_strings = ["one"]>(x)', k=200_000
    ),
]
