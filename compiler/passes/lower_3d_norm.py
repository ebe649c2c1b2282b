"""Replaces batch and instance normalizations of three spatial dimensions with those of one.

A batch normalization with constant parameters after a convolution becomes a part of the convolution's weights.
"""

from __future__ import annotations

from dataclasses import replace

import onnx_ir as ir

from compiler._runtime import MOST_WINDOW_AXES
from compiler.ir.graph import rank
from compiler.ir.views.norm import BatchNormView
from compiler.passes.fold_batch_norm import FoldBatchNorm, FoldedNorm
from compiler.rewrite.pattern import Match
from compiler.rewrite.report import PassReport
from compiler.rewrite.rule import apply_rules
from compiler.rewrite.volume import UnloweredError, Volumes, lowering_pass

__all__ = ["lower_3d_norm"]


def _flat(node: ir.Node, new: Volumes) -> list[ir.Value]:
    """`[N, C, D·H·W]`, because every element of a channel has the same scale and shift."""
    x = node.inputs[0]
    dims = rank(x)
    if x is None or dims is None:
        raise UnloweredError("the rank of its input is not known")
    row = new.reshape(x, [[(x, 0)], [(x, 1)], [(x, axis) for axis in range(2, dims)]])
    result, *statistics = new.again(node, row, *node.inputs[1:], outputs=len(node.outputs))
    return [new.reshape(result, [[(x, axis)] for axis in range(dims)]), *statistics]


def _batch_norm(node: ir.Node, new: Volumes) -> list[ir.Value]:
    view = BatchNormView[ir.Value].of(node)
    if view is None or not view.is_spatial:
        raise UnloweredError("it has statistics for each position")
    return _flat(node, new)


class FoldBatchNorm3d(FoldBatchNorm):
    """`BatchNormalization(linear(x))` → `linear'(x)`, if `x` has three spatial dimensions."""

    def check(self, match: Match) -> FoldedNorm | str:
        """See `FoldBatchNorm`."""
        if (rank(match.root.inputs[0]) or 0) < MOST_WINDOW_AXES + 3:
            return "it has fewer than three spatial dimensions"
        return super().check(match)


_LOWERED = lowering_pass(
    "lower_3d_norm",
    {"BatchNormalization": _batch_norm, "InstanceNormalization": _flat},
    result="3-D normalizations lowered",
)


def _lower_3d_norm(model: ir.Model, report: PassReport) -> None:
    apply_rules(model, [FoldBatchNorm3d()], report)  # no later pass finds a batch normalization after a convolution
    _LOWERED.apply(model, report)


lower_3d_norm = replace(_LOWERED, apply=_lower_3d_norm)
