"""Spectra against NumPy's, since onnxruntime has these operators on GPUs only."""

from typing import Any

import numpy as np
import pytest

import compiler
from compiler import CompileError
from tests.contrib.cases import HALF, Array, Case, case, check, normal

ATTRIBUTES: dict[str, Any] = {"signal_ndim": 1, "onesided": 1, "normalized": 0}
PRECISE = {"rtol": 1e-12, "atol": 1e-12}


def parts(spectrum: Array) -> Array:
    return np.stack([spectrum.real, spectrum.imag], -1)


def forward(x: Array, name: str, **options: Any) -> Any:
    expected = [parts(np.fft.rfft(x.astype(np.float64))).astype(x.dtype)]
    return case("Rfft", x, name=name, expected=expected, **ATTRIBUTES, **options)


def backward(half: Array, name: str, **options: Any) -> Any:
    expected = [np.fft.irfft(half[..., 0].astype(np.float64) + 1j * half[..., 1]).astype(half.dtype)]
    return case("Irfft", half, name=name, expected=expected, **ATTRIBUTES, **options)


def halves(*shape: int, dtype: type = np.float32) -> Array:
    """Halves of the spectra of real signals."""
    return parts(np.fft.rfft(normal(*shape).astype(np.float64))).astype(dtype)


CASES = [
    *(forward(normal(3, size), f"size {size}", dims={0: "B N"}) for size in (1, 2, 5, 8)),
    forward(normal(2, 3, 12, dtype=np.float64), "float64", dims={0: "A B N"}, **PRECISE),
    forward(normal(2, 8, dtype=np.float16), "float16", **HALF),
    *(backward(halves(3, size), f"size {size}", dims={0: "B N _"}) for size in (2, 4, 8)),
    backward(halves(2, 3, 12, dtype=np.float64), "float64", **PRECISE),
    backward(halves(2, 8, dtype=np.float16), "float16", **HALF),
]


@pytest.mark.parametrize("given", CASES)
def test_equals_numpy(given: Case) -> None:
    check(given)


@pytest.mark.parametrize("changed", [{"signal_ndim": 2}, {"onesided": 0}, {"normalized": 1}])
@pytest.mark.parametrize("op_type", ["Rfft", "Irfft"])
def test_refusals(op_type: str, changed: dict[str, int]) -> None:
    given = Case(op_type, [normal(4, 3, 2)], {**ATTRIBUTES, **changed})
    with pytest.raises(CompileError, match=f"attribute {next(iter(changed))}"):
        compiler.compile(given.model())
