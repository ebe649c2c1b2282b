"""Refuses nodes with attributes, sizes or shapes that their operators do not take.

The pass runs before other passes drop or replace these nodes. It refuses only nodes that no other pass can correct.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir

from compiler.errors import Diagnostic
from compiler.rewrite.report import Pass, PassReport

__all__ = ["check_nodes"]

_LASTING = frozenset(["CC0202", "CC0203", "CC0210"])
"""What is wrong with a node whatever passes find out about its inputs, or make of its neighbors. Of other codes (an
unknown operator, an unknown type) the node may be dropped rightly, or become one that can be lowered."""


def check_nodes(refusals: Callable[[ir.Model], Sequence[Diagnostic]]) -> Pass:
    """The pass that asks `refusals` what is wrong with a model's nodes."""

    def check(model: ir.Model, report: PassReport) -> None:
        """Refuses nodes with attributes, sizes and shapes that their operators do not take."""
        report.refused += [each for each in refusals(model) if each.code in _LASTING]

    return Pass("check_nodes", check, result="nodes refused", requires=frozenset({"sorted", "shapes"}))
