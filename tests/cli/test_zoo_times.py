"""`candlec zoo update --time` and `candlec zoo run --time`: times relative to onnxruntime's must not grow."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from compiler.runtime import processor
from compiler.zoo import tasks
from compiler.zoo.facts_file import read_facts
from tests.cli.command import run
from tests.tasks import check_at_once, time_as_told

FACTS = "zoo.facts.toml"
WITH = ["--zoo", ".", "--facts", FACTS]
CHECK, UPDATE = ["zoo", "run", *WITH], ["zoo", "update", *WITH]
COMMAND = "candlec zoo update --zoo . --facts zoo.facts.toml"
STEADY = [0.61, 0.6, 0.62]
SLOW, FAST = [0.93, 0.92, 0.94], [0.3, 0.3, 0.31]
DRIFT = "pinned: avx2.time: 61 % → 93 % of onnxruntime's time (allowed: 67 %)"
LINE = "level.avx2.time = {noise = 2, percent = 61}\n"


@pytest.fixture
def models(zoo: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with two models. `tests.tasks` makes up their checks and times."""
    monkeypatch.setattr(tasks, "check", check_at_once)
    monkeypatch.setattr(tasks, "time", time_as_told)
    write_index("digits", "echo")
    return zoo


def write_index(*names: str) -> None:
    entries = [{"name": name, "file": "echo.onnx", "cases": ["io.npz"]} for name in names]
    Path("INDEX.json").write_text(json.dumps(entries))


def tell(digits: list[Any], echo: list[Any] | None = None) -> None:
    """Sets the times of the models in each process, as fractions of onnxruntime's. Removes the former log."""
    Path("times.json").write_text(json.dumps({"digits": digits, "echo": echo or STEADY}))
    Path("timed.log").unlink(missing_ok=True)


def timed() -> list[str]:
    """The models and numbers of the processes that measured times, in order."""
    log = Path("timed.log")
    return log.read_text().splitlines() if log.exists() else []


@pytest.fixture
def recorded(models: Path, capsys: pytest.CaptureFixture[str], facts: list[str]) -> Path:
    """The folder `models`, with the times of both models in the file of facts."""
    if not facts:
        tell(STEADY)
        assert run(*UPDATE, "--time") == 0
        assert Path(FACTS).read_text().count(LINE) == 2
        facts.append(Path(FACTS).read_text())
    Path(FACTS).write_text(facts[0])
    capsys.readouterr()
    return models


@pytest.fixture(scope="module")
def facts() -> list[str]:
    """A list for the text of the file of facts. The first test fills it, and the others reuse it."""
    return []


