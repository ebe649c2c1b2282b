import numpy as np
import onnx.numpy_helper
import onnxruntime
import pytest

import compiler
from compiler import CompileError
from tests.contrib.cases import HALF, Array, Case, case, check, normal


def matrices(*shape: int, dtype: type = np.float32) -> Array:
    """Matrices that are far from singular. The largest element of no column is on the diagonal."""
    found = normal(*shape) + 4 * np.roll(np.eye(shape[-1]), 1, axis=1)
    return found.astype(dtype)


EXACT = {"rtol": 1e-12, "atol": 1e-12}

CASES = [
    *(case("Inverse", matrices(3, size, size), name=f"size {size}", dims={0: "B _ _"}) for size in (1, 2, 3, 4, 5, 17)),
    case("Inverse", matrices(6, 6), name="one matrix", dims={0: "N N"}),
    case("Inverse", matrices(2, 3, 4, 4), name="four dimensions", dims={0: "A B N N"}),
    case("Inverse", matrices(2, 5, 5, dtype=np.float64), name="float64", **EXACT),
    case("Inverse", matrices(2, 5, 5, dtype=np.float16), name="float16", **HALF),
    case("Inverse", np.eye(5, dtype=np.float32)[[1, 0, 2, 4, 3]], name="a permutation"),
    case("Inverse", matrices(0, 3, 3), name="no matrices"),
]


@pytest.mark.parametrize("given", CASES)
def test_equals_onnxruntime(given: Case) -> None:
    check(given)


@pytest.mark.parametrize("is_constant", [False, True])
def test_the_inverse_of_a_singular_matrix_is_not_finite(is_constant: bool) -> None:
    """In onnxruntime too. The compiler computes the inverse of a constant matrix, and this is no error."""
    model = Case("Inverse", [np.float32([[1, 2], [2, 4]])]).model()
    if is_constant:
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.float32([[1, 2], [2, 4]]), "x0"))
        del model.graph.input[:]
    inputs = {} if is_constant else {"x0": np.float32([[1, 2], [2, 4]])}
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, inputs)[0]
    found = compiler.load(compiler.compile(model)).run(inputs)["y0"]
    assert not np.isfinite(expected).any() and not np.isfinite(found).any()


@pytest.mark.parametrize(
    ("x", "reason"),
    [(np.zeros(3, np.float32), "fewer than 2"), (np.zeros((2, 2), np.int32), "element type int32")],
)
def test_refusals(x: Array, reason: str) -> None:
    with pytest.raises(CompileError, match=reason):
        compiler.compile(Case("Inverse", [x]).model())
