import numpy as np
import pytest

import compiler
from compiler import CompileError
from tests.contrib.cases import Case, case, check, normal

A, B = normal(4, 6), normal(5, 6)
DOUBLES = (A.astype(np.float64), B.astype(np.float64))
SIZES = {0: "M _", 1: "N _"}

CASES = [
    case("CDist", A, B, name="squares", dims=SIZES),
    case("CDist", A, B, name="named squares", metric="sqeuclidean"),
    case("CDist", A, B, name="distances", metric="euclidean", dims=SIZES),
    case("CDist", *DOUBLES, name="float64", metric="euclidean"),
]


@pytest.mark.parametrize("given", CASES)
def test_equals_onnxruntime(given: Case) -> None:
    check(given)


def test_an_unknown_metric_is_refused() -> None:
    with pytest.raises(CompileError, match="no metric 'cosine'"):
        compiler.compile(Case("CDist", [A, B], {"metric": "cosine"}).model())
