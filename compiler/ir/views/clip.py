"""Clip: the smallest and the largest result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

from compiler.ir.views.source import Source, V, View

__all__ = ["Bound", "ClipView"]


@dataclass(frozen=True)
class Bound(Generic[V]):
    """A bound from an attribute, or from an input `value`: then `number` is `None` unless it is one constant number."""

    value: V | None
    number: float | None


@dataclass(frozen=True)
class ClipView(View[V]):
    """`Clip`: the bounds are attributes before version 11, and inputs from version 11 on.

    Source: https://onnx.ai/onnx/operators/onnx__Clip.html
    """

    operators = (("", "Clip"),)

    low: Bound[V] | None
    high: Bound[V] | None

    @classmethod
    def read(cls, node: Source[V]) -> ClipView[V]:
        """The view of a Clip."""
        return cls(_bound(node, "min", 1), _bound(node, "max", 2))


def _bound(node: Source[V], name: str, index: int) -> Bound[V] | None:
    if not node.is_since(11, name):
        number = node.float(name, None)
        return None if number is None else Bound(None, number)
    value, array = node.optional(index), node.constant(index)
    if value is None:
        return None
    return Bound(value, None if array is None or array.size != 1 else float(array.item()))
