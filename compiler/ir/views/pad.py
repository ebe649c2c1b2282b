"""Pad: the numbers of elements added before and after each axis, and their value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compiler.ir.views.source import Listed, Source, V, View, ints_at, ints_of, resolved

__all__ = ["PadView"]


@dataclass(frozen=True)
class PadView(View[V]):
    """`Pad`: pads and value are attributes before version 11, and inputs from version 11 on; version 18 added the axes.

    Source: https://onnx.ai/onnx/operators/onnx__Pad.html
    """

    operators = (("", "Pad"),)

    x: V | None
    mode: str
    pads: Listed[V, int] | None
    """The pads before each axis, then those after."""
    value: V | None
    """The input with the padding value of mode `constant`; `None` if there is only `number`."""
    number: float | None
    """The padding value of mode `constant`; `None` if the input is not a constant."""
    axes: Listed[V, int] | None
    """`None`: all axes."""

    @classmethod
    def read(cls, node: Source[V]) -> PadView[V]:
        """The view of a Pad."""
        mode, pads = node.string("mode", "constant"), ints_of(node, "pads", 1, 11, required=True)
        if not node.is_since(11, "pads"):
            return cls(node.optional(0), mode, pads, None, node.float("value", 0.0), None)
        value, fill = node.optional(2), node.constant(2)
        number = 0.0 if value is None else None
        if fill is not None and fill.size == 1 and fill.dtype != object:
            number = float(fill.item())
        return cls(node.optional(0), mode, pads, value, number, ints_at(node, 3))

    def amounts(self, rank: int) -> np.ndarray | None:
        """The pads of all axes `[2, rank]`: those before, and those after; `None` if unknown."""
        given = None if self.pads is None else self.pads.known
        axes = tuple(range(rank)) if self.axes is None else self.axes.known
        if given is None or axes is None or len(given) != 2 * len(axes):
            return None
        places = [place for axis in axes if (place := resolved(axis, rank)) is not None]
        if len(set(places)) < len(axes):
            return None
        full = np.zeros((2, rank), np.int64)
        full[:, places] = np.reshape(given, (2, -1))
        return full
