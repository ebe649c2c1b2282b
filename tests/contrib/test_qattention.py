from typing import Any

import numpy as np
import pytest

import compiler
from compiler import CompileError
from tests.contrib.cases import Array, Case, case, check, integers, normal

OP = "QAttention"
X = integers(0, 256, 2, 4, 16, dtype=np.uint8)
W = {kind: integers(*limits, 16, 96, dtype=kind) for kind, limits in ((np.int8, (-128, 128)), (np.uint8, (0, 256)))}
BIAS, ONE, SMALL = normal(96), np.array(0.02, np.float32), np.array(0.01, np.float32)
EACH = (0.005 + np.abs(normal(96)) / 100).astype(np.float32)
PAST = normal(2, 2, 4, 3, 8)
LENGTHS, RANGES = np.int32([2, 4]), np.int32([2, 4, 1, 2])
ROWS, LONG_ROWS = integers(0, 2, 2, 4, dtype=np.int32), integers(0, 2, 2, 7, dtype=np.int32)
SIZES, WITH_PAST = {0: "B S _"}, {0: "B S _", 8: "_ B _ P _"}
BOTH = (True, True)


def attention(
    name: str,
    mask: Array | None = None,
    past: Array | None = None,
    *,
    kind: type = np.int8,
    scale: Array = SMALL,
    zeros: tuple[Array | None, Array | None] = (np.array(120, np.uint8), None),
    dims: dict[int, str] = SIZES,
    **options: Any,
) -> Any:
    operands = (X, W[kind], BIAS, ONE, scale, mask, *zeros, past)
    return case(OP, *operands, name=name, num_heads=4, dims=dims, constants=(1, 2, 3, 4, 6, 7), **options)


CASES = [
    attention("plain"),
    attention("no zero point", zeros=(None, None)),
    attention("zero points", zeros=(np.array(120, np.uint8), np.array(-3, np.int8))),
    attention("uint8", kind=np.uint8, zeros=(np.array(120, np.uint8), np.array(130, np.uint8))),
    attention("columns", scale=EACH),
    attention("zero points of columns", scale=EACH, zeros=(np.array(9, np.uint8), integers(-9, 9, 96, dtype=np.int8))),
    attention("lists of one", scale=np.float32([0.01]), zeros=(np.uint8([120]), np.int8([3]))),
    attention("unidirectional", unidirectional=1, outputs=BOTH),
    attention("scale", scale=SMALL, dims={}, outputs=BOTH),
    attention("lengths", LENGTHS, dims={**SIZES, 5: "B"}),
    attention("ranges", RANGES, dims={**SIZES, 5: "M"}),
    attention("rows", ROWS, dims={**SIZES, 5: "B S"}, mask_filter_value=-1.5),
    attention("no rows", ROWS[:, :1], dims={**SIZES, 5: "B _"}),
    attention("past", None, PAST, outputs=BOTH, unidirectional=1, dims=WITH_PAST),
    attention("past rows", LONG_ROWS, PAST, outputs=BOTH, unidirectional=1, dims={**WITH_PAST, 5: "B T"}),
    case(OP, X, W[np.int8], BIAS, ONE, SMALL, name="score scale", num_heads=4, scale=0.3, constants=(1, 2)),
]


@pytest.mark.parametrize("given", CASES)
def test_equals_onnxruntime(given: Case) -> None:
    check(given)


@pytest.mark.parametrize(
    ("x", "attributes", "reason"),
    [
        (X, {"num_heads": 5}, "does not fit 5 heads"),
        (X, {"num_heads": 4, "do_rotary": 1}, "do_rotary"),
        (X.view(np.int8), {"num_heads": 4}, "element type int8"),
    ],
)
def test_refusals(x: Array, attributes: dict[str, int], reason: str) -> None:
    given = Case(OP, [x, W[np.int8], BIAS, ONE, SMALL], attributes, constants=(1, 2))
    with pytest.raises(CompileError, match=reason):
        compiler.compile(given.model())
