"""The axes of reductions, for the patterns of normalizations."""

from __future__ import annotations

import onnx_ir as ir

from compiler.ir.views.reduce import axes_of, keeps_axes

__all__ = ["trailing_axis"]


def trailing_axis(*nodes: ir.Node) -> int | str:
    """The first of the trailing axes that all nodes reduce and keep, as a negative number; or the reason for none."""
    found = {axes_of(node) for node in nodes}
    axes = found.pop()
    if found or axes is None:
        return "the axes differ or are not known"
    if not all(keeps_axes(node) for node in nodes):
        return "the axes are dropped"
    if axes != tuple(range(axes[0], 0)):
        return f"the axes {list(axes)} are not the last ones"
    return axes[0]
