"""Hamming windows. The exporter uses the coefficients of ONNX's operator, which are 25/46 and 21/46."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
from onnxscript import opset18 as op

__all__ = ["TRANSLATIONS"]


def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *, dtype: int = -1, **_: Any
) -> Any:
    """The constant `alpha − beta · cos(2πi / n)`, where n is the length, or the length − 1 if it is not periodic.

    A window of one element is 1.
    """
    steps = window_length if periodic else window_length - 1
    window = np.ones(window_length)
    if window_length > 1:
        window = alpha - beta * np.cos(np.arange(window_length) * (2 * np.pi / steps))
    kind = ir.DataType.FLOAT if dtype is None or dtype == -1 else ir.DataType(dtype)
    return op.Constant(value=ir.tensor(window.astype(kind.numpy()), dtype=kind))


TRANSLATIONS = {
    f"aten::hamming_window{overload}": hamming_window
    for overload in ("", ".periodic", ".periodic_alpha", ".periodic_alpha_beta")
}
