"""What differs between two models or plans."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from compiler.accuracy.run_inputs import made_for
from compiler.diff.changes import constant_changes, end_changes, node_changes
from compiler.diff.numbers import compare_runs
from compiler.diff.of_model import model_facts, model_graph
from compiler.diff.of_plan import plan_graph
from compiler.diff.pairs import Pairs
from compiler.frontend.load import load_model
from compiler.options import Options
from compiler.pipeline import compile
from compiler.plan import Plan
from compiler.runtime.session import load
from compiler.zoo.drift import changed_facts
from compiler.zoo.facts import Facts, facts_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from compiler.accuracy.run_inputs import Inputs
    from compiler.diff.changes import ConstantChange, EndChange, NodeChange
    from compiler.diff.graph import Graph
    from compiler.diff.numbers import Numbers
    from compiler.frontend.load import Source
    from compiler.zoo.facts import Fact

__all__ = ["Difference", "Operator", "difference"]

_STEPS = "steps"
"""The fact that counts the steps by operator, as the operators of a difference do."""


@dataclass(frozen=True)
class Operator:
    """The numbers of nodes with an operator: all nodes of both graphs, and those that differ."""

    op: str
    before: int
    after: int
    added: int
    removed: int
    changed: int


@dataclass(frozen=True)
class Difference:
    """The differences between two graphs of the same `kind`: `model` or `plan`.

    `operators` lists all operators. `shared` is the number of equal constants, and their size in bytes. `facts` are the
    differing facts, with both values. Facts of a model are its opsets and functions. Facts of a plan are its sizes,
    multiply-adds and forms of kernels (`compiler.zoo.facts`). A fact that holds counts has only the differing counts.
    `numbers` are the results on the same inputs; `None` without a run.
    """

    kind: str
    ends: tuple[EndChange, ...]
    operators: tuple[Operator, ...]
    nodes: tuple[NodeChange, ...]
    constants: tuple[ConstantChange, ...]
    shared: tuple[int, int]
    facts: tuple[tuple[str, Fact | None, Fact | None], ...]
    numbers: Numbers | None = None

    @property
    def is_equal(self) -> bool:
        """Whether nothing differs, except the names of intermediate values."""
        found = (self.ends, self.nodes, self.constants, self.facts)
        return not any(found) and (self.numbers is None or self.numbers.is_equal)

    @property
    def data(self) -> dict[str, Any]:
        """The difference as JSON, without the numbers."""
        ends = {f"{which}s": [each.data for each in self.ends if each.which == which] for which in ("input", "output")}
        return {
            "kind": self.kind,
            **ends,
            "operators": [asdict(each) for each in self.operators],
            "nodes": [each.data for each in self.nodes],
            "constants": [each.data for each in self.constants],
            "shared": dict(zip(("constants", "bytes"), self.shared, strict=True)),
            "facts": [dict(zip(("fact", "before", "after"), each, strict=True)) for each in self.facts],
        }


def difference(
    before: Source | Plan,
    after: Source | Plan,
    *,
    plans: bool = False,
    inputs: Inputs | None = None,
    dims: Mapping[str, int] | None = None,
    lower_3d: bool = False,
    strict: bool = False,
    threads: int | None = None,
    tolerance: float | None = None,
) -> Difference:
    """Find what differs between two models, or between two plans.

    If one of them is a plan, or with `plans`, the function compiles each model and compares the plans. `dims`,
    `lower_3d` and `strict` are those of `Options`. With `inputs` for the first one, it also runs both, and compares the
    results. It runs a model by a plan without optional passes, which keeps the most names of values. `tolerance`
    replaces the tolerances of the dtypes.

    Raises:
        CompileError: a model cannot be read, or is refused when it has to be compiled.
        InputError, RunError: as `Session.run`, of the first one.
    """
    options = Options(dims=dims or {}, lower_3d=lower_3d, strict=strict)
    as_plans = plans or isinstance(before, Plan) or isinstance(after, Plan)
    one, other = (_side(each, options, as_plans=as_plans, runs=inputs is not None) for each in (before, after))
    pairs = Pairs(one.graph, other.graph)
    found = _between(one, other, pairs)
    if inputs is None or one.plan is None or other.plan is None:
        return found
    given = made_for(inputs, one.plan.inputs)
    numbers = compare_runs(one.plan, other.plan, given, pairs, threads=threads, tolerance=tolerance)
    return replace(found, numbers=numbers)


@dataclass(frozen=True)
class _Side:
    """A model or plan: its graph, its facts, and the plan that runs it if it is compiled."""

    graph: Graph
    facts: Facts
    plan: Plan | None


def _side(source: Source | Plan, options: Options, *, as_plans: bool, runs: bool) -> _Side:
    if isinstance(source, Plan) or as_plans:
        plan = source if isinstance(source, Plan) else compile(source, options)
        return _Side(plan_graph(plan), facts_of(plan, load(plan), ()), plan)
    model = load_model(source, strict=options.strict).model
    described = model_graph(model), Facts(model_facts(model))
    return _Side(*described, compile(source, replace(options, optimize=False)) if runs else None)


def _between(one: _Side, other: _Side, pairs: Pairs) -> Difference:
    before, after = one.graph, other.graph
    nodes = tuple(node_changes(before, after, pairs))
    counts = Counter((each.op, each.change) for each in nodes)
    totals = [Counter(node.op for node in graph.nodes) for graph in (before, after)]
    operators = (
        Operator(op, totals[0][op], totals[1][op], counts[op, "added"], counts[op, "removed"], counts[op, "changed"])
        for op in sorted({*totals[0], *totals[1]})
    )
    constants = tuple(constant_changes(before, after, pairs))
    changed = {each.name for each in constants}
    shared = [before.constants[each].bytes for each in pairs.constants if each not in changed]
    return Difference(
        before.kind,
        tuple(end_changes(before, after, pairs)),
        tuple(operators),
        nodes,
        constants,
        (len(shared), sum(shared)),
        tuple(each for each in changed_facts(one.facts, other.facts) if each[0] != _STEPS),
    )
