"""The search for the pass after which a plan is slower, with clocks that depend on no machine."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from compiler.accuracy import reference
from compiler.bisect import ratio as ratios
from compiler.bisect.good import Good
from compiler.bisect.ratio import Ratio, Run, quotients, ratio
from compiler.bisect.result import NoGoodSide
from compiler.bisect.slower import find_time
from tests import broken_passes
from tests.searches.good_sides import X, facts_with, good_facts, good_plan, subject


def cost(run: Run) -> int:
    """The bytes of a plan's run stand for its time. Each run of onnxruntime takes 100."""
    assert isinstance(run, partial) or run is onnxruntime
    return 100 if run is onnxruntime else run.func.__self__.prepared().peak_bytes  # type: ignore[attr-defined]


def onnxruntime() -> None:
    """A run of onnxruntime."""


def clock(spread: float) -> Callable[[Run, Run, int], list[float]]:
    """A timer whose quotients differ by this factor at most, up and down in turn."""

    def timed(run: Run, other: Run, turns: int) -> list[float]:
        true = cost(run) / cost(other)
        return [true * (1 + spread * (-1) ** turn) for turn in range(turns)]

    return timed


@pytest.mark.parametrize("good", [None, good_plan], ids=["no good side", "a plan"])
def test_the_pass_and_the_step(good: Callable[[], Good] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    side, timer = None if good is None else good(), clock(0.04)
    assert find_time(subject(), {"x": X}, side, timer=clock(0.01)).cause is None
    broken_passes.let_pass_enlarge(monkeypatch, "merge_reshapes")
    found = find_time(subject(), {"x": X}, side, timer=timer)
    assert found.is_wrong and found.cause is not None and found.step is not None
    assert found.cause.culprit.name == "merge_reshapes"
    assert (found.step.op, found.step.origin) == ("Concat", "Neg(neg)")
    assert found.step.note == "the plan before this pass has no such step"
    assert "× the time of " in found.said and found.numbers["ratio"] > 5


def test_noise_hides_the_answer() -> None:
    found = find_time(subject(), {"x": X}, good_plan(), timer=clock(0.3))
    assert (found.is_wrong, found.is_unclear, found.cause) == (False, True, None)
    assert found.said == "a run takes 1.30 (0.70 to 1.30) × the time of old.plan"


def test_a_slower_plan_by_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    class Reference:
        def __init__(self, *_: object, **__: object) -> None:
            """A model in onnxruntime."""

        def prepared(self, _inputs: object) -> Run:
            return onnxruntime

    monkeypatch.setattr(reference, "Reference", Reference)
    good = facts_with(time={"percent": 32, "noise": 2})
    found = find_time(subject(), {"x": X}, good, timer=clock(0.02))
    assert not found.is_wrong and not found.is_unclear  # 32 bytes against 100
    broken_passes.let_pass_enlarge(monkeypatch, "merge_reshapes")
    found = find_time(subject(), {"x": X}, good, timer=clock(0.02))
    assert found.is_wrong and found.cause is not None and found.step is not None
    assert (found.cause.culprit.name, found.step.op) == ("merge_reshapes", "Concat")
    assert "of facts.toml (32 % of onnxruntime's time)" in found.said


def test_facts_without_times() -> None:
    with pytest.raises(NoGoodSide, match=r"facts.toml has no time of this model at the level "):
        find_time(subject(), {"x": X}, good_facts(), timer=clock(0))


def test_more_turns_if_the_noise_is_large() -> None:
    asked: list[int] = []

    def timer(_run: Run, _other: Run, turns: int) -> list[float]:
        asked.append(turns)
        return [0.9, 1.2] * turns if len(asked) == 1 else [1.2] * turns

    assert ratio(onnxruntime, onnxruntime, 1.05, timer) == Ratio(1.2, 1.2, 1.2)
    assert asked == [9, 27]
    assert Ratio(1.2, 1.1, 1.3).exceeds(1.05) and Ratio(1.0, 0.9, 1.02).exceeds(1.05) is False


def test_the_two_runs_begin_alternately(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    def timed(run: Run, _seconds: float) -> list[float]:
        run()
        return [2.0, 3.0] if order[-1] == "slow" else [1.0, 5.0]

    monkeypatch.setattr(ratios, "timed_runs", timed)
    monkeypatch.setattr(ratios, "REST", 0)
    found = quotients(lambda: order.append("slow"), lambda: order.append("fast"), 4)
    assert order == ["slow", "fast", "fast", "slow"] * 2
    np.testing.assert_array_equal(found, 2.0)
