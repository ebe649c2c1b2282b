import numpy as np
import pytest

import compiler
from compiler import CompileError
from tests.contrib.cases import Case, case, check, integers, normal

OP = "MultiHeadAttention"
Q, K, V = normal(2, 3, 32), normal(2, 5, 32, seed=1), normal(2, 5, 48, seed=2)
SELF = [normal(2, 4, 32, seed=seed) for seed in range(3)]
K4, V4 = normal(2, 4, 5, 8), normal(2, 4, 5, 8, seed=1)
PAST = [normal(2, 4, 2, 8, seed=seed) for seed in range(2)]
EMPTY = [each[:, :, :0] for each in PAST]
BIAS, WIDE_BIAS = normal(96), normal(112)
LENGTHS_OF_PAST, TERM_OF_PAST = np.int32([4, 6]), normal(2, 1, 4, 6)
LENGTHS = np.int32([3, 5])
ENDS = np.int32([3, 5, 0, 3, 6, 0, 3, 8])
ROWS, SQUARES = integers(0, 2, 2, 5, dtype=np.int32), integers(0, 2, 2, 3, 5, dtype=np.int32)
TERM = normal(2, 4, 3, 5)
PRESENT = (True, True, True)
CROSS, OWN = {0: "B S _", 1: "B L _", 2: "B L _"}, {0: "B S _", 1: "B S _", 2: "B S _"}
HEADS = {0: "B S _", 1: "B _ L _", 2: "B _ L _"}
WITH_PAST = {**OWN, 6: "B _ P _", 7: "B _ P _"}
N = {"num_heads": 4}

CASES = [
    case(OP, Q, K, V, name="cross", dims=CROSS, **N),
    case(OP, *SELF, name="self", dims=OWN, **N),
    case(OP, *SELF, BIAS, name="bias", dims=OWN, **N),
    case(OP, Q, K, V, WIDE_BIAS, name="wide values and bias", dims=CROSS, outputs=PRESENT, **N),
    case(OP, Q, K, V, name="scale", scale=0.3, dims=CROSS, **N),
    case(OP, Q, K4, V4, name="keys apart", dims=HEADS, **N),
    case(OP, Q, K4, K4, BIAS, name="keys apart and bias", dims=HEADS, **N),
    case(OP, Q, K, V, None, LENGTHS, name="lengths", dims={**CROSS, 4: "B"}, **N),
    case(OP, Q, K, V, None, ENDS, name="lengths and offsets", dims=CROSS, **N),
    case(OP, Q, K, V, None, ROWS, name="rows", dims={**CROSS, 4: "B L"}, **N),
    case(OP, Q, K, V, None, ROWS, name="filter", mask_filter_value=-2.5, dims={**CROSS, 4: "B L"}, **N),
    case(OP, Q, K, V, None, SQUARES, name="squares", dims={**CROSS, 4: "B S L"}, **N),
    case(OP, Q, K, V, None, 0 * ROWS, name="nothing visible", dims={**CROSS, 4: "B L"}, **N),
    case(OP, Q, K, V, None, None, TERM, name="term", dims={**CROSS, 5: "B _ S L"}, **N),
    case(OP, Q, K, V, None, ROWS, TERM[:1, :1], name="broadcast term", dims={**CROSS, 5: "_ _ S L"}, **N),
    case(OP, Q, K, V, None, ROWS, TERM[:, :1], name="term of a batch", **N),
    case(OP, *SELF, name="unidirectional", unidirectional=1, dims=OWN, **N),
    case(OP, Q, K, V, name="unidirectional cross", unidirectional=1, dims=CROSS, **N),
    case(OP, K, *SELF[1:], name="unidirectional with fewer keys", unidirectional=1, dims=CROSS, **N),
    case(OP, *SELF, None, ROWS[:, :4], name="unidirectional rows", unidirectional=1, dims={**OWN, 4: "B S"}, **N),
    case(OP, *SELF, None, None, None, *PAST, name="past", outputs=PRESENT, dims=WITH_PAST, **N),
    case(OP, *SELF, BIAS, None, None, *PAST, name="past and bias", outputs=PRESENT, dims=WITH_PAST, **N),
    case(
        OP,
        *(*SELF, None, integers(0, 2, 2, 6, dtype=np.int32), normal(1, 4, 4, 6), *PAST),
        name="unidirectional past with masks",
        unidirectional=1,
        outputs=PRESENT,
        dims={**WITH_PAST, 4: "B T", 5: "_ _ S T"},
        **N,
    ),
    case(OP, *SELF, None, None, None, *EMPTY, name="empty past", outputs=PRESENT, dims=WITH_PAST, **N),
    case(OP, Q, K, V, name="scale 0", scale=0.0, dims=CROSS, **N),
    case(OP, *SELF, BIAS, LENGTHS_OF_PAST, None, *PAST, name="past and lengths", outputs=PRESENT, dims=WITH_PAST, **N),
    case(OP, *SELF, None, None, TERM_OF_PAST, *PAST, name="past and a term", outputs=PRESENT, dims=WITH_PAST, **N),
    case(OP, Q, K, V, WIDE_BIAS, SQUARES, TERM[:1], name="term of heads", dims=CROSS, **N),
    case(OP, *(x[:, :1] for x in SELF), None, None, None, *PAST, name="a step", outputs=PRESENT, dims=WITH_PAST, **N),
    case(OP, Q, K, V, None, ROWS, TERM, name="scores", outputs=(True, False, False, True), dims=CROSS, **N),
]


