"""The graphs that the backend refuses before PyTorch translates them, because a plan would compute something else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import fx

from compiler.dynamo.refusal import RefusedGraph

__all__ = ["check"]


def check(module: fx.GraphModule) -> None:
    """Check all operators of a graph and of the graphs in it.

    Raises:
        RefusedGraph: an operator draws random numbers, depends on the strides of its input, or has a wrong translation,
            or a tensor is not a dense tensor of real numbers on the CPU.
    """
    for part in module.modules():
        if isinstance(part, fx.GraphModule):
            for node in part.graph.nodes:
                for value in _tensors(node.meta.get("val")):
                    _check_tensor(node, value)
                if isinstance(node.target, torch._ops.OpOverload):
                    _check_operator(node, node.target)


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    for each in value if isinstance(value, tuple | list) else [value]:
        if isinstance(each, torch.Tensor):
            yield each


def _check_tensor(node: fx.Node, value: torch.Tensor) -> None:
    if value.device.type != "cpu":
        raise RefusedGraph(f"the tensor {node.name} is on {value.device}, and the backend runs on the CPU")
    if value.layout is not torch.strided or value.is_quantized:
        kind = "quantized" if value.is_quantized else value.layout
        raise RefusedGraph(f"the tensor {node.name} is {kind}, and plans have dense tensors")
    if value.dtype.is_complex:
        raise RefusedGraph(f"the tensor {node.name} is {value.dtype}, and plans have no complex numbers")


def _check_operator(node: fx.Node, operator: Any) -> None:
    if torch.Tag.nondeterministic_seeded in operator.tags and _argument(node, operator, "dropout_p") != 0:
        raise RefusedGraph(f"{operator} draws random numbers, and a plan would draw others than PyTorch")
    if _argument(node, operator, "training") and "batch_norm" in operator._schema.name:
        raise RefusedGraph(f"PyTorch's exporter translates {operator} as in evaluation mode")
    if operator._schema.name == "aten::as_strided" and not _is_row_major(node.args[0]):
        raise RefusedGraph("aten.as_strided reads a tensor whose elements are not in row-major order")


def _argument(node: fx.Node, operator: Any, name: str) -> Any:
    """The argument of this name; `None` if the operator has none."""
    for position, argument in enumerate(operator._schema.arguments):
        if argument.name == name:
            given = node.args[position] if position < len(node.args) else argument.default_value
            return node.kwargs.get(name, given)
    return None


def _is_row_major(node: Any) -> bool:
    value = node.meta.get("val") if isinstance(node, fx.Node) else None
    return isinstance(value, torch.Tensor) and value.is_contiguous()
