"""`candlec zoo` with models that crash or hang, with results in a file, and after an interruption."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from compiler.zoo import tasks
from tests.cli.command import run
from tests.running import SOON, children, is_there, wait_for
from tests.tasks import check_or_end

ROOT = Path(__file__).parents[2]
VARIANTS = 4


@pytest.fixture
def models(zoo: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of models. One model crashes, and one model hangs."""
    monkeypatch.setattr(tasks, "check", check_or_end)
    write_index("crash", "first", "hang", "second")
    return zoo


def write_index(*names: str) -> None:
    entries = [{"name": name, "file": "echo.onnx", "cases": ["io.npz"], "tags": [name[0]]} for name in names]
    Path("INDEX.json").write_text(json.dumps(entries))


def shown(capsys: pytest.CaptureFixture[str]) -> Any:
    """The JSON that a command has printed, without times."""
    data = json.loads(capsys.readouterr().out)
    for each in data["outcomes"]:
        del each["seconds"]
    return data


def names_in(data: Any) -> list[str]:
    return list(dict.fromkeys(each["model"] for each in data["outcomes"]))


CRASH = "it crashed with SIGSEGV (segmentation fault); last phase: run: pinned, optimized, 1 thread, io"
HANG = "it took more than 5 s; last phase: compile: pinned, optimized, after the pass sort_nodes"


