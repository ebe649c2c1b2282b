"""Passes, and reports of their rewrites."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from compiler.errors import Diagnostic
from compiler.ir.origin import Origin

if TYPE_CHECKING:
    import onnx_ir as ir

__all__ = ["Fired", "Missed", "Pass", "PassReport"]


@dataclass(frozen=True)
class Fired:
    """A rewrite that was done, and where."""

    rule: str
    origin: Origin


@dataclass(frozen=True)
class Missed:
    """A rewrite that was not done: the pattern matched, but a condition failed."""

    rule: str
    origin: Origin
    reason: str
    near: bool = True
    """Whether it is a near miss. A match of a single operator, such as any Reshape, is none."""


@dataclass
class PassReport:
    """The report of one run of a pass."""

    name: str
    result: str = "rewrites"
    """The unit of `fired` in words for users: `shapes inferred`."""
    nodes_before: int = 0
    """The nodes, also those of nested graphs; a fused node is one."""
    nodes_after: int = 0
    fired: list[Fired] = field(default_factory=list)
    missed: list[Missed] = field(default_factory=list)
    warnings: list[Diagnostic] = field(default_factory=list)
    refused: list[Diagnostic] = field(default_factory=list)
    """Diagnostics of refused nodes. The compiler refuses the model after it has checked the rest."""
    rules: dict[str, str] = field(default_factory=dict)
    """The rules of the pass, with their formulas."""

    @property
    def changed(self) -> bool:
        """Whether the model was changed."""
        return bool(self.fired)

    @property
    def near_misses(self) -> list[Missed]:
        """The misses that are near misses."""
        return [each for each in self.missed if each.near]


@dataclass(frozen=True)
class Pass:
    """One step from a model to a better one, in place; running it twice changes nothing.

    `requires`, `ensures` and `ends` are facts about the model by name, such as `sorted`: what earlier passes must have
    established, what holds afterwards, and what holds no more.
    """

    name: str
    apply: Callable[[ir.Model, PassReport], None]
    requires: frozenset[str] = frozenset()
    ensures: frozenset[str] = frozenset()
    ends: frozenset[str] = frozenset()
    result: str = "rewrites"
    """The unit of its rewrites in words for users: `shapes inferred`."""
    needed: bool = False
    """Whether the model cannot be compiled without it, so that it runs unoptimized too."""

    def run(self, model: ir.Model) -> PassReport:
        """Rewrites the model and says what was done.

        Raises:
            CompileError: the model is malformed, so that no pass can continue.
        """
        report = PassReport(self.name, self.result, nodes_before=_count(model))
        self.apply(model, report)
        report.nodes_after = _count(model)
        return report


def _count(model: ir.Model) -> int:
    from compiler.ir import graph  # which imports onnx: options, which know reports, do without

    return sum(len(each) for each in graph.graphs_of(model.graph))
