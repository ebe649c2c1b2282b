"""Checks of a model file's declarations, the names and types of values, before the graph is built.

Protobuf accepts any bytes as text, and gives text that is not UTF-8 as `bytes`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import onnx
import onnx_ir as ir
from onnx import helper

from compiler.errors import Diagnostic
from compiler.ir.graph import type_text
from compiler.ir.origin import Origin

__all__ = ["Holder", "check_constants", "check_names", "check_text", "check_value_kinds", "node_lists", "output_types"]

Holder = onnx.GraphProto | onnx.FunctionProto
_ELEMENTS = frozenset(map(int, ir.DataType))
_KINDS = "a plan has tensors, sequences of tensors and optional tensors"
_MAPS = f"{_KINDS}; skl2onnx omits maps with options={{'zipmap': False}}"

_KINDS_OF_VALUES = ("float", "floats", "int", "ints", "string", "strings")
_FORMS = frozenset(["value", "sparse_value", *(f"value_{kind}" for kind in _KINDS_OF_VALUES)])
"""The attributes of Constant."""


def node_lists(model: onnx.ModelProto) -> Iterator[Holder]:
    """The graph, the functions, and the graphs nested in them."""
    found: list[Holder] = [model.graph, *model.functions]
    while found:
        holder = found.pop()
        yield holder
        for attribute in (attribute for node in holder.node for attribute in node.attribute):
            found.extend([attribute.g] if attribute.HasField("g") else attribute.graphs)


def check_text(model: onnx.ModelProto) -> list[Diagnostic]:
    """One finding for each name that is not UTF-8. In metadata, the function replaces such bytes."""
    names: list[str | bytes] = [model.producer_name, model.producer_version, model.domain]
    names += [each.domain for each in model.opset_import]
    entries = [*model.metadata_props]
    for holder in node_lists(model):
        entries += [*holder.metadata_props, *(entry for node in holder.node for entry in node.metadata_props)]
        names += _names_in(holder)
    for entry in entries:
        for field in ("key", "value"):
            text = getattr(entry, field)
            if isinstance(text, bytes):
                setattr(entry, field, text.decode("utf-8", errors="replace"))
    wrong = dict.fromkeys(name for name in names if isinstance(name, bytes))
    return [Diagnostic("CC0101", f"this is not a valid ONNX model: {name!r} is not UTF-8") for name in wrong]


def _names_in(holder: Holder) -> Iterator[str | bytes]:
    """The names of a graph or function, of its nodes, attributes and values, and of their dimensions."""
    yield holder.name
    for node in holder.node:
        yield from (node.name, node.op_type, node.domain, node.overload, *node.input, *node.output)
        for attribute in node.attribute:
            yield from (attribute.name, attribute.ref_attr_name)
    values = [*holder.value_info]
    if isinstance(holder, onnx.FunctionProto):
        yield from (holder.domain, holder.overload, *holder.input, *holder.output, *holder.attribute)
        yield from (attribute.name for attribute in holder.attribute_proto)
    else:
        yield from (weight.name for weight in holder.initializer)
        yield from (sparse.values.name for sparse in holder.sparse_initializer)
        values += [*holder.input, *holder.output]
    for value in values:
        yield value.name
        yield from _symbols(value.type)


def _symbols(kind: onnx.TypeProto) -> Iterator[str | bytes]:
    """The names of the dimensions of a type."""
    match kind.WhichOneof("value"):
        case "tensor_type":
            yield from (dim.dim_param for dim in kind.tensor_type.shape.dim)
        case "sequence_type":
            yield from _symbols(kind.sequence_type.elem_type)
        case "optional_type":
            yield from _symbols(kind.optional_type.elem_type)


def check_names(model: onnx.ModelProto) -> list[Diagnostic]:
    """One finding for each name that a node and another node or the graph define."""
    found = []
    for holder in node_lists(model):
        made = [(name, f"{node.op_type}({node.name or name})") for node in holder.node for name in node.output if name]
        given = _given(holder)
        for name, count in Counter(name for name, _ in made).items():
            if count > 1 or name in given:
                origin = Origin(nodes=tuple(title for each, title in made if each == name))
                also = "" if count > 1 else ", which the graph is given"
                found.append(Diagnostic("CC0106", f"{_nodes(count)} the value {name!r}{also}", origin))
    return found


def check_constants(model: onnx.ModelProto) -> list[Diagnostic]:
    """One finding for each Constant without exactly one output and one known attribute."""
    found = []
    for holder in node_lists(model):
        for node in holder.node:
            if node.op_type == "Constant" and node.domain in ("", "ai.onnx"):
                name = node.name or next(iter(node.output), "")
                found += [Diagnostic(*each, Origin(nodes=(f"Constant({name})",))) for each in _misfits(node)]
    return found


def _misfits(node: onnx.NodeProto) -> Iterator[tuple[str, str]]:
    """The code and message of each problem of a Constant."""
    names = {attribute.name for attribute in node.attribute}
    if unknown := ", ".join(sorted(names - _FORMS)):
        yield "CC0203", f"Constant does not support the attribute {unknown}"
    elif len(names) != 1:
        given = ", ".join(sorted(names)) or "none"
        yield "CC0202", f"Constant needs exactly one attribute, its value, found {given}"
    if len(node.output) != 1:
        yield "CC0205", f"Constant has one output, found {len(node.output)}"


def _nodes(count: int) -> str:
    return "a node defines" if count == 1 else f"{count} nodes define"


def _given(holder: Holder) -> set[str]:
    """The names of values that no node defines."""
    if isinstance(holder, onnx.FunctionProto):
        return set(holder.input)
    return {value.name for value in (*holder.input, *holder.initializer)}


def check_value_kinds(model: onnx.ModelProto) -> list[Diagnostic]:
    """One finding for each value of an unsupported kind. The function removes the value's type."""
    found: dict[str, Diagnostic] = {}
    for holder in node_lists(model):
        values = [("value", value) for value in holder.value_info]
        if isinstance(holder, onnx.GraphProto):
            values = [("input", each) for each in holder.input] + [("output", each) for each in holder.output] + values
        for what, value in values:
            kind = _unsupported_contents(value.type)
            if kind is not None:
                message = f"the {what} {value.name!r} holds {kind}, which are not supported"
                found.setdefault(value.name, Diagnostic("CC0205", message, help=_MAPS if "map" in kind else _KINDS))
                value.ClearField("type")
    return list(found.values())


