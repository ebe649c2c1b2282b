"""The search for the pass that gives a plan other steps than the good side."""

from __future__ import annotations

from dataclasses import replace

import onnx.parser
import pytest

import compiler
from compiler.bisect.good import GoodFacts, GoodPlan
from compiler.bisect.result import SearchResult
from compiler.bisect.steps import find_steps
from compiler.bisect.subject import Subject, facts_together
from compiler.passes.recognize_softmax import RecognizeSoftmax
from compiler.rewrite.pattern import Op, Var
from tests import broken_passes
from tests.searches.good_sides import BASE, good_facts, good_plan, subject

SOFTMAX = """
<ir_version: 9, opset_import: ["": 20]>
soft (float[2, 64] x) => (float[2, 64] y) <int64[1] last = {-1}> {
    [floor] whole = Floor (x)
    [shift] shifted = Abs (whole)
    [top] top = ReduceMax (shifted, last)
    [sub] low = Sub (shifted, top)
    [exp] e = Exp (low)
    [sum] s = ReduceSum (e, last)
    [div] y = Div (e, s)
}"""


@pytest.fixture(scope="module")
def soft() -> Subject:
    return Subject([onnx.parser.parse_model(SOFTMAX)], threads=1)


@pytest.fixture(scope="module")
def plan(soft: Subject) -> GoodPlan:
    return GoodPlan(soft.whole()[0].plan, "old.plan")


@pytest.fixture(scope="module")
def facts(soft: Subject) -> GoodFacts:
    return GoodFacts(facts_together(soft.whole()), "facts.toml", good_facts().entry)


def cause_of(found: SearchResult) -> tuple[str, str]:
    """The name of the pass, and why it is this pass."""
    assert found.is_wrong and found.cause is not None
    return found.cause.culprit.name, found.cause.why


def place_of(found: SearchResult) -> tuple[str, str]:
    """The operator and the origin of the first step that differs."""
    assert found.step is not None
    return found.step.op, found.step.origin


def test_equal_steps() -> None:
    assert find_steps(subject(), good_facts()).said == "the steps, rewrites and kernels are those of facts.toml"
    found = find_steps(subject(), good_plan())
    assert (found.said, found.is_wrong) == ("the steps and kernels are those of old.plan", False)


def test_a_silent_pass_is_named_by_the_facts(soft: Subject, facts: GoodFacts, monkeypatch: pytest.MonkeyPatch) -> None:
    broken_passes.let_pass_rest(monkeypatch, "recognize_softmax")
    found = find_steps(soft, facts)
    assert cause_of(found) == ("recognize_softmax", "it does not rewrite as recorded: RecognizeSoftmax 1 → 0")
    assert found.cause is not None and found.cause.culprit.others == ("fuse_elementwise",)
    assert place_of(found) == ("Reduce", "ReduceMax(top)")
    assert found.step is not None and found.step.note == "Reduce 0 → 2"
    assert "steps" in {name for name, _, _ in found.changes}


