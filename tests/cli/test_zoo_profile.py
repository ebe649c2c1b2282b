"""`candlec zoo run --profile`: the time and the memory of each step, in the file of results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compiler.processes.child import Channel
from compiler.zoo import tasks
from compiler.zoo.index import read_index
from compiler.zoo.results import read_results
from compiler.zoo.task_arguments import Profile
from tests.cli.command import run
from tests.tasks import check_at_once, profile_or_crash

MODELS = Path(__file__).parents[2] / "models"
RUN = ["zoo", "run", "--zoo", ".", "--results", "zoo.jsonl", "--profile"]


def profile(shapes: Any) -> Any:
    """The profile of the network `digits`, made in this process."""
    [entry] = read_index(MODELS)
    return tasks.profile(Profile(entry, shapes), Channel(lambda *_: None))


@pytest.mark.parametrize("shapes", ["pinned", "unpinned"])
def test_a_profile_has_each_step(shapes: str) -> None:
    made = profile(shapes)
    assert json.loads(json.dumps(made)) == made
    assert (made["threads"], made["runs"]) == (1, 10) and made["level"]
    assert made["peaks"]["operations"] > 0 and made["peaks"]["bytes"] > 0
    convolutions = [step for step in made["steps"] if step["op"] == "Conv"]
    assert [step["layer"] for step in convolutions][:2] == ["stem", "down"]
    for step in convolutions:
        assert step["calls"] == 10 and step["seconds"] > 0 and step["operations"] > 0 and step["alive_bytes"] > 0
        assert "Conv(" in step["origin"] and step["kernel"] and step["depth"] == 0 and step["host"] is None


@pytest.fixture
def models(zoo: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with three models. `tests.tasks` makes up their checks and profiles."""
    monkeypatch.setattr(tasks, "check", check_at_once)
    monkeypatch.setattr(tasks, "profile", profile_or_crash)
    entries = [{"name": name, "file": "echo.onnx", "cases": ["io.npz"]} for name in ("echo", "crash", "refused")]
    Path("INDEX.json").write_text(json.dumps(entries))
    return zoo


def test_only_models_with_a_plan_are_profiled(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*RUN, "--only", "echo", "--only", "refused", "--json") == 1
    printed = capsys.readouterr()
    assert "echo, profile: profiled, " in printed.err and "refused, profile" not in printed.err
    profiles = [line for line in read_results(Path("zoo.jsonl")) if line["what"] == "profile, pinned, cpu"]
    assert [(line["model"], line["ok"]) for line in profiles] == [("echo", True)]
    assert run(*RUN, "--only", "echo", "--resume") == 0
    assert "1 of 1 models have results in zoo.jsonl" in capsys.readouterr().err
    assert run("zoo", "compare", "zoo.jsonl", "zoo.jsonl") == 0


def test_a_profile_that_crashes_is_an_error(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*RUN, "--only", "crash", "--junit", "zoo.xml") == 1
    printed = capsys.readouterr().err
    problem = "it cannot be profiled: it crashed with SIGSEGV (segmentation fault); last phase: run step by step"
    assert f"error: crash: {problem}\n" in printed
    assert "`candlec zoo run --zoo . --profile --results zoo.jsonl --only crash` runs the model alone" in printed
    assert problem in Path("zoo.xml").read_text()
    assert [line["ok"] for line in read_results(Path("zoo.jsonl"))] == [True, False]


def test_a_profile_needs_a_file(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*RUN[:4], "--profile") == 2
    assert "--profile writes the times of the steps to the file of results: add --results FILE" in (
        capsys.readouterr().err
    )
