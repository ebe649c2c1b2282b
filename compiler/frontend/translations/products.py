"""The cumulative product."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
from onnxscript import graph, script
from onnxscript import opset18 as op
from onnxscript.function_libs.torch_lib.tensor_typing import TReal

from compiler.frontend.translations.parts import axes, positive

__all__ = ["TRANSLATIONS"]


@script(default_opset=op)  # type: ignore[untyped-decorator]
def running_products(first: TReal, rows: TReal) -> TReal:
    """The products of `first` and the rows up to each row. PyTorch multiplies in the same order."""

    @graph()
    def step(product, row):  # type: ignore[no-untyped-def]  # onnxscript reads annotations as types of ONNX
        following = op.Mul(product, row)
        return following, op.Identity(following)

    _, products = op.Scan(first, rows, body=step, num_scan_inputs=1)
    return products


def cumprod(self: Any, dim: int, *, dtype: int = -1) -> Any:
    """The products of the elements up to each element along an axis. Those of integers are 64-bit integers."""
    kind = ir.DataType(dtype) if dtype != -1 else self.dtype if self.dtype.is_floating_point() else ir.DataType.INT64
    factors = op.Cast(self, to=kind)
    rank = len(self.shape)
    if rank == 0:
        return factors
    dim = positive(dim, self)
    order = [dim, *(axis for axis in range(rank) if axis != dim)]
    rows = op.Transpose(factors, perm=order)
    sizes = op.Slice(op.Shape(rows), axes([1]), axes([rank]))
    one = op.Constant(value=ir.tensor(1, dtype=kind))
    products = running_products(op.Expand(one, sizes), rows)
    return op.Transpose(products, perm=[order.index(axis) for axis in range(rank)])


TRANSLATIONS = {"aten::cumprod": cumprod}
