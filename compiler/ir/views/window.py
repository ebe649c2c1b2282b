"""Convolutions, poolings and Col2Im: the window that moves over the spatial axes of an image."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.ir import onnx_schema
from compiler.ir.graph import PLAN_DOMAIN
from compiler.ir.views.source import Source, V, View

__all__ = ["WindowView"]

_CONVOLUTIONS = ("Conv", "ConvInteger", "ConvTranspose", "DeformConv", "QLinearConv")
_POOLINGS = ("AveragePool", "LpPool", "MaxPool", "MaxUnpool")
_OF_PLANS = ("Conv", "ConvTranspose", "QLinearConv")


@dataclass(frozen=True)
class WindowView(View[V]):
    """Convolutions, poolings, `MaxUnpool` and `Col2Im`, in the standard's domain and in that of plans.

    The view reads only the attributes that the operator's newest version has. Others keep their defaults.

    Sources: https://onnx.ai/onnx/operators/onnx__Conv.html, https://onnx.ai/onnx/operators/onnx__MaxPool.html
    """

    operators = (
        *(("", name) for name in (*_CONVOLUTIONS, *_POOLINGS, "Col2Im")),
        *((PLAN_DOMAIN, name) for name in _OF_PLANS),
    )

    x: V | None
    weights: V | None
    """The weights of a convolution, which have two dimensions besides the spatial ones; `None` for others."""
    kernel: tuple[int, ...] | None
    """The sizes of the window; `None` if they are those of the weights."""
    strides: tuple[int, ...] | None
    """`None`: 1 for each axis."""
    dilations: tuple[int, ...] | None
    """`None`: 1 for each axis."""
    pads: tuple[int, ...] | None
    """The pads before each axis, then those after. They have an effect only if `auto_pad` is `NOTSET`. `None`: 0."""
    auto_pad: str
    groups: int
    rounds_up: bool
    """Whether a pooling has a window that starts inside the image and ends beyond its pads: `ceil_mode`."""
    counts_pads: bool
    """Whether a mean includes the pads: `count_include_pad`."""
    output_padding: tuple[int, ...] | None
    """The sizes that a transposed convolution adds after each axis of its result. `None`: 0."""
    output_shape: tuple[int, ...] | None
    """The sizes of the result of a transposed convolution, with or without batch and channels. `None`: not given."""
    column_major: bool
    """Whether the indices of maxima count columns before rows: `storage_order`."""

    @classmethod
    def read(cls, node: Source[V]) -> WindowView[V]:
        """The view of a node. A pooling must have the sizes of its window."""
        has = onnx_schema.attributes_of("", node.op_type)
        kernel = _ints(node, "kernel_shape")
        if kernel is None and node.op_type in _POOLINGS:
            kernel = tuple(node.ints("kernel_shape"))
        at = 3 if (node.domain, node.op_type) == ("", "QLinearConv") else 1
        return cls(
            x=node.optional(0),
            weights=node.optional(at) if node.op_type in _CONVOLUTIONS else None,
            kernel=kernel,
            strides=_ints(node, "strides"),
            dilations=_ints(node, "dilations"),
            pads=_ints(node, "pads"),
            auto_pad=node.string("auto_pad", "NOTSET") if "auto_pad" in has else "NOTSET",
            groups=node.int("group", 1) if "group" in has else 1,
            rounds_up="ceil_mode" in has and node.flag("ceil_mode", False),
            counts_pads="count_include_pad" in has and node.flag("count_include_pad", False),
            output_padding=_ints(node, "output_padding"),
            output_shape=_ints(node, "output_shape") or None,
            column_major="storage_order" in has and node.flag("storage_order", False),
        )

    def strides_of(self, axes: int) -> tuple[int, ...]:
        """The strides along this number of spatial axes, as the node has them, or 1 for each."""
        return (1,) * axes if self.strides is None else self.strides

    def dilations_of(self, axes: int) -> tuple[int, ...]:
        """The dilations along this number of spatial axes, as the node has them, or 1 for each."""
        return (1,) * axes if self.dilations is None else self.dilations

    def pads_of(self, axes: int) -> tuple[int, ...]:
        """The pads of this number of spatial axes, as the node has them, or zeros."""
        return (0,) * (2 * axes) if self.pads is None else self.pads

    def output_padding_of(self, axes: int) -> tuple[int, ...]:
        """The added sizes of this number of spatial axes, as the node has them, or zeros."""
        return (0,) * axes if self.output_padding is None else self.output_padding

    def output_sizes_of(self, axes: int) -> tuple[int, ...] | None:
        """The asked sizes of the spatial axes, without those of batch and channels; `None` without them."""
        shape = self.output_shape
        return shape[2:] if shape is not None and len(shape) == axes + 2 else shape


def _ints(node: Source[V], name: str) -> tuple[int, ...] | None:
    """The numbers of an attribute; `None` if it is absent, or if the operator does not have it."""
    given = node.ints(name, None) if name in onnx_schema.attributes_of("", node.op_type) else None
    return None if given is None else tuple(given)
