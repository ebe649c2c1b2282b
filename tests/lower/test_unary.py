"""Functions of one element against onnxruntime, over every dtype that both have."""

import math

import ml_dtypes
import numpy as np
import pytest

from compiler import CompileError
from tests.scratch.row import ONE, rows

FLOATS = np.array(
    [-np.inf, -700, -9.5, -2.5, -1, -0.3, -0.0, 0, 1e-6, 0.5, 1, 1.5, 2.5, 20, 88.5, np.inf, np.nan], "f4"
)
UNIT = np.array([-1, -0.99, -0.5, -0.0, 0.25, 0.7, 1, 1.5, np.nan], "f4")
ABOVE = np.array([1, 1.0001, 2, 50, 1e10, np.inf, 0.5], "f4")
NORMAL = np.random.default_rng(7).standard_normal((3, 5, 7)).astype("f4") * 3

# operator, opset, attributes, inputs, rtol and atol of float32
CASES = [
    ("Abs", 13, {}, FLOATS, 0, 0),
    ("Neg", 13, {}, FLOATS, 0, 0),
    ("Sign", 13, {}, FLOATS, 0, 0),
    ("Ceil", 13, {}, FLOATS, 0, 0),
    ("Floor", 13, {}, FLOATS, 0, 0),
    ("Round", 11, {}, FLOATS, 0, 0),
    ("Sqrt", 13, {}, FLOATS, 0, 0),
    ("Reciprocal", 13, {}, FLOATS, 0, 0),
    ("Exp", 13, {}, FLOATS, 1e-6, 0),
    ("Log", 13, {}, FLOATS, 1e-6, 0),
    ("Sin", 7, {}, NORMAL, 1e-6, 1e-7),
    ("Cos", 7, {}, NORMAL, 1e-6, 1e-7),
    ("Tan", 7, {}, NORMAL, 1e-6, 1e-7),
    ("Asin", 7, {}, UNIT, 1e-6, 0),
    ("Acos", 7, {}, UNIT, 1e-6, 0),
    ("Atan", 7, {}, FLOATS, 1e-6, 0),
    ("Sinh", 9, {}, FLOATS, 1e-6, 0),
    ("Cosh", 9, {}, FLOATS, 1e-6, 0),
    ("Tanh", 13, {}, FLOATS, 1e-6, 1e-7),
    ("Asinh", 9, {}, NORMAL, 1e-6, 0),
    ("Acosh", 9, {}, ABOVE, 1e-6, 0),
    ("Atanh", 9, {}, UNIT, 1e-6, 0),
    ("Erf", 13, {}, FLOATS, 1e-6, 0),
    ("Sigmoid", 13, {}, FLOATS, 1e-6, 1e-7),
    ("Relu", 14, {}, FLOATS, 0, 0),
    ("Softplus", 7, {}, FLOATS, 1e-6, 1e-7),
    ("Softsign", 7, {}, FLOATS, 1e-6, 0),
    ("HardSwish", 14, {}, NORMAL, 1e-6, 1e-6),
    ("Mish", 18, {}, NORMAL, 1e-6, 1e-6),
    ("Gelu", 20, {}, NORMAL, 1e-6, 1e-6),
    ("Gelu", 20, {"approximate": "tanh"}, NORMAL, 1e-6, 1e-6),
    ("LeakyRelu", 7, {}, FLOATS, 1e-6, 0),
    ("LeakyRelu", 16, {"alpha": 0.2}, NORMAL, 1e-6, 0),
    ("Elu", 7, {"alpha": 1.5}, NORMAL, 1e-6, 1e-6),
    ("Selu", 7, {}, NORMAL, 1e-6, 1e-6),
    ("Selu", 7, {"alpha": 2.0, "gamma": 0.5}, NORMAL, 1e-6, 1e-6),
    ("Celu", 12, {"alpha": 2.0}, NORMAL, 1e-6, 1e-6),
    ("HardSigmoid", 7, {}, NORMAL, 1e-6, 1e-7),
    ("HardSigmoid", 7, {"alpha": 0.3, "beta": 0.4}, NORMAL, 1e-6, 1e-7),
    ("ThresholdedRelu", 10, {"alpha": 0.5}, FLOATS, 0, 0),
    ("Shrink", 9, {"bias": 0.25, "lambd": 0.75}, NORMAL, 0, 0),
    ("IsNaN", 13, {}, FLOATS, 0, 0),
    ("IsInf", 10, {}, FLOATS, 0, 0),
    ("IsInf", 10, {"detect_negative": 0}, FLOATS, 0, 0),
    ("IsInf", 10, {"detect_positive": 0}, FLOATS, 0, 0),
]


