"""Refuses a model if a node's input has a type that the ONNX standard does not allow, as onnxruntime does.

The lowering checks which types the runtime can compute. It may accept more types than the standard, or read an input
as the type that the standard requires.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from compiler.errors import Diagnostic
from compiler.ir import onnx_schema, origin
from compiler.ir.graph import nodes_of, opset_of, type_text
from compiler.rewrite.report import Pass, PassReport

__all__ = ["check_types"]

_MOST_LISTED = 4


def _check_types(model: ir.Model, report: PassReport) -> None:
    """Checks the inputs of every node whose types are known."""
    for node in nodes_of(model):
        opset = opset_of(node, model.opset_imports.get(node.domain, 1))
        inputs = onnx_schema.inputs_of(node.domain, node.op_type, opset, len(node.inputs))
        report.refused.extend(Diagnostic("CC0205", each, origin.of(node)) for each in _problems(node, inputs))


def _problems(node: ir.Node, inputs: list[onnx_schema.Input]) -> Iterator[str]:
    bound: dict[str, tuple[str, str]] = {}
    for value, described in zip(node.inputs, inputs, strict=False):
        found = None if value is None else type_text(value.type)
        if found is None:
            continue
        name = f"{node.op_type}'s input {described.name}"
        if found not in described.types:
            yield f"{name} is {found}" + _expected_types(described.types)
        elif described.variable:
            other, first = bound.setdefault(described.variable, (described.name, found))
            if first != found:
                yield f"{name} is {found}, but {other} must have the same type and is {first}"


def _expected_types(types: frozenset[str]) -> str:
    return (
        f", not {' or '.join(sorted(types))}" if len(types) <= _MOST_LISTED else ", which the operator does not accept"
    )


check_types = Pass("check_types", _check_types, result="nodes refused", requires=frozenset({"shapes"}), needed=True)
