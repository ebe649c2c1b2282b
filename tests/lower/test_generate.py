import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.lower.moved import DTYPES, numbered
from tests.scratch.row import ONE, integers, rows


@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype != "string"])
@pytest.mark.parametrize("shape", [[2, 3], [], [0, 4]])
def test_constant_of_shape(check_node, dtype, shape):
    value = numpy_helper.from_array(np.array([3]).astype(dtype))
    inputs = [np.array(shape, np.int64)]
    check_node("ConstantOfShape", inputs, opset=9, attributes={"value": value}, rtol=0, atol=0, symbolic=False)


def test_zeros(check_node):
    check_node("ConstantOfShape", [np.array([2, 3])], opset=20, rtol=0, atol=0, symbolic=False)


RANGES = [(0, 10, 3), (10, 3, -2), (5, 5, 1), (3, 1, 1), (0, 5, 1)]


@pytest.mark.parametrize("dtype", ["int16", "int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("numbers", RANGES)
def test_range(check_node, dtype, numbers):
    check_node("Range", [np.array(number, dtype) for number in numbers], opset=11, rtol=0, atol=0)


@pytest.mark.parametrize("numbers", [(0, 1, 0.1), (-1, 1, 0.3), (1, 0, -0.25)])
def test_range_of_fractions(check_node, numbers):
    # onnxruntime adds the steps, and the standard multiplies: their results differ in the last bits.
    check_node("Range", [np.array(number, np.float32) for number in numbers], opset=11, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("k", [0, 1, -1, 9])
@pytest.mark.parametrize("dtype", [None, TensorProto.INT64, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BOOL])
def test_eye_like(check_node, k, dtype):
    kind = np.float32 if dtype is None else helper.tensor_dtype_to_np_dtype(dtype)
    attributes = {"k": k} | ({} if dtype is None else {"dtype": dtype})
    expected = np.eye(3, 4, k, kind)
    check_node("EyeLike", [numbered((3, 4))], opset=22, attributes=attributes, rtol=0, atol=0, expected=[expected])


@pytest.mark.parametrize("opset", [9, 11])
@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_one_hot(check_node, axis, opset):
    inputs = [np.array([[0, -1, 2], [5, 4, -9]]), np.array([5]), np.float32([2, 3])]
    check_node("OneHot", inputs, opset=opset, attributes={"axis": axis}, rtol=0, atol=0)


def test_one_hot_of_fractions(check_node):
    inputs = [np.float32([1.9, 0, -1]), np.array(3, np.float32), np.array(["off", "on"], object)]
    hot = np.eye(3)[[1, 0, 2]]
    expected = np.where(hot, "on", "off").astype(object)
    check_node("OneHot", inputs, opset=11, rtol=0, atol=0, expected=[expected])


SCRATCH = [
    *rows("float", ONE, "y = OP(x)", "EyeLike"),
    *rows("int64", "int64[2] k", "y = ConstantOfShape(k)", k=integers(1536, 1536)),
    *rows("int64 float", "T[k] x, int64 a, float[2] b", "y = OneHot(x, a, b)", k=300_000, a=np.int64(20)),
    *rows("float", "T[k] x, int64 a, string[2] b", "y = OneHot(x, a, b)", k=20_000, a=np.int64(9)),
    *rows("int64", "T a, T b, T c", "y = Range(a, b, c)", a=np.int64(0), b=np.int64(2_000_000), c=np.int64(1)),
]
