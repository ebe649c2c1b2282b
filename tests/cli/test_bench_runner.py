"""`candlec bench` with models that crash, hang or take memory, with results in a file, and after an interruption."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import onnx
import onnx.parser
import pytest

from compiler.zoo import tasks
from tests.benching import bench_or_end
from tests.cli.command import MODEL, run

BENCH = ["bench", "--zoo", "."]
KEPT = [*BENCH, "--json", "--results", "times.jsonl", "--timeout", "2"]
CRASH = "it crashed with SIGSEGV (segmentation fault); last phase: run with 2 threads"
HANG = "it took more than 2 s; last phase: run with 2 threads"


@pytest.fixture
def models(zoo: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of models. One model crashes, and one hangs. `tests.benching` makes up their times."""
    monkeypatch.setattr(tasks, "bench", bench_or_end)
    write_index("crash", "first", "hang")
    return zoo


def write_index(*names: str) -> None:
    entries = [{"name": name, "file": "echo.onnx", "cases": ["io.npz"], "tags": [name[0]]} for name in names]
    Path("INDEX.json").write_text(json.dumps(entries))


def printed(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def timed() -> list[str]:
    """The models that were timed, in order. Removes the log."""
    log = Path("timed.log")
    names = log.read_text().splitlines() if log.exists() else []
    log.unlink(missing_ok=True)
    return names


def test_a_crash_costs_only_its_own_times(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*BENCH, "--timeout", "2", "--markdown", "table.md") == 1
    shown = capsys.readouterr()
    assert [line.split()[0] for line in shown.out.splitlines()[2:5]] == ["crash", "first", "hang"], "with one thread"
    assert "1 thread, 3 models: 0.61" in shown.out
    lines = shown.err.splitlines()
    assert lines[0].startswith("crash, bench: crashed, ") and " s (1 of 3, " in lines[0] and lines[0].endswith(" left)")
    assert lines[1].startswith("first, bench: 61 % of onnxruntime's time, ") and lines[2].endswith(" s (3 of 3)")
    assert lines[3:5] == [f"error: crash: {CRASH}", f"error: hang: {HANG}"]
    assert "help: `candlec bench --zoo . --only crash` runs the model alone" in shown.err
    assert "help: `candlec bench --zoo . --only hang --timeout SECONDS` gives the model more time" in shown.err
    page = (models / "table.md").read_text()
    assert page.endswith(f"- ✗ crash: {CRASH}\n- ✗ hang: {HANG}\n") and "| first | 1 | 0.610 ms" in page


def test_resume_times_what_has_no_result(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_index("crash", "hang", "first")
    assert run(*KEPT) == 1
    whole = printed(capsys)
    assert (whole["ok"], whole["failed"]) == (False, {"crash": CRASH, "hang": HANG})
    assert [each["ratios"] for each in whole["timings"]] == [{"onnxruntime": 0.61}] * 3
    lines = Path("times.jsonl").read_text().splitlines(keepends=True)
    assert [json.loads(line)["result"] for line in lines] == ["crashed", "timed out", "61 % of onnxruntime's time"]
    Path("times.jsonl").write_text("".join(lines[:2]) + lines[2][:40])
    assert timed() == ["crash", "hang", "first"]
    assert run(*KEPT, "--resume") == 1
    assert timed() == ["first"]
    assert printed(capsys)["timings"] == whole["timings"]
    assert run(*KEPT, "--resume", "--threads", "1", "--only", "first") == 0
    assert timed() == ["first"], "another effort"
    assert run(*KEPT, "--only", "failed", "--timeout", "0.2") == 1
    assert timed() == ["crash", "hang"]
    assert run("zoo", "compare", "times.jsonl", "times.jsonl") == 1
    assert "times.jsonl has only times of `candlec bench`" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux reports the memory of a process")
def test_a_process_of_a_model_has_its_limit_of_memory(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_index("large")
    assert run(*BENCH, "--memory-limit", "150M") == 1
    shown = capsys.readouterr().err
    assert "error: large: it took " in shown and "its limit is 150 MB; last phase: run with 2 threads" in shown
    assert "--only large --memory-limit SIZE` gives the model more memory" in shown


def test_several_files_have_processes_too(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("bug", "first"):
        Path(f"{name}.onnx").write_bytes(Path("echo.onnx").read_bytes())
    assert run("bench", "bug.onnx", "first.onnx") == 70
    shown = capsys.readouterr()
    assert "error: bug: AssertionError: an axis; last phase: run with 2 threads\n" in shown.err
    assert "`candlec --verbose bench bug.onnx`" in shown.err
    assert "Without --input, the inputs of first are random (seed 0): x [1, 3]\n" in shown.err
    assert "first" in shown.out


def test_a_single_file_has_a_process_if_it_has_a_limit(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quick = ["--threads", "1", "--seconds", "0.01", "--against", "nothing"]
    assert run("bench", "echo.onnx", *quick) == 0
    assert "bench: timed, " not in capsys.readouterr().err
    assert run("bench", "echo.onnx", "--size", "batch=2", *quick, "--results", "times.jsonl") == 0
    shown = capsys.readouterr().err
    assert "echo, bench: timed, " in shown and "x [2, 3]" in shown
    [line] = Path("times.jsonl").read_text().splitlines()
    task = "bench, 1 threads, 0.01 s, 1 processes, cpu, beside nothing, inputs random batch=2"
    assert json.loads(line)["what"] == task


def test_a_wrong_size_costs_only_the_model_of_its_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(onnx.parser.parse_model(MODEL.replace("batch", "rows")), "other.onnx")
    quick = ["--threads", "1", "--seconds", "0.01", "--against", "nothing", "--json"]
    assert run("bench", "echo.onnx", "other.onnx", "--size", "batch=2", *quick) == 1
    data = printed(capsys)
    assert [each["model"] for each in data["timings"]] == ["echo"]
    assert "batch" in data["failed"]["other"]


@pytest.mark.parametrize(
    ("options", "code", "problem"),
    [
        (["--jobs", "2"], 2, "No such option"),
        (["--resume"], 2, "--resume needs the file of the former results: add --results FILE"),
        (["--only", "failed"], 1, "only a file of results says which models failed: add --results FILE"),
        (["--results", "INDEX.json"], 1, "INDEX.json is not a file of results of `candlec zoo`"),
        (["--results", "x.md", "--markdown", "x.md"], 2, "x.md is the --markdown of this command"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else None,
)
def test_wrong_options_are_refused(
    options: list[str], code: int, problem: str, zoo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*BENCH, *options) == code
    assert problem in capsys.readouterr().err
