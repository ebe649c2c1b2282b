"""The normalizations: ε, the normalized axes, and the modes of BatchNormalization."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.ir.views.source import Source, V, View

__all__ = ["BatchNormView", "NormView"]

_EPSILON = 1e-5


@dataclass(frozen=True)
class BatchNormView(View[V]):
    """`BatchNormalization`: `(x - mean) / √(variance + ε) · scale + bias` for each channel.

    Source: https://onnx.ai/onnx/operators/onnx__BatchNormalization.html
    """

    operators = (("", "BatchNormalization"),)

    epsilon: float
    momentum: float
    is_training: bool
    """Whether mean and variance are those of `x`."""
    is_spatial: bool
    """Whether the parameters are `[C]`; otherwise `[C, D1, …]`, which no version from 9 on supports."""

    @classmethod
    def read(cls, node: Source[V]) -> BatchNormView[V]:
        """The view of a BatchNormalization; `raise_legacy` removes the attribute `is_test` of the first versions."""
        return cls(
            epsilon=node.float("epsilon", _EPSILON),
            momentum=node.float("momentum", 0.9),
            is_training=node.flag("training_mode", False),
            is_spatial=node.is_since(9, "spatial") or node.flag("spatial", True),
        )


@dataclass(frozen=True)
class NormView(View[V]):
    """`InstanceNormalization`, `GroupNormalization`, `LayerNormalization` and `RMSNormalization`.

    Sources: https://onnx.ai/onnx/operators/onnx__InstanceNormalization.html,
    https://onnx.ai/onnx/operators/onnx__LayerNormalization.html
    """

    operators = tuple(("", f"{name}Normalization") for name in ("Instance", "Group", "Layer", "RMS"))

    epsilon: float
    axis: int
    """The first of the normalized axes in LayerNormalization and RMSNormalization; the others have no such axis."""

    @classmethod
    def read(cls, node: Source[V]) -> NormView[V]:
        """The view of a normalization."""
        has_axis = node.op_type in ("LayerNormalization", "RMSNormalization")
        return cls(node.float("epsilon", _EPSILON), node.int("axis", -1) if has_axis else -1)
