"""The window of a convolution or pooling over three axes, `[depth, height, width]`, split by axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from compiler.ir.graph import static_shape
from compiler.ir.views.window import WindowView
from compiler.rewrite.volume import UnloweredError

__all__ = ["Window"]

_AXES = 3


@dataclass(frozen=True)
class Window:
    """The sizes, strides, dilations and pads of a window along each axis."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]
    """The pads before and after each axis, if `auto_pad` is `NOTSET`."""
    auto_pad: str

    @classmethod
    def of(cls, node: ir.Node) -> Window:
        """The window of a node.

        Raises:
            UnloweredError: its size is unknown, or an attribute is not one number for each axis.
        """
        view = WindowView[ir.Value].of(node)
        if view is None:
            raise UnloweredError("an attribute is missing or has the wrong type")
        weights = static_shape(view.weights)
        kernel = view.kernel if view.kernel is not None else None if weights is None else weights[2:]
        if kernel is None:
            raise UnloweredError("the sizes of the weights are not known")
        if weights is not None and weights[2:] != kernel:
            raise UnloweredError(f"kernel_shape {[*kernel]} differs from the weights' {[*weights[2:]]}")
        strides, dilations, pads = view.strides_of(_AXES), view.dilations_of(_AXES), view.pads_of(_AXES)
        for name, numbers in (("kernel_shape", kernel), ("strides", strides), ("dilations", dilations)):
            if len(numbers) != _AXES or min(numbers) < 1:
                raise UnloweredError(f"{name} {[*numbers]} are not a positive number for each of {_AXES} axes")
        if len(pads) != 2 * _AXES or min(pads) < 0:
            raise UnloweredError(f"pads {[*pads]} are not one before and one after each of {_AXES} axes")
        return cls(kernel, strides, dilations, tuple(zip(pads[:_AXES], pads[_AXES:], strict=True)), view.auto_pad)

    def attributes(self, axes: Sequence[int]) -> dict[str, Any]:
        """The attributes of a 2-D window over two of the axes; or over one, and an axis of windows of size 1."""
        one = (1,) * (2 - len(axes))
        pads = [*(self.pads[axis] for axis in axes), *((0, 0) for _ in one)]
        given: dict[str, Any] = {
            "kernel_shape": [*(self.kernel[axis] for axis in axes), *one],
            "strides": [*(self.strides[axis] for axis in axes), *one],
            "dilations": None if set(self.dilations) == {1} else [*(self.dilations[axis] for axis in axes), *one],
            "pads": [*(before for before, _ in pads), *(after for _, after in pads)],
        }
        return given if self.auto_pad == "NOTSET" else given | {"pads": None}

    def is_trivial(self, axes: Sequence[int]) -> bool:
        """Whether the window has size 1 and stride 1 along these axes, and no pads."""
        has_pads = self.auto_pad == "NOTSET" and any(self.pads[axis] != (0, 0) for axis in axes)
        return not has_pads and all(self.kernel[axis] == self.strides[axis] == 1 for axis in axes)
