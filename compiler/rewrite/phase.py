"""Phases: passes that make work for each other, and run in turn until none of them changes the model."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compiler.errors import CompileError, Diagnostic
from compiler.rewrite.report import Pass, PassReport

if TYPE_CHECKING:
    import onnx_ir as ir

__all__ = ["Phase"]

_MOST_ROUNDS = 100
"""The limit of rounds. In a phase that changes the model in every round, passes undo each other."""


@dataclass(frozen=True)
class Phase:
    """Passes that run in order, round after round, until no pass changes the model."""

    name: str
    passes: Sequence[Pass]

    def only(self, chosen: Container[Pass]) -> Phase:
        """The same phase with only the chosen passes."""
        return Phase(self.name, [step for step in self.passes if step in chosen])

    def run(
        self, model: ir.Model, done: set[Pass] | None = None, *, counts: bool = True
    ) -> Iterator[tuple[Pass, PassReport]]:
        """Yields every run of a pass with its report, except runs of later rounds that change and refuse nothing.

        `done` holds the passes that ran after the last change. They would change nothing, so that the phase yields
        empty reports instead of running them. The phase updates the set. Without `counts`, the reports do not count the
        nodes.

        Raises:
            CompileError: the phase does not end, because the passes undo each other.
        """
        done, last = set() if done is None else done, ""
        nodes: int | None = None
        for round_number in range(_MOST_ROUNDS):
            for step in self.passes:
                if round_number and done.issuperset(self.passes):
                    return
                run = step.skipped if step in done else step.run
                report = run(model, nodes, counts=counts)
                nodes = report.nodes_after
                if round_number == 0 or report.changed or report.refused:
                    yield step, report
                if report.changed:
                    last = step.name
                    done.clear()
                done.add(step)
        message = f"the phase {self.name} does not end: {last} still changes the model after {_MOST_ROUNDS} rounds"
        raise CompileError([Diagnostic("CC0506", message, help=f"use --skip-pass {last}, and report the bug")])
