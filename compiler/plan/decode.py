"""Conversion of types from JSON."""

from __future__ import annotations

from typing import Any

from compiler.plan.ops import AnyType, TensorType, Type

__all__ = ["type_from"]


def type_from(data: dict[str, Any]) -> AnyType:
    """A type from its JSON form, `{"Tensor": {"dtype": …, "shape": …}}`."""
    ((tag, content),) = data.items()
    if tag == "Tensor":
        return Type.Tensor(TensorType(**content))
    return Type.Sequence(type_from(content)) if tag == "Sequence" else Type.Optional(type_from(content))
