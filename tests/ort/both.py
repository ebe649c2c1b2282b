"""The same calls in onnxruntime and in `compiler.ort`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest

import compiler.ort

onnxruntime.set_default_logger_severity(4)

HEADER = '<ir_version: 10, opset_import: ["": 21]>'
ADD = "g (float[n, 3] x, float[n, 3] y) => (float[n, 3] z, float[n, 3] w) { z = Add (x, y) w = Neg (z) }"
MODULES = [onnxruntime, compiler.ort]
each_module = pytest.mark.parametrize("module", MODULES, ids=["onnxruntime", "compiler.ort"])


def model(text: str, header: str = HEADER) -> bytes:
    made: bytes = onnx.parser.parse_model(f"{header} {text}").SerializeToString()
    return made


def ramp(*shape: int, dtype: Any = np.float32) -> Any:
    return np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)


def add_inputs() -> dict[str, Any]:
    return {"x": ramp(2, 3), "y": ramp(2, 3)}


def same(found: Any, expected: Any) -> bool:
    """Whether two results are equal: arrays with dtypes and shapes, lists, `None`, and other objects."""
    if isinstance(expected, np.ndarray):
        same_kind = isinstance(found, np.ndarray) and found.dtype == expected.dtype and found.shape == expected.shape
        return same_kind and bool((found == expected).all())
    if isinstance(expected, list | tuple):
        return len(found) == len(expected) and all(map(same, found, expected))
    return bool(found == expected)


def assert_same(action: Callable[[Any], Any]) -> Any:
    """Check that an action gives the same in both modules, and return it. Errors have the same class or a subclass."""
    try:
        expected = action(onnxruntime)
    except Exception as error:
        name = type(error).__name__
        with pytest.raises(Exception) as raised:
            action(compiler.ort)
        assert name in {kind.__name__ for kind in type(raised.value).__mro__}, (error, raised.value)
        assert str(raised.value)
        return raised.value
    found = action(compiler.ort)
    assert same(found, expected), (found, expected)
    return found
