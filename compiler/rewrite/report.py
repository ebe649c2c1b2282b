"""Passes, and reports of their rewrites."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from compiler.errors import Diagnostic
from compiler.ir.origin import Origin

if TYPE_CHECKING:
    import onnx_ir as ir

__all__ = ["Fired", "Missed", "Pass", "PassReport", "note"]


def note(error: BaseException, text: str) -> None:
    """Adds a line to an error's message and traceback, as `add_note` of Python 3.11 does."""
    error.__notes__ = [*getattr(error, "__notes__", ()), text]  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Fired:
    """A completed rewrite and its origin."""

    rule: str
    origin: Origin
    note: str = ""
    """A sentence about the rewrite, such as the price of quantized weights."""
    error: float = 0.0
    """The relative error that the rewrite adds to weights."""
    weights: str = ""
    """The name of these weights."""


@dataclass(frozen=True)
class Missed:
    """A match of a pattern whose check rejected the rewrite."""

    rule: str
    origin: Origin
    reason: str
    near: bool = True
    """Whether it is a near miss. A match of a single operator, such as any Reshape, is not."""


@dataclass
class PassReport:
    """The report of one run of a pass."""

    name: str
    result: str = "rewrites"
    """The name of the rewrites in `fired`, as users see it, such as `shapes inferred`."""
    nodes_before: int = 0
    """The number of nodes, including those of nested graphs. A fused node counts as one."""
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


@dataclass(frozen=True, eq=False)
class Pass:
    """A function that rewrites a model in place. A second run changes nothing.

    `requires`, `ensures` and `ends` are names of facts about the model, such as `sorted`: the facts that must hold
    before the pass, the facts that hold afterwards, and the facts that no longer hold afterwards.
    """

    name: str
    apply: Callable[[ir.Model, PassReport], None]
    requires: frozenset[str] = frozenset()
    ensures: frozenset[str] = frozenset()
    ends: frozenset[str] = frozenset()
    result: str = "rewrites"
    """The name of its rewrites, as users see it, such as `shapes inferred`."""
    needed: bool = False
    """Whether a correct plan needs the pass, so that it also runs without optimization."""

    def run(self, model: ir.Model, nodes: int | None = None, *, counts: bool = True) -> PassReport:
        """Rewrites the model, and returns the report. `nodes` is the number of nodes of the model, if it is known.

        Without `counts`, the report does not count the nodes.

        Raises:
            CompileError: the model is malformed, so that no pass can continue.
        """
        report = self.skipped(model, nodes, counts=counts)
        try:
            self.apply(model, report)
        except Exception as error:
            note(error, f"in the pass {self.name}")
            raise
        if report.changed and counts:
            report.nodes_after = _count(model)
        return report

    def skipped(self, model: ir.Model, nodes: int | None = None, *, counts: bool = True) -> PassReport:
        """The report of a run that changes nothing. The arguments are as in `run`."""
        if nodes is None:
            nodes = _count(model) if counts else 0
        return PassReport(self.name, self.result, nodes, nodes)


def _count(model: ir.Model) -> int:
    from compiler.ir import graph  # imports onnx, which `compiler.options` must not: it imports this module

    return sum(len(each) for each in graph.graphs_of(model.graph))
