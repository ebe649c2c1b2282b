"""The types of values: conversion from the model's graph, and queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from compiler.ir import dtypes
from compiler.plan.fields import replaced
from compiler.plan.ops import AnyType, Dim, DType, TensorType, Type

if TYPE_CHECKING:
    import onnx_ir as ir

__all__ = ["described", "joined", "refined", "shapeless", "tensor", "tensor_type", "type_of"]


def type_of(value: ir.Value) -> AnyType | None:
    """The type of a value in the model's graph; `None` if the graph has none.

    Raises:
        TypeError: a plan does not support the element type (complex numbers), or the kind of value (sparse tensors,
            maps).
    """
    return None if value.type is None else _from_ir(value.type, value.shape)


def _from_ir(kind: ir.TypeProtocol, shape: ir.Shape | None) -> AnyType:
    import onnx_ir as ir

    if isinstance(kind, ir.TensorType):
        dims = None if shape is None else [_dim(dim if isinstance(dim, int) else dim.value) for dim in shape.dims]
        return tensor(dtypes.from_ir(kind.dtype), dims)
    if isinstance(kind, ir.SequenceType):
        return Type.Sequence(_from_ir(kind.elem_type, None))
    if isinstance(kind, ir.OptionalType):
        return Type.Optional(_from_ir(kind.elem_type, shape))
    raise TypeError(f"{kind} is not supported")


def _dim(dim: Dim | None) -> Dim | None:
    """A size; `None` for a negative size, which shape inference returns for a window larger than its input."""
    return None if isinstance(dim, int) and dim < 0 else dim


def tensor(dtype: str, shape: Sequence[Dim | None] | None = None) -> Type.Tensor:
    """The type of a tensor."""
    return Type.Tensor(TensorType(cast(DType, dtype), None if shape is None else list(shape)))


def tensor_type(kind: AnyType) -> TensorType | None:
    """The tensor type of a tensor or an optional tensor; `None` for any other type."""
    if isinstance(kind, Type.Optional):
        return tensor_type(kind.value)
    return kind.value if isinstance(kind, Type.Tensor) else None


def shapeless(kind: AnyType) -> AnyType:
    """A tensor type without its shape; any other type unchanged."""
    return Type.Tensor(replaced(kind.value, shape=None)) if isinstance(kind, Type.Tensor) else kind


def refined(kind: AnyType, other: AnyType | None) -> AnyType:
    """The type, completed with the rank, numbers and symbols of `other`, another type of the same value."""
    if isinstance(kind, Type.Tensor) and isinstance(other, Type.Tensor):
        shape = _refined_shape(kind.value.shape, other.value.shape)
        return kind if shape == kind.value.shape else Type.Tensor(replaced(kind.value, shape=shape))
    if isinstance(kind, Type.Sequence) and isinstance(other, Type.Sequence):
        return Type.Sequence(refined(kind.value, other.value))
    if isinstance(kind, Type.Optional) and isinstance(other, Type.Optional):
        return Type.Optional(refined(kind.value, other.value))
    return kind


def _refined_shape(shape: list[Dim | None] | None, other: list[Dim | None] | None) -> list[Dim | None] | None:
    if shape is None or other is None or len(shape) != len(other):
        return other if shape is None else shape
    return [
        b if a is None or (isinstance(a, str) and isinstance(b, int)) else a for a, b in zip(shape, other, strict=True)
    ]


def joined(kind: AnyType, other: AnyType) -> AnyType:
    """The most specific type of a value that has one type or the other.

    Raises:
        TypeError: the types have nothing in common.
    """
    if isinstance(kind, Type.Tensor) and isinstance(other, Type.Tensor) and kind.value.dtype == other.value.dtype:
        return Type.Tensor(replaced(kind.value, shape=_joined_shape(kind.value.shape, other.value.shape)))
    if isinstance(kind, Type.Sequence) and isinstance(other, Type.Sequence):
        return Type.Sequence(joined(kind.value, other.value))
    if isinstance(kind, Type.Optional) or isinstance(other, Type.Optional):
        parts = [part.value if isinstance(part, Type.Optional) else part for part in (kind, other)]
        return Type.Optional(joined(*parts))
    raise TypeError(f"{described(kind)} and {described(other)} have no common type")


def _joined_shape(shape: list[Dim | None] | None, other: list[Dim | None] | None) -> list[Dim | None] | None:
    if shape is None or other is None or len(shape) != len(other):
        return None
    return [a if a == b else None for a, b in zip(shape, other, strict=True)]


def described(kind: AnyType) -> str:
    """The text of a type, such as `float32 [1, batch, ?]`."""
    if isinstance(kind, Type.Sequence):
        return f"sequence of {described(kind.value)}"
    if isinstance(kind, Type.Optional):
        return f"optional {described(kind.value)}"
    if kind.value.shape is None:
        return f"{kind.value.dtype} of any rank"
    dims = ", ".join("?" if dim is None else str(dim) for dim in kind.value.shape)
    return f"{kind.value.dtype} [{dims}]"
