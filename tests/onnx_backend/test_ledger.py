"""The command that compares the ledger with what happens: it writes only when it is told to."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.onnx_backend import ledger

STALE = 'gone = "it was"\ngood = "it failed"\nwrong = "rounding, see there"\n'
FRESH = 'odd = "ValueError: it is odd"\nwrong = "rounding, see there"\n'
FAILURES = {"odd": ValueError("it is odd"), "wrong": AssertionError("1 is not 2")}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ledger of four tests, of which one is unknown and one passes, and one that fails is missing."""

    def run(name: str) -> None:
        if name in FAILURES:
            raise FAILURES[name]

    monkeypatch.setattr(ledger, "FILE", tmp_path / "failing.toml")
    monkeypatch.setattr(ledger, "load_cases", lambda: {name: name for name in ("good", "odd", "wrong")})
    monkeypatch.setattr(ledger, "run_case", run)
    ledger.FILE.write_text(STALE)
    return ledger.FILE


@pytest.mark.parametrize("arguments", [[], ["--check"]])
def test_check_fails_and_writes_nothing(file: Path, arguments: list[str]) -> None:
    done = CliRunner().invoke(ledger.command, arguments)
    assert done.exit_code == 1
    assert done.output.splitlines()[:4] == [
        "gone: there is no such test",
        "good: it passes",
        "odd: it fails, and has no line: ValueError: it is odd",
        "1 of 3 pass",
    ]
    assert file.read_text() == STALE


def test_write_makes_it_so(file: Path) -> None:
    assert CliRunner().invoke(ledger.command, ["--write"]).exit_code == 0
    assert file.read_text() == FRESH
    assert CliRunner().invoke(ledger.command).exit_code == 0


@pytest.mark.parametrize("argument", ["--help", "--wrong"])
def test_nothing_else_runs_or_writes(file: Path, argument: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "load_cases", lambda: pytest.fail("it runs the tests"))
    assert CliRunner().invoke(ledger.command, [argument]).exit_code == (0 if argument == "--help" else 2)
    assert file.read_text() == STALE
