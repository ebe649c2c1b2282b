"""The command that compares the ledger with the results of the tests. It writes the ledger only with `--write`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import compiler
from compiler.accuracy.to_float64 import to_float64, widened
from tests.onnx_backend import ledger
from tests.onnx_backend.cases import Differs, data_sets, load_cases

LINE = 'wrong = { off = 0.0012, reason = "rounding, see there" }\n'
STALE = f'gone = "it was"\ngood = "it failed"\n{LINE}'
FRESH = f'odd = "ValueError: it is odd"\n{LINE}'
FAILURES = {"odd": ValueError("it is odd"), "wrong": Differs("1 is not 2", 0.00112)}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An outdated ledger of four tests. One does not exist, one passes, and a failing test is missing."""

    def run(name: str, options: compiler.Options) -> None:
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


def test_lowered_tests_are_expected_to_pass(file: Path) -> None:
    file.write_text('good = "3-D pooling is not supported"\n' + FRESH)
    done = CliRunner().invoke(ledger.command, ["--lower-3d"])
    assert (done.exit_code, done.output) == (0, "1 of 3 pass\n")
    assert CliRunner().invoke(ledger.command).output.startswith("good: it passes\n")
    assert CliRunner().invoke(ledger.command, ["--lower-3d", "--write"]).exit_code == 2


@pytest.mark.parametrize("argument", ["--help", "--wrong"])
def test_nothing_else_runs_or_writes(file: Path, argument: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "load_cases", lambda: pytest.fail("it runs the tests"))
    assert CliRunner().invoke(ledger.command, [argument]).exit_code == (0 if argument == "--help" else 2)
    assert file.read_text() == STALE


@pytest.mark.parametrize(
    ("line", "error", "said"),
    [
        (ledger.Line("it is", 0.002), Differs("", 0.001), ""),
        (ledger.Line("it is", 0.002), Differs("", 0.003), "it is off by 0.003, and its line allows 0.002"),
        (ledger.Line("it is", 0.002), Differs("", float("nan")), "it is off by nan, and its line allows 0.002"),
        (ledger.Line("it is", 0.002), ValueError("odd"), "it fails in another way than its line says: ValueError: odd"),
        (
            ledger.Line("it is"),
            Differs("1 is not 2", 0.001),
            "it fails in another way than its line says: Differs: 1 is",
        ),
        (ledger.Line("it is"), ValueError("odd"), ""),
    ],
)
def test_a_line_tells_how_its_test_fails(line: ledger.Line, error: Exception, said: str) -> None:
    assert ledger.contradiction(line, error).startswith(said)
    assert bool(ledger.contradiction(line, error)) is bool(said)


ROUNDED = [name for name, line in ledger.read().items() if line.off is not None and "exact" in line.reason]


@pytest.mark.parametrize("name", ROUNDED)
def test_a_result_is_nearer_to_the_exact_one_where_its_line_says_so(name: str) -> None:
    case = load_cases()[name]
    session = compiler.load(compiler.compile(case.model), threads=1)
    exact = compiler.load(compiler.compile(to_float64(case.model), compiler.Options(optimize=False)), threads=1)
    for inputs, expected in data_sets(case, case.model):
        given = dict(zip([info.name for info in session.inputs], inputs, strict=True))
        outputs = session.run(given).values()
        truths = exact.run({name: widened(value) for name, value in given.items()}).values()
        errors = [(_furthest(a, c), _furthest(b, c)) for a, b, c in zip(outputs, expected, truths, strict=True)]
        assert any(ours != theirs for ours, theirs in errors)
        assert all(ours <= theirs for ours, theirs in errors)


def test_all_rounding_is_listed() -> None:
    assert len(ROUNDED) >= 10


def _furthest(found: np.ndarray, truth: np.ndarray) -> float:
    return float(np.abs(found.astype(np.float64) - truth).max())
