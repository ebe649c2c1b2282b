"""Corrections of invalid models that onnxruntime runs.

The functions correct the model in place, so that no later stage sees the difference. Each correction gives a
warning, which names the node and says what the compiler assumes.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx
from onnx import numpy_helper

from compiler.errors import Diagnostic, did_you_mean
from compiler.frontend.declarations import node_lists
from compiler.ir.origin import Origin

__all__ = ["repeated_weights", "tolerate"]

_CODE = "CC0408"
_UNCHECKED = {
    "LayerNormalization": ("axis", "epsilon", "stash_type"),
    "SimplifiedLayerNormalization": ("axis", "epsilon", "stash_type"),
}
"""The operators of ONNX's own domain whose attributes onnxruntime does not check, and their attributes."""


def tolerate(model: onnx.ModelProto) -> list[Diagnostic]:
    """Correct a model in place, and warn of each correction."""
    return [*_drop_attributes(model), *_merge_constants(model.graph), *repeated_weights(model, severity="warning")]


def _drop_attributes(model: onnx.ModelProto) -> Iterator[Diagnostic]:
    """Drop attributes that their operator does not have, where onnxruntime ignores them."""
    for holder in node_lists(model):
        for node in holder.node:
            known = _UNCHECKED.get(node.op_type) if node.domain in ("", "ai.onnx") else None
            if known is None:
                continue
            for attribute in [each for each in node.attribute if each.name not in known]:
                message = f"{node.op_type} has no attribute {attribute.name}: it is ignored, as in onnxruntime"
                help = did_you_mean(attribute.name, known)
                yield Diagnostic(_CODE, message, _origin(node), help, severity="warning")
                node.attribute.remove(attribute)


def _merge_constants(graph: onnx.GraphProto) -> Iterator[Diagnostic]:
    """Drop each Constant whose value has the name of an equal constant. Other repeated names are errors."""
    made = _made(graph)
    known = {weight.name: _contents(weight) for weight in graph.initializer if weight.name in made}
    inputs = {value.name for value in graph.input}
    for node in [each for each in graph.node if each.op_type == "Constant" and each.domain in ("", "ai.onnx")]:
        if len(node.output) != 1 or len(node.attribute) != 1 or node.output[0] in inputs:
            continue
        [name], value = node.output, _value(node.attribute[0])
        if name not in known:
            known[name] = value
        elif value == known[name]:
            message = f"the name {name!r} stands for several constants: they are equal, and become one"
            yield Diagnostic(_CODE, message, _origin(node), severity="warning")
            graph.node.remove(node)


def _made(graph: onnx.GraphProto) -> set[str]:
    """The names of the values of Constants."""
    return {name for node in graph.node if node.op_type == "Constant" for name in node.output}


def repeated_weights(model: onnx.ModelProto, *, severity: str = "error") -> list[Diagnostic]:
    """A finding for each name of several initializers. Without errors, the last one counts, as in onnxruntime."""
    found = []
    for holder in node_lists(model):
        if not isinstance(holder, onnx.GraphProto):
            continue
        names = [weight.name for weight in holder.initializer]
        for name in sorted({name for name in names if names.count(name) > 1} if len({*names}) < len(names) else ()):
            tensors = [_contents(weight) for weight in holder.initializer if weight.name == name]
            are = "they are equal" if all(each == tensors[0] for each in tensors) else "the last one counts"
            message, origin = f"{len(tensors)} initializers have the name {name!r}", Origin(nodes=(f"weight {name}",))
            if severity == "error":
                found.append(Diagnostic("CC0106", message, origin))
            else:
                found.append(Diagnostic(_CODE, f"{message}: {are}", origin, severity="warning"))
    return found


def _value(attribute: onnx.AttributeProto) -> tuple[object, ...]:
    """The value of a Constant, as a key for comparisons."""
    if attribute.type == onnx.AttributeProto.TENSOR and attribute.name == "value":
        return _contents(attribute.t)
    return attribute.name, attribute.SerializeToString(deterministic=True)


def _contents(tensor: onnx.TensorProto) -> tuple[object, ...]:
    """The type, shape and elements of a tensor; for one in another file, its place."""
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        place = tuple(sorted((entry.key, entry.value) for entry in tensor.external_data))
        return tensor.data_type, tuple(tensor.dims), place
    try:
        array = numpy_helper.to_array(tensor)
    except Exception:  # numpy_helper raises many types of exception; a later check reports the malformed tensor
        return (tensor.SerializeToString(deterministic=True),)
    contents = tuple(array.ravel().tolist()) if array.dtype == object else array.tobytes()
    return tensor.data_type, tuple(tensor.dims), contents


def _origin(node: onnx.NodeProto) -> Origin:
    return Origin(nodes=(f"{node.op_type}({node.name or next(iter(node.output), '')})",))
