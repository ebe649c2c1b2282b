import ml_dtypes
import numpy as np
import pytest

from tests.scratch.row import ONE, rows

DTYPES = [
    "float32",
    "float64",
    "float16",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 0, 3), (2, 3, 4)])
def test_identity_of_every_type(check_node, dtype, shape):
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    check_node("Identity", [x], opset=16, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4"])
def test_identity_of_types_that_numpy_lacks(check_node, dtype):
    x = np.arange(-4, 4).astype(np.float32).clip(0 if dtype == "uint4" else -4).astype(getattr(ml_dtypes, dtype))
    check_node("Identity", [x], opset=23, rtol=0, atol=0, expected=[x])


def test_identity_of_strings(check_node):
    x = np.array([["a", "ü"], ["", "c"]], object)
    check_node("Identity", [x], opset=16, rtol=0, atol=0)


CONSTANTS = [
    ({"value_float": 1.5}, np.array(1.5, np.float32)),
    ({"value_floats": [1.5, 2.0]}, np.array([1.5, 2.0], np.float32)),
    ({"value_int": 3}, np.array(3, np.int64)),
    ({"value_ints": [3, 4]}, np.array([3, 4], np.int64)),
    ({"value_string": "text"}, np.array("text", object)),
    ({"value_strings": ["a", "b"]}, np.array(["a", "b"], object)),
    ({"value_strings": ["é", "b"]}, np.array(["é", "b"], object)),
]


@pytest.mark.parametrize(("attributes", "expected"), CONSTANTS)
def test_constant(check_node, attributes, expected):
    check_node("Constant", [], opset=13, attributes=attributes, rtol=0, atol=0, expected=[expected])


SCRATCH = [
    *rows("float", ONE, "y = OP(x)", "Identity"),
    *rows("float", "", "y = Constant<value = float[2] {1, 2}>()"),
]