def test_a_crash_costs_only_its_own_model(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("zoo", "run", "--zoo", ".", "--timeout", "5", "--jobs", "2", "--junit", "zoo.xml") == 1
    printed = capsys.readouterr()
    rows = [line.split()[0] for line in printed.out.splitlines()[2:6]]
    assert rows == ["crash", "first", "hang", "second"], "the order of INDEX.json"
    assert f"✗ crash, {CRASH}\n" in printed.out
    assert "in all runs: 2 of 4 models equal onnxruntime's; 1 timed out; 1 crashed\n" in printed.out
    assert printed.err.count(f"error: crash: {CRASH}\n") == 1 and f"error: hang: {HANG}\n" in printed.err
    assert "help: `candlec zoo run --zoo . --only crash` runs the model alone" in printed.err
    assert "help: `candlec zoo run --zoo . --only hang --timeout SECONDS` gives the model more time" in printed.err
    report = (models / "zoo.xml").read_text()
    assert f'tests="{4 * VARIANTS}" failures="{2 * VARIANTS}"' in report
    assert report.count('<failure message="it crashed with SIGSEGV') == VARIANTS


def test_a_log_shows_the_place_of_each_model(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("zoo", "run", "--zoo", ".", "--only", "crash", "--only", "first", "--jobs", "1", "--json")
    lines = capsys.readouterr().err.splitlines()
    assert (
        lines[0].startswith("crash, pinned: crashed, ") and " s (1 of 2, " in lines[0] and lines[0].endswith(" left)")
    )
    assert lines[1].startswith("first, pinned: equal, ") and lines[1].endswith(" s (2 of 2)")


def test_a_bug_has_its_own_exit_code(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_index("bug", "first")
    assert run("zoo", "run", "--zoo", ".") == 70
    printed = capsys.readouterr()
    assert "error: bug: AssertionError: an axis\n" in printed.err and "Traceback" not in printed.err
    assert "help: this is a bug in the compiler: please report it with the model" in printed.err
    assert "`candlec --verbose zoo run --zoo . --only bug`" in printed.err
    assert "1 of 2 models equals onnxruntime's; 1 crashed" in printed.out
    assert run("--verbose", "zoo", "run", "--zoo", ".") == 70
    assert "Traceback" in capsys.readouterr().err


def test_update_keeps_what_it_knows_of_a_model_that_crashes(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = '[crash]\nreason = "It cancels"\npinned = { verdict = "uncertain", at_most = 2 }\n'
    (models / "zoo.toml").write_text(line)
    write_index("crash", "first")
    assert run("zoo", "update", "--zoo", ".", "--baseline", "zoo.toml") == 1
    assert (models / "zoo.toml").read_text() == line
    assert f"error: crash: {CRASH}" in capsys.readouterr().err


def test_only_and_failed_select_models(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["zoo", "run", "--zoo", ".", "--json", "--results", "results.jsonl"]
    assert run(*arguments, "--only", "crash", "--only", "tag:f") == 1
    assert names_in(shown(capsys)) == ["crash", "first"]
    assert run(*arguments, "--only", "op:Identity", "--only", "second", "--timeout", "5") == 1
    assert names_in(shown(capsys)) == ["crash", "first", "hang", "second"]
    assert run(*arguments, "--only", "failed", "--timeout", "0.2") == 1
    assert names_in(shown(capsys)) == ["crash", "hang"]
    write_index("crash", "first", "second")
    tasks_before = (models / "results.jsonl").read_text().splitlines()
    assert {json.loads(line)["model"] for line in tasks_before} == {"crash", "first", "hang", "second"}
    (models / "results.jsonl").write_text("\n".join(line for line in tasks_before if '"ok": true' in line) + "\n")
    assert run(*arguments, "--only", "failed") == 1
    assert "no model of the folder failed in the file of results" in capsys.readouterr().err


def test_the_former_option_selects_models(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("zoo", "run", "--zoo", ".", "--model", "first", "--json") == 0
    printed = capsys.readouterr()
    assert "warning: --model is deprecated in this command: use --only" in printed.err
    assert names_in(json.loads(printed.out)) == ["first"]


def test_resume_runs_what_has_no_result(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["zoo", "run", "--zoo", ".", "--json", "--results", "results.jsonl", "--timeout", "5"]
    assert run(*arguments) == 1
    undisturbed = shown(capsys)
    lines = (models / "results.jsonl").read_text().splitlines(keepends=True)
    assert [json.loads(line)["ok"] for line in sorted(lines)] == [False, True, False, True]
    (models / "results.jsonl").write_text("".join(lines[:2]) + lines[2][:40])
    assert run(*arguments, "--resume") == 1
    printed = capsys.readouterr()
    assert "2 of 4 models have results in results.jsonl\n" in printed.err
    assert printed.err.count(" pinned: ") == 2
    data = json.loads(printed.out)
    for each in data["outcomes"]:
        del each["seconds"]
    assert data == undisturbed
    assert run(*arguments[:-2], "--resume", "--timeout", "0.2") == 1
    assert capsys.readouterr().err.count(" pinned: ") == 1, "the model that timed out, because the limit has changed"


FIRST = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from compiler.cli import main
from compiler.zoo import tasks
from tests.tasks import check_the_first
if __name__ == "__main__":
    tasks.check = check_the_first
    main(sys.argv[1:])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the test finds child processes in /proc")
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)])
def test_a_run_that_was_ended_can_be_resumed(
    sent: signal.Signals, code: int, zoo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["second", "first", "third", "fourth"]
    write_index(*names)
    Path("hanging.py").write_text(FIRST)
    arguments = ["zoo", "run", "--zoo", ".", "--results", "results.jsonl", "--jobs", "2"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "hanging.py", *arguments]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert wait_for(lambda: Path("results.jsonl").exists() and "\n" in Path("results.jsonl").read_text())
            working = children(process.pid)
            process.send_signal(sent)
            _, said = process.communicate(timeout=SOON)
        finally:
            process.kill()
    assert process.returncode == code
    assert wait_for(lambda: not any(map(is_there, working)))
    assert len(Path("results.jsonl").read_text().splitlines()) == 1
    if sent == signal.SIGINT:
        assert "results.jsonl has the results of 1 of 4 models: the same command with --resume continues" in said
    assert run(*arguments, "--json") == 0
    undisturbed = shown(capsys)
    lines = Path("results.jsonl").read_text().splitlines(keepends=True)
    Path("results.jsonl").write_text(lines[0])
    assert run(*arguments, "--json", "--resume") == 0
    printed = capsys.readouterr()
    assert "1 of 4 models have results in results.jsonl\n" in printed.err
    data = json.loads(printed.out)
    for each in data["outcomes"]:
        del each["seconds"]
    assert data == undisturbed


@pytest.mark.parametrize(
    ("options", "code", "problem"),
    [
        (["--resume"], 2, "--resume needs the file of the former results: add --results FILE"),
        (["--resume", "--results", "r.jsonl", "--only", "failed"], 2, "--only failed checks models again: leave out"),
        (["--only", "failed"], 1, "only a file of results says which models failed: add --results FILE"),
        (["--only", "x"], 1, "the folder has no model x"),
        (["--jobs", "0"], 2, "'0' is not a whole number from 1 to 1024"),
        (["--timeout", "0"], 2, "'0' is not a number above 0"),
        (["--memory-limit", "much"], 2, "'much' is not a size below 10^18 bytes"),
        (["--results", "INDEX.json"], 1, "INDEX.json is not a file of results of `candlec zoo`"),
        (["--results", "new.xml", "--junit", "new.xml"], 2, "new.xml is the --junit of this command"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else None,
)
def test_wrong_options_are_refused(
    options: list[str], code: int, problem: str, models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in models.iterdir() if path.is_file()}
    assert run("zoo", "run", "--zoo", ".", *options) == code
    assert problem in capsys.readouterr().err
    assert {path: path.read_bytes() for path in models.iterdir() if path.is_file()} == before


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux reports the memory of a process")
def test_a_model_has_a_limit_of_memory(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_index("large")
    assert run("zoo", "run", "--zoo", ".", "--memory-limit", "1M") == 1
    printed = capsys.readouterr()
    assert "1 ran out of memory" in printed.out
    assert "error: large: it took " in printed.err and "its limit is 1 MB" in printed.err
    assert "--only large --memory-limit SIZE` gives the model more memory" in printed.err
    write_index("first")
    assert run("zoo", "run", "--zoo", ".", "--memory-limit", "4G") == 0
