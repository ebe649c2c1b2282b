"""Det against numpy."""

import ml_dtypes
import numpy as np
import pytest

from tests.scratch.row import KEEP, KEPT, rows

RANDOM = np.random.default_rng(8)


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (5, 5), (3, 2, 4, 4), (0, 3, 3)])
@pytest.mark.parametrize("opset", [11, 22])
def test_shapes(check_node, opset, shape):
    x = RANDOM.standard_normal(shape).astype(np.float32)
    expected = [np.asarray(np.linalg.det(x.astype(np.float64)).astype(np.float32))]
    check_node("Det", [x], opset=opset, expected=expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float16, 1e-3), (ml_dtypes.bfloat16, 1e-2)])
def test_dtypes(check_node, dtype, tolerance):
    x = RANDOM.standard_normal((2, 3, 3)).astype(dtype)
    expected = [np.linalg.det(x.astype(np.float64)).astype(dtype)]
    check_node("Det", [x], opset=22, expected=expected, rtol=tolerance, atol=tolerance)


def test_singular_matrices(check_node):
    x = np.float32([[[0, 0], [0, 0]], [[1, 2], [2, 4]], [[0, 1], [1, 0]]])
    check_node("Det", [x], opset=22, expected=[np.float32([0, 0, -1])], rtol=0, atol=0)


SCRATCH = [
    *rows("float double", f"T[n, n] x, {KEEP}", f"y = Det(x) {KEPT}", n=1000),
]
