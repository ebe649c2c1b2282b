"""GridSample: the interpolation, the elements outside the image, and the positions of corners."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.ir.views.source import Source, V, View

__all__ = ["GridSampleView"]

_FORMER_MODES = {"bilinear": "linear", "bicubic": "cubic"}
"""The names of modes in version 16 → their names in later versions."""


@dataclass(frozen=True)
class GridSampleView(View[V]):
    """`GridSample`: elements of `x` at the coordinates in `grid`.

    Source: https://onnx.ai/onnx/operators/onnx__GridSample.html
    """

    operators = (("", "GridSample"),)

    x: V | None
    grid: V | None
    mode: str
    """`linear`, `nearest` or `cubic`, unless the node is invalid."""
    padding: str
    """`zeros`, `border` or `reflection`, unless the node is invalid: the elements outside the image."""
    align_corners: bool
    """Whether -1 and 1 are the centers of the first and the last element of an axis, not the ends of the image."""

    @classmethod
    def read(cls, node: Source[V]) -> GridSampleView[V]:
        """The view of a GridSample."""
        mode = node.string("mode", "linear")
        return cls(
            x=node.optional(0),
            grid=node.optional(1),
            mode=_FORMER_MODES.get(mode, mode),
            padding=node.string("padding_mode", "zeros"),
            align_corners=node.flag("align_corners", False),
        )
