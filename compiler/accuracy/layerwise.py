"""Comparison of the intermediate values that a plan and onnxruntime have in common, to find the first difference.

The passes remove many of a model's values. The remaining values keep their names, and are compared. The comparison
leaves out values inside the graphs of If, Loop and Scan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from compiler.accuracy.compare import Comparison, compare
from compiler.accuracy.intermediate import intermediate_values
from compiler.accuracy.verify import random_outputs
from compiler.ir.origin import Origin
from compiler.plan import Plan
from compiler.plan.operators import op_name
from compiler.plan.stored import with_outputs
from compiler.runtime.session import load

if TYPE_CHECKING:
    from compiler.frontend.load import Source

__all__ = ["Layer", "Place", "compare_layers", "compare_plans", "named_values"]


@dataclass(frozen=True)
class Layer:
    """The comparison of a plan's value with onnxruntime's value of the same name, and the step that computes it."""

    step: int
    op: str
    origin: str
    output: Comparison


def compare_layers(
    model: Source,
    plan: Plan,
    inputs: Mapping[str, Any],
    device: str = "cpu",
    *,
    threads: int | None = None,
    tolerance: float | None = None,
    sliced: bool = False,
) -> list[Layer]:
    """Run the plan and onnxruntime with every common value as an output, and compare the values in the plan's order.

    onnxruntime computes the model node by node, without optimizations. `compare` explains `sliced`.

    Raises:
        CompileError: the model cannot be read.
        InputError, RunError: as `Session.run`.
        ReferenceMissing, ReferenceFailed: onnxruntime is not installed, or cannot run the model.
    """
    known = dict(named_values(plan))
    expected = intermediate_values(model, inputs, lambda computed: [name for name in known if name in computed])
    common = {name: place for name, place in known.items() if name in expected}
    wider = _with_values(plan, common)
    found = load(wider, device, threads).run(inputs)
    return _compared(common, expected, found, tolerance, random_outputs(wider), sliced)


def compare_plans(
    good: Plan,
    plan: Plan,
    inputs: Mapping[str, Any],
    *,
    threads: int | None = None,
    tolerance: float | None = None,
    sliced: bool = False,
) -> list[Layer]:
    """Run two plans of a model, and compare the values that both name, in the order of the second one.

    Raises:
        InputError, RunError: as `Session.run`.
    """
    own, known = (dict(named_values(each)) for each in (good, plan))
    common = {name: place for name, place in known.items() if name in own}
    sides = _with_values(good, {name: own[name] for name in common}), _with_values(plan, common)
    expected, found = (load(each, threads=threads).run(inputs) for each in sides)
    random = random_outputs(sides[0]) | random_outputs(sides[1])
    return _compared(common, expected, found, tolerance, random, sliced)


def _with_values(plan: Plan, places: Mapping[str, Place]) -> Plan:
    return with_outputs(plan, [place.value for place in places.values()])


def _compared(
    places: Mapping[str, Place],
    expected: Mapping[str, Any],
    found: Mapping[str, Any],
    tolerance: float | None,
    random: Collection[str],
    sliced: bool,
) -> list[Layer]:
    """The comparisons of the values at these places."""
    return [
        Layer(place.step, place.op, place.origin, each)
        for name, place in places.items()
        for each in compare({name: expected[name]}, found, tolerance, random, sliced=sliced).outputs
    ]


class Place(NamedTuple):
    """The place of a value in a plan: its index, and the index, op and origin of its step."""

    value: int
    step: int
    op: str
    origin: str


def named_values(plan: Plan) -> Iterator[tuple[str, Place]]:
    """The values that steps compute, by name, without names that occur twice."""
    document = plan.document
    values, origins = document["main"]["values"], document["origins"]
    times = Counter(value["name"] for value in values)
    for number, step in enumerate(document["main"]["steps"]):
        op = step["op"] if isinstance(step["op"], str) else op_name(step["op"])
        from_ = origins[step["origin"]]
        origin = str(Origin(nodes=tuple(from_["nodes"]), module=from_["module"], source=from_["source"]))
        for index in step["outputs"]:
            if index is not None and (name := values[index]["name"]) and times[name] == 1:
                yield name, Place(index, number, op, origin)
