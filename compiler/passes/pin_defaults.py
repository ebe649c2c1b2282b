"""Turns inputs with a default value into constants, because the inputs of a plan have no defaults."""

from __future__ import annotations

import onnx_ir as ir

from compiler.errors import Diagnostic
from compiler.ir.graph import graphs_of
from compiler.ir.origin import Origin
from compiler.rewrite.report import Fired, Pass, PassReport

__all__ = ["pin_defaults"]

_OPTIONAL_SINCE = 4
"""The first IR version that allows an initializer without an input. In older models, every initializer is an input."""


def _pin_defaults(model: ir.Model, report: PassReport) -> None:
    """Removes initializers from the inputs, and warns about inputs that a caller could have passed."""
    for graph in graphs_of(model.graph):
        pinned = [value for value in graph.inputs if value.is_initializer()]
        if not pinned:
            continue
        graph.inputs[:] = [value for value in graph.inputs if not value.is_initializer()]
        report.fired += [Fired("PinDefault", Origin(nodes=(f"input {value.name}",))) for value in pinned]
        if graph is model.graph and model.ir_version >= _OPTIONAL_SINCE:
            names = ", ".join(repr(value.name) for value in pinned)
            message = f"the plan stores the default values of {names} as constants, and does not accept them as inputs"
            report.warnings.append(Diagnostic("CC0405", message, severity="warning"))


pin_defaults = Pass("pin_defaults", _pin_defaults, result="inputs turned into constants", needed=True)
