"""`candlec zoo run` in a job of GitHub: the summary in Markdown, and annotations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import run

PROBLEM = "it cannot be checked: there is no file gone.npz"


@pytest.fixture(autouse=True)
def models(zoo: Path) -> None:
    """A folder with a model that is equal and a model without its inputs."""
    entries = [{"name": name, "file": "echo.onnx", "cases": [case]} for name, case in CASES.items()]
    Path("INDEX.json").write_text(json.dumps(entries))


CASES = {"echo": "io.npz", "odd: 100%": "gone.npz"}


def test_a_summary_begins_with_the_problems(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("zoo", "run", "--zoo", ".", "--summary", "page.md") == 1
    lines = Path("page.md").read_text().splitlines()
    assert lines[:7] == [
        "# ., pinned, cpu",
        "",
        "In all runs: 1 of 2 models equals onnxruntime's; 1 could not be checked.",
        "",
        "## Problems",
        "",
        f"- **odd: 100%**: {PROBLEM}",
    ]
    assert [line.rpartition(" | ")[0] for line in lines[-2:]] == [
        "| ✓ | echo | 1 | equal | 0",
        "| ✗ | odd: 100% | 1 | failed | ",
    ]
    assert run("zoo", "run", "--zoo", ".", "--only", "echo", "--summary", "page.md") == 0
    assert "Problems" not in Path("page.md").read_text()
    assert run("zoo", "run", "--zoo", ".", "--summary", "INDEX.json") == 2
    assert "INDEX.json is an input of this command" in capsys.readouterr().err


def test_a_job_shows_each_problem_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("zoo", "run", "--zoo", ".") == 1
    assert "::error" not in capsys.readouterr().err
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    Path("zoo.facts.toml").write_text('device = "cpu"\n[model.echo.pinned]\nstatus = "different"\n')
    assert run("zoo", "run", "--zoo", ".", "--facts", "zoo.facts.toml", "--json") == 1
    printed = capsys.readouterr()
    assert not json.loads(printed.out)["ok"], "the output is still JSON"
    found = [line for line in printed.err.splitlines() if line.startswith("::error")]
    assert found.count(f"::error title=odd%3A 100%25::{PROBLEM}") == 1
    assert "::error title=echo::pinned: status: different → equal" in found
