import numpy as np
import pytest

import compiler
from compiler import CompileError
from tests.contrib.cases import HALF, Case, case, check, integers, normal

X, HEADS = normal(2, 3, 32), normal(2, 4, 3, 8)
COS, SIN = normal(10, 4), normal(10, 4, seed=1)
PLACES, FIRST = integers(0, 10, 2, 3), np.array([5])
HALVES = [array.astype(np.float16) for array in (X, COS, SIN)]
FOLDED, APART = {0: "B S _", 1: "B S"}, {0: "B _ S _", 1: "B S"}

CASES = [
    case("RotaryEmbedding", X, PLACES, COS, SIN, name="plain", dims=FOLDED),
    case("RotaryEmbedding", X, PLACES, COS, SIN, name="interleaved", interleaved=1, dims=FOLDED),
    case("RotaryEmbedding", X, PLACES, COS, SIN, name="heads", num_heads=4, scale=2.0, is_packed_batching=1),
    case("RotaryEmbedding", X, FIRST, COS, SIN, name="first position", dims={0: "B S _"}),
    case("RotaryEmbedding", HEADS, PLACES, COS, SIN, name="heads apart", dims=APART),
    case("RotaryEmbedding", HEADS, FIRST, COS, SIN, name="heads apart, first position", dims={0: "B _ S _"}),
    case("RotaryEmbedding", X, PLACES, COS[:, :2], SIN[:, :2], name="part", num_heads=4, rotary_embedding_dim=4),
    case(
        "RotaryEmbedding", HEADS, PLACES, COS[:, :2], SIN[:, :2], name="part apart", num_heads=4, rotary_embedding_dim=4
    ),
    case(
        "RotaryEmbedding",
        *(X, FIRST, COS[:, :2], SIN[:, :2]),
        name="interleaved part",
        num_heads=4,
        rotary_embedding_dim=4,
        interleaved=1,
        dims={0: "B S _"},
    ),
    case("RotaryEmbedding", HALVES[0], PLACES, *HALVES[1:], name="float16", dims=FOLDED, **HALF),
]


@pytest.mark.parametrize("given", CASES)
def test_equals_onnxruntime(given: Case) -> None:
    check(given)


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [({"rotary_embedding_dim": 4}, "num_heads is missing"), ({"interleaved": 2}, "interleaved is 0 or 1, not 2")],
)
def test_refusals(attributes: dict[str, int], reason: str) -> None:
    with pytest.raises(CompileError, match=reason):
        compiler.compile(Case("RotaryEmbedding", [X, PLACES, COS, SIN], attributes).model())
