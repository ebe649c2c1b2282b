"""The facts of a model's check that must not drift: the status, sizes, steps, rewrites and kernels of its plans.

The compiler and the runtime state these facts, and the same versions state the same facts in every run. The kernels,
and the facts that depend on them, also follow from the level of the processor.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from compiler.zoo.outcome import ENDED_EARLY, together

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from compiler import Plan
    from compiler.processes.ending import Ending
    from compiler.rewrite.report import PassReport
    from compiler.runtime.prepared import Prepared
    from compiler.runtime.session import Session
    from compiler.zoo.outcome import Outcome, Shapes

__all__ = ["STATUS", "Fact", "Facts", "KnownFacts", "facts_of", "facts_of_check", "joined", "kind_of"]

Fact = int | str | Mapping[str, int]
"""A number, a text, or numbers by name."""

STATUS = "status"
"""The name of the fact that states the verdict, with the error codes of a refusal."""

_LARGEST_COUNTS = ("block", "peak_bytes")
"""For a model with several plans, `joined` takes the maximum of these facts, and the sum of all others."""


@dataclass(frozen=True)
class Facts:
    """The facts of a model for one kind of shapes, by name.

    `plan` holds those that are the same on all processors: `status`, `plan_bytes`, `constants` and `constant_bytes`,
    the `steps` by operator, `rewrites.PASS` by rule, the steps that a GPU leaves to the host by nature (`host_steps`)
    and because it has no kernel (`no_kernel`), the `operations` of their formulas with the given shapes, and the
    rounding errors (`compiler.zoo.rounding`). The optimized plan states all of them, except the status.

    `levels` maps the level of a processor to those that depend on it: the number of channels in a `block`,
    `packed_bytes` and `unpacked_bytes` of constants, the `peak_bytes` of a run's values, the number `unknown_steps`
    without known memory, the steps that prepare has `added`, and `forms.OPERATOR`, the steps by the form of the kernel.
    If the plan was timed, its `time` is a pace (`compiler.zoo.pace`).
    """

    plan: Mapping[str, Fact]
    levels: Mapping[str, Mapping[str, Fact]] = field(default_factory=dict)

    @property
    def data(self) -> dict[str, Any]:
        """The facts as JSON."""
        return {"plan": self.plan, "levels": self.levels}

    @property
    def status(self) -> str:
        """The verdict, with the error codes of a refusal; an empty string if nothing was judged."""
        return str(self.plan.get(STATUS, ""))

    @property
    def has_plan(self) -> bool:
        """Whether the model has a plan."""
        return bool(self.levels) and not self.status.startswith("refused")


@dataclass(frozen=True)
class KnownFacts:
    """The facts of models by name and kind of shapes, on a kind of device."""

    device: str
    models: Mapping[str, Mapping[Shapes, Facts]] = field(default_factory=dict)


def kind_of(device: str) -> str:
    """The kind of a device: `cuda` for each GPU `cuda:N`."""
    return device.partition(":")[0]


def facts_of(plan: Plan, session: Session, reports: Iterable[PassReport]) -> Facts:
    """The facts of a plan, of its session, and of the passes that made it."""
    from compiler.plan.show import operators
    from compiler.runtime.processor import level_of
    from compiler.runtime.steps import placed_steps

    constants, placed = plan.document["constants"], placed_steps(plan)
    hosted = {reason: Counter(step.op for step in placed if step.host == reason) for reason in ("nature", "no_kernel")}
    facts: dict[str, Fact] = {
        "plan_bytes": plan.size,
        "constants": len(constants),
        "constant_bytes": sum(map(_bytes_of, constants)),
        "steps": operators(plan),
        "host_steps": hosted["nature"],
        "no_kernel": hosted["no_kernel"],
        **_rewrites(reports),
    }
    prepared = session.prepared()
    facts["operations"] = prepared.operations
    return Facts(_without_empty(facts), {level_of(prepared.isa): _without_empty(_prepared(prepared))})


def joined(facts: Sequence[Facts]) -> Facts:
    """The facts of several plans of a model together. All of them are of the same level."""
    if len(facts) == 1:
        return facts[0]
    levels = dict.fromkeys(level for each in facts for level in each.levels)
    return Facts(
        _added([each.plan for each in facts]),
        {level: _added([each.levels.get(level, {}) for each in facts]) for level in levels},
    )


def facts_of_check(ending: Ending, outcomes: Mapping[Shapes, Sequence[Outcome]]) -> dict[Shapes, Facts]:
    """The facts of a check by kind of shapes, with the verdicts of its outcomes. An unfinished check has no facts."""
    found: dict[Shapes, Facts] = {}
    for shapes, variants in outcomes.items():
        worst = together(variants)
        if ending.kind == "done" and worst.verdict not in (*ENDED_EARLY, "failed"):
            stated = Facts(**ending.result[shapes]) if shapes in (ending.result or {}) else Facts({})
            found[shapes] = Facts({STATUS: str(worst), **stated.plan}, stated.levels)
    return found


def _rewrites(reports: Iterable[PassReport]) -> dict[str, Fact]:
    """The rewrites of each pass by rule. The inference of shapes rewrites nothing."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for report in reports:
        if report.name != "infer_shapes":
            counts[f"rewrites.{report.name}"].update(each.rule for each in report.fired)
    return dict(counts)


def _prepared(prepared: Prepared) -> dict[str, Fact]:
    """The facts of a prepared plan."""
    forms: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for step in prepared.steps:
        if step.kernel is not None:
            forms[f"forms.{step.op}"][step.kernel] += 1
    return {
        "block": prepared.block,
        "packed_bytes": prepared.packed_bytes,
        "unpacked_bytes": prepared.constant_bytes,
        "peak_bytes": prepared.peak_bytes,
        "unknown_steps": prepared.unknown_steps,
        "added": Counter(step.op for step in prepared.steps if step.added),
        **forms,
    }


def _bytes_of(constant: Mapping[str, Any]) -> int:
    """The size of a constant in the plan's file. Strings are part of the steps' text instead."""
    from compiler.ir.dtypes import numpy_dtype

    tensor = constant.get("Tensor")
    return 0 if tensor is None else math.prod(tensor["shape"]) * numpy_dtype(tensor["dtype"]).itemsize


def _without_empty(facts: Mapping[str, Fact]) -> dict[str, Fact]:
    """The facts without counts of nothing, as plain dictionaries."""
    plain = {name: fact if isinstance(fact, int | str) else dict(fact) for name, fact in facts.items()}
    return {name: fact for name, fact in plain.items() if fact != {}}


def _added(facts: Sequence[Mapping[str, Fact]]) -> dict[str, Fact]:
    """The sum of the facts of several plans, or the largest."""
    names = dict.fromkeys(name for each in facts for name in each)
    return {name: _sum(name, [each[name] for each in facts if name in each]) for name in names}


def _sum(name: str, found: Sequence[Fact]) -> Fact:
    numbers = [each for each in found if isinstance(each, int)]
    if texts := [each for each in found if isinstance(each, str)]:
        return texts[0]
    if numbers:
        return max(numbers) if name in _LARGEST_COUNTS else sum(numbers)
    return dict(sum((Counter(each) for each in found if isinstance(each, Mapping)), Counter[str]()))
