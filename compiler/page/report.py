"""The page of a compilation: its passes, its plan, the graph by PyTorch module, the cost of layers, and the memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compiler.page.passes import classes_of, passes_data
from compiler.page.places import Places
from compiler.page.steps import steps_data
from compiler.zoo.facts import facts_of
from compiler.zoo.outcome import Outcome
from compiler.zoo.remarks import of_outputs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from compiler import Plan
    from compiler.accuracy.compare import Report
    from compiler.rewrite.report import PassReport
    from compiler.runtime.session import Session

__all__ = ["Compilation", "report_data"]


@dataclass(frozen=True)
class Compilation:
    """A compilation: its `passes` with their times in seconds, and its plan in a session.

    `profile` holds the times of the steps (`compiler.zoo.profile_model.profile_of`), and `verified` the comparison with
    onnxruntime; `None` if nobody asked for them. `inputs` describes the inputs of both in words.
    """

    title: str
    plan: Plan
    passes: Sequence[tuple[PassReport, float]]
    session: Session
    profile: Mapping[str, Any] | None = None
    verified: Report | None = None
    inputs: str = ""


def report_data(made: Compilation, about: Callable[[str], str]) -> dict[str, Any]:
    """The data of the page. `about` describes a pass in a sentence, by its name."""
    reports = [report for report, _ in made.passes]
    places = Places(classes_of(reports))
    passes = passes_data(made.passes, places, about)
    steps = steps_data(made.plan, made.session, made.profile, places)
    before = next((report.nodes_before for report in reports if report.name != "load"), 0)
    after = len(made.plan.document["main"]["steps"])
    return {
        "title": made.title,
        "summary": f"{_counted(before, 'node')} became {_counted(after, 'step')}.",
        "facts": facts_of(made.plan, made.session, ()).data,
        "ends": {
            which: [[each.name, str(each)] for each in infos]
            for which, infos in (("inputs", made.plan.inputs), ("outputs", made.plan.outputs))
        },
        "passes": passes,
        "profile": steps,
        "verified": None if made.verified is None else _verified(made.title, made.verified),
        "given": made.inputs,
        "places": places.data,
        "classes": places.classes,
    }


def _verified(title: str, report: Report) -> dict[str, Any]:
    """The comparison of the outputs, as the outcome of a check on the page of results."""
    return of_outputs(Outcome(title, "this plan", "equal"), "these inputs", report).unjudged


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"
