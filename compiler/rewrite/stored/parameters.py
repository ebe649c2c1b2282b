"""The weights of a model and their names in PyTorch, also where an exporter gave them other names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from compiler.ir import origin
from compiler.ir.graph import constant_of, graphs_of
from compiler.ir.views.product import ProductView
from compiler.rewrite.kept_weights import KeptWeights

__all__ = ["Parameter", "has_ending", "parameters_of", "set_elements"]

_FLOATS = frozenset([ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16, ir.DataType.DOUBLE])
_COPIES = {("", "Cast", ""), ("", "Identity", "")}
_WEIGHTS = {
    ("Gather", 0),
    ("Gemm", 1),
    ("LayerNormalization", 1),
    ("MatMul", 1),
    ("Mul", 0),
    ("Mul", 1),
    ("RMSNormalization", 1),
    ("SimplifiedLayerNormalization", 1),
    ("Transpose", 0),
}
"""Operators and their inputs that are the `weight` of a module."""
_BIASES = {("Add", 0), ("Add", 1), ("Gemm", 2), ("LayerNormalization", 2)}
"""Operators and their inputs that are the `bias` of a module."""


@dataclass(frozen=True)
class Parameter:
    """A constant of floats with more than one element."""

    value: ir.Value
    names: tuple[str, ...]
    """Its own name, and names after the modules that read it, such as `model.layers.0.mlp.up_proj.weight`."""
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def name(self) -> str:
        """Its own name."""
        return self.names[0]

    @property
    def is_weight(self) -> bool:
        """Whether it must come from the file: it is a matrix, or has the name of a weight."""
        return has_ending(self.name) or (len(self.shape) == 2 and min(self.shape) > 1)

    @property
    def is_transposed(self) -> bool | None:
        """Whether its readers use it as a matrix `[K, N]`; `None` if they do not tell.

        A linear layer and an embedding of PyTorch have a matrix `[N, K]`.
        """
        return _is_transposed(self.value) if len(self.shape) == 2 else False

    @property
    def gets_one(self) -> bool:
        """Whether the model adds 1 to it."""
        return any(_adds_one(node) for node, _ in _uses(self.value))

    @property
    def readers(self) -> list[ir.Node]:
        """The nodes that read it."""
        return [*dict.fromkeys(use.node for use in self.value.uses())]

    def is_named(self, keep: KeptWeights) -> bool:
        """Whether the option `keep` names it, or a node or module that reads it."""
        named = [
            keep.names(node, self.value) for node in self.readers
        ]  # all of them, so that every name counts as used
        return any(named)

    def __str__(self) -> str:
        known = "".join(f" ({name})" for name in self.names[1:2])
        return f"{self.name!r}{known} {list(self.shape)}"


def has_ending(name: str) -> bool:
    """Whether a name is that of a weight in PyTorch."""
    return name.endswith((".weight", ".bias"))


def parameters_of(model: ir.Model) -> list[Parameter]:
    """The constants of floats with more than one element that nodes read, also those of nested graphs."""
    found = []
    for value in _constants(model):
        tensor = ir.convenience.get_const_tensor(value)
        if tensor is not None and tensor.dtype in _FLOATS and tensor.size > 1 and value.uses():
            found.append(Parameter(value, tuple(_names(value)), tuple(tensor.shape.numpy()), tensor.dtype.numpy()))
    return found


def set_elements(value: ir.Value, array: np.ndarray) -> None:
    """Gives a constant other elements."""
    tensor, node = ir.Tensor(array), value.producer()
    value.type, value.shape = ir.TensorType(tensor.dtype), ir.Shape(array.shape)
    if node is None:
        value.const_value = tensor
    else:
        node.attributes.clear()
        node.attributes["value"] = ir.AttrTensor("value", tensor)


def _uses(value: ir.Value) -> Iterator[tuple[ir.Node, int]]:
    """The nodes that read a value, also after a Cast, and the index of the input."""
    for node, index in value.uses():
        if node.op_identifier() in _COPIES:
            yield from _uses(node.outputs[0])
        else:
            yield node, index


def _is_transposed(value: ir.Value) -> bool | None:
    """Whether all readers use a matrix as `[K, N]`, or none; `None` if they do not tell."""
    found = {_is_transposed_in(node, index) for node, index in _uses(value)}
    return found.pop() if len(found) == 1 else None


def _is_transposed_in(node: ir.Node, index: int) -> bool | None:
    view = ProductView[ir.Value].of(node, complete=True)
    if view is not None and index < 2:
        return view.trans_a if index == 0 else not view.trans_b
    if node.op_identifier() == ("", "Transpose", ""):
        turned = _is_transposed(node.outputs[0])
        return None if turned is None else not turned
    return False if (node.domain, node.op_type, index) == ("", "Gather", 0) else None


def _adds_one(node: ir.Node) -> bool:
    """Whether the node adds the number 1."""
    constants = [constant_of(value) for value in node.inputs] if node.op_identifier() == ("", "Add", "") else []
    return any(array is not None and array.size == 1 and array.item() == 1 for array in constants)


def _constants(model: ir.Model) -> Iterator[ir.Value]:
    """The initializers and the results of Constant nodes."""
    for graph in graphs_of(model.graph):
        yield from graph.initializers.values()
        yield from (node.outputs[0] for node in graph if node.op_identifier() == ("", "Constant", ""))


def _names(value: ir.Value) -> list[str]:
    """The own name; then, unless it is the name of a weight, names after the modules that read the value."""
    name = value.name or ""
    if has_ending(name):
        return [name]
    found = dict.fromkeys([name])
    for node, index in _uses(value):
        module, place = origin.of(node).module, (node.op_type, index)
        kind = "weight" if place in _WEIGHTS or _adds_one(node) else "bias" if place in _BIASES else ""
        if module and kind:
            found[f"{module}.{kind}"] = None
    return [*found]