def test_update_records_times_of_pinned_shapes(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_index("digits", "echo", "refused")
    tell([0.61, 0.585, 0.634])
    assert run(*UPDATE) == 0
    assert "time" not in Path(FACTS).read_text() and timed() == []
    capsys.readouterr()
    assert run(*UPDATE, "--time", "--jobs", "2") == 0
    printed = capsys.readouterr()
    assert timed() == [f"{name} {number}" for number in (1, 2, 3) for name in ("digits", "echo")], "no refused model"
    assert "digits, time: 58 % of onnxruntime's time, " in printed.err and printed.err.count(" (2 of 2)\n") == 3
    assert re.search(r"^digits +avx2 +61 % +4 % +– +–$", printed.out, re.MULTILINE)
    assert "digits, pinned: avx2.time: none → 61 % of onnxruntime's time\n" in printed.out
    known = read_facts(Path(FACTS)).models
    assert known["digits"]["pinned"].levels["avx2"]["time"] == {"percent": 61, "noise": 4}
    assert "time" not in known["digits"]["unpinned"].levels["avx2"]
    assert "level.avx2.time = {noise = 4, percent = 61}\n" in Path(FACTS).read_text()


def test_update_without_the_option_keeps_times(recorded: Path) -> None:
    tell(["crash"])
    written = Path(FACTS).read_text()
    assert run(*UPDATE) == 0 and run(*CHECK) == 0 and run(*CHECK, "--unpin") == 0
    assert timed() == [] and Path(FACTS).read_text() == written
    tell(SLOW)
    assert run(*UPDATE, "--time", "--only", "digits") == 0
    assert Path(FACTS).read_text() == written.replace(LINE, "level.avx2.time = {noise = 1, percent = 93}\n", 1)


def test_a_time_within_the_band_is_no_drift(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tell([0.665, 0.67, 0.674])
    assert run(*CHECK, "--time", "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["ok"], data["drifts"], data["notes"]) == (True, [], [])
    assert data["times"]["digits"] == {"level": "avx2", "percent": 67, "noise": 1}
    assert len(timed()) == 6


def test_a_slower_model_is_timed_again(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tell([*SLOW, *STEADY])
    assert run(*CHECK, "--time") == 0, "the second measurement counts"
    assert timed()[-4:] == ["echo 3", "digits 4", "digits 5", "digits 6"]
    assert "error" not in capsys.readouterr().err


def test_a_model_that_is_slower_twice_fails(
    recorded: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    tell([1.5, 1.5, 1.5, *SLOW])
    assert run(*CHECK, "--time", "--junit", "zoo.xml", "--summary", "page.md") == 1
    printed = capsys.readouterr().err
    assert f"error: digits, {DRIFT}\n" in printed
    help_text = f"  help: if these changes are right, record them: `{COMMAND} --time --only digits`\n"
    assert help_text in printed and "echo, pinned: avx2" not in printed
    assert f"::error title=digits::{DRIFT.replace('%', '%25')}\n" in printed
    assert f'classname="digits" name="facts"><failure message="{DRIFT}"' in Path("zoo.xml").read_text()
    assert f"- **digits**: {DRIFT}" in Path("page.md").read_text()
    tell([*SLOW, *SLOW])
    assert run(*CHECK, "--time", "--json") == 1
    [drift] = json.loads(capsys.readouterr().out)["drifts"]
    values = {"before": {"percent": 61, "noise": 2}, "after": {"percent": 93, "noise": 1}}
    assert drift == {"model": "digits", "shapes": "pinned", "fact": "avx2.time", **values}


def test_other_facts_are_compared_too(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tell(STEADY)
    Path(FACTS).write_text(Path(FACTS).read_text().replace("Conv = 1", "Conv = 2", 1))
    assert run(*CHECK, "--time") == 1
    printed = capsys.readouterr().err
    assert "error: digits, pinned: steps: Conv 2 → 1\n" in printed
    assert printed.endswith(f"record them: `{COMMAND} --only digits`\n")


def test_a_faster_model_is_noted(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tell(FAST)
    assert run(*CHECK, "--time", "--summary", "page.md") == 0
    said = "digits, pinned: avx2.time: 61 % → 30 % of onnxruntime's time"
    assert capsys.readouterr().err.endswith(
        f"note: {said}\n  help: `{COMMAND} --time --only digits` records the shorter times\n"
    )
    assert f"- {said}\n" in Path("page.md").read_text()
    assert len(timed()) == 6, "it is not timed again"


def test_a_missing_time_is_noted(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tell(STEADY)
    written = Path(FACTS).read_text()
    Path(FACTS).write_text(written.replace(LINE, "", 1))
    assert run(*CHECK) == 0
    assert "note" not in capsys.readouterr().err
    assert run(*CHECK, "--time") == 0
    note = f"note: {FACTS} has no time of 1 model at the level avx2 of this processor: `{COMMAND} --time` adds them\n"
    assert capsys.readouterr().err.endswith(note)
    Path(FACTS).write_text(written.replace("level.avx2", "level.avx512"))
    assert run(*CHECK, "--time") == 0
    note = f"note: {FACTS} has no facts of 2 models at the level avx2 of this processor: `{COMMAND} --time` adds them\n"
    printed = capsys.readouterr().err
    assert printed.endswith(note) and printed.count("note") == 1
    assert run(*UPDATE, "--time") == 0
    assert Path(FACTS).read_text().count("level.avx512.time") == Path(FACTS).read_text().count("level.avx2.time") == 2


PROBLEMS = {
    "crash": "it crashed with SIGSEGV (segmentation fault); last phase: run in turns with onnxruntime",
    "hang": "it took more than 5 s; last phase: run in turns with onnxruntime",
    "refuse": "onnxruntime fails on these inputs: odd; last phase: run in turns with onnxruntime",
    "bug": "AssertionError: an axis; last phase: run in turns with onnxruntime",
}


@pytest.mark.parametrize("end", PROBLEMS)
def test_a_model_that_cannot_be_timed_costs_only_its_time(
    end: str, recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    problem, code = f"it cannot be timed: {PROBLEMS[end]}", 70 if end == "bug" else 1
    tell([0.6, end, 0.6], FAST)
    assert run(*CHECK, "--time", "--timeout", "5", "--junit", "zoo.xml") == code
    printed = capsys.readouterr().err
    assert f"error: digits: {problem}\n" in printed and "note: echo, pinned: avx2.time: 61 % → 30 %" in printed
    assert f'classname="digits" name="facts"><failure message="{problem}"' in Path("zoo.xml").read_text()
    assert timed() == ["digits 1", "echo 1", "digits 2", "echo 2", "echo 3"]
    if end == "crash":
        Path(FACTS).write_text(Path(FACTS).read_text().replace("Conv = 1", "Conv = 2"))
        assert run(*UPDATE, "--time", "--json") == 1
        data = json.loads(capsys.readouterr().out)
        assert data["failed"] == {"digits": problem} and data["times"]["digits"]["problem"] == problem
        written = Path(FACTS).read_text()
        assert "Conv = 2" not in written, "the other facts are new"
        assert written.count(LINE) == 1 and "{noise = 2, percent = 30}" in written, "the recorded time stays"


def test_times_in_the_file_of_results_are_kept(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*CHECK, "--time", "--results", "results.jsonl"]
    tell([*SLOW, *SLOW])
    assert run(*arguments) == 1
    lines = [json.loads(line) for line in Path("results.jsonl").read_text().splitlines()]
    whats = ["check, pinned, cpu", *(f"time, avx2, {number}" for number in range(1, 7))]
    assert [line["what"] for line in lines if line["model"] == "digits"] == whats
    assert lines[2]["result"] == "93 % of onnxruntime's time"
    tell(["crash"] * 6)
    assert run(*arguments, "--resume") == 1
    assert timed() == [] and f"error: digits, {DRIFT}\n" in capsys.readouterr().err
    Path("results.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines[:-1]))
    tell([*SLOW, *SLOW])
    assert run(*arguments, "--resume") == 1
    assert timed() == ["digits 6"]
    tell(STEADY)
    assert run(*arguments) == 0
    assert "time, avx2, 4" not in Path("results.jsonl").read_text(), "a second measurement of the former run"


def test_compare_shows_other_times(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tell(STEADY)
    assert run(*CHECK, "--time", "--results", "old.jsonl") == 0
    tell([1.5, 1.5, 1.5, *SLOW])
    assert run(*CHECK, "--time", "--results", "new.jsonl") == 1
    capsys.readouterr()
    assert run("zoo", "compare", "old.jsonl", "new.jsonl") == 0
    row = capsys.readouterr().out.splitlines()[2].strip()
    assert re.split(" {2,}", row) == ["digits", "time, avx2", "share of onnxruntime's time", "61 %", "93 %"]


STARTS = "level.avx2.time = {compile = 4, load = -2, noise = 2, percent = 61}\n"
SOON = [[each, 16, 0.25] for each in STEADY]
LATE = [[each, 33, 1.1] for each in STEADY]
CREATION = "times onnxruntime's creation of a session"
LATER = f"pinned: avx2.time: load 1/4 → 1 {CREATION} (allowed: 1/2)"


@pytest.fixture
def started(recorded: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """The folder `recorded`, whose file has the classes of the compilation and of the load of both models too."""
    Path(FACTS).write_text(Path(FACTS).read_text().replace(LINE, STARTS))
    capsys.readouterr()
    return recorded


def test_update_records_classes_of_the_time_before_a_run(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tell([[0.61, 16, 0.26], [0.6, 12, 0.24], [0.62, 20, 0.1]], SOON)
    assert run(*CHECK, "--time") == 0
    note = f"note: {FACTS} has no time of 2 models at the level avx2 of this processor: `{COMMAND} --time` adds them\n"
    assert capsys.readouterr().err.endswith(note), "the recorded times have no classes"
    assert run(*UPDATE, "--time") == 0
    printed = capsys.readouterr().out
    assert re.search(r"^digits +avx2 +61 % +2 % +16 +1/4$", printed, re.MULTILINE)
    said = f"compile none → 16 {CREATION}; load none → 1/4 {CREATION}"
    assert f"digits, pinned: avx2.time: {said}\n" in printed
    written = Path(FACTS).read_text()
    assert "level.avx2.time = {compile = 4, load = -2, load_noise = 1, noise = 2, percent = 61}\n" in written
    assert STARTS in written


def test_a_later_start_is_timed_again_and_fails(started: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tell([*LATE, *LATE], [[each, 32, 0.5] for each in STEADY])
    assert run(*CHECK, "--time") == 1
    assert timed()[-4:] == ["echo 3", "digits 4", "digits 5", "digits 6"], "a class more is allowed"
    printed = capsys.readouterr().err
    assert f"error: digits, {LATER}\n" in printed and "bisect" not in printed, "no search finds the cause"
    assert printed.endswith(f"  help: if these changes are right, record them: `{COMMAND} --time --only digits`\n")


def test_an_earlier_start_is_noted(started: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tell([[0.61, 4, 0.25]] * 3, SOON)
    assert run(*CHECK, "--time", "--results", "new.jsonl") == 0
    said = f"digits, pinned: avx2.time: compile 16 → 4 {CREATION}"
    assert capsys.readouterr().err.endswith(
        f"note: {said}\n  help: `{COMMAND} --time --only digits` records the shorter times\n"
    )
    assert run("zoo", "compare", FACTS, "new.jsonl") == 0
    row = capsys.readouterr().out.splitlines()[2].strip()
    assert re.split(" {2,}", row) == ["digits", "time, avx2", "compile ÷ session", "16", "4"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["zoo", "run", "--time"], "--time needs the file of facts, which holds the times: add --facts FILE"),
        (["zoo", "update", "--baseline", "b.toml", "--time"], "--time needs the file of facts"),
        ([*CHECK, "--time", "--unpin"], "--time times plans for the input shapes of a case: leave out --unpin"),
        ([*CHECK, "--time", "--device", "cuda"], "leave out --device cuda"),
        ([*UPDATE, "--time", "--device", "emulator"], "leave out --device emulator"),
    ],
)
def test_wrong_options_are_refused(
    arguments: list[str], said: str, zoo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments, "--zoo", ".") == 2
    assert said in " ".join(capsys.readouterr().err.replace("│", "").split())
    assert sorted(path.suffix for path in zoo.iterdir()) == [".json", ".npy", ".npy", ".npz", ".onnx", ".onnx"]


def test_a_real_model_has_a_time(zoo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANDLE_PLAN_ISA", "scalar")
    assert run(*UPDATE, "--time") == 0
    time = read_facts(Path(FACTS)).models["echo"]["pinned"].levels[processor.level_of("scalar")]["time"]
    assert isinstance(time, dict) and time["percent"] > 0 and {"compile", "load"} <= time.keys()
