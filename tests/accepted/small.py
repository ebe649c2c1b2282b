"""A small model with inputs, from which variants are made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import onnx
from onnx import helper, numpy_helper

from compiler.ir import dtypes

Array = np.ndarray[Any, Any]
NAMES = {"float": "float32", "double": "float64", "float8e4m3fn": "float8_e4m3fn", "float8e5m2": "float8_e5m2"}
NAMES |= {"float8e4m3fnuz": "float8_e4m3fnuz", "float8e5m2fnuz": "float8_e5m2fnuz"}
NAMES |= {"float8e8m0": "float8_e8m0fnu", "float4e2m1": "float4_e2m1fn", "string": "object"}
"""Element types in ONNX's schemas → those in NumPy, where the names differ."""


class Small(NamedTuple):
    """Nodes and the values of their inputs. `kinds` has the types of inputs that are no tensors."""

    label: str
    nodes: tuple[onnx.NodeProto, ...]
    inputs: Mapping[str, Any]
    kinds: Mapping[str, onnx.TypeProto]
    outputs: tuple[str, ...]
    opsets: Mapping[str, int]

    @property
    def node(self) -> onnx.NodeProto:
        """The node that computes the first output."""
        return next(node for node in reversed(self.nodes) if self.outputs[0] in node.output)

    def model(self, constants: Sequence[str] = ()) -> onnx.ModelProto:
        """The model; the inputs that `constants` names are initializers."""
        inputs = [self._declared(name) for name in self.inputs if name not in constants]
        weights = [_tensor(self.inputs[name], name) for name in constants]
        outputs = [helper.make_empty_tensor_value_info(name) for name in self.outputs]
        graph = helper.make_graph(self.nodes, "test", inputs, outputs, weights)
        imports = [helper.make_opsetid(domain, version) for domain, version in self.opsets.items()]
        return helper.make_model(graph, opset_imports=imports, ir_version=12)

    def _declared(self, name: str) -> onnx.ValueInfoProto:
        value = self.inputs[name]
        if isinstance(value, np.ndarray) and name not in self.kinds:
            return helper.make_tensor_value_info(name, _element_type(value), value.shape)
        return helper.make_value_info(name, self.kinds[name])

    def arrays(self) -> Iterator[tuple[str, Array]]:
        """The inputs that are tensors."""
        for name, value in self.inputs.items():
            if isinstance(value, np.ndarray) and name not in self.kinds:
                yield name, value

    def changed(self, label: str, arrays: Mapping[str, Array]) -> Small:
        """The model with other values for some inputs."""
        return self._replace(label=f"{self.label}, {label}", inputs={**self.inputs, **arrays})

    def with_node(self, label: str, node: onnx.NodeProto) -> Small:
        """The model with another node in place of `node`; inputs that nobody reads disappear."""
        nodes = tuple(node if each is self.node else each for each in self.nodes)
        read = names_read(nodes)
        inputs = {name: value for name, value in self.inputs.items() if name in read}
        outputs = tuple(dict.fromkeys([*self.outputs, *(name for name in node.output if name)]))
        return self._replace(label=f"{self.label}, {label}", nodes=nodes, inputs=inputs, outputs=outputs)


def names_read(nodes: Iterable[onnx.NodeProto]) -> set[str]:
    """The names of the values that nodes read, also in nested graphs."""
    found = {name for node in nodes for name in node.input}
    nested = [each.g for node in nodes for each in node.attribute if each.type == onnx.AttributeProto.GRAPH]
    for graph in nested:
        found |= names_read(graph.node) | {value.name for value in graph.output}
    return found


def dtype_of(name: str) -> np.dtype[Any] | None:
    """The NumPy type of an element type as in schemas, such as `tensor(float)`; `None` if NumPy and plans lack it."""
    short = name.removeprefix("tensor(").rstrip(")")
    short = NAMES.get(short, short)
    return np.dtype(getattr(ml_dtypes, short, short)) if short in (*dtypes.NAMES, "object") else None


def _element_type(array: Array) -> int:
    return onnx.TensorProto.STRING if array.dtype == object else helper.np_dtype_to_tensor_dtype(array.dtype)


def _tensor(array: Array, name: str) -> onnx.TensorProto:
    if array.dtype == object:
        return helper.make_tensor(name, onnx.TensorProto.STRING, array.shape, [str(x).encode() for x in array.ravel()])
    return numpy_helper.from_array(array, name)
