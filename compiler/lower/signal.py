"""DFT, STFT, MelWeightMatrix: spectra of signals."""

from __future__ import annotations

from compiler.lower.node import Node, lowers
from compiler.plan import PlanBuilder, Value, ops


@lowers("DFT", newest=20)
def discrete_fourier_transform(node: Node, build: PlanBuilder) -> Value:
    """`DFT`; the axis is an attribute in version 17, and an input in later versions."""
    axis_input = node.optional(2) if node.version >= 20 else None
    axis: int | None = None
    if node.version < 20:
        axis = node.int("axis", 1)
    elif axis_input is None:
        axis = -2
    elif axis_input.constant is not None and axis_input.constant.size == 1:
        axis = int(axis_input.constant.item())
    op = ops.Dft(axis=axis, inverse=node.flag("inverse", False), one_sided=node.flag("onesided", False))
    return build(op, node.input(0), node.optional(1), axis_input if axis is None else None)


@lowers("STFT", newest=17)
def short_time_fourier_transform(node: Node, build: PlanBuilder) -> Value:
    """`STFT`."""
    op = ops.Stft(one_sided=node.flag("onesided", True))
    return build(op, node.input(0), node.input(1), node.optional(2), node.optional(3))


@lowers("MelWeightMatrix", newest=17)
def mel_weight_matrix(node: Node, build: PlanBuilder) -> Value:
    """`MelWeightMatrix`."""
    op = ops.MelWeightMatrix(dtype=node.dtype_attr("output_datatype", "float32"))  # type: ignore[arg-type]
    return build(op, *(node.input(index) for index in range(5)))
