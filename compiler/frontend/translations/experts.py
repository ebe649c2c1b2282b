"""Products with a matrix for each group of rows, as in mixtures of experts."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op

from compiler.frontend.translations.parts import Untranslatable, axes, constant

__all__ = ["TRANSLATIONS"]


def grouped_product(input: Any, weight: Any, offs: Any) -> Any:
    """The product of each row of `[rows, in]` and the matrix of its group in `[groups, in, out]`: `[rows, out]`.

    The rows of a group are adjacent. `offs` holds the end of each group. A group may be empty. PyTorch's function gives
    zeros for rows after the last group.
    """
    groups = weight.shape[0]
    if not isinstance(groups, int):
        raise Untranslatable("the number of groups must be fixed")
    ends, zero = op.Cast(offs, to=ir.DataType.INT64), axes([0])
    parts, start = [], zero
    for group in range(groups):
        end = op.Slice(ends, axes([group]), axes([group + 1]))
        matrix = op.Squeeze(op.Slice(weight, axes([group]), axes([group + 1])), zero)
        parts.append(op.MatMul(op.Slice(input, start, end, zero), matrix))
        start = end
    rest = op.Sub(op.Slice(op.Shape(input), axes([0]), axes([1])), start)
    sizes = op.Concat(rest, op.Slice(op.Shape(weight), axes([2]), axes([3])), axis=0)
    return op.Concat(*parts, op.Expand(constant(0, input), sizes), axis=0)


TRANSLATIONS = {"transformers::grouped_mm_fallback": grouped_product}