def _unsupported_contents(kind: onnx.TypeProto) -> str | None:
    """The contents of an unsupported kind of value; `None` for a supported kind or an unknown type."""
    match kind.WhichOneof("value"):
        case "tensor_type" if kind.tensor_type.elem_type not in _ELEMENTS:
            return "tensors of an unknown type"
        case "map_type":
            return "maps"
        case "sparse_tensor_type":
            return "sparse tensors"
        case "opaque_type":
            return "opaque values"
        case "sequence_type":
            inner = _inside(kind.sequence_type.elem_type)
            return inner and f"sequences of {inner}"
        case "optional_type":
            inner = _inside(kind.optional_type.elem_type)
            return inner and f"optional {inner}"
    return None


def _inside(kind: onnx.TypeProto) -> str | None:
    return "values of no type" if kind.WhichOneof("value") is None else _unsupported_contents(kind)


def output_types(model: onnx.ModelProto) -> list[str | None]:
    """The types of the outputs as the file declares them.

    The type of an output that is also an input or a weight is that value's type, because a graph value has one type.
    """
    graph = model.graph
    known = {value.name: value.type for value in graph.input}
    known |= {weight.name: helper.make_tensor_type_proto(weight.data_type, weight.dims) for weight in graph.initializer}
    declared = []
    for output in graph.output:
        declared.append(type_text(ir.serde.deserialize_type_proto_for_type(output.type)))
        if output.name in known:
            output.type.CopyFrom(known[output.name])
    return declared
