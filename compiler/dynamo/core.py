"""Makes the core of a graph: the nodes between the inputs and some results, with tensors as inputs and outputs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from compiler.dynamo.refusal import RefusedGraph

__all__ = ["Core", "core_of"]


@dataclass(frozen=True)
class Core:
    """The graph that a plan computes. Its inputs are tensors and whole numbers, its outputs tensors."""

    module: fx.GraphModule
    sources: tuple[int, ...]
    """For each input of the core, its position among the inputs of the whole graph."""
    constants: tuple[torch.Tensor, ...]
    """The tensors of the further inputs, which are constants of the graph."""
    orders: tuple[tuple[int, ...] | None, ...]
    """For each output, its dims from the outermost to the innermost in memory; `None` if they are in order."""


def core_of(module: fx.GraphModule, made: list[fx.Node]) -> Core:
    """The core that computes the results `made`.

    An input that is the size of another input becomes an operator that reads this size, because the compiler knows more
    about such an operator than about an input.

    Raises:
        RefusedGraph: the results depend on an input that is neither a tensor nor a whole number.
    """
    needed = _needed(made)
    inputs = module.graph.find_nodes(op="placeholder")
    numbers = [node for node in inputs if node in needed and not _is_tensor(node)]
    tensors, places = _tensors(inputs, needed, {_expression(node) for node in numbers})
    graph, sources, constants = fx.Graph(), [], []
    copies: dict[fx.Node, Any] = {}
    for position, node in enumerate(inputs):
        if node in tensors or (node in numbers and _expression(node) not in places and not _is_fixed(node)):
            copies[node] = _placeholder(graph, node)
            sources.append(position)
    for node in module.graph.find_nodes(op="get_attr"):
        constant = getattr(module, str(node.target))
        if node in needed and isinstance(constant, torch.Tensor):
            copies[node] = _placeholder(graph, node)
            constants.append(constant)
    for node in numbers:
        if node not in copies:
            copies[node] = node.meta["val"] if _is_fixed(node) else _size(graph, node, places, copies)
    for node in module.graph.nodes:
        if node in needed and node not in copies:
            copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.output(tuple(copies[node] for node in made))
    orders = tuple(_order(node.meta["val"]) for node in made)
    return Core(fx.GraphModule(module, graph), tuple(sources), tuple(constants), orders)


def _needed(made: Iterable[fx.Node]) -> set[fx.Node]:
    """The nodes from which the results follow."""
    needed: set[fx.Node] = set()
    pending = list(made)
    while pending:
        node = pending.pop()
        if node not in needed:
            needed.add(node)
            pending += node.all_input_nodes
    return needed


def _is_tensor(node: fx.Node) -> bool:
    return isinstance(node.meta["val"], torch.Tensor)


def _is_fixed(node: fx.Node) -> bool:
    """Whether an input is a number that the guards of dynamo keep as it is."""
    return isinstance(node.meta["val"], int)


def _expression(node: fx.Node) -> Any:
    """The symbolic number of an input.

    Raises:
        RefusedGraph: the input is no whole number.
    """
    value = node.meta["val"]
    if isinstance(value, torch.SymInt | int):
        return value.node.expr if isinstance(value, torch.SymInt) else value
    raise RefusedGraph(f"it computes with the input {node.name}, a {type(value).__name__}: pass a tensor instead")


_Places = dict[Any, tuple[fx.Node, int]]
"""A symbolic size → an input that has it, and the dim."""


def _tensors(inputs: list[fx.Node], needed: set[fx.Node], wanted: set[Any]) -> tuple[set[fx.Node], _Places]:
    """The inputs that are tensors of the core, and their symbolic sizes.

    A tensor that the core does not need otherwise is one of them if it has a wanted size that no other tensor has.
    """
    found: set[fx.Node] = set()
    places: _Places = {}
    for node in sorted(filter(_is_tensor, inputs), key=lambda each: each not in needed):
        own = {size.node.expr: dim for dim, size in enumerate(node.meta["val"].shape) if isinstance(size, torch.SymInt)}
        if node in needed or (own.keys() & wanted) - places.keys():
            found.add(node)
            places = {**{size: (node, dim) for size, dim in own.items()}, **places}
    return found, places


def _placeholder(graph: fx.Graph, node: fx.Node) -> fx.Node:
    made = graph.placeholder(node.name)
    made.meta = {"val": node.meta["val"]}
    return made


def _size(graph: fx.Graph, node: fx.Node, places: _Places, copies: dict[fx.Node, Any]) -> fx.Node:
    tensor, dim = places[_expression(node)]
    made = graph.call_function(torch.ops.aten.sym_size.int, (copies[tensor], dim))
    made.meta = {"val": node.meta["val"]}
    return made


def _order(value: torch.Tensor) -> tuple[int, ...] | None:
    """The order of a tensor's dims in memory; `None` if this is the order of the dims, or if gaps separate elements."""
    sizes, strides = ([_hint(each) for each in shape] for shape in (value.shape, value.stride()))
    if None in sizes or None in strides or 0 in sizes:
        return None
    order = sorted(range(len(sizes)), key=lambda dim: (-strides[dim], -sizes[dim]))
    dense = 1
    for dim in reversed(order):
        if sizes[dim] != 1 and strides[dim] != dense:
            return None
        dense *= sizes[dim]
    moved = [dim for dim in order if sizes[dim] != 1]
    return tuple(order) if moved != sorted(moved) else None


def _hint(size: Any) -> Any:
    """The size of an example; `None` if it depends on elements of tensors."""
    return size.node.hint if isinstance(size, torch.SymInt) else size
