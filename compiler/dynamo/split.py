"""Splits a graph of ATen operators into a core, which a plan computes, and a tail, which PyTorch runs.

The tail computes no elements. It makes views of the core's outputs and of the inputs, such as transposes and slices.
It also computes sizes. Outputs therefore share memory with inputs and with each other as in the graph.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass

import torch
from torch import fx
from torch.fx.node import map_arg

from compiler.dynamo.core import Core, core_of

__all__ = ["Split", "split"]

_CHECKS = ("aten::_assert_async", "aten::_assert_scalar", "aten::_assert_tensor_metadata", "aten::sym_constrain_range")
"""The first parts of the names of operators that only check values."""


@dataclass(frozen=True)
class Split:
    """The parts of a graph. The tail takes the graph's inputs and then the core's outputs."""

    core: Core | None
    tail: fx.GraphModule


def split(module: fx.GraphModule) -> Split:
    """Split a graph in functional form.

    Raises:
        RefusedGraph: the core would have inputs that are neither tensors nor sizes.
    """
    graph = module.graph
    late, made = _late(graph)
    tail = fx.Graph()
    copies = {node: tail.placeholder(node.name) for node in graph.find_nodes(op="placeholder")}
    copies |= {node: tail.placeholder(f"{node.name}_of_core") for node in made}
    for node in graph.nodes:
        if node in late:
            copies[node] = tail.node_copy(node, copies.__getitem__)
    tail.output(map_arg(graph.output_node().args[0], copies.__getitem__))
    return Split(core_of(module, made) if made else None, fx.GraphModule(module, tail))


def _late(graph: fx.Graph) -> tuple[set[fx.Node], list[fx.Node]]:
    """The nodes of the tail, and the nodes whose results it needs from the core."""
    checks = {node for node in graph.nodes if node.op == "call_function" and _is_check(node)}
    late, made = set(), set()
    pending = [*graph.output_node().all_input_nodes, *checks]
    while pending:
        node = pending.pop()
        if node.op == "placeholder" or node in late or node in made:
            continue
        if node in checks or _is_late(node):
            late.add(node)
            pending += node.all_input_nodes
        else:
            made.add(node)
    return late, [node for node in graph.nodes if node in made]


def _is_check(node: fx.Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and node.target.name().startswith(_CHECKS)


def _is_late(node: fx.Node) -> bool:
    """Whether a node makes a view, reads a constant, or has a result that is no tensor."""
    if node.op == "get_attr":
        return True
    if node.target is operator.getitem:
        return isinstance(node.args[0], fx.Node) and _is_view(node.args[0])
    return _is_view(node) or not isinstance(node.meta.get("val"), torch.Tensor | tuple | list)


def _is_view(node: fx.Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and bool(node.target.is_view)
