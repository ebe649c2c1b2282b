"""The pass after which a plan has other steps than an older plan, which records no rewrites.

A step of the older plan names its origin: the nodes of the model that it computes. The search follows the nodes with
this origin through all passes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from compiler.bisect.halving import Culprit
from compiler.bisect.result import Cause, Step
from compiler.diff.changes import node_changes
from compiler.diff.of_plan import plan_graph
from compiler.diff.pairs import Pairs
from compiler.frontend.load import load_model
from compiler.ir import origin
from compiler.pipeline import optimize

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from compiler.bisect.good import GoodPlan
    from compiler.bisect.subject import Compiled, Subject
    from compiler.diff.changes import NodeChange
    from compiler.diff.graph import Node
    from compiler.ir.origin import Origin
    from compiler.plan import Plan
    from compiler.rewrite.report import PassReport

__all__ = ["first_difference", "of_plan"]

_MADE = re.compile(r"(\w+)\(")
"""An operator in the formula of a rule."""


def first_difference(before: Plan, after: Plan, name: str) -> Step | None:
    """The first step of the second plan that differs from the first plan, or else the first one that it lacks.

    `name` is the name of the first plan in the note of the step.
    """
    graphs = plan_graph(before), plan_graph(after)
    pairs = Pairs(*graphs)
    changes = list(node_changes(*graphs, pairs))
    places = {id(each): _place(each, graphs[0].producers, graphs[1].producers, pairs) for each in changes}
    present = [each for each in changes if each.change != "removed"]
    if present:
        first = min(present, key=lambda each: places[id(each)])
        details = (f"{what}: {old} → {new}" for what, old, new in first.details)
        note = "; ".join(details) if first.details else f"{name} has no such step"
        return Step(places[id(first)], first.op, str(first.origin), note)
    if not changes:
        return None
    first = changes[0]
    return Step(places[id(first)], first.op, str(first.origin), f"only {name} has this step")


def _place(change: NodeChange, before: dict[str, int], after: dict[str, int], pairs: Pairs) -> int:
    """The number of a step in its plan; that of a changed step in the second plan."""
    if change.change == "added":
        return after[change.name]
    place = before[change.name]
    return pairs.nodes[place] if change.change == "changed" else place


def of_plan(subject: Subject, good: GoodPlan, whole: Compiled) -> tuple[Cause | None, str]:
    """The pass that causes the differences from an older plan, or the reason why it is unknown.

    Of several passes that treat lost steps differently, the first one counts: the others may follow from it.
    """
    gone = [each for each in good.plan.document["passes"] if each not in whole.plan.document["passes"]]
    if gone:
        culprit = Culprit(gone[0], others=tuple(gone[1:]))
        return Cause(culprit, f"it made {good.name}, and does not run any more"), ""
    lost = list(_lost(good.plan, whole.plan))
    if not lost:
        return None, f"the plan has all steps of {good.name}, so no pass is the cause"
    history = _history(subject, whole.plan, {each.origin.nodes for each in lost})
    causes = (_cause(each, history, good.name, subject.names) for each in lost)
    if known := [each for each in causes if each is not None]:
        order = subject.order
        return min(known, key=lambda each: order.index(each.culprit.name)), ""
    unmade = next((each for each in lost if not history.made(each)), None)
    if unmade is None:
        return None, f"no pass rewrites the nodes of the steps of {good.name} that differ, so no pass is the cause"
    advice = f"{good.name} does not record rewrites: --facts names the pass if the zoo has recorded the model's facts"
    return None, f"no pass makes the step {unmade.op} of {good.name} from {unmade.origin} any more\n  help: {advice}"


def _cause(node: Node, history: _History, name: str, optional: Sequence[str]) -> Cause | None:
    """The pass that explains why a step is lost."""
    if node.origin.nodes in history.present[-1]:
        return _rewritten(node, history, name, optional)
    if history.made(node):
        return _replaced(node, history, name)
    if history.keeps(node):  # not the step itself is lost, but what a rule has added to it
        return None
    return _missed(node, history, name) or _silent(node, history, name)


def _lost(before: Plan, after: Plan) -> Iterator[Node]:
    """The steps of the first plan that the second one lacks or has with other attributes or inputs, in order."""
    graphs = plan_graph(before), plan_graph(after)
    changes = node_changes(*graphs, Pairs(*graphs))
    lost = {graphs[0].producers[each.name] for each in changes if each.change != "added"}
    yield from (node for place, node in enumerate(graphs[0].nodes) if place in lost and node.origin.nodes)


@dataclass
class _History:
    """The reports of all passes, and after each of them the origins of the model's nodes, among those of interest.

    `steps` are the steps of the plan that these passes make.
    """

    steps: Sequence[Node]
    reports: list[PassReport] = field(default_factory=list)
    present: list[set[tuple[str, ...]]] = field(default_factory=list)

    def made(self, node: Node) -> bool:
        """Whether any pass leaves a node with the origin of a step."""
        return any(node.origin.nodes in each for each in self.present)

    def keeps(self, node: Node) -> bool:
        """Whether the plan has a step with the operator of a step, from some of its nodes."""
        nodes = {*node.origin.nodes}
        return any(each.op == node.op and not nodes.isdisjoint(each.origin.nodes) for each in self.steps)


def _history(subject: Subject, plan: Plan, wanted: set[tuple[str, ...]]) -> _History:
    """The nodes with these origins after each pass that makes the plan."""
    found = _History(plan_graph(plan).nodes)

    def note(report: PassReport, model: Any) -> None:
        found.reports.append(report)
        found.present.append({nodes for node in model.graph if (nodes := origin.of(node).nodes) in wanted})

    subject.on_phase("following the steps of the older plan through the passes")
    optimize(load_model(subject.sources[0]).model, replace(subject.base, on_model=note))
    return found


def _rewritten(node: Node, history: _History, name: str, optional: Sequence[str]) -> Cause | None:
    """The first optional pass that rewrites the nodes of a step."""
    places: dict[str, list[Origin]] = {}
    for report in history.reports:
        if report.name in optional and (found := _shared(node, report)):
            places.setdefault(report.name, []).extend(found)
    if not places:
        return None
    first, *others = places
    result = next(each.result for each in history.reports if each.name == first)
    culprit = Culprit(first, result, tuple(places[first]), tuple(others))
    return Cause(culprit, f"it rewrites the nodes of the step {node.op} of {name}")


def _replaced(node: Node, history: _History, name: str) -> Cause:
    """The pass after which the nodes of a step are gone, which some pass before it has left."""
    held = [node.origin.nodes in each for each in history.present]
    report = history.reports[len(held) - held[::-1].index(True)]
    culprit = Culprit(report.name, report.result, _shared(node, report))
    return Cause(culprit, f"it replaces the nodes of the step {node.op} of {name}")


def _shared(node: Node, report: PassReport) -> tuple[Origin, ...]:
    """The rewrites of a pass that share nodes with a step."""
    return tuple(each.origin for each in report.fired if not {*node.origin.nodes}.isdisjoint(each.origin.nodes))


def _missed(node: Node, history: _History, name: str) -> Cause | None:
    """The first pass with a near miss, at nodes of a step, of a rule whose result is the operator of this step."""
    nodes = {*node.origin.nodes}
    making = [
        (report, miss)
        for report in history.reports
        for miss in report.near_misses
        if not nodes.isdisjoint(miss.origin.nodes) and _makes(report.rules.get(miss.rule, ""), node.op)
    ]
    if not making:
        return None
    report = making[0][0]
    culprit = Culprit(report.name, report.result)
    missed = tuple(miss for each, miss in making if each.name == report.name)
    return Cause(culprit, f"it almost makes the step {node.op} of {name}", missed)


def _silent(node: Node, history: _History, name: str) -> Cause | None:
    """The first pass with a rule whose result is the operator of a step, although nothing matched the rule there."""
    makers = dict.fromkeys(
        report.name for report in history.reports if any(_makes(formula, node.op) for formula in report.rules.values())
    )
    if not makers:
        return None
    first, *others = makers
    why = f"its rules make {node.op}, as in a step of {name}, but none matches"
    return Cause(Culprit(first, others=tuple(others)), why)


def _makes(formula: str, op: str) -> bool:
    """Whether the result of a rule has an operator with the name of an op, such as LayerNormalization for LayerNorm."""
    made = _MADE.findall(formula.rpartition("→")[2])
    return any(word.lower().startswith(op.lower()) for word in made)
