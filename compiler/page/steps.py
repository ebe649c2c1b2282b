"""The steps of a plan in a session: what they read and write, their work, and their time if it is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from compiler.page.history import milliseconds_of
from compiler.runtime.processor import level_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from compiler import Plan
    from compiler.page.places import Places
    from compiler.runtime.prepared import Prepared, PreparedStep, PreparedValue
    from compiler.runtime.session import Session

__all__ = ["steps_data"]

JsonObject = dict[str, Any]

_NOWHERE: JsonObject = {"nodes": (), "module": "", "source": ""}
_MEASURED = ("calls", "seconds", "operations", "bytes", "alive_bytes", "host")
_KNOWN = ("op", "kernel", "program", "depth", "added", "operations", "alive_bytes")


def steps_data(plan: Plan, session: Session, profile: Mapping[str, Any] | None, places: Places) -> JsonObject:
    """The steps of a session's plan, as a profile of the page of results with more fields for each step.

    Without a `profile` (`compiler.zoo.profile_model.profile_of`), nothing is measured: `runs` and `milliseconds` are
    `None`, and `operations` and `alive_bytes` are those of `PreparedStep`. `symbols` are the dimensions without a size.
    The `place` of a step is its index in `places`. `inputs` and `outputs` are lists of values: a name, a type, and
    where an input comes from.
    """
    prepared = session.prepared()
    found = [
        {**{key: getattr(step, key) for key in _KNOWN}, "place": place, "inputs": inputs, "outputs": outputs}
        for step, place, (inputs, outputs) in zip(
            prepared.steps, _places(plan, prepared, places), _values(plan, prepared.steps), strict=True
        )
    ]
    facts = {"level": level_of(prepared.isa), "threads": session.threads, "runs": None, "peaks": None}
    measured = [dict.fromkeys(("calls", "seconds", "bytes", "host"))] * len(found)
    if profile is not None:
        facts = {key: profile[key] for key in facts}
        measured = [{key: step[key] for key in _MEASURED} for step in profile["steps"]]
    steps = [{**one, **other} for one, other in zip(found, measured, strict=True)]
    return {
        **facts,
        "milliseconds": None if profile is None else milliseconds_of(profile),
        "symbols": sorted({str(dim) for each in plan.inputs for dim in each.shape or () if not isinstance(dim, int)}),
        "steps": {name: [step[name] for step in steps] for name in (steps[0] if steps else ())},
    }


def _places(plan: Plan, prepared: Prepared, places: Places) -> Iterator[int]:
    """The place of each step. A step of a block has the module of the outer step."""
    document, module = plan.document, ""
    for step in prepared.steps:
        if step.depth:
            yield places.index((step.origin,), module)
            continue
        number = document["main"]["steps"][step.index]["origin"]
        origin = _NOWHERE if number is None else document["origins"][number]
        module = origin["module"]
        yield places.index(origin["nodes"], module, origin["source"])


def _values(plan: Plan, steps: Sequence[PreparedStep]) -> Iterator[tuple[list[Any], list[Any]]]:
    """The inputs and outputs of each step.

    An input comes from the step with a number, or it is a `constant` or an `input` of the model. It is `None` for a
    value of an outer block. Only values of the same block correspond. In a block, these are values with names, because
    blocks side by side may have the same numbers.
    """
    given = {f"%{index}" for index in plan.document["main"]["inputs"]}
    makers: list[dict[str, int]] = []
    for number, step in enumerate(steps, 1):
        del makers[step.depth + 1 :]
        if len(makers) <= step.depth:
            makers.append({})
        known = makers[step.depth]

        def source(value: PreparedValue, known: dict[str, int] = known, depth: int = step.depth) -> str | int | None:
            if value.constant:
                return "constant"
            if value.value in known and (not depth or ":" in value.value):
                return known[value.value]
            return "input" if not depth and value.value.partition(":")[0] in given else None

        yield (
            [[each.value, each.type, source(each)] for each in step.inputs if each is not None],
            [[each.value, each.type] for each in step.outputs if each is not None],
        )
        known |= {each.value: number for each in step.outputs if each is not None}
