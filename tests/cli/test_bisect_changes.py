"""`candlec bisect` with a good side: the pass that changes a plan, and the first step that differs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

from compiler.bisect import ratio
from compiler.bisect.ratio import Run
from tests import broken_passes
from tests.cli.command import run

DIM = ("--dim", "n=2")


@pytest.fixture
def model(folder: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A working folder with a model, its inputs and its plan."""
    onnx.save(broken_passes.model(), "m.onnx")
    np.savez("x.npz", x=np.array([[1.5, -2.5, 3, 4], [0, 1, -2, 3]], np.float32))
    assert run("compile", "m.onnx", *DIM, "-o", "old.plan") == 0
    capsys.readouterr()
    return folder


def let_bytes_be_time(monkeypatch: pytest.MonkeyPatch, spread: float = 0.0) -> None:
    """The bytes of a plan's run stand for its time. The times of every other turn are longer."""
    count = 0

    def timed(each: Run, _seconds: float) -> list[float]:
        nonlocal count
        count += 1
        return [each.func.__self__.prepared().peak_bytes * (1 + spread * (count % 2))]  # type: ignore[attr-defined]

    monkeypatch.setattr(ratio, "timed_runs", timed)
    monkeypatch.setattr(ratio, "REST", 0)


def test_more_memory(model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("bisect", "m.onnx", "--what", "memory", *DIM) == 0
    assert capsys.readouterr().out == (
        "nothing is wrong with the plan of m.onnx: "
        "the peak memory of a run is 32 bytes, that of the plan without optional passes 32 bytes\n"
    )
    broken_passes.let_pass_enlarge(monkeypatch, "merge_reshapes")
    assert run("bisect", "m.onnx", "--what", "memory", "--good", "old.plan", *DIM) == 1
    printed = capsys.readouterr().out
    assert "the plan of m.onnx has changed: the peak memory of a run is 512 bytes, that of old.plan 32" in printed
    assert "the pass: merge_reshapes: the memory is above the bound as soon as it runs\n" in printed
    assert "  reshapes simplified: 1\n  --> Neg(neg)\n" in printed
    assert "Concat   Neg(neg)\n  288 bytes while it runs\n" in printed


def test_sizes_are_needed(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("bisect", "m.onnx", "--what", "memory") == 1
    assert "of the model depends on n: fix its sizes with --dim n=N" in capsys.readouterr().err


def test_other_steps_as_json(model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    broken_passes.let_pass_enlarge(monkeypatch, "merge_reshapes")
    assert run("bisect", "m.onnx", "--what", "steps", "--good", "old.plan", *DIM, "--json") == 1
    shown = json.loads(capsys.readouterr().out)
    assert (shown["ok"], shown["what"], shown["pass"]["name"]) == (False, "steps", "merge_reshapes")
    assert (shown["step"]["op"], shown["step"]["origin"]) == ("Concat", "Neg(neg)")
    assert {"fact": "steps", "before": {"Concat": 0, "Split": 0}, "after": {"Concat": 1, "Split": 1}} in shown[
        "changes"
    ]


def test_longer_time(model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("bisect", "m.onnx", "--what", "time", "--good", "old.plan", "--input", "x.npz", *DIM)
    let_bytes_be_time(monkeypatch)
    assert run(*arguments) == 0
    assert "a run takes 1.00 (1.00 to 1.00) × the time of old.plan\n" in capsys.readouterr().out
    broken_passes.let_pass_enlarge(monkeypatch, "merge_reshapes")
    assert run(*arguments) == 1
    printed = capsys.readouterr().out
    assert "the plan of m.onnx has changed: a run takes 16.00 (16.00 to 16.00) × the time of old.plan\n" in printed
    assert "the pass: merge_reshapes: a run takes more than 4.00 × the time as soon as it runs\n" in printed
    assert "Concat   Neg(neg)\n  the plan before this pass has no such step\n" in printed


def test_noise_is_told(model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    let_bytes_be_time(monkeypatch, 0.5)
    assert run("bisect", "m.onnx", "--what", "time", "--good", "old.plan", "--input", "x.npz", *DIM) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(
        "unclear: a run takes 1.50 (0.67 to 1.50) × the time of old.plan: the noise hides whether"
    )
    assert "--threads 1" in printed


def test_wrong_results_by_an_older_plan(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("bisect", "m.onnx", "--good", "old.plan", "--input", "x.npz", *DIM)
    assert run(*arguments) == 0
    assert capsys.readouterr().out.endswith(": 1 of 1 output equals old.plan's\n")
    broken_passes.let_pass_change_constants(monkeypatch, "merge_reshapes")
    assert run(*arguments) == 1
    printed = capsys.readouterr().out
    assert "the plan of m.onnx is wrong: 0 of 1 output equals old.plan's; 1 is not equal\n" in printed
    assert "as soon as this optional pass runs: merge_reshapes\n" in printed
    assert "Add(shift)" in printed.partition("first to differ")[2]


def test_the_plan_of_another_model_is_told(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = broken_passes.model()
    other.graph.name = "other"
    onnx.save(other, "other.onnx")
    assert run("bisect", "other.onnx", "--what", "steps", "--good", "old.plan", *DIM) == 0
    assert "warning: old.plan is not the plan of other.onnx, or the model has changed\n" in capsys.readouterr().err


def test_facts_need_an_index(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("facts.toml").write_text('device = "cpu"\n')
    arguments = ("bisect", "m.onnx", "--what", "steps", "--facts", "facts.toml")
    assert run(*arguments) == 1
    said = (
        "no INDEX.json in a folder above m.onnx lists it, so its recorded facts are unknown: name the folder with --zoo"
    )
    assert said in capsys.readouterr().err
    Path("INDEX.json").write_text(json.dumps([{"name": "m", "file": "m.onnx", "cases": ["x.npz"]}]))
    assert run(*arguments) == 1
    assert "facts.toml has no pinned facts of the model m" in capsys.readouterr().err
    assert run(*arguments, "--zoo", ".", "--unpin") == 1
    assert "facts.toml has no unpinned facts of the model m" in capsys.readouterr().err
    Path("INDEX.json").write_text("[]")
    assert run(*arguments) == 1
    assert "INDEX.json is not a valid index of models" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--what", "memory", "--tolerance", "1"],
            "--what memory compares no values: leave out --output and --tolerance",
        ),
        (["--what", "steps"], "--what steps needs a good side: give --good OLD.plan or --facts FILE"),
        (["--what", "steps", "--good", "m.onnx"], "m.onnx is no plan: compile it with the previous version"),
        (["--what", "crash", "--good", "old.plan"], "--what crash needs no good side: leave out --good"),
        (
            ["--what", "time", "--good", "old.plan", "--facts", "f.toml"],
            "--good and --facts are two good sides: give one",
        ),
        (["--facts", "f.toml"], "--facts records no values: use it with --what memory, time or steps, or give --good"),
        (["--what", "memory", "--facts", "f.toml", "--dim", "n=2"], "--facts takes the cases of the zoo: leave out"),
        (["--what", "time", "--facts", "f.toml", "--input", "x.npz"], "--facts takes the cases of the zoo: leave out"),
        (["--what", "memory", "--input", "x.npz"], "--what memory runs no plan: leave out --input, --size and --seed"),
        (["--what", "time", "--unpin"], "--zoo and --unpin are for --facts: leave them out"),
        (["--what", "time", "--facts", "f.toml", "--unpin"], "only plans with fixed shapes have times"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_wrong_arguments(arguments: list[str], said: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(broken_passes.model(), "m.onnx")
    assert run("bisect", "m.onnx", *arguments) == 2
    assert said in capsys.readouterr().err.replace("\n", " ")