def test_near_misses_are_shown(
    soft: Subject, plan: GoodPlan, facts: GoodFacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rule that refuses a place where it applied before."""
    monkeypatch.setattr(RecognizeSoftmax, "check", lambda *_: "the moon is full")
    for good in (plan, facts):
        found = find_steps(soft, good)
        assert cause_of(found)[0] == "recognize_softmax"
        assert found.cause is not None and [each.reason for each in found.cause.missed] == ["the moon is full"]
        assert place_of(found) == ("Reduce", "ReduceMax(top)")
    assert cause_of(find_steps(soft, plan))[1] == "it almost makes the step Softmax of old.plan"


def test_a_rule_that_never_matches(soft: Subject, plan: GoodPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RecognizeSoftmax, "pattern", Op("Div", Op("Sin", Var("x")), Var("y")))
    monkeypatch.setattr(
        "compiler.pipeline.recognize_softmax",
        compiler.passes.recognize_softmax.rules_pass(
            "recognize_softmax", [RecognizeSoftmax()], requires=frozenset({"shapes"})
        ),
    )
    why = "its rules make Softmax, as in a step of old.plan, but none matches"
    assert cause_of(find_steps(soft, plan)) == ("recognize_softmax", why)


def test_a_plan_does_not_name_a_pass_without_rules(
    soft: Subject, plan: GoodPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken_passes.let_pass_rest(monkeypatch, "recognize_softmax")
    found = find_steps(soft, plan)
    assert found.is_wrong and found.cause is None
    assert found.no_cause.startswith("no pass makes the step Softmax of old.plan from Div(div) + ")
    assert "--facts names the pass" in found.no_cause
    assert place_of(found) == ("Reduce", "ReduceMax(top)")


def test_a_pass_that_is_gone(soft: Subject, plan: GoodPlan, facts: GoodFacts, monkeypatch: pytest.MonkeyPatch) -> None:
    pass_ = compiler.pipeline.drop_noops
    monkeypatch.setattr("compiler.pipeline.fuse_elementwise", lambda _: replace(pass_, apply=lambda *_: None))
    found = find_steps(soft, plan)
    assert cause_of(found) == ("fuse_elementwise", "it made old.plan, and does not run any more")
    assert place_of(found) == ("Unary", "Floor(floor)")
    found = find_steps(soft, facts)
    why = "it does not rewrite as recorded: fuse Floor + Abs 1 → 0; the compiler has no such pass"
    assert cause_of(found) == ("fuse_elementwise", why)
    assert place_of(found) == ("Unary", "Floor(floor)")


def test_a_plan_does_not_name_a_pass_that_fuses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The operator of the lost step is still there, so that no rule for this operator is silent."""
    text = "m (float[1, 2, 4, 4] x, float[2, 2, 1, 1] w) => (float[1, 2, 4, 4] y) { c = Conv(x, w)  y = Relu(c) }"
    fused = Subject([onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 20]> {text}')], threads=1)
    old = GoodPlan(fused.whole()[0].plan, "old.plan")
    fuse = compiler.pipeline.fuse_epilogues
    monkeypatch.setattr("compiler.pipeline.fuse_epilogues", lambda *given: replace(fuse(*given), apply=lambda *_: None))
    found = find_steps(fused, old)
    assert found.is_wrong and found.cause is None
    assert place_of(found)[0] == "Conv"
    assert found.step is not None and found.step.note.startswith("epilogue: ")


@pytest.mark.parametrize("good", [good_plan, good_facts], ids=["a plan", "facts"])
def test_a_pass_that_adds_steps(good: object, monkeypatch: pytest.MonkeyPatch) -> None:
    broken_passes.let_pass_enlarge(monkeypatch, "merge_reshapes")
    found = find_steps(subject(), good())  # type: ignore[operator]
    assert cause_of(found)[0] == "merge_reshapes"
    assert place_of(found) == ("Concat", "Neg(neg)")


def test_a_pass_that_replaces_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before, nothing fused elementwise operators: the step of each node was in the plan."""
    skipping = Subject(subject().sources, replace(BASE, skip_passes=("fuse_elementwise",)), 1)
    old = skipping.whole()[0].plan
    monkeypatch.setitem(old.document, "passes", subject().whole()[0].plan.document["passes"])
    found = find_steps(subject(), GoodPlan(old, "old.plan"))
    assert cause_of(found) == ("fuse_elementwise", "it replaces the nodes of the step Unary of old.plan")


def test_a_lowering_that_differs_has_no_pass_to_blame(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compiler.lower.is_elementwise", lambda *_: False)
    old, known = subject().whole()[0].plan, facts_together(subject().whole())
    broken_passes.let_add_subtract(monkeypatch)
    found = find_steps(subject(), GoodPlan(old, "old.plan"))
    assert found.is_wrong and found.cause is None
    assert found.no_cause == "no pass rewrites the nodes of the steps of old.plan that differ, so no pass is the cause"
    assert place_of(found) == ("Binary", "Add(shift)")
    assert found.step is not None and "Add → " in found.step.note and "Sub" in found.step.note
    assert not find_steps(subject(), GoodFacts(known, "facts.toml", good_facts().entry)).is_wrong
