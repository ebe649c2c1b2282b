"""The search for the first optional pass that makes a plan wrong, and for the first step whose value differs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from compiler.accuracy.compare import Report
from compiler.accuracy.layerwise import Layer, compare_layers, compare_plans
from compiler.accuracy.older_plan import PlanJudge
from compiler.accuracy.run_inputs import made_for
from compiler.accuracy.verify import Given, Judge, random_outputs
from compiler.accuracy.yardstick import MOST_ERROR
from compiler.bisect.halving import culprit_of, first_wrong, optional_passes, options_of
from compiler.errors import CompileError, RunError
from compiler.frontend.load import load_model
from compiler.options import Options
from compiler.pipeline import compile_stored, optimize
from compiler.runtime.session import load

if TYPE_CHECKING:
    from compiler.accuracy.run_inputs import Inputs
    from compiler.bisect.halving import Culprit
    from compiler.frontend.load import Source
    from compiler.plan import Plan
    from compiler.rewrite.report import PassReport

__all__ = ["WrongResult", "find_error"]


@dataclass(frozen=True)
class WrongResult:
    """Where the results of a plan go wrong.

    `report` compares the optimized plan with onnxruntime, or with an older plan. If it is equal, the other fields are
    empty. `culprit` is `None` if the plan without optional passes is different too. `step` is the first step that
    differs in the plan for `options`. `before` names the compared values of the steps before it.
    """

    report: Report
    inputs: Mapping[str, Any] = field(repr=False)
    options: Options = field(default_factory=Options)
    culprit: Culprit | None = None
    step: Layer | None = None
    before: tuple[str, ...] = ()


def find_error(
    model: Source,
    inputs: Inputs,
    *,
    dims: Mapping[str, int] | None = None,
    lower_3d: bool = False,
    strict: bool = False,
    threads: int | None = None,
    tolerance: float | None = None,
    good: Plan | None = None,
    on_phase: Callable[[str], None] = lambda _: None,
) -> WrongResult:
    """Find the first pass after which the results differ from onnxruntime's, and the first step whose value differs.

    `dims`, `lower_3d` and `strict` are those of `Options`. `tolerance` is the tolerance of `verify`. With `good`, an
    older plan of the model, the results of this plan replace onnxruntime's. The function calls `on_phase` with the name
    of each phase.

    Raises:
        CompileError: the model is refused.
        InputError, RunError: as `Session.run`, of the optimized plan or of the older one.
        ReferenceMissing, ReferenceFailed: onnxruntime is not installed, or cannot run the model.
    """
    on_phase("comparing the optimized plan")
    base = Options(dims=dims or {}, lower_3d=lower_3d, strict=strict)
    plan = compile_stored(model, base)
    given = made_for(inputs, plan.inputs)
    judge = Judge(model, threads) if good is None else PlanJudge(model, good, threads)
    runs = _Runs(model, given, judge.given(given), base, threads, tolerance, good, optional_passes())
    report = runs.report(plan)
    del plan  # it may be large
    if report.ok:
        return WrongResult(report, given)
    on_phase("comparing the plan without optional passes")
    plain = runs.differs(0)
    if plain:
        options, right_options, culprit = runs.options(0), None, None
    else:
        right, wrong = first_wrong(len(runs.names), runs.differs, on_phase=lambda count: on_phase(runs.phase(count)))
        # Without optional passes, the plan may not compile or run: then there is no plan to compare with.
        is_known = right > 0 or plain is False
        options, right_options = runs.options(wrong), runs.options(right) if is_known else None
        culprit = runs.culprit(right, wrong)
    on_phase("comparing intermediate values")
    step, before = runs.first_step(options, right_options)
    return WrongResult(report, given, options, culprit, step, before)


@dataclass(frozen=True)
class _Runs:
    """The plans of one model, with more or fewer of the optional passes, and their results for the same inputs."""

    model: Source
    inputs: Mapping[str, Any]
    references: Given
    base: Options
    threads: int | None
    tolerance: float | None
    good: Plan | None
    names: tuple[str, ...]

    def options(self, count: int) -> Options:
        """The options for the first `count` optional passes."""
        return options_of(self.names[:count], self.base)

    def phase(self, count: int) -> str:
        """The sentence that describes a trial."""
        return f"comparing the plan with the optional passes up to {self.names[count - 1]}"

    def report(self, plan: Plan) -> Report:
        """The comparison of a plan with onnxruntime, or with the older plan."""
        found = load(plan, threads=self.threads).run(self.inputs)
        return self.references.compare(found, self.tolerance, random_outputs(plan))

    def differs(self, count: int) -> bool | None:
        """Whether the plan with the first passes is different; `None` if it does not compile or run."""
        try:
            return not self.report(compile_stored(self.model, self.options(count))).ok
        except (CompileError, RunError):  # such as CC0505
            return None

    def culprit(self, right: int, wrong: int) -> Culprit:
        """The pass of number `wrong`, with its rewrites. The passes from `right` on are suspects too."""
        reports: list[PassReport] = []
        optimize(load_model(self.model).model, replace(self.options(wrong), on_pass=reports.append))
        return culprit_of(self.names[right:wrong], reports)

    def first_step(self, options: Options, good: Options | None) -> tuple[Layer | None, tuple[str, ...]]:
        """The first step that differs more than in the plan of the good options, and the names of the values before."""
        layers = self._layers(options)
        known = {} if good is None else {each.output.name: each.output for each in self._layers(good)}
        wrong = [each for each in layers if not each.output.ok]
        worse = (
            each
            for each in wrong
            if each.output.problem
            or each.output.name not in known
            or each.output.max_abs > MOST_ERROR * known[each.output.name].max_abs
        )
        first = next(worse, next(iter(wrong), None))
        before = [] if first is None else [each.output.name for each in layers if each.step < first.step]
        return first, tuple(before)

    def _layers(self, options: Options) -> list[Layer]:
        plan = compile_stored(self.model, options)
        shared: dict[str, Any] = {"threads": self.threads, "tolerance": self.tolerance, "sliced": True}
        if self.good is not None:
            return compare_plans(self.good, plan, self.inputs, **shared)
        return compare_layers(self.model, plan, self.inputs, **shared)
