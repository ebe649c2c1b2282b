"""ONNX functions for operators that the TorchScript exporter lacks, or writes with types that ONNX does not allow."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.onnx import symbolic_helper

from compiler.frontend.local_response import NAME

__all__ = ["more_functions"]

_SMALL = ("Bool", "Byte", "Char", "Short", "Int")
"""TorchScript's names of the types whose sums are int64 in PyTorch."""


def _diff(graph: Any, x: Any, n: Any, dim: Any, prepend: Any, append: Any) -> Any:
    """`torch.diff`: differences of neighbors along a dim, `n` times."""
    if x.type().scalarType() == "Bool":
        return symbolic_helper._unimplemented("aten::diff", "of booleans", x)
    axis = symbolic_helper._get_const(dim, "i", "dim")
    parts = [part for part in (prepend, x, append) if not symbolic_helper._is_none(part)]
    if len(parts) > 1:
        x = graph.op("Concat", *parts, axis_i=axis)
    for _ in range(symbolic_helper._get_const(n, "i", "n")):
        later, earlier = (
            symbolic_helper._slice_helper(graph, x, axes=[axis], starts=[start], ends=[end])
            for start, end in ((1, sys.maxsize), (0, -1))
        )
        x = graph.op("Sub", later, earlier)
    return x


def _cumsum(graph: Any, x: Any, dim: Any, dtype: Any) -> Any:
    """`torch.cumsum`: sums of booleans and small integers are int64."""
    kind = None if symbolic_helper._is_none(dtype) else symbolic_helper._get_const(dtype, "i", "dtype")
    if kind is not None:
        x = graph.op("Cast", x, to_i=torch.onnx.JitScalarType(kind).onnx_type())
    elif x.type().scalarType() in _SMALL:
        x = graph.op("Cast", x, to_i=torch.onnx.TensorProtoDataType.INT64)
    axis = graph.op("Constant", value_t=torch.tensor(symbolic_helper._get_const(dim, "i", "dim")))
    return graph.op("CumSum", x, axis)


def _local_response_norm(graph: Any, x: Any, size: Any, alpha: Any, beta: Any, k: Any) -> Any:
    """The operator of `compiler.frontend.local_response`, of an image and an odd size."""
    numbers = {
        name: symbolic_helper._get_const(value, "f", name)
        for name, value in (("alpha_f", alpha), ("beta_f", beta), ("bias_f", k))
    }
    return graph.op("LRN", x, size_i=symbolic_helper._get_const(size, "i", "size"), **numbers)


_FUNCTIONS: dict[tuple[str, int], Callable[..., Any]] = {
    ("aten::diff", 10): _diff,
    ("aten::cumsum", 11): _cumsum,
    (NAME, 9): _local_response_norm,
}
"""An operator, and the first opset of its function → the function."""


@contextmanager
def more_functions() -> Iterator[None]:
    """Give the exporter these functions for a while."""
    for (name, opset), function in _FUNCTIONS.items():
        torch.onnx.register_custom_op_symbolic(name, function, opset)
    try:
        yield
    finally:
        for name, opset in _FUNCTIONS:
            torch.onnx.unregister_custom_op_symbolic(name, opset)
