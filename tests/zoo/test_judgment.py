"""The judgment on a folder: which problems it finds, and what makes its results acceptable."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from compiler.processes.ending import Ending
from compiler.zoo.baseline import KnownDifference
from compiler.zoo.compared_facts import ComparedFacts
from compiler.zoo.folder_judgment import Judgment, stale_lines
from compiler.zoo.index import Entry
from compiler.zoo.outcome import Outcome
from compiler.zoo.suite import Case, CaseOutcome
from compiler.zoo.time_folder import Timed

DONE, CRASHED = Ending("done"), Ending("crashed", message="it crashed", phase="timing")


def outcome_of(model: str, problem: str = "", stale: str = "", verdict: str = "equal") -> CaseOutcome:
    found = Outcome(model, "plain, 1 thread", verdict, problem=problem)  # type: ignore[arg-type]
    return CaseOutcome(Case(Entry(model, Path(f"{model}.onnx"), ())), (found,), stale, DONE)


def judgment_of(*found: CaseOutcome) -> Judgment:
    return Judgment(found, {}, {}, {}, ComparedFacts())


def test_equal_models_are_right() -> None:
    judgment = judgment_of(outcome_of("a"), outcome_of("b"))
    assert judgment.is_right and not judgment.problems and not judgment.has_unrecorded
    assert judgment.data["ok"] and [each["model"] for each in judgment.data["outcomes"]] == ["a", "b"]


@pytest.mark.parametrize(("verdict", "may_be_recorded"), [("uncertain", True), ("refused", True), ("different", False)])
def test_a_problem_of_an_outcome(verdict: str, may_be_recorded: bool) -> None:
    judgment = judgment_of(outcome_of("a"), outcome_of("b", "it is wrong", verdict=verdict))
    assert not judgment.is_right and not judgment.data["ok"]
    assert judgment.problems == {"b": ["it is wrong"]} and not judgment.problems_of_no_outcome
    assert judgment.has_unrecorded == may_be_recorded


def test_a_stale_line_is_a_problem() -> None:
    found = [outcome_of("a", stale="it is now equal"), outcome_of("b")]
    known = {name: KnownDifference("why", {}) for name in ("a", "b", "gone")}
    stale = stale_lines(found, known, ())
    assert stale == {"a": "it is now equal", "gone": "it is in the baseline, but not in the folder"}
    assert stale_lines(found, known, ["a"]) == {"a": "it is now equal"}, "the selection leaves out other models"
    judgment = replace(judgment_of(*found), stale=stale)
    assert judgment.problems == {name: [problem] for name, problem in stale.items()}
    assert not judgment.is_right and judgment.has_unrecorded


def test_a_failed_measurement_is_a_problem_and_its_end_counts() -> None:
    failed = Timed.of("avx2", [CRASHED])
    judgment = replace(judgment_of(outcome_of("a"), outcome_of("b")), times={"a": failed}, profiles={"b": CRASHED})
    assert judgment.problems.keys() == judgment.problems_of_no_outcome.keys() == {"a", "b"}
    assert {ending.kind for ending in judgment.endings.values()} == {"crashed"}
    assert not judgment.is_right and not judgment.has_unrecorded


def test_drifts_are_problems_which_a_caller_shows_apart() -> None:
    drift = ComparedFacts(by_model={"a": ["steps: 3 → 4"]})
    judgment = replace(judgment_of(outcome_of("a", "it is wrong", verdict="different")), drift=drift)
    assert judgment.problems == {"a": ["it is wrong", "steps: 3 → 4"]}
    assert judgment.problems_without_drifts == {"a": ["it is wrong"]}
    assert judgment.problems_of_no_outcome == {"a": ["steps: 3 → 4"]}
