"""`candlec batch`: its options, its summary, its exit codes, and Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.batch.plans import LINES, LOOKUP, bad_rows, plan_of, ramp, written
from tests.cli.command import run
from tests.running import SOON
from tests.test_interrupt import BODIES, COMMAND

ROOT = Path(__file__).parent.parent.parent
ARGUMENTS = ("batch", "lookup.plan", "--input", "rows.npz", "--output", "out")


@pytest.fixture(autouse=True)
def lookup(folder: Path) -> None:
    """Rows for a plan that looks numbers up. One of them is not in its table."""
    plan_of(LOOKUP).save("lookup.plan")
    np.savez("rows.npz", i=np.array([0, 1, 5, 2]))


def test_batch_writes_parts_and_counts_rows(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*ARGUMENTS) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("3 of 4 rows in 1 part, ")
    assert shown.out.endswith(": out\n")
    progress, bad = shown.err.splitlines()
    assert progress.startswith("part-000000.npz: 4 of 4 rows, ")
    assert bad == "1 bad row: out/_bad_rows.jsonl has the reasons"
    rows, values = written(Path("out"))
    assert (rows, values.tolist()) == ([0, 1, 3], [10, 20, 30])


def test_strict_makes_bad_rows_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*ARGUMENTS, "--fail-on-bad-rows", "--json") == 1
    summary = json.loads(capsys.readouterr().out)
    assert [summary[key] for key in ("ok", "rows", "written", "bad", "known", "parts", "batch", "device")] == [
        *(False, 4, 3, 1, 0),
        *(1, 32, "cpu"),
    ]
    assert [row for row, _ in bad_rows(Path("out"))] == [2]


def test_resume_shows_what_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*ARGUMENTS) == 0
    assert run(*ARGUMENTS) == 1
    assert capsys.readouterr().err.endswith("error: out is not empty: name a new folder, or resume (--resume)\n")
    assert run(*ARGUMENTS, "--resume") == 0
    shown = capsys.readouterr()
    assert "4 of 4 rows have results\n" in shown.err
    assert "(4 rows from an earlier run): out" in shown.out


def test_options_choose_columns_and_outputs() -> None:
    plan_of(LINES.replace("{", "{ z = Neg(x) ").replace("y) {", "y, float[batch, 2] z) {")).save("two.plan")
    np.savez("points.npz", points=ramp(3).astype(np.float64))
    command = ("batch", "two.plan", "--input", "points.npz", "--output", "out", "--map", "x=points", "--cast")
    assert (
        run(*command, "--select", "z", "--batch", "2", "--part-rows", "2", "--threads", "1", "--max-memory", "1MB") == 0
    )
    with np.load("out/part-000001.npz") as part:
        assert sorted(part) == ["source_file", "source_files", "source_row", "z"]
    np.testing.assert_array_equal(written(Path("out"), "z")[1], -ramp(3))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--map", "i"], "'i' is not INPUT=COLUMN\n"),
        (["--map", "i=a", "--map", "i=b"], "'i' appears twice: give one column\n"),
        (["--batch", "0"], "'0' is not a whole number from 1\n"),
    ],
)
def test_wrong_options_are_explained(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*ARGUMENTS, *arguments) == 2
    assert capsys.readouterr().err.endswith(said)


def test_a_missing_column_lists_the_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*ARGUMENTS, "--map", "i=k") == 1
    said = "error: rows.npz: there is no column 'k': its columns are i\n  help: name the column with --map i=COLUMN\n"
    assert capsys.readouterr().err == said


FIXED = "(float[4, 2] x) => (float[4, 2] y, float[3] h) <float[3] c = {1, 2, 3}> { y = Neg (x) h = Neg (c) }"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--select", "y", "--batch", "8"], "leave out --batch, or compile the model for this number of rows\n"),
        ([], "which is not the number of rows\n  help: choose other outputs with --select\n"),
    ],
)
def test_an_error_of_a_setting_names_its_option(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    plan_of(FIXED).save("fixed.plan")
    np.savez("pairs.npz", x=np.ones((4, 2), np.float32))
    assert run("batch", "fixed.plan", "--input", "pairs.npz", "--output", "out", *arguments) == 1
    assert capsys.readouterr().err.endswith(said)


# The runs of a batch take a tenth of a second, and the signal comes in the second one.
SLOW = f"""(float[batch] x) => (float[batch] y) <int64 n = {{200000}}> {{
    y = Loop (n, , x) <body = b (int64 i, bool c, float[batch] a) => (bool d, float[batch] e) {BODIES["a step"]}>
}}"""


def test_ctrl_c_ends_after_the_batch() -> None:
    plan_of(SLOW).save("slow.plan")
    np.savez("slow.npz", x=np.arange(4000, dtype=np.float32))
    arguments = ["batch", "slow.plan", "--input", "slow.npz", "--output", "slow", "--batch", "1", "--part-rows", "1"]
    command, environment = [sys.executable, "-c", COMMAND, *arguments], {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        try:
            assert process.stderr.readline().startswith("part-000000.npz: 1 of 4,000 rows, ")
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=SOON)
        finally:
            process.kill()
    assert process.returncode == 130
    assert said.endswith("slow: the same command with --resume continues\ninterrupted\n")
    rows, values = written(Path("slow"))
    assert rows == [*range(len(rows))] and 1 < len(rows) < 4000
    np.testing.assert_array_equal(values, np.arange(len(rows)) + 200_000)
