"""Einsum against onnxruntime."""

import ml_dtypes
import numpy as np
import pytest

from tests.scratch.row import FLAT, ONE, PRODUCT, TALL, rows

RANDOM = np.random.default_rng(3)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij->ji", [(3, 4)]),
        ("...ii->...i", [(2, 3, 3)]),
        ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
        ("bhid,bhjd->bhij", [(2, 3, 4, 5), (2, 3, 6, 5)]),
        ("bhij,bjhd->bihd", [(2, 3, 4, 5), (2, 5, 3, 6)]),
        ("...ij,...jk", [(2, 1, 3, 4), (5, 4, 2)]),
        ("i,j->ij", [(3,), (4,)]),
        ("ab,bc,cd->ad", [(2, 3), (3, 4), (4, 5)]),
        ("ij->", [(3, 4)]),
    ],
)
def test_equations(check_node, equation, shapes):
    inputs = [RANDOM.standard_normal(shape).astype(np.float32) for shape in shapes]
    expected = [np.asarray(np.einsum(equation, *inputs, dtype=np.float64).astype(np.float32))]
    attributes = {"equation": equation}
    check_node("Einsum", inputs, opset=12, attributes=attributes, expected=expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int8, np.int32, np.int64, np.uint8])
def test_dtypes(check_node, dtype):
    inputs = [RANDOM.integers(0, 4, shape).astype(dtype) for shape in [(2, 3), (3, 4)]]
    expected = [np.einsum("ij,jk->ik", *inputs)]
    check_node("Einsum", inputs, opset=12, attributes={"equation": "ij,jk->ik"}, expected=expected, rtol=0, atol=0)


def test_newest_version(check_node):
    inputs = [RANDOM.integers(0, 4, shape).astype(ml_dtypes.bfloat16) for shape in [(2, 3), (3, 4)]]
    expected = [np.einsum("ij,jk->ik", *(x.astype(np.float32) for x in inputs)).astype(ml_dtypes.bfloat16)]
    check_node("Einsum", inputs, opset=28, attributes={"equation": "ij,jk->ik"}, expected=expected, rtol=0, atol=0)


SCRATCH = [
    *rows("float float16", ONE, 'y = Einsum<equation = "OP">(x)', "ij->ji ij->j ii->i"),
    *(
        row
        for sizes in (TALL, FLAT)
        for row in (*rows("float float16", PRODUCT, 'y = Einsum<equation = "ij,jk->ki">(x, z)', **sizes),)
    ),
]
