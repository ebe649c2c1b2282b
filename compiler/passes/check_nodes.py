"""Refuses nodes with attributes, sizes or shapes that their operators do not accept.

The pass runs before other passes drop or replace these nodes. It refuses only nodes that no other pass can correct.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir

from compiler.errors import Diagnostic
from compiler.rewrite.report import Pass, PassReport

__all__ = ["check_nodes"]

_FINAL_CODES = frozenset(["CC0202", "CC0203", "CC0210"])
"""The codes of errors that no pass can correct. After other errors (an unknown operator, an unknown type), a pass may
drop the node, or replace it with one that has a lowering."""


def check_nodes(refusals: Callable[[ir.Model], Sequence[Diagnostic]]) -> Pass:
    """The pass that refuses the nodes that `refusals` reports."""

    def check(model: ir.Model, report: PassReport) -> None:
        """Refuses nodes with attributes, sizes and shapes that their operators do not accept."""
        report.refused += [each for each in refusals(model) if each.code in _FINAL_CODES]

    return Pass("check_nodes", check, result="nodes refused", requires=frozenset({"sorted", "shapes"}))
