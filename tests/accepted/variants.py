"""Variants of a small model: other element types, ranks, attributes, optional inputs, outputs and versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper

from tests.accepted.bases import LARGEST
from tests.accepted.schema import Schema, schema, versions
from tests.accepted.small import Array, Small, dtype_of

TYPES = [
    f"tensor({name})" for name in ("float16", "bfloat16", "int8", "uint8", "int32", "int64", "double", "string", "bool")
]
"""The element types of models after the first of an operator: floats, integers, truth values and texts.

Each of these models has every second of them. The first model has all types, also 4-bit integers, 8-bit floats and
unsigned integers of 16 bits and more.
"""
RANKS = range(6)
"""The ranks of the first inputs of the first model of an operator. Other inputs have one axis more or less, or none."""
INTEGERS = (0, 1, 2, -1)
"""The values of an attribute that is an integer."""
ELEMENT_TYPES = range(1, 24)
"""The values of an attribute that is an element type."""


def of_operator(bases: Sequence[Small]) -> Iterator[tuple[Small, Sequence[bool]]]:
    """The models of an operator and their variants, each with the values of `optimize` for which it is compiled.

    A variant that differs from another one only in the elements is left out. Of the variants of all models but the
    first, every second one is compiled with optimization, and the others without.
    """
    met = set()
    for number, base in enumerate(bases):
        for place, model in enumerate(variants(base, number)):
            if (kind := _kind(model)) not in met or model is base:
                met.add(kind)
                yield model, (place % 2 == 1,) if number and place else (False, True)


def _kind(model: Small) -> object:
    """Everything about a model except the elements of its inputs."""
    nodes = tuple(node.SerializeToString(deterministic=True) for node in model.nodes)
    types = tuple((name, array.dtype, array.shape) for name, array in model.arrays())
    return nodes, types, tuple(model.opsets.items()), tuple(model.inputs)


def variants(base: Small, number: int) -> Iterator[Small]:
    """The model, and its variants.

    The first model of an operator has all of them. Of the others, each has a part of the types, ranks and versions, and
    the next model has another part, because a product of all of them would take most of the time of the tests.
    """
    yield base
    is_first = number == 0
    found = _schema_of(base)
    if found is None or any(each.type == onnx.AttributeProto.GRAPH for each in base.node.attribute):
        return  # nested graphs state the types of their inputs, and a loop without inputs may never end
    yield from _other_types(base, found, number)
    yield from _other_ranks(base, number)
    if is_first:
        yield from _other_attributes(base, found)
        yield from _fewer_inputs(base, found)
    yield from _other_versions(base, number)


def _schema_of(model: Small) -> Schema | None:
    return schema(model.node.domain, model.node.op_type, model.opsets.get(model.node.domain, 1))


def _other_types(base: Small, found: Schema, number: int) -> Iterator[Small]:
    arrays = dict(base.arrays())
    variables: dict[str, list[tuple[str, Any]]] = {}
    for index, name in enumerate(base.node.input):
        parameter = found.input(index)
        if name in arrays and parameter is not None:
            variables.setdefault(parameter.variable, []).append((name, parameter.types))
    for variable, members in variables.items():
        allowed = [text for text in members[0][1] if text.startswith("tensor(")]
        for text in [text for text in TYPES if text in allowed][(number + 1) % 2 :: 2] if number else allowed:
            dtype = dtype_of(text)
            if dtype is not None and any(arrays[name].dtype != dtype for name, _ in members):
                cast = {name: np.asarray(as_type(arrays[name], dtype)) for name, _ in members}
                yield base.changed(f"{variable} = {text}", cast)


def as_type(array: Array, dtype: np.dtype[Any]) -> Array:
    """Values of another type. Integers made of other numbers are not 0, because divisors and scales are not."""
    is_integer = dtype.kind in "iu" or "int" in dtype.name
    if array.dtype == object:
        array = np.arange(1, array.size + 1).reshape(array.shape) % 5
    if dtype.kind == "O":
        return np.array([f"{x}" for x in array.ravel().tolist()], object).reshape(array.shape)
    if dtype.kind == "b":
        return (np.arange(array.size) % 3 != 1).reshape(array.shape)
    if not is_integer or array.dtype.kind in "iub" or "int" in array.dtype.name:
        with np.errstate(over="ignore", invalid="ignore"):
            return array.astype(np.int64 if is_integer else np.float64).astype(dtype)
    most = {"uint2": 3, "int2": 1, "uint4": 15, "int4": 7}.get(dtype.name, 100)
    numbers = np.clip(np.rint(np.abs(np.nan_to_num(array.astype(np.float64))).clip(0, most) * 3), 1, most)
    return numbers.astype(np.int64).astype(dtype)


def _other_ranks(base: Small, number: int) -> Iterator[Small]:
    """One input, those of the first one's shape, or those of its rank, with more or fewer axes."""
    arrays = dict(base.arrays())
    if not arrays:
        return
    first = next(iter(arrays.values()))
    alike = [name for name, array in arrays.items() if array.shape == first.shape]
    same_rank = [name for name, array in arrays.items() if array.ndim == first.ndim]
    choices = [([name], False) for name in arrays][: 1 if number else None]
    choices += [each for each in ((alike, False), (same_rank, True)) if each not in choices]
    for names, at_end in [choices[(number + 1) % len(choices)]] if number else choices:
        own = arrays[names[0]].ndim
        every = [rank - own for rank in RANKS] if names[0] == alike[0] else sorted({-own, -1, 1})
        for more in (-1, 1) if number else every:
            other = {name: with_axes(arrays[name], more, at_end) for name in names}
            if more and own + more >= 0 and all(array.size <= LARGEST for array in other.values()):
                yield base.changed(f"{more:+} axes at the {'end' if at_end else 'start'} of {names}", other)


