"""BatchNormalization, InstanceNormalization, GroupNormalization, LRN: normalisation of channels."""

from __future__ import annotations

from compiler.lower.node import Node, lowers
from compiler.plan import PlanBuilder, Value, ops


@lowers("BatchNormalization", newest=15)
def batch_normalization(node: Node, build: PlanBuilder) -> Value:
    """`BatchNormalization` with the statistics given. `spatial` (version 7) follows from the scale's shape."""
    if node.int("training_mode", 0):
        node.refuse(
            "CC0202",
            "BatchNormalization in training mode is not supported",
            help="export the model in evaluation mode: call module.eval() first",
        )
    node.float("momentum", 0.9)
    if node.version < 9:
        node.int("spatial", 1)
    op = ops.BatchNorm(epsilon=node.float("epsilon", 1e-5))
    return build(op, *(node.input(index) for index in range(5)))


@lowers("InstanceNormalization", newest=22)
def instance_normalization(node: Node, build: PlanBuilder) -> Value:
    """`InstanceNormalization`."""
    op = ops.InstanceNorm(epsilon=node.float("epsilon", 1e-5))
    return build(op, node.input(0), node.input(1), node.input(2))


@lowers("GroupNormalization", newest=21)
def group_normalization(node: Node, build: PlanBuilder) -> Value:
    """`GroupNormalization`: a scale for each group in version 18, for each channel from 21 on."""
    if node.version >= 21:
        node.dtype_attr("stash_type", "float32")
    groups = node.int("num_groups")
    if groups < 1:
        node.refuse("CC0202", f"num_groups {groups} is not positive")
    op = ops.GroupNorm(groups=groups, epsilon=node.float("epsilon", 1e-5))
    return build(op, node.input(0), node.input(1), node.input(2))


@lowers("LRN", newest=13)
def local_response_normalization(node: Node, build: PlanBuilder) -> Value:
    """`LRN`."""
    size = node.int("size")
    if size < 1:
        node.refuse("CC0202", f"size {size} is not positive")
    alpha, beta, bias = node.float("alpha", 1e-4), node.float("beta", 0.75), node.float("bias", 1.0)
    return build(ops.Lrn(size=size, alpha=alpha, beta=beta, bias=bias), node.input(0))
