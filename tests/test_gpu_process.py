"""The watched processes of the commands on a GPU, and the commands: their results, limits of time, and early ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.gpu_bundle import ROOT, tool
from tests.running import SOON, is_there, wait_for

STARTER = """
import sys
sys.path[:0] = [{tools!r}, {root!r}]
from concurrent.futures import ThreadPoolExecutor
from gpu.process import printed
with ThreadPoolExecutor(2) as threads:
    threads.submit(printed, {command!r}, 600).result()
"""

CHILD = """
import json, os, sys, time
names = {names!r}
start = int(sys.argv[sys.argv.index("--start") + 1])
for number in range(start, int(sys.argv[sys.argv.index("--stop") + 1])):
    def tell(**what):
        print(json.dumps({{"number": number, "name": names[number], "verdict": "equal", **what}}), flush=True)
    if names[number].startswith("crash"):
        tell(partial=True, figure=7)
        sys.stderr.write("x" * 200_000 + " of it")
        sys.stderr.flush()
        os._exit(3)
    if names[number].startswith("hang"):
        open({mark!r}, "w").close()
        time.sleep(600)
    if names[number].startswith("slow"):
        time.sleep(0.3)
    if names[number].startswith("lost"):
        tell(verdict="failed", note="CUDA_ERROR_ILLEGAL_ADDRESS")
        time.sleep(600)
    tell(process=os.getpid())
"""


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Creates a section whose checks are named after their behavior."""

    def made(*names: str) -> Any:
        child = tmp_path / "child.py"
        child.write_text(CHILD.format(names=list(names), mark=str(tmp_path / "hangs")))
        monkeypatch.setattr(tool("gpu.process"), "command", lambda section, setting: [sys.executable, str(child)])
        module = types.SimpleNamespace(names=lambda setting: list(names), lines=tool("gpu.page").bullets)
        monkeypatch.setitem(sys.modules, "gpu.fake", module)
        return child

    return made


