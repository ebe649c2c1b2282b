import numpy as np
import pytest

import compiler
from compiler import CompileError
from tests.contrib.cases import Case, case, check, integers, normal

OP = "Attention"
X, W, BIAS = normal(2, 4, 16), normal(16, 96), normal(96)
PAST = normal(2, 2, 4, 3, 8)
LENGTHS, RANGES = np.int32([2, 4]), np.int32([2, 4, 1, 2])
ENDS = np.int32([2, 4, 0, 2, 6, 0, 2, 6])
ROWS, SQUARES = integers(0, 2, 2, 4, dtype=np.int32), integers(0, 2, 2, 4, 4, dtype=np.int32)
LONG_ROWS, LONG_SQUARES = integers(0, 2, 2, 7, dtype=np.int32), integers(0, 2, 2, 4, 7, dtype=np.int32)
TERM = normal(2, 4, 4, 4)
BOTH = (True, True)
SIZES, WITH_PAST = {0: "B S _"}, {0: "B S _", 4: "_ B _ P _"}
FIXED = {"constants": (1, 2), "num_heads": 4}

CASES = [
    case(OP, X, W, BIAS, name="plain", dims=SIZES, **FIXED),
    case(OP, X, W, BIAS, name="run-time weights", dims=SIZES, num_heads=4),
    case(OP, X, W, None, name="without bias", dims=SIZES, constants=(1,), num_heads=4),
    case(OP, X, W, BIAS, name="scale", scale=0.3, **FIXED),
    case(OP, X, W, BIAS, name="present", outputs=BOTH, dims=SIZES, **FIXED),
    case(OP, X, W, BIAS, name="unidirectional", unidirectional=1, outputs=BOTH, dims=SIZES, **FIXED),
    case(OP, X, W[:, :80], BIAS[:80], name="sizes", qkv_hidden_sizes=[32, 32, 16], dims=SIZES, **FIXED),
    case(OP, X, W, BIAS, LENGTHS, name="lengths", dims={**SIZES, 3: "B"}, **FIXED),
    case(OP, X, W, BIAS, RANGES, name="ranges", dims={**SIZES, 3: "M"}, **FIXED),
    case(OP, X, W, BIAS, LENGTHS, name="lengths of an unknown form", dims={**SIZES, 3: "M"}, **FIXED),
    case(OP, X, W, BIAS, ENDS, name="lengths and offsets", dims=SIZES, **FIXED),
    case(OP, X, W, BIAS, ROWS, name="rows", dims={**SIZES, 3: "B S"}, **FIXED),
    case(OP, X, W, BIAS, ROWS, name="filter", mask_filter_value=-1.5, dims={**SIZES, 3: "B S"}, **FIXED),
    case(OP, X, W, BIAS, ROWS[:, :1], name="no rows", dims={**SIZES, 3: "B _"}, **FIXED),
    case(OP, X, W, BIAS, SQUARES, name="squares", dims={**SIZES, 3: "B S S"}, **FIXED),
    case(OP, X, W, BIAS, SQUARES, name="unidirectional squares", unidirectional=1, dims=SIZES, **FIXED),
    case(OP, X, W, BIAS, None, None, TERM, name="term", dims={**SIZES, 5: "B _ S S"}, **FIXED),
    case(OP, X, W, BIAS, ROWS, None, TERM[:1, :1], name="broadcast term", dims={**SIZES, 5: "_ _ S S"}, **FIXED),
    case(OP, X, W, BIAS, None, PAST, name="past", outputs=BOTH, dims=WITH_PAST, **FIXED),
    case(
        OP, X, W, BIAS, None, PAST, name="unidirectional past", unidirectional=1, dims=WITH_PAST, outputs=BOTH, **FIXED
    ),
    case(OP, X[:, :1], W, BIAS, None, PAST, name="a step", unidirectional=1, dims=WITH_PAST, outputs=BOTH, **FIXED),
    case(OP, X, W, BIAS, LONG_ROWS, PAST, name="past rows", outputs=BOTH, dims={**WITH_PAST, 3: "B T"}, **FIXED),
    case(OP, X, W, BIAS, LONG_SQUARES, PAST, name="past squares", outputs=BOTH, unidirectional=1, **FIXED),
    case(OP, X, W, BIAS, RANGES, PAST, name="past ranges", outputs=BOTH, **FIXED),
    case(OP, X, W, BIAS, None, PAST[:, :, :, :0], name="empty past", outputs=BOTH, dims=WITH_PAST, **FIXED),
    case(OP, X, W, BIAS, name="scale 0", scale=0.0, **FIXED),
    case(OP, X, W, BIAS, None, PAST, None, np.int32([2]), name="unread length", outputs=BOTH, **FIXED),
    case(OP, X, W, BIAS, name="unread size", rotary_embedding_dim=32, do_rotary=0, **FIXED),
]


@pytest.mark.parametrize("given", CASES)
def test_equals_onnxruntime(given: Case) -> None:
    check(given)


@pytest.mark.parametrize(
    ("attributes", "mask", "reason"),
    [
        ({"qkv_hidden_sizes": [32, 16, 48]}, None, "qkv_hidden_sizes"),
        ({"num_heads": 5}, None, "does not fit 5 heads"),
        ({"qkv_hidden_sizes": [24, 24, 48]}, None, r"present cannot hold keys and values of the widths \[24, 48\]"),
        ({}, np.ones((2, 1, 4, 4), np.int32), "4 dimensions"),
    ],
)
def test_refusals(attributes: dict[str, object], mask: np.ndarray | None, reason: str) -> None:
    given = Case(OP, [X, W, BIAS, mask], {"num_heads": 4, **attributes}, BOTH, constants=(1, 2))
    with pytest.raises(CompileError, match=reason):
        compiler.compile(given.model())