@pytest.mark.parametrize("given", CASES)
def test_equals_onnxruntime(given: Case) -> None:
    check(given)


def heads_last(*values: np.ndarray) -> np.ndarray:
    """Values `[B, S, N · H]` as one value `[B, S, N, count, H]`."""
    return np.stack([value.reshape(*value.shape[:2], 4, -1) for value in values], axis=3)


@pytest.mark.parametrize("unidirectional", [0, 1])
@pytest.mark.parametrize("symbolic", [False, True])
def test_packed_forms(unidirectional: int, symbolic: bool) -> None:
    """onnxruntime's CPU provider lacks the packed forms, which the GPU providers have: compare with the others."""
    attributes = {"num_heads": 4, "unidirectional": unidirectional}
    q, k, v = SELF
    forms = [
        Case(OP, [q, k, v], attributes),
        Case(OP, [heads_last(q, k, v)], attributes, dims={0: "B S _ _ _"}),
        Case(OP, [q, heads_last(k, v)], attributes, dims={0: "B S _", 1: "B S _ _ _"}),
    ]
    results = [
        next(iter(compiler.load(compiler.compile(form.model(symbolic=symbolic))).run(form.feeds).values()))
        for form in forms
    ]
    for result in results[1:]:
        np.testing.assert_allclose(result, results[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("inputs", "attributes", "reason"),
    [
        ([Q, None, None], {}, "needs a key"),
        ([Q, K, None], {}, "needs a value"),
        ([heads_last(*SELF), K, V], {}, "also holds key and value"),
        ([heads_last(*SELF), None, None, BIAS], {}, "bias"),
        ([Q, heads_last(*SELF[1:]), V], {}, "excludes the inputs bias and value"),
        ([*SELF], {"num_heads": 0}, "num_heads is 0"),
        ([*SELF, None, None, None, PAST[0], None], {}, "past_key and past_value together"),
        ([*SELF, None, None, None, None, PAST[1]], {}, "past_key and past_value together"),
    ],
)
def test_refusals(inputs: list[np.ndarray | None], attributes: dict[str, int], reason: str) -> None:
    with pytest.raises(CompileError, match=reason):
        compiler.compile(Case(OP, inputs, {"num_heads": 4, **attributes}).model())


def test_masks_of_the_wrong_size_are_refused() -> None:
    given = Case(OP, [Q, K, V, None, ROWS[:, :4]], dict(N))
    with pytest.raises(CompileError):
        compiler.compile(given.model())
