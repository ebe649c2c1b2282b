"""The paces of models: their noise, the band of measurements that do not count as changes, and their text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

from compiler.accuracy.reference import ReferenceFailed
from compiler.processes.child import Channel
from compiler.zoo import tasks, time_model
from compiler.zoo.drift import Drift, changed_facts, changed_times, renewed_facts, time_drifts
from compiler.zoo.facts import Facts, KnownFacts
from compiler.zoo.facts_file import read_facts
from compiler.zoo.index import Entry
from compiler.zoo.pace import (
    TIME,
    Pace,
    StartClass,
    change_text,
    has_changed,
    is_slower,
    is_slower_run,
    is_time,
    lacks_classes,
    most_allowed,
)
from compiler.zoo.task_arguments import Time
from tests.cli.command import OLD


@pytest.mark.parametrize(
    ("quotients", "percent", "noise"),
    [
        ([0.61, 0.585, 0.634], 61, 4),
        ([0.614, 0.605, 0.605], 60, 1),
        ([1.5], 150, 1),
        ([0.001, 0.002, 0.003], 1, 50),
    ],
)
def test_a_pace_is_a_median_with_half_the_range(quotients: list[float], percent: int, noise: int) -> None:
    assert Pace.of(quotients) == Pace(percent, noise)


@pytest.mark.parametrize(
    ("before", "noises", "allowed"),
    [(61, (1, 3), 67), (61, (4, 1), 68), (61, (1, 4), 68), (100, (10, 5), 130), (3, (1, 1), 3)],
)
def test_the_band_is_a_tenth_or_three_times_the_larger_noise(
    before: int, noises: tuple[int, int], allowed: int
) -> None:
    old, same, slower = Pace(before, noises[0]), Pace(allowed, noises[1]), Pace(allowed + 1, noises[1])
    assert most_allowed(old, same) == allowed
    assert not is_slower(old, same) and not has_changed(same, old)
    assert is_slower(old, slower) and not is_slower(slower, old), "a shorter time is not slower"
    assert has_changed(old, slower) and has_changed(slower, old), "the band is the same in both directions"


def test_a_change_names_what_is_allowed() -> None:
    assert change_text(Pace(61, 1), Pace(93, 2)) == "61 % → 93 % of onnxruntime's time (allowed: 67 %)"
    assert change_text(Pace(93, 2), Pace(61, 1)) == "93 % → 61 % of onnxruntime's time"
    assert change_text(None, Pace(61, 1)) == "none → 61 % of onnxruntime's time"


@pytest.mark.parametrize(
    ("quotients", "power", "noise"),
    [([8], 3, 0), ([5.5, 6, 11.5], 3, 1), ([0.26, 0.24, 0.25], -2, 0), ([0.9, 1.1, 1.3], 0, 0), ([1, 2, 16], 1, 2)],
)
def test_a_class_is_a_power_of_two_with_half_the_range(quotients: list[float], power: int, noise: int) -> None:
    assert StartClass.of(quotients) == StartClass(power, noise)
    assert Pace.of([0.61], {"compile": quotients}) == Pace(61, 1, StartClass(power, noise))


@pytest.mark.parametrize(("noises", "allowed"), [((0, 0), 4), ((1, 0), 5), ((0, 2), 6)])
def test_a_class_may_grow_by_a_step_and_the_larger_noise(noises: tuple[int, int], allowed: int) -> None:
    old, same, slower = (
        Pace(61, 1, load=StartClass(power, noise))
        for power, noise in ((3, noises[0]), (allowed, noises[1]), (allowed + 1, noises[1]))
    )
    assert not has_changed(old, same) and not has_changed(same, old)
    assert is_slower(old, slower) and not is_slower(slower, old) and has_changed(slower, old)
    assert not is_slower_run(old, slower)
    assert not has_changed(Pace(61, 1), slower) and lacks_classes(Pace(61, 1), slower), "there is nothing to compare"


def test_a_change_names_the_classes_that_have_changed() -> None:
    soon, late = Pace(61, 1, StartClass(4), StartClass(-2)), Pace(93, 1, StartClass(4), StartClass(1))
    creation = "times onnxruntime's creation of a session"
    load = f"load 1/4 → 2 {creation} (allowed: 1/2)"
    assert change_text(soon, late) == f"61 % → 93 % of onnxruntime's time (allowed: 67 %); {load}"
    assert change_text(soon, Pace(62, 1, late.compile, late.load)) == load
    assert change_text(late, Pace(93, 1, StartClass(2), late.load)) == f"compile 16 → 4 {creation}"


BROKEN = [
    {"percent": 61},
    {"percent": 0, "noise": 1},
    {"percent": 61, "noise": 1, "start": 2},
    {"percent": 61, "noise": 1, "load_noise": 1},
    {"percent": 61, "noise": 1, "load": 1, "load_noise": -1},
]


@pytest.mark.parametrize("fact", [None, 61, "61 %", {}, *BROKEN])
def test_other_facts_are_no_paces(fact: Any) -> None:
    assert Pace.of_fact(fact) is None


@pytest.mark.parametrize("value", ["61", "{percent = 61}", "{percent = 0, noise = 1}", "{percent = 'a', noise = 1}"])
def test_a_time_in_a_file_is_sound_or_refused(value: str, tmp_path: Path) -> None:
    text = f"device = 'cpu'\n[model.echo.pinned]\nstatus = 'equal'\nlevel.avx2.time = {value}\n"
    (tmp_path / "facts.toml").write_text(text)
    with pytest.raises(ValueError, match=r"echo\.pinned\.level\.avx2\.time is .*: expected percent and noise, whole"):
        read_facts(tmp_path / "facts.toml")


def test_a_fact_holds_a_pace() -> None:
    for pace in (Pace(61, 4), Pace(61, 4, StartClass(-3, 1)), Pace(61, 4, StartClass(4), StartClass(-2, 2))):
        assert Pace.of_fact(pace.fact) == pace
    assert is_time("avx2.time") and not is_time("avx2.forms.time") and not is_time("time")


def timed(percent: int | None, level: str = "avx2", block: int = 8) -> Facts:
    """Facts with a time of this percentage, or without one."""
    time = {} if percent is None else {TIME: Pace(percent, 1).fact}
    return Facts({"status": "equal"}, {level: {"block": block, **time}})


def test_times_are_compared_apart_from_facts() -> None:
    assert changed_facts(timed(61), timed(93)) == changed_facts(timed(61), timed(None)) == []
    assert changed_facts(timed(61), timed(93, block=16)) == [("avx2.block", 8, 16)]
    assert changed_times(timed(61), timed(67)) == changed_times(timed(61), timed(None)) == []
    assert changed_times(timed(61, "scalar"), timed(93)) == [], "the levels have to be equal"
    assert changed_times(timed(61), timed(93)) == [("avx2.time", Pace(61, 1).fact, Pace(93, 1).fact)]
    assert changed_times(timed(None), timed(93)) == [("avx2.time", None, Pace(93, 1).fact)]


def test_only_a_slower_time_is_a_drift() -> None:
    known = KnownFacts("cpu", {name: {"pinned": timed(61)} for name in ("slow", "fast", "same")})
    found = {name: {"pinned": timed(percent)} for name, percent in {"slow": 93, "fast": 30, "same": 62, "x": 9}.items()}
    slow, fast = time_drifts(known, found)  # type: ignore[arg-type]
    assert (slow.model, slow.is_slower, fast.model, fast.is_slower) == ("slow", True, "fast", False)
    assert str(slow) == "pinned: avx2.time: 61 % → 93 % of onnxruntime's time (allowed: 67 %)"
    assert not Drift("a", "pinned", "avx2.forms.Conv", {"a": 1}, {"a": 2}).is_slower


def test_new_facts_keep_a_time_that_was_not_measured() -> None:
    known = KnownFacts("cpu", {"a": {"pinned": timed(61)}})
    [kept, new] = (renewed_facts(known, {"a": {"pinned": each}}).models["a"] for each in (timed(None), timed(93)))
    assert kept == {"pinned": timed(61)} and new == {"pinned": timed(93)}


def test_a_task_has_a_name() -> None:
    task = Time(Entry("a", Path(), ()), "avx512-vnni", 4)
    assert Time.named("a", task.what) == task
    assert not any(Time.named("a", what) for what in ("check, pinned, cpu", "precision", "time", "time, avx2", ""))


def test_a_refusal_of_onnxruntime_is_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_model, "_SECONDS", 0.001)
    onnx.save(onnx.parser.parse_model(OLD), tmp_path / "old.onnx")
    np.savez(tmp_path / "old.npz", x=np.ones((1, 1, 2), np.float32))
    entry, phases = Entry("old", tmp_path / "old.onnx", (tmp_path / "old.npz",)), list[Any]()
    with pytest.raises(ReferenceFailed, match="onnxruntime refuses the model: "):
        tasks.time(Time(entry, "avx2", 1), Channel(lambda _, data: phases.append(data)))
    assert phases == ["compile", "run in turns with onnxruntime"]
