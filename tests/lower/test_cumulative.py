import numpy as np
import pytest

from tests.scratch.row import rows


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
def test_cum_sum(check_node, axis, exclusive, reverse):
    x = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(np.float32)
    attributes = {"exclusive": exclusive, "reverse": reverse}
    for dtype in ("float32", "float64", "int32", "int64"):
        inputs = [(x * 10).astype(dtype), np.array(axis, np.int32)]
        check_node("CumSum", inputs, opset=14, attributes=attributes, rtol=1e-6, atol=1e-5)
    check_node("CumSum", [x, np.array([axis])], opset=11, attributes=attributes, rtol=1e-6, atol=1e-6)


def test_cum_prod(check_node):
    x = np.random.default_rng(0).uniform(0.5, 2, (3, 4)).astype(np.float32)
    check_node("CumProd", [x, np.array(1)], opset=26, rtol=1e-6, atol=0, expected=[np.cumprod(x, 1)])
    expected = np.concatenate([np.ones((3, 1)), np.cumprod(x[:, :-1], 1)], 1).astype(np.float32)
    attributes = {"exclusive": 1}
    check_node("CumProd", [x, np.array(1)], opset=26, attributes=attributes, rtol=1e-6, atol=0, expected=[expected])


SCRATCH = [
    *rows("float double int32", "T[n, m] x, int64 k", "y = OP(x, k)", "CumSum CumProd", k=np.int64(0)),
]
