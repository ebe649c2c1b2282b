"""BiasAdd, BiasSoftmax and BiasSplitGelu, which onnxruntime has only for GPUs: the results are computed here."""

import math

import numpy as np
import pytest

from tests.contrib.cases import Array, Case, case, check, normal

X, BIAS, SKIP = normal(2, 3, 8), normal(8), normal(2, 3, 8, seed=1)
SCORES, INNER, OUTER = normal(2, 4, 3, 5), normal(2, 1, 1, 5), normal(1, 1, 3, 5)


def softmax(x: Array, axis: int) -> Array:
    flat = x.reshape(int(np.prod(x.shape[:axis])), -1)
    powers = np.exp(flat - flat.max(-1, keepdims=True))
    return (powers / powers.sum(-1, keepdims=True)).reshape(x.shape).astype(x.dtype)


def split_gelu(x: Array) -> Array:
    left, right = np.split(x, 2, axis=-1)
    return (left * right * (1 + np.vectorize(math.erf)(right / math.sqrt(2))) / 2).astype(x.dtype)


CASES = [
    case("BiasAdd", X, BIAS, SKIP, name="plain", expected=[X + BIAS + SKIP], dims={0: "B S _", 2: "B S _"}),
    case(
        "BiasSoftmax", SCORES, INNER, name="inner", axis=3, is_inner_broadcast=1, expected=[softmax(SCORES + INNER, 3)]
    ),
    case(
        "BiasSoftmax", SCORES, OUTER, name="outer", axis=3, is_inner_broadcast=0, expected=[softmax(SCORES + OUTER, 3)]
    ),
    case("BiasSoftmax", SCORES, OUTER, name="all axes", is_inner_broadcast=0, expected=[softmax(SCORES + OUTER, 1)]),
    case("BiasSplitGelu", X, BIAS, name="plain", expected=[split_gelu(X + BIAS)], dims={0: "B S _"}),
]


@pytest.mark.parametrize("given", CASES)
def test_equals_its_formula(given: Case) -> None:
    check(given)
