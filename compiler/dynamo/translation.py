"""Translates the core of a graph to ONNX, and binds inputs of the model to tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx_ir as ir
import torch
from onnx_ir.tensor_adapters import TorchTensor
from torch import fx
from torch.export import ExportedProgram
from torch.export.exported_program import ModuleCallEntry, ModuleCallSignature
from torch.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymIntArgument,
    TensorArgument,
)
from torch.utils import _pytree as pytree

from compiler.frontend.captured import onnx_program
from compiler.frontend.export_request import ExportError
from compiler.frontend.output_names import name_outputs

__all__ = ["bound", "translated"]


def translated(core: fx.GraphModule) -> ir.Model:
    """The ONNX model of a core. Its inputs and outputs are in the core's order.

    Raises:
        ExportError: PyTorch cannot translate an operator.
    """
    for node in core.graph.nodes:
        if node.op == "call_function":  # PyTorch's exporter wants texts
            stack = node.meta.get("nn_module_stack") or {"": ("", "")}
            node.meta["nn_module_stack"] = {str(key): tuple(map(_named, place)) for key, place in stack.items()}
    try:
        program = _program(core)
    except Exception as error:  # a check of PyTorch's, which have many types of exception
        raise ExportError(f"PyTorch cannot export the graph: {type(error).__name__}: {error}") from error
    model: ir.Model = onnx_program(program, "the graph").model
    name_outputs(model, [f"result_{index}" for index in range(len(model.graph.outputs))])
    return model


def _named(part: Any) -> str:
    return f"{part.__module__}.{part.__qualname__}" if isinstance(part, type) else str(part)


def _program(core: fx.GraphModule) -> ExportedProgram:
    """The core as a program of `torch.export`: all of its inputs are the user's."""
    given = [_argument(node) for node in core.graph.find_nodes(op="placeholder")]
    made = [_argument(node) for node in core.graph.output_node().args[0]]
    _, arguments = pytree.tree_flatten((tuple(range(len(given))), {}))
    _, results = pytree.tree_flatten(tuple(range(len(made))))
    signature = ExportGraphSignature(
        [InputSpec(InputKind.USER_INPUT, each, None) for each in given],
        [OutputSpec(OutputKind.USER_OUTPUT, each, None) for each in made],
    )
    return ExportedProgram(
        root=core,
        graph=core.graph,
        graph_signature=signature,
        state_dict={},
        range_constraints={},
        module_call_graph=[ModuleCallEntry("", ModuleCallSignature(given, made, arguments, results))],
    )


def _argument(node: fx.Node) -> TensorArgument | SymIntArgument:
    kind = TensorArgument if isinstance(node.meta["val"], torch.Tensor) else SymIntArgument
    return kind(name=node.name)


def bound(model: ir.Model, tensors: Mapping[str, torch.Tensor]) -> ir.Model:
    """The model with tensors in place of these inputs: a copy, which shares the memory of the tensors."""
    if not tensors:
        return model
    copy = model.clone()
    for value in list(copy.graph.inputs):
        tensor = tensors.get(value.name or "")
        if tensor is not None:
            copy.graph.inputs.remove(value)
            value.const_value = TorchTensor(tensor.detach(), name=value.name)
            copy.graph.register_initializer(value)
    return copy
