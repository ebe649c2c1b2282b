"""The results of two plans on the same inputs: outputs, and intermediate values that correspond."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compiler.accuracy.compare import Comparison, compare
from compiler.accuracy.layerwise import Layer, Place, named_values
from compiler.accuracy.verify import random_outputs
from compiler.errors import InputError, RunError
from compiler.plan import Plan
from compiler.plan.stored import with_outputs
from compiler.runtime.session import load

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from compiler.diff.pairs import Pairs

__all__ = ["Numbers", "compare_runs"]


@dataclass(frozen=True)
class Numbers:
    """The comparison of two runs: the outputs, and pairs of intermediate values, in the second plan's order.

    The differences are those of the second run from the first. A pair has the name of the second plan's value.
    `problem` says why the runs were not compared.
    """

    outputs: tuple[Comparison, ...] = ()
    values: tuple[Layer, ...] = ()
    problem: str = ""

    @property
    def is_equal(self) -> bool:
        """Whether all elements of all outputs are equal, except random numbers."""
        return not self.problem and not any(map(differs, self.outputs))

    @property
    def first(self) -> Layer | None:
        """The first intermediate value that differs by more than the tolerance; without one, the first that differs."""
        different = [each for each in self.values if differs(each.output)]
        return next((each for each in different if not each.output.ok), next(iter(different), None))


def differs(output: Comparison) -> bool:
    """Whether two values differ at all, although they are not random numbers."""
    return bool(output.problem) or (output.max_abs > 0 and not output.is_random)


def compare_runs(
    before: Plan,
    after: Plan,
    inputs: Mapping[str, Any],
    pairs: Pairs,
    *,
    threads: int | None = None,
    tolerance: float | None = None,
) -> Numbers:
    """Run two plans on the same inputs, and compare the outputs and the intermediate values that correspond.

    `pairs` tells which inputs, outputs and values correspond. `tolerance` replaces the tolerances of the dtypes.

    Raises:
        InputError, RunError: as `Session.run`, of the first plan.
    """
    own, others = (dict(named_values(each)) for each in (before, after))
    ends = {each.name for plan in (before, after) for each in plan.outputs}
    partner = {new: old for old, new in pairs.values.items() if old in own}
    common = {name: place for name, place in others.items() if name in partner and not ends & {name, partner[name]}}
    wide = _with_values(before, (own[partner[name]] for name in common)), _with_values(after, common.values())
    expected = load(wide[0], threads=threads).run(inputs)
    try:
        given = {new: inputs[old] for old, new in pairs.inputs.items() if old in inputs}
        found = load(wide[1], threads=threads).run(given)
    except (InputError, RunError) as error:
        return Numbers(problem=f"the second one does not run with these inputs: {error}")
    random = random_outputs(wide[0]) | random_outputs(wide[1])
    outputs = {old: (expected[old], found[new]) for old, new in pairs.outputs.items()}
    values = {name: (expected[partner[name]], found[name]) for name in common}

    def compared(values: Mapping[str, tuple[Any, Any]], name: str) -> tuple[Comparison, ...]:
        return compare({name: values[name][0]}, {name: values[name][1]}, tolerance, random).outputs

    layers = ((place, each) for name, place in common.items() for each in compared(values, name))
    return Numbers(
        tuple(each for name in outputs for each in compared(outputs, name)),
        tuple(Layer(place.step, place.op, place.origin, each) for place, each in layers),
    )


def _with_values(plan: Plan, places: Iterable[Place]) -> Plan:
    return with_outputs(plan, [each.value for each in places])
