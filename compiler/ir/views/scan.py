"""Scan: the number of scanned inputs, and the axes and directions of the scans."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.ir.views.source import Source, V, View

__all__ = ["ScanView"]


@dataclass(frozen=True)
class ScanView(View[V]):
    """`Scan`. Version 8 scans each sequence of a batch along its first axis, and forward in the results.

    The axes and directions are lists with a number for each scanned input or output; an empty list means 0 for each.

    Source: https://onnx.ai/onnx/operators/onnx__Scan.html
    """

    operators = (("", "Scan"),)

    scanned: int
    """The number of scanned inputs, which are the last ones; the others are states."""
    input_axes: tuple[int, ...]
    input_directions: tuple[int, ...]
    """0: from the first slice to the last; 1: from the last to the first."""
    output_axes: tuple[int, ...]
    output_directions: tuple[int, ...]
    """0: each slice follows those before it; 1: it precedes them."""

    @classmethod
    def read(cls, node: Source[V]) -> ScanView[V]:
        """The view of a Scan."""
        scanned = node.int("num_scan_inputs")
        if not node.is_since(9, "directions"):
            return cls(scanned, (), tuple(node.ints("directions", ())), (), ())
        names = ("scan_input_axes", "scan_input_directions", "scan_output_axes", "scan_output_directions")
        return cls(scanned, *(tuple(node.ints(name, ())) for name in names))

    def axes_of_inputs(self) -> tuple[int, ...]:
        """The scanned axis of each scanned input."""
        return self.input_axes or (0,) * self.scanned
