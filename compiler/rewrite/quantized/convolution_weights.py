"""The weights of a convolution as 8-bit codes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from compiler.ir.graph import constant_of

__all__ = ["ConvolutionWeights"]

Array = np.ndarray[Any, Any]
_MOST_BIAS = 2**30
"""The largest bias in units of the sums. A larger one makes the scale of the weights larger."""


@dataclass(frozen=True)
class ConvolutionWeights:
    """The codes of a convolution's weights, `(code · scale)`, with a scale for each output."""

    codes: Array
    """`int8`, the shape of the weights."""
    scales: Array
    """`float32 [outputs]`"""
    bias: Array | None
    """`float64 [outputs]`"""
    error: float
    """`‖W − Ŵ‖ / ‖W‖`"""

    @staticmethod
    def of(node: ir.Node, unit: float) -> ConvolutionWeights:
        """The codes for an input whose scale is `unit`."""
        weights = _constant(node, 1).astype(np.float64)
        bias = _constant(node, 2).astype(np.float64) if len(node.inputs) > 2 and node.inputs[2] is not None else None
        flat = weights.reshape(len(weights), -1)
        scales = np.abs(flat).max(1, initial=0) / 127
        if bias is not None:
            scales = np.maximum(scales, np.abs(bias) / unit / _MOST_BIAS)
        scales = np.where(scales < np.finfo(np.float32).tiny / min(unit, 1), 1, scales).astype(np.float32)
        codes = np.rint(flat / scales[:, None]).clip(-127, 127)
        whole = np.linalg.norm(flat)
        error = float(np.linalg.norm(codes * scales[:, None] - flat) / whole) if whole else 0.0
        return ConvolutionWeights(codes.astype(np.int8).reshape(weights.shape), scales, bias, error)


def _constant(node: ir.Node, index: int) -> Array:
    array = constant_of(node.inputs[index])
    assert array is not None  # `_reason` has checked it
    return array
