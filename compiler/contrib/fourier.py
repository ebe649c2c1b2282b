"""Rfft, Irfft: spectra of real signals along the last axis."""

from __future__ import annotations

import onnx_ir as ir

from compiler.contrib.expansion.body import FLOAT, Body
from compiler.contrib.expansion.node import Node, expands

__all__: list[str] = []

_FLOATS = (ir.DataType.FLOAT16, FLOAT, ir.DataType.DOUBLE)


@expands("Rfft")
def rfft(node: Node, new: Body) -> ir.Value:
    """The spectrum `[…, n / 2 + 1, 2]` of signals `[…, n]`; the last axis holds the real and the imaginary parts."""
    dtype = _check(node)
    signals = new.unsqueeze(new.upcast(node.input(0)), -1)
    spectrum = new.op("DFT", signals, None, new.scalar(-2, ir.DataType.INT64), onesided=1)
    return new.cast(spectrum, dtype, FLOAT if dtype == ir.DataType.FLOAT16 else dtype)


@expands("Irfft")
def irfft(node: Node, new: Body) -> ir.Value:
    """The signals `[…, 2 · (m - 1)]` of one half of their spectrum, `[…, m, 2]`."""
    dtype = _check(node)
    half = new.upcast(node.input(0))
    rank = node.rank(0, "X")
    if rank < 2:
        node.refuse("CC0210", f"Irfft's input X has {rank} dimensions, which are fewer than 2")
    axis, last = new.numbers(rank - 2), new.numbers(rank - 1)
    inner = new.op("Slice", half, new.numbers(-2), new.numbers(0), axis, new.numbers(-1))
    real, imaginary = new.op("Split", inner, new.numbers(1, 1), axis=rank - 1, outputs=2)
    mirrored = new.joined(real, new.op("Neg", imaginary), axis=rank - 1)
    whole = new.op("DFT", new.joined(half, mirrored, axis=rank - 2), None, new.scalar(-2, ir.DataType.INT64), inverse=1)
    signals = new.op("Squeeze", new.op("Slice", whole, new.numbers(0), new.numbers(1), last), last)
    return new.cast(signals, dtype, FLOAT if dtype == ir.DataType.FLOAT16 else dtype)


def _check(node: Node) -> ir.DataType:
    """The type of the input. Refuses what is not a one-sided transform of one axis without a factor."""
    node.choice("signal_ndim", 1)
    node.choice("onesided", 1)
    node.choice("normalized", 0)
    return node.dtype(0, "X", *_FLOATS)