def with_axes(array: Array, more: int, at_end: bool) -> Array:
    """The array with new axes of 2 and 1, or the first part without some axes; at the start or at the end."""
    sizes = (2, *[1] * (more - 1)) if more > 0 else ()
    if more > 0 and at_end:
        return np.broadcast_to(array[(..., *[None] * more)], (*array.shape, *sizes)).copy()
    if more > 0:
        return np.broadcast_to(array, (*sizes, *array.shape)).copy()
    rank = max(array.ndim + more, 0)
    shape = array.shape[:rank] if at_end else array.shape[array.ndim - rank :]
    return np.resize(array, shape) if array.size else np.zeros(shape, array.dtype)


def _other_attributes(base: Small, found: Schema) -> Iterator[Small]:
    given = {each.name: each for each in base.node.attribute}
    for name, attribute in found.attributes.items():
        if name in given:
            yield base.with_node(f"without {name}", _node(base.node, {name: None}))
        values: Any = attribute.words if attribute.kind == "STRING" else ()
        if attribute.kind == "INT":
            values = ELEMENT_TYPES if "dtype" in name or name == "to" else INTEGERS
        for value in values:
            if name not in given or helper.get_attribute_value(given[name]) != value:
                yield base.with_node(f"{name} = {value}", _node(base.node, {name: value}))


def _node(node: onnx.NodeProto, changes: Mapping[str, Any]) -> onnx.NodeProto:
    """The node with other attributes; `None` removes one."""
    made = onnx.NodeProto()
    made.CopyFrom(node)
    kept = [each for each in node.attribute if each.name not in changes]
    del made.attribute[:]
    made.attribute.extend(kept)
    made.attribute.extend(helper.make_attribute(name, value) for name, value in changes.items() if value is not None)
    return made


def _fewer_inputs(base: Small, found: Schema) -> Iterator[Small]:
    for index, name in enumerate(base.node.input):
        parameter = found.input(index)
        if name and parameter is not None and parameter.is_optional:
            node = _node(base.node, {})
            node.input[index] = ""
            yield base.with_node(f"without {parameter.name}", node)


def _other_versions(base: Small, number: int) -> Iterator[Small]:
    """The model in older versions of the operator, whose attributes may be inputs now."""
    domain = base.node.domain
    older = versions(domain, base.node.op_type, base.opsets.get(domain, 1)) if len(base.nodes) == 1 else []
    for version in older[number % len(older) :][:1] if number and older else older:
        old = schema(domain, base.node.op_type, version)
        if old is not None and (node := _in_version(base, old)) is not None:
            made = base.with_node(f"version {version}", node)
            yield made._replace(opsets={**base.opsets, domain: version})


def _in_version(base: Small, old: Schema) -> onnx.NodeProto | None:
    """The node with the inputs and attributes of another version; `None` if that version lacks one."""
    now = _schema_of(base)
    arrays, known = dict(base.arrays()), {name.lower(): name for name in old.attributes}
    node = _node(base.node, {})
    del node.input[:]
    for index, name in enumerate(base.node.input):
        parameter, before = now and now.input(index), old.input(index)
        attribute = known.get(parameter.name.lower()) if parameter is not None else None
        if attribute is not None and (before is None or parameter is None or before.name != parameter.name):
            if name in arrays:
                node.attribute.append(_attribute(attribute, arrays[name], old.attributes[attribute].kind))
        elif before is None and name:
            return None
        else:
            node.input.append(name)
    return node if all(each.name in old.attributes for each in node.attribute) else None


def _attribute(name: str, array: Array, kind: str) -> onnx.AttributeProto:
    """The elements of an array as an attribute of a kind such as `INTS`."""
    values = array.ravel().tolist()
    value = values if kind.endswith("S") else values[0] if values else 0
    return helper.make_attribute(name, value, attr_type=onnx.AttributeProto.AttributeType.Value(kind))
