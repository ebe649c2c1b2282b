"""Searches: places in sorted sequences, and elements that a mask selects."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op

from compiler.frontend.translations.parts import axes, constant

__all__ = ["TRANSLATIONS"]


def searchsorted(
    sorted_sequence: Any,
    self: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Any = None,
) -> Any:
    """How many elements of a sorted row are smaller than each value; on the right side, or equal to it.

    The sequence `[…, n]` and the values `[…, m]` have the same dims in front, or the sequence is `[n]`. NaN is larger
    than all numbers.
    """
    ordered = sorted_sequence if sorter is None else op.GatherElements(sorted_sequence, sorter, axis=-1)
    if len(sorted_sequence.shape) > 1:
        ordered = op.Unsqueeze(ordered, axes([-2]))
    value = op.Unsqueeze(self, axes([-1]))
    is_right = right if side is None else side == "right"
    is_after = op.Greater(ordered, value) if is_right else op.GreaterOrEqual(ordered, value)
    dtype = ir.DataType.INT32 if out_int32 else ir.DataType.INT64
    return op.ReduceSum(op.Cast(op.Not(is_after), to=dtype), axes([-1]), keepdims=0)


def searchsorted_scalar(sorted_sequence: Any, self: float, **options: Any) -> Any:
    """The same for one number."""
    return searchsorted(sorted_sequence, constant(self, sorted_sequence), **options)


def masked_select(self: Any, mask: Any) -> Any:
    """The elements where the mask is true, in a row."""
    wide = op.Expand(self, op.Shape(mask))
    condition = op.Expand(mask, op.Shape(wide))
    return op.Compress(wide, op.Reshape(condition, axes([-1])))


def nonzero_static(self: Any, *, size: int, fill_value: int = -1) -> Any:
    """The indices of the first `size` elements that are not zero. Rows of the fill value follow if there are fewer."""
    found = op.Transpose(op.NonZero(self), perm=[1, 0])
    fill = op.Constant(value=ir.tensor(fill_value, dtype=ir.DataType.INT64))
    rows = op.Concat(found, op.Expand(fill, axes([size, len(self.shape)])), axis=0)
    return op.Slice(rows, axes([0]), axes([size]), axes([0]))


TRANSLATIONS = {
    "aten::nonzero_static": nonzero_static,
    "aten::searchsorted.Tensor": searchsorted,
    "aten::searchsorted.Scalar": searchsorted_scalar,
    "aten::masked_select": masked_select,
}
