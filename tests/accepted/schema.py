"""The inputs and attributes of an operator, from the schemas of ONNX and onnxruntime."""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import onnx
from onnxruntime.capi import onnxruntime_pybind11_state as state

from compiler.ir import onnx_schema


class Parameter(NamedTuple):
    """An input or output: its name, its type variable or type, and the allowed types as in `tensor(float)`."""

    name: str
    variable: str
    types: Sequence[str]
    is_optional: bool


class Attribute(NamedTuple):
    """An attribute: its kind, such as `STRING`, and the words that its description quotes."""

    kind: str
    words: Sequence[str]


class Schema(NamedTuple):
    """An operator."""

    inputs: Sequence[Parameter]
    outputs: Sequence[Parameter]
    attributes: dict[str, Attribute]
    repeats: bool

    def input(self, index: int) -> Parameter | None:
        """The parameter of a node's input."""
        if index < len(self.inputs):
            return self.inputs[index]
        return self.inputs[-1] if self.repeats else None


@functools.cache
def schema(domain: str, op_type: str, opset: int) -> Schema | None:
    """The operator as an opset defines it, or as onnxruntime does; `None` for an unknown operator."""
    found: Any = onnx_schema.schema(domain, op_type, opset) or _of_onnxruntime().get((domain, op_type))
    if found is None:
        return None
    inputs, outputs = ([_parameter(each) for each in found_in] for found_in in (found.inputs, found.outputs))
    attributes = {name: _attribute(each) for name, each in found.attributes.items()}
    repeats = bool(found.inputs) and "Variadic" in str(found.inputs[-1].option)
    return Schema(inputs, outputs, attributes, repeats)


def versions(domain: str, op_type: str, newest: int) -> list[int]:
    """The versions of an operator of the standard before `newest`, from the newest to the oldest."""
    return sorted((version for version in _history().get((domain, op_type), ()) if version < newest), reverse=True)


@functools.cache
def _history() -> dict[tuple[str, str], set[int]]:
    found = defaultdict(set)
    for each in onnx.defs.get_all_schemas_with_history():
        found[each.domain, each.name].add(each.since_version)
    return dict(found)


@functools.cache
def _of_onnxruntime() -> dict[tuple[str, str], Any]:
    return {(each.domain.replace("ai.onnx", ""), each.name): each for each in state.get_all_operator_schema()}


def _parameter(found: Any) -> Parameter:
    variable = found.type_str if hasattr(found, "type_str") else found.typeStr
    is_optional = "Optional" in str(found.option)
    return Parameter(found.name, variable, sorted(map(str, found.types)), is_optional)


def _attribute(found: Any) -> Attribute:
    words = re.findall(r"[\"'`]([A-Za-z_]+)[\"'`]", found.description)
    return Attribute(str(found.type).rpartition(".")[2], tuple(dict.fromkeys(words)))