@pytest.mark.parametrize(("op_type", "opset", "attributes", "x", "rtol", "atol"), CASES)
def test_float32(check_node, op_type, opset, attributes, x, rtol, atol):
    check_node(op_type, [x], opset=opset, attributes=attributes, rtol=rtol, atol=atol)


@pytest.mark.parametrize("op_type", ["Abs", "Neg", "Sign", "Relu"])
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_integers(check_node, op_type, dtype):
    x = np.array([-128, -1, 0, 1, 127], dtype)
    functions = {"Abs": np.abs, "Neg": np.negative, "Sign": np.sign, "Relu": lambda x: np.maximum(x, 0)}
    check_node(op_type, [x], opset=14, rtol=0, atol=0, expected=[functions[op_type](x)])


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int64", "uint64"])
def test_inverted_bits(check_node, dtype):
    x = np.array([0, 1, 100], dtype)
    check_node("BitwiseNot", [x], opset=18, rtol=0, atol=0, expected=[~x])


def test_not(check_node):
    check_node("Not", [np.array([[True], [False]])], opset=1 + 12, rtol=0, atol=0)


@pytest.mark.parametrize("op_type", ["Exp", "Sqrt", "Tanh", "Atan", "Softplus", "Sigmoid", "Erf"])
def test_float64_and_float16(check_node, op_type):
    functions = {
        "Exp": np.exp,
        "Sqrt": np.sqrt,
        "Tanh": np.tanh,
        "Atan": np.arctan,
        "Softplus": lambda x: np.log1p(np.exp(x)),
        "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
        "Erf": np.vectorize(math.erf),
    }
    x, function = np.abs(NORMAL), functions[op_type]
    for dtype, rtol in (("f8", 1e-15), ("f2", 1e-3), (ml_dtypes.bfloat16, 8e-3)):
        given = x.astype(dtype)
        wanted = function(given.astype("f8")).astype(dtype)
        check_node(op_type, [given], opset=22, rtol=rtol, atol=0, expected=[wanted])


def test_swish(check_node):
    x = NORMAL.astype("f8")
    wanted = (x / (1 + np.exp(-1.5 * x))).astype("f4")
    check_node("Swish", [NORMAL], opset=24, attributes={"alpha": 1.5}, rtol=1e-5, atol=1e-6, expected=[wanted])


def test_small_floats_have_nan(check_node):
    x = np.array([1, np.nan, np.inf], ml_dtypes.float8_e5m2)
    check_node("IsNaN", [x], opset=20, rtol=0, atol=0, expected=[np.array([False, True, False])])
    check_node("IsInf", [x], opset=20, rtol=0, atol=0, expected=[np.array([False, False, True])])


@pytest.mark.parametrize(("op_type", "dtype"), [("Exp", "int32"), ("Not", "float32"), ("BitwiseNot", "float32")])
def test_other_dtypes_are_refused(node_model, op_type, dtype):
    import compiler

    with pytest.raises(CompileError) as error:
        compiler.compile(node_model(op_type, [np.zeros(3, dtype)], opset=18))
    assert dtype in str(error.value)


@pytest.mark.parametrize(
    ("op_type", "attributes", "count"),
    [("Gelu", {}, 1), ("QuickGelu", {"alpha": 1.5}, 1), ("BiasGelu", {}, 2), ("FastGelu", {}, 1), ("FastGelu", {}, 2)],
)
def test_the_forms_of_onnxruntime(check_node, op_type, attributes, count):
    inputs = [NORMAL, NORMAL[0, 0]][:count]
    check_node(op_type, inputs, opset=20, attributes=attributes, domain="com.microsoft", rtol=1e-5, atol=2e-6)


UNARY = """
Abs Acos Acosh Asin Asinh Atan Atanh Ceil Celu Cos Cosh Elu Erf Exp Floor Gelu HardSigmoid HardSwish LeakyRelu Log Mish
Neg Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Swish Tan Tanh ThresholdedRelu
com.microsoft.FastGelu com.microsoft.Gelu com.microsoft.QuickGelu
"""

SCRATCH = [
    *rows("float float16", ONE, "y = OP(x)", UNARY),
    *rows("double int64", ONE, "y = OP(x)", "Abs Neg Sign Relu"),
    *rows("float float16 double", ONE, "y = OP(x)", "IsInf IsNaN"),
    *rows("bool", ONE, "y = Not(x)", n=6000),
    *rows("uint16", ONE, "y = BitwiseNot(x)", n=4096),
    *rows("float float16", "T[n, m] x, T[m] z", "y = com.microsoft.BiasGelu(x, z)"),
]
