"""What translations of several families need: constants, and axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op

__all__ = ["Untranslatable", "axes", "constant", "is_float", "positive"]


class Untranslatable(Exception):
    """The arguments of an operator that no ONNX function can take. The exporter reports it with the module's line."""


def constant(value: float, like: Any) -> Any:
    """A scalar with the dtype of an argument."""
    return op.Constant(value=ir.tensor(value, dtype=like.dtype))


def axes(values: Sequence[int]) -> Any:
    """A vector of integers."""
    return op.Constant(value=ir.tensor(list(values), dtype=ir.DataType.INT64))


def is_float(tensor: Any) -> bool:
    """Whether an argument has floats."""
    return bool(tensor.dtype.is_floating_point())


def positive(dim: int, tensor: Any) -> int:
    """The axis that counts from the front."""
    return dim % len(tensor.shape)
