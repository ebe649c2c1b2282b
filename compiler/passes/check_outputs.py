"""Refuses a model if the element type of an output differs from the type that the model's file declares.

Callers of the model rely on the declared type. The pass does not check shapes: the compiler uses the shapes that follow
from the operators (`infer_shapes`).
"""

from __future__ import annotations

import json

import onnx_ir as ir

from compiler.errors import Diagnostic
from compiler.ir import origin
from compiler.ir.graph import OUTPUT_TYPES, type_text
from compiler.rewrite.report import Pass, PassReport

__all__ = ["check_outputs"]


def _check_outputs(model: ir.Model, report: PassReport) -> None:
    """Compares the outputs' types with the types that the file declares."""
    declared = json.loads(model.graph.metadata_props.get(OUTPUT_TYPES, "[]"))
    for value, said in zip(model.graph.outputs, declared, strict=False):
        found = type_text(value.type)
        if said and found and said != found:
            maker = value.producer()
            message = f"the file declares the output {value.name!r} as {said}, but the operators give {found}"
            report.refused.append(Diagnostic("CC0404", message, None if maker is None else origin.of(maker)))


check_outputs = Pass(
    "check_outputs", _check_outputs, result="outputs refused", requires=frozenset({"shapes"}), needed=True
)