@pytest.fixture
def patient(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Extends the time limit of every check that does not hang, because a check may be slow on a slow machine."""
    process, mark = tool("gpu.process").Process, tmp_path / "hangs"
    result = process.result

    def waited_for(self: Any, seconds: float) -> Any:
        while True:
            try:
                return result(self, seconds)
            except TimeoutError:
                if mark.exists():
                    mark.unlink()
                    raise

    monkeypatch.setattr(process, "result", waited_for)


def setting(folder: Path, seconds: float) -> Any:
    """The setting of checks that may take this number of seconds."""
    return tool("gpu.process").Setting(folder, "cuda", time.monotonic() + seconds, folder)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("together", [1, 100])
def test_what_ends_early_is_a_result_and_the_next_check_runs(tmp_path: Path, fake: Any, together: int) -> None:
    names = ["good", "crash", "hang", "lost", "last"]
    fake(*names)
    work = tool("gpu.process").Work("fake", names, setting(tmp_path, SOON), together, patience=1)
    found = {result["name"]: result for result in work.results() if not result.get("partial")}
    assert {name: result["verdict"] for name, result in found.items()} == {
        "good": "equal",
        "crash": "failed",
        "hang": "failed",
        "lost": "failed",
        "last": "equal",
    }
    assert found["crash"]["note"].startswith("its process ended with 3: xxx")
    assert found["crash"]["note"].endswith("x of it")
    assert found["crash"]["figure"] == 7, "what a check found before it crashed is kept"
    assert found["hang"]["note"] == "it took more than 1 s"
    assert found["good"]["process"] != found["last"]["process"]


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone ends a process with its parent")
def test_a_command_ends_with_what_started_it(tmp_path: Path) -> None:
    file = tmp_path / "number"
    command = ["sh", "-c", f"echo $$ > {file}.part; mv {file}.part {file}; exec sleep 600"]
    source = STARTER.format(tools=str(ROOT / "tools"), root=str(ROOT), command=command)
    starter = subprocess.Popen([sys.executable, "-W", "error", "-c", source])
    is_started = wait_for(file.exists)
    starter.send_signal(signal.SIGKILL)
    starter.wait()
    assert is_started and wait_for(lambda: not is_there(int(file.read_text())))


def test_the_output_of_a_command_has_both_streams() -> None:
    printed = tool("gpu.process").printed
    with ThreadPoolExecutor(2) as threads:
        shown = threads.map(lambda word: printed(["sh", "-c", f"echo {word}; echo error >&2; exit 3"], SOON), "ab")
        assert list(shown) == ["a\nerror\n", "b\nerror\n"]
    start = time.monotonic()
    with pytest.raises(TimeoutError):
        printed(["sh", "-c", "sleep 600"], 0.5)
    assert time.monotonic() - start < SOON


def test_budgets_are_obeyed(tmp_path: Path, fake: Any) -> None:
    commands, report = tool("gpu.commands"), tool("gpu.report")
    names = [*(f"slow{number}" for number in range(3)), "hang", *(f"slow{number}" for number in range(3, 100))]
    fake(*names)
    sections = tuple(commands.Section(title, "fake", 1.0, together=3) for title in ("One", "Two"))
    command = commands.Command("tune", sections)
    for seconds in (3.0, 30.0, 300.0):
        whole = report.Report(tmp_path, "tune", [], commands.parts(command))
        assert commands.perform(command, setting(tmp_path, SOON), whole, seconds, lambda line: None)
        for part in whole.parts:
            results = list(part.results.values())
            assert len(results) == len(names)
            assert results[-1] == {"name": names[-1], "verdict": "not run", "note": "time was up"}
            assert part.results["hang"]["note"] == "time was up", "the time of the section ends it"
            assert part.seconds is not None and part.seconds < seconds / 2 + SOON
        if all(part.results["slow0"]["verdict"] == "equal" for part in whole.parts):
            break  # a slow machine needs more than some seconds for the first check
    else:
        pytest.fail("a section had no time for its first check")


def test_an_optional_section_without_time_is_not_wrong(tmp_path: Path, fake: Any) -> None:
    commands, report = tool("gpu.commands"), tool("gpu.report")
    fake("slow")
    command = commands.Command("tune", (commands.Section("One", "fake", 1.0, is_optional=True),))
    whole = report.Report(tmp_path, "tune", [], commands.parts(command))
    assert commands.perform(command, setting(tmp_path, SOON), whole, 0, lambda line: None)
    assert whole.wrong == 0
    assert whole.parts[0].results["slow"] == {"name": "slow", "verdict": "left out", "note": "not run: time was up"}


def test_checks_without_time_are_one_line(tmp_path: Path, fake: Any) -> None:
    commands, report = tool("gpu.commands"), tool("gpu.report")
    fake("good", *(f"late{number}" for number in range(2000)))
    sections = (commands.Section("One", "fake", 1.0), commands.Section("Two", "fake", 1.0, is_optional=True))
    command = commands.Command("tune", sections)
    whole, lines = report.Report(tmp_path, "tune", [], commands.parts(command)), []
    assert commands.perform(command, setting(tmp_path, SOON), whole, 0, lines.append)
    assert lines == [
        "\n## One\n",
        "✗ 2001 checks: not run; time was up",
        "\n## Two\n",
        "2001 checks: left out; not run: time was up",
    ]
    assert commands.marked(whole) == "2001 results are marked ✗"


def test_the_first_call_stops_at_a_failure(tmp_path: Path, fake: Any) -> None:
    commands, report = tool("gpu.commands"), tool("gpu.report")
    fake("good", "crash", "last")
    sections = tuple(commands.Section(title, "fake", SOON / 2) for title in ("One", "Two"))
    command = commands.Command("smoke", sections, stops=True)
    whole, lines = report.Report(tmp_path, "smoke", [], commands.parts(command)), []
    assert not commands.perform(command, setting(tmp_path, SOON), whole, SOON, lines.append)
    assert lines[:2] == ["\n## One\n", "good: equal"]
    assert lines[2].startswith("✗ crash: failed; its process ended with 3: xxx")
    assert lines[3:] == ["\n✗ Two: not run: the command ended before"]
    assert commands.marked(whole) == "2 results are marked ✗"
    assert list(whole.parts[0].results) == ["good", "crash"]
    assert [part.state for part in whole.parts] == ["done", "not run"]
    assert whole.wrong == 2
    assert whole.page.read_text().endswith("## Two\n\n✗ not run: the command ended before\n")
