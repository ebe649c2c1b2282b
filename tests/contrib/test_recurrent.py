"""CausalConvWithState and LinearAttention."""

from typing import Any

import numpy as np
import pytest

import compiler
from compiler import CompileError
from tests.contrib.cases import HALF, Case, case, check, normal

CONV, LINEAR = "CausalConvWithState", "LinearAttention"
X, TAPS, BIAS, STATE = normal(2, 6, 5), normal(6, 1, 4), normal(6), normal(2, 6, 3)
LAST = [array.swapaxes(1, 2).copy() for array in (X, STATE)]
BOTH = (True, True)
LINEAR_RULE = {"q_num_heads": 1, "kv_num_heads": 1, "update_rule": "linear"}


def linear(
    name: str,
    rule: str,
    *,
    heads: tuple[int, int, int] = (4, 4, 4),
    wide: bool = False,
    positions: int = 5,
    **options: Any,
) -> Any:
    """Queries, keys and values of so many heads of size 8, 8 and 6."""
    q, k, v = (
        normal(2, positions, count * size, seed=size + count) for count, size in zip(heads, (8, 8, 6), strict=True)
    )
    decay = -np.abs(normal(2, positions, heads[2] * (8 if wide else 1))) if "gated" in rule else None
    beta = np.abs(normal(2, positions, 1 if wide else heads[2], seed=7)) / 9 if "delta" in rule else None
    past = normal(2, heads[2], 8, 6) if options.pop("past", True) else None
    dtype, held = options.pop("dtype", np.float32), options.pop("held", np.float32)
    q, k, v, decay, beta = (None if each is None else each.astype(dtype) for each in (q, k, v, decay, beta))
    past = None if past is None else past.astype(held)
    dims = {at: "B T _" for at, value in enumerate((q, k, v, None, decay, beta)) if value is not None}
    dims |= {3: "B _ _ _"} if past is not None else {}
    fields = {"outputs": BOTH, "dims": dims, "q_num_heads": heads[0], "kv_num_heads": heads[2], "update_rule": rule}
    return case(LINEAR, q, k, v, past, decay, beta, name=name, **{**fields, **options})


CASES = [
    case(CONV, X, TAPS, None, None, name="plain", outputs=BOTH, dims={0: "B _ L"}, constants=(1,)),
    case(CONV, X, TAPS, BIAS, STATE, name="state", outputs=BOTH, dims={0: "B _ L", 3: "B _ _"}, constants=(1, 2)),
    case(CONV, X[:, :, :1], TAPS, BIAS, STATE, name="step", activation="silu", outputs=BOTH, dims={0: "B _ L"}),
    case(CONV, X, TAPS[:, :, :1], BIAS, name="one tap", activation="swish", outputs=BOTH),
    case(CONV, X, TAPS[:, :, :2], BIAS, STATE, name="dilation", dilation=3, activation="none", outputs=BOTH),
    case(CONV, LAST[0], TAPS, BIAS, LAST[1], name="channels last", channels_last=1, outputs=BOTH, dims={0: "B L _"}),
    case(CONV, X[:, :, :2], TAPS, None, STATE, name="fewer positions than taps", outputs=BOTH, dims={0: "B _ L"}),
    case(CONV, X[:, :, :1], TAPS[:, :, :2], BIAS, STATE, name="dilated step", dilation=3, outputs=BOTH),
    case(CONV, LAST[0], TAPS[:, :, :1], name="one tap, channels last", channels_last=1, outputs=BOTH),
    *(linear(f"{rule}", rule) for rule in ("linear", "gated", "delta", "gated_delta")),
    linear("factors of keys", "gated_delta", wide=True),
    linear("without state", "gated_delta", past=False),
    linear("scale and chunks", "delta", scale=0.5, chunk_size=16),
    linear("shared states", "gated_delta", heads=(4, 2, 2)),
    linear("shared queries and keys", "gated_delta", heads=(2, 2, 4)),
    linear("shared keys", "linear", heads=(4, 2, 4)),
    linear("scale 0", "gated", scale=0.0),
    linear("one position", "gated_delta", positions=1),
    linear("float16 with a state of float32", "gated_delta", dtype=np.float16, **HALF),
    linear("float16", "gated_delta", dtype=np.float16, held=np.float16, **HALF),
    linear("float16 without state", "delta", dtype=np.float16, past=False, **HALF),
    linear("factors of keys of shared queries", "gated", heads=(2, 2, 4), wide=True),
]


@pytest.mark.parametrize("given", CASES)
def test_equals_onnxruntime(given: Case) -> None:
    check(given)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (Case(CONV, [X, TAPS], {"activation": "relu"}, BOTH), "no activation 'relu'"),
        (Case(CONV, [X, TAPS], {"dilation": 0}, BOTH), "dilation 0"),
        (Case(LINEAR, [X, X, X], {"q_num_heads": 1, "kv_num_heads": 1, "update_rule": "none"}, BOTH), "no update_rule"),
        (Case(LINEAR, [X, X, X], {"q_num_heads": 1, "kv_num_heads": 1}, BOTH), "input 4"),
        (Case(LINEAR, [X, X, X, STATE[None]], LINEAR_RULE, BOTH), "past_state"),
        (Case(LINEAR, [X, X[:1], X], LINEAR_RULE, BOTH), r"cannot view \[1, 6, 5\]"),
        (Case(CONV, [X, TAPS, None, STATE[:, :, :2]], {}, BOTH), "past_state"),
        (Case(CONV, [X, TAPS, None, STATE[:, :, 0]], {}, BOTH), "past_state"),
    ],
)
def test_refusals(given: Case, reason: str) -> None:
    with pytest.raises(CompileError, match=reason):
        compiler.compile(given.model())
