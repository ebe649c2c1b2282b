"""LayerNormalization, RMSNormalization: normalization over the last axes."""

from __future__ import annotations

from compiler.ir.views.norm import NormView
from compiler.lower.node import Node, lowers
from compiler.plan import PlanBuilder, Value, ops


@lowers("LayerNormalization", newest=17)
def layer_normalization(node: Node, build: PlanBuilder) -> tuple[Value, ...]:
    """`LayerNormalization`, computed in float32 or wider; `stash_type` is also the type of mean and deviation."""
    stash = node.precision("stash_type", node.input(0), "float32")
    wants_statistics = node.uses_output(1) or node.uses_output(2)
    if wants_statistics and stash != "float32":
        node.refuse("CC0202", f"LayerNormalization gives its mean and deviation as float32, not {stash}")
    view = NormView.read(node)
    op = ops.LayerNorm(axis=view.axis, epsilon=view.epsilon)
    return build(op, node.input(0), node.input(1), node.optional(2), outputs=3 if wants_statistics else 1)


@lowers("RMSNormalization", newest=23)
def rms_normalization(node: Node, build: PlanBuilder) -> Value:
    """`RMSNormalization`, computed in float32 or wider."""
    node.precision("stash_type", node.input(0), "float32")
    view = NormView.read(node)
    op = ops.RmsNorm(axis=view.axis, epsilon=view.epsilon)
    return build(op, node.input(0), node.input(1))
