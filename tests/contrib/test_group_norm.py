"""GroupNorm and SkipGroupNorm, which onnxruntime has only for GPUs: the results are computed here."""

import numpy as np
import pytest

from tests.contrib.cases import HALF, Array, Case, case, check, normal

X, SKIP = normal(2, 3, 4, 8), normal(2, 3, 4, 8, seed=1)
GAMMA, BETA, BIAS = normal(8), normal(8, seed=1), normal(8, seed=2)
HALF_X = X.astype(np.float16)
G = {"groups": 2}


def group_norm(x: Array, epsilon: float = 1e-5, *, silu: bool) -> Array:
    """The normalized image `[N, H, W, C]` in two groups of channels."""
    groups = x.astype(np.float64).reshape(*x.shape[:3], 2, -1)
    mean, variance = (f(groups, axis=(1, 2, 4), keepdims=True) for f in (np.mean, np.var))
    y = ((groups - mean) / np.sqrt(variance + epsilon)).reshape(x.shape) * GAMMA + BETA
    return (y / (1 + np.exp(-y)) if silu else y).astype(x.dtype)


def first(x: Array) -> Array:
    return x.transpose(0, 3, 1, 2).copy()


ALL = X + SKIP + BIAS
PAIR = SKIP[:, :1, :1]
DIMS = {0: "N H W _"}

CASES = [
    case("GroupNorm", X, GAMMA, BETA, name="plain", activation=0, expected=[group_norm(X, silu=False)], dims=DIMS, **G),
    case("GroupNorm", X, GAMMA, BETA, name="SiLU", activation=1, expected=[group_norm(X, silu=True)], dims=DIMS, **G),
    case(
        "GroupNorm",
        X,
        GAMMA,
        BETA,
        name="epsilon",
        activation=0,
        epsilon=0.1,
        expected=[group_norm(X, 0.1, silu=False)],
        **G,
    ),
    case(
        *("GroupNorm", first(X), GAMMA, BETA),
        name="channels first",
        activation=0,
        channels_last=0,
        expected=[first(group_norm(X, silu=False))],
        **G,
    ),
    case(
        "GroupNorm",
        HALF_X,
        GAMMA,
        BETA,
        name="float16",
        activation=1,
        expected=[group_norm(HALF_X, silu=True)],
        **G,
        **HALF,
    ),
    case(
        *("SkipGroupNorm", X, GAMMA, BETA, SKIP, BIAS),
        name="all",
        activation=1,
        outputs=(True, True),
        expected=[group_norm(ALL, silu=True), ALL],
        dims={0: "N H W _", 3: "N H W _"},
        **G,
    ),
    case(
        *("SkipGroupNorm", X, GAMMA, BETA, PAIR),
        name="skip of one pixel",
        activation=0,
        epsilon=0.1,
        expected=[group_norm(X + PAIR, 0.1, silu=False)],
        **G,
    ),
    case(
        *("SkipGroupNorm", X, GAMMA, BETA, PAIR[:, 0, 0]),
        name="skip of channels",
        activation=0,
        expected=[group_norm(X + PAIR, silu=False)],
        **G,
    ),
    case(
        *("SkipGroupNorm", first(X), GAMMA, BETA, first(SKIP), BIAS),
        name="channels first",
        activation=0,
        channels_last=0,
        outputs=(True, True),
        expected=[first(group_norm(ALL, silu=False)), first(ALL)],
        **G,
    ),
]


@pytest.mark.parametrize("given", CASES)
def test_equals_its_formula(given: Case) -> None:
    check(given)
