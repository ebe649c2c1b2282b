"""CausalConvWithState: a convolution along a sequence that continues an earlier one."""

from __future__ import annotations

import onnx_ir as ir

from compiler.contrib.expansion.body import END, FLOAT, HALVES, Body, Size
from compiler.contrib.expansion.node import Node, expands

__all__: list[str] = []

_NONE = ("state_window", "state_length", "state_update_capacity", "input_channel_offset", "input_channels")
"""The attributes that only GPU providers support."""


@expands("CausalConvWithState")
def causal_conv_with_state(node: Node, new: Body) -> tuple[ir.Value, ir.Value]:
    """An activation of a convolution of each channel with the elements up to its own one.

    The input is `[B, C, L]`, or `[B, L, C]` with `channels_last`; the weights are `[C, 1, K]`. Outputs: the result, and
    the last `(K - 1) · dilation` elements of the state and the input, which are the state of the next call.
    """
    dtype = node.dtype(0, "input", FLOAT, *HALVES)
    node.rank(0, "input", 3)
    node.choice("ndim", 1)
    for name in _NONE:
        node.choice(name, 0)
    is_last = node.flag("channels_last", False)
    node.choice("state_channels_last", -1, int(is_last))
    channels, taps, dilation = node.size(1, "weight", 0), node.size(1, "weight", 2), node.int("dilation", 1)
    if dilation < 1 or taps < 1:
        node.refuse("CC0202", f"CausalConvWithState has the dilation {dilation} and {taps} taps")
    length = (taps - 1) * dilation
    shape = (new.size(node.input(0), 0), channels, length)
    x, state = _channels_first(new, node.input(0), is_last), _state(node, new, shape, is_last, dtype)
    window = new.joined(state, x, axis=2)
    y = new.op("Conv", window, node.input(1), node.optional(2), group=channels, dilations=[dilation])
    activation = node.string("activation", "none")
    if activation not in ("none", "silu", "swish"):
        node.refuse("CC0202", f"CausalConvWithState has no activation {activation!r}", help="one of none, silu, swish")
    y = y if activation == "none" else new.op("Swish", y)
    left = new.slice(window, 2, -length, END) if length else state
    return _channels_first(new, y, is_last), _channels_first(new, left, is_last)


def _state(node: Node, new: Body, shape: tuple[Size, int, int], is_last: bool, dtype: ir.DataType) -> ir.Value:
    """The state `[B, C, length]`, zeros if the node has none."""
    value = node.optional(3)
    if value is None:
        return new.op("Expand", new.scalar(0, dtype), new.sizes(*shape))
    node.rank(3, "past_state", 3)
    axes = (0, 2, 1) if is_last else (0, 1, 2)
    node.check_sizes(3, "past_state", dict(zip(axes, shape, strict=True)))
    return new.reshape(_channels_first(new, value, is_last), *shape)


def _channels_first(new: Body, value: ir.Value, is_last: bool) -> ir.Value:
    """`[B, L, C]` ↔ `[B, C, L]`, if the channels are last."""
    return new.transpose(value, 0, 2, 1) if is_last else value
