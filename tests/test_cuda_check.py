"""The three calls on a GPU, on the emulator: their pages, their exit codes, and how they end early."""

from __future__ import annotations

import importlib.util
import json
import random
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.gpu_bundle import SANITIZER, called, command, environment, tool, write_bundle

NEEDED = pytest.mark.skipif(
    importlib.util.find_spec("compiler._runtime_emulator") is None, reason="the emulator is not built: `make emulator`"
)
CALLS = ("smoke", "compare", "tune")
PAGE = "# On a GPU\n\nas it was\n"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of small plans, a network in PyTorch, and what looks like compute-sanitizer."""
    folder = tmp_path_factory.mktemp("check")
    program = folder / "compute-sanitizer"
    program.write_text(SANITIZER)
    program.chmod(0o755)
    return write_bundle(folder / "bundle")


def check_whole(out: Path, call: str) -> dict[str, object]:
    """The JSON file of a call, both of whose files are whole."""
    page = (out / f"cuda-{call}.md").read_text()
    assert page.startswith(f"# On a GPU: {call}\n") and page.endswith("\n")
    data: dict[str, object] = json.loads((out / f"cuda-{call}.json").read_text())
    titles = [section.title for section in tool("gpu.call").CALLS[call].sections]
    assert re.findall("^## (.*)", page, re.MULTILINE) == titles
    assert [section["title"] for section in data["sections"]] == titles  # type: ignore[attr-defined]
    files = list(out.iterdir())
    assert len(files) <= 8
    assert all(file.stat().st_size < 16 << 20 for file in files)
    return data


@NEEDED
@pytest.mark.parametrize("call", CALLS)
def test_each_call_alone(bundle: Path, tmp_path: Path, call: str) -> None:
    done = called(bundle, tmp_path, call)
    page = (tmp_path / f"cuda-{call}.md").read_text()
    assert done.returncode == 0, page + done.stderr
    assert "✗" not in page
    data = check_whole(tmp_path, call)
    assert data["wrong"] == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == [f"cuda-{call}.json", f"cuda-{call}.md"]
    assert "`make cuda-bundle` made it at v1" in page and "2 hours old" in page
    wanted = {
        "smoke": [r"^- ✓ the first process: [\d.]+ s until the first result of softmax", r"^\| product \| ✓ \|"],
        "compare": [
            r"^3 of 3 tests of operators equal the processor's results",
            r"^\| expand \| ✓ \| 1 \|",
            r"^\| network-b1 \| ✓ \|",
            r"^- ✓ two runs give the same bits",
        ],
        "tune": [
            r"^\| racecheck \| ✓ \| 1 of 1 groups of plans are clean",
            r"^\| kernel 1 by time \| – not run: ncu is not here",
        ],
    }
    for line in wanted[call]:
        assert re.search(line, page, re.MULTILINE), page


@NEEDED
@pytest.mark.parametrize("seconds", [1.0, 2.0, 3.5, 5.0])
def test_a_call_that_is_killed_keeps_what_it_has_done(bundle: Path, tmp_path: Path, seconds: float) -> None:
    asked = command(bundle, "--out", str(tmp_path), "compare")
    process = subprocess.Popen(asked, env=environment(bundle.parent), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    while "##" not in process.stdout.readline():
        assert process.poll() is None, "the call ended before its first section"
    time.sleep(seconds * random.Random(seconds).random())
    process.send_signal(signal.SIGKILL)
    told = process.stdout.read()
    process.wait()
    if not (tmp_path / "cuda-compare.json").exists():
        assert ": equal" not in told
        return
    data = check_whole(tmp_path, "compare")
    named = {result["name"] for section in data["sections"] for result in section["results"]}  # type: ignore[attr-defined]
    # All that was told is there, but for what came in the last quarter of a second.
    lines = [line.partition(": ")[0] for line in told.splitlines() if ": equal" in line]
    assert set(lines[:-4]) <= named
    assert data["wrong"], "a call that did not end is marked"


@NEEDED
def test_without_time_nothing_runs(bundle: Path, tmp_path: Path) -> None:
    done = called(bundle, tmp_path, "compare", "--seconds", "0")
    page = (tmp_path / "cuda-compare.md").read_text()
    assert done.returncode == 0, done.stderr
    assert "| expand | – not run: time was up |" in page
    assert "0 of 3 tests of operators equal the processor's results" in page
    assert check_whole(tmp_path, "compare")["wrong"] == 0


@pytest.mark.parametrize("device", ["cuda:999", "abacus"])
def test_without_the_device_the_pages_stay(bundle: Path, tmp_path: Path, device: str) -> None:
    (tmp_path / "cuda-smoke.md").write_text(PAGE)
    done = called(bundle, tmp_path, device=device)
    assert (done.returncode, (tmp_path / "cuda-smoke.md").read_text()) == (2, PAGE)
    assert [file.name for file in tmp_path.iterdir()] == ["cuda-smoke.md"]
    assert done.stderr.startswith((f"device {device!r}: ", f'device "{device}": '))
    assert done.stderr.count("\n") == 1


def test_without_a_bundle_a_sentence_says_so(tmp_path: Path) -> None:
    done = called(tmp_path / "bundle", tmp_path / "out")
    assert (done.returncode, done.stderr) == (2, f"{tmp_path}/bundle is not there: `make cuda-bundle` writes it\n")
    assert not (tmp_path / "out").exists()


def test_results_go_to_the_folder_that_the_environment_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tool("cuda_check").results_folder
    monkeypatch.setenv("OUT", str(tmp_path))
    assert folder("cuda") == folder("emulator") == tmp_path
    monkeypatch.delenv("OUT")
    assert str(folder("cuda:1")).endswith("benchmarks/results")
    assert str(folder("emulator")).endswith("build/cuda-check-results")


def test_every_call_ends_before_ten_minutes() -> None:
    calls = tool("gpu.call").CALLS
    assert calls["smoke"].seconds <= 120
    for call in calls.values():
        assert call.seconds + tool("gpu.process").ENDING + tool("gpu.process").KILLING <= 570
