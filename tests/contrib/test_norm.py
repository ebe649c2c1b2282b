import numpy as np
import pytest

import compiler
from compiler import CompileError
from tests.contrib.cases import HALF, Array, Case, case, check, integers, normal

X, SKIP = normal(2, 3, 16), normal(2, 3, 16, seed=1)
GAMMA, BETA, BIAS = normal(16), normal(16, seed=1), normal(16, seed=2)
ROWS = {0: "B S _", 1: "B S _"}
ALL = (True, True, True, True)
RMS = (True, False, True, True)
HALVES = [array.astype(np.float16) for array in (X, SKIP, GAMMA, BETA, BIAS)]
DOUBLE = X.astype(np.float64)
WORDS, PLACES, SEGMENTS = normal(11, 8), normal(7, 8), normal(2, 8, seed=1)
IDS, KINDS = integers(0, 11, 2, 5, dtype=np.int32), integers(0, 2, 2, 5, dtype=np.int32)
MASK, ORDER = integers(0, 2, 2, 5, dtype=np.int32, seed=1), integers(0, 7, 2, 5, dtype=np.int32)
LAST = (normal(8), normal(8, seed=1))
IN_BATCH = {0: "B S", 1: "B S"}
EMBED = "EmbedLayerNormalization"
EMBEDDED, ALL_TABLES = (IDS, None, WORDS, PLACES, None, *LAST), (IDS, KINDS, WORDS, PLACES, SEGMENTS, *LAST)
FIRST = (True, False)
Q_EMBED = "QEmbedLayerNormalization"


def quantized(kind: type, *, has_segments: bool = True, mask: Array | None = None) -> list[Array | None]:
    """Five tables of codes, their scales and zero points."""
    limits = np.iinfo(kind)
    sizes = [(11, 8), (7, 8), (2, 8), (8,), (8,)]
    tables = [integers(limits.min, limits.max + 1, *size, dtype=kind, seed=at) for at, size in enumerate(sizes)]
    steps = [np.array([0.01 + at / 300], np.float32).reshape([1] * (at % 2)) for at in range(5)]
    zeros = [np.array(at + limits.max // 2, kind).reshape([1] * (at % 2)) for at in range(5)]
    given = [IDS, KINDS, *tables, mask, *steps, *zeros]
    return [None if at in (1, 4, 10, 15) and not has_segments else each for at, each in enumerate(given)]


CASES = [
    case("SimplifiedLayerNormalization", X, GAMMA, name="plain", domain="", dims={0: "B S _"}),
    case("SimplifiedLayerNormalization", X, GAMMA, name="epsilon", domain="", epsilon=0.1, axis=2),
    case("SimplifiedLayerNormalization", X, normal(3, 16), name="axis", domain="", axis=1, outputs=(True, True)),
    case("SimplifiedLayerNormalization", X, GAMMA, name="both outputs", domain="", axis=-1, outputs=(True, True)),
    case("SimplifiedLayerNormalization", *HALVES[::2][:2], name="float16", domain="", stash_type=1, **HALF),
    case("SimplifiedLayerNormalization", DOUBLE, GAMMA.astype(np.float64), name="float64", domain=""),
    case("SkipLayerNormalization", X, SKIP, GAMMA, name="plain", dims=ROWS),
    case("SkipLayerNormalization", X, SKIP, GAMMA, BETA, BIAS, name="all", epsilon=0.1, outputs=ALL, dims=ROWS),
    case("SkipLayerNormalization", X, SKIP, GAMMA, None, BIAS, name="without beta"),
    case("SkipLayerNormalization", X, SKIP[0], GAMMA, BETA, name="skip without batch"),
    case("SkipLayerNormalization", X, SKIP[:1], GAMMA, BETA, name="skip of one batch", outputs=ALL),
    case("SkipLayerNormalization", X[0], SKIP[0], GAMMA, BETA, name="rows"),
    case("SkipLayerNormalization", *HALVES, name="float16", outputs=ALL, dims=ROWS, **HALF),
    case("SkipSimplifiedLayerNormalization", X, SKIP, GAMMA, name="plain", dims=ROWS),
    case("SkipSimplifiedLayerNormalization", X, SKIP, GAMMA, BIAS, name="all", epsilon=0.1, outputs=RMS, dims=ROWS),
    case("SkipSimplifiedLayerNormalization", X, SKIP[:1], GAMMA, name="skip of one batch"),
    case("SkipSimplifiedLayerNormalization", *HALVES[:3], HALVES[4], name="float16", outputs=RMS, **HALF),
    case(EMBED, *EMBEDDED, name="words", dims={0: "B S"}, outputs=FIRST),
    case(EMBED, *ALL_TABLES, name="segments", dims=IN_BATCH, outputs=FIRST),
    case(EMBED, *EMBEDDED, name="no mask", outputs=(True, True)),
    case(EMBED, *EMBEDDED, None, ORDER[:1], name="one row of positions", outputs=FIRST),
    case(
        EMBED,
        *(*ALL_TABLES, MASK, ORDER),
        name="all",
        epsilon=0.1,
        mask_index_type=1,
        outputs=(True, True, True),
        dims={**IN_BATCH, 7: "B S", 8: "B S"},
    ),
    case(Q_EMBED, *quantized(np.uint8), name="plain", dims=IN_BATCH, outputs=(True, True)),
    case(Q_EMBED, *quantized(np.int8, mask=MASK), name="mask", dims={**IN_BATCH, 7: "B S"}, outputs=(True, True)),
    case(Q_EMBED, *quantized(np.uint8, has_segments=False), name="words", dims={0: "B S"}, outputs=(True, True)),
    case(Q_EMBED, *quantized(np.int8), name="constants", constants=range(2, 18), epsilon=0.1, outputs=(True, True)),
]


@pytest.mark.parametrize("given", CASES)
def test_equals_onnxruntime(given: Case) -> None:
    check(given)


def test_layer_normalization_before_the_standard() -> None:
    """Before opset 17, LayerNormalization is onnxruntime's, in the standard domain."""
    check(Case("LayerNormalization", [X, GAMMA, BETA], {"axis": -1, "epsilon": 0.1}, domain="", opset=13))


def test_mean_of_rms_is_refused() -> None:
    given = Case("SkipSimplifiedLayerNormalization", [X, SKIP, GAMMA], outputs=(True, True))
    with pytest.raises(CompileError, match="output 1 of SkipSimplifiedLayerNormalization"):
        compiler.compile(given.model())
