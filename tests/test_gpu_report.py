"""Reports of the calls on a GPU: they are whole after every step, wherever the call ends; and the watched processes."""

from __future__ import annotations

import json
import math
import os
import random
import signal
import subprocess
import sys
import time
import types
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.gpu_bundle import ROOT, tool

WRITER = """
import sys
sys.path[:0] = [{tools!r}, {root!r}]
from pathlib import Path
from gpu import report
from gpu.page import bullets
report.PAUSE = 0
part = report.Part("Much", bullets)
whole = report.Report(Path({out!r}), "tune", ["heading"], [part, report.Part("Later", bullets)])
whole.begin(part, [str(number) for number in range(3000)])
for number in range(3000):
    whole.put(part, {{"name": str(number), "verdict": "equal", "note": "x" * 200}})
    print(number, flush=True)
"""

STARTER = """
import sys
sys.path[:0] = [{tools!r}, {root!r}]
from concurrent.futures import ThreadPoolExecutor
from gpu.process import printed
with ThreadPoolExecutor(2) as threads:
    threads.submit(printed, {command!r}, 100).result()
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
        time.sleep(100)
    if names[number].startswith("slow"):
        time.sleep(0.3)
    if names[number].startswith("lost"):
        tell(verdict="failed", note="CUDA_ERROR_ILLEGAL_ADDRESS")
        time.sleep(100)
    tell(process=os.getpid())
"""


@pytest.mark.parametrize("seed", range(8))
def test_a_killed_report_is_whole(tmp_path: Path, seed: int) -> None:
    source = WRITER.format(tools=str(ROOT / "tools"), root=str(ROOT), out=str(tmp_path))
    process = subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    first = process.stdout.readline()
    time.sleep(0.2 * random.Random(seed).random())
    process.send_signal(signal.SIGKILL)
    shown = [int(first), *map(int, process.stdout.read().split())]
    process.wait()
    data = json.loads((tmp_path / "cuda-tune.json").read_text())
    names = [result["name"] for result in data["sections"][0]["results"]]
    assert names == [str(number) for number in range(len(names))]
    assert len(names) > shown[-1]
    assert (data["sections"][0]["state"], data["sections"][1]["state"]) == ("begun", "not run")
    page = (tmp_path / "cuda-tune.md").read_text()
    assert page.endswith("## Later\n\n✗ not run: the call ended before\n")
    assert len(list(tmp_path.iterdir())) <= 3


def test_a_report_that_ends_at_any_write_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both files stay valid wherever the writes end: before, within or behind each step of one."""
    report, page = tool("gpu.report"), tool("gpu.page")
    monkeypatch.setattr(report, "PAUSE", 0)
    writes, replaces = Path.write_bytes, os.replace
    for end in range(1, 24):
        out, steps = tmp_path / str(end), iter(range(1, 100))

        def ended(end: int = end, steps: Iterator[int] = steps) -> bool:
            return next(steps) == end

        def write(path: Path, data: bytes) -> int:
            if ended():
                writes(path, data[: len(data) // 2])
                raise SystemExit
            return writes(path, data)

        def replace(part: Any, path: Any) -> None:
            if ended():
                raise SystemExit
            replaces(part, path)

        monkeypatch.setattr(Path, "write_bytes", write)
        monkeypatch.setattr(os, "replace", replace)
        part = report.Part("Some", page.bullets)
        whole = report.Report(out, "smoke", ["heading"], [part])
        with pytest.raises(SystemExit):
            whole.begin(part, ["a", "b"])
            for name in "abababab":
                whole.put(part, {"name": name, "verdict": "equal"})
        monkeypatch.undo()
        monkeypatch.setattr(report, "PAUSE", 0)
        if (out / "cuda-smoke.json").exists():
            assert json.loads((out / "cuda-smoke.json").read_text())["call"] == "smoke"
        if (out / "cuda-smoke.md").exists():
            assert (out / "cuda-smoke.md").read_text().startswith("# On a GPU: smoke\n\nheading\n")
        # The next call removes the remaining temporary file.
        report.Report(out, "compare", [], []).save()
        assert not list(out.glob(".*"))


def test_large_results_are_shortened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = tool("gpu.report")
    monkeypatch.setattr(report, "LARGEST", 5000)
    part = report.Part("Some", tool("gpu.page").bullets)
    whole = report.Report(tmp_path, "tune", [], [part])
    for number in range(100):
        whole.put(part, {"name": str(number), "verdict": "failed", "note": "why", "figures": "x" * 1000})
    whole.end(part, 1.0)
    data = json.loads(whole.file.read_text())
    assert whole.file.stat().st_size < 40_000
    results = data["sections"][0]["results"]
    assert [len(results), results[-1]] == [100, {"name": "99", "verdict": "failed", "note": "why", "shortened": True}]
    assert data["wrong"] == 100


def strict(file: Path) -> Any:
    """What is in a JSON file, in which no number may be NaN or infinite."""

    def refuse(word: str) -> None:
        raise ValueError(word)

    return json.loads(file.read_text(), parse_constant=refuse)


def test_numbers_that_json_lacks_are_text(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    report, page, work = tool("gpu.report"), tool("gpu.page"), tool("gpu.work")
    part = report.Part("Some", page.table({"off": "off", "rates": "rates"}))
    whole = report.Report(tmp_path, "tune", [], [part])
    rates = [np.float64("nan"), -math.inf, 1.5]
    found = {"name": "a", "verdict": "different", "off": math.inf, "rates": {"all": rates}}
    whole.put(part, found)
    whole.save()
    (section,) = strict(whole.file)["sections"]
    kept = {"name": "a", "verdict": "different", "off": "inf", "rates": {"all": ["nan", "-inf", 1.5]}}
    assert section["results"] == [kept]
    assert "| a | ✗ | inf | all nan, -inf, 1.5 |" in whole.page.read_text()
    work.tell(found)
    assert capfd.readouterr().out == json.dumps(kept) + "\n"


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (np.float32([1, np.nan]), "NaN or infinity in other places"),
        (np.float32([1, -np.inf]), "NaN or infinity in other places"),
        (np.float32([1, 2, 3]), "found shape [3]"),
        (np.float64([1, 2]), "found dtype float64"),
    ],
)
def test_a_difference_that_is_no_number_has_a_reason(value: np.ndarray[Any, Any], why: str) -> None:
    session = types.SimpleNamespace(run=lambda case: {"y": value})
    model = {"expected": [{"y": np.float32([1, 2])}] * 2, "tolerance": 1e-5}
    found = tool("gpu.agreement").compared(model, session, [{}, {}])
    assert found == {"verdict": "different", "off": None, "cases": 2, "note": f"y: {why}"}
    assert tool("gpu.results").verdict(found) == f"✗ y: {why}"
    json.dumps(found, allow_nan=False)


def test_a_difference_that_is_a_number_has_no_note() -> None:
    session = types.SimpleNamespace(run=lambda case: {"y": np.float32([1, 2.5])})
    model = {"expected": [{"y": np.float32([1, 2])}], "tolerance": 1e-3}
    found = tool("gpu.agreement").compared(model, session, [{}])
    assert found == {"verdict": "different", "off": 250.0, "cases": 1}
    assert tool("gpu.results").verdict(found) == "✗ off by 2.5e+02 of the tolerance"


def call_of(folder: Path, name: str, is_whole: bool) -> None:
    """Writes the files of a call, of which all sections may be done."""
    report = tool("gpu.report")
    part = report.Part("Some", tool("gpu.page").bullets)
    whole = report.Report(folder, "tune", [f"call {name}"], [part])
    whole.begin(part, ["a"])
    if is_whole:
        whole.end(part, 1.0)


def kept_in(folder: Path) -> dict[str, str]:
    """The names of the calls by the files that are in a folder; a page and its JSON file are of one call."""
    pages = {page.name: page.read_text().splitlines()[2].removeprefix("call ") for page in folder.glob("*.md")}
    for page, name in pages.items():
        assert strict(folder / page.replace(".md", ".json"))["heading"] == [f"call {name}"]
    assert len(list(folder.iterdir())) == 2 * len(pages)
    return pages


def test_the_former_files_stay_until_a_call_is_whole(tmp_path: Path) -> None:
    now, before = "cuda-tune.md", "cuda-tune.previous.md"
    call_of(tmp_path, "a", is_whole=False)
    assert kept_in(tmp_path) == {now: "a"}
    call_of(tmp_path, "b", is_whole=False)
    assert kept_in(tmp_path) == {now: "b", before: "a"}
    call_of(tmp_path, "c", is_whole=True)
    assert kept_in(tmp_path) == {now: "c"}
    call_of(tmp_path, "d", is_whole=False)
    assert kept_in(tmp_path) == {now: "d", before: "c"}
    call_of(tmp_path, "e", is_whole=False)
    assert kept_in(tmp_path) == {now: "e", before: "c"}, "a whole call is worth more"
    call_of(tmp_path, "f", is_whole=True)
    assert kept_in(tmp_path) == {now: "f"}


def test_former_files_stay_wherever_their_move_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call_of(tmp_path, "a", is_whole=True)
    replace = Path.replace

    def moved_once(path: Path, target: Path) -> Path:
        monkeypatch.setattr(Path, "replace", lambda path, target: sys.exit())
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", moved_once)
    with pytest.raises(SystemExit):
        call_of(tmp_path, "b", is_whole=True)
    monkeypatch.undo()
    call_of(tmp_path, "c", is_whole=False)
    assert kept_in(tmp_path) == {"cuda-tune.md": "c", "cuda-tune.previous.md": "a"}


def test_results_that_were_replaced_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = tool("gpu.report")
    monkeypatch.setattr(report, "LARGEST", 5000)
    part = report.Part("Some", tool("gpu.page").bullets)
    whole = report.Report(tmp_path, "tune", [], [part])
    for number in range(100):
        whole.put(part, {"name": "one", "verdict": "equal", "partial": number < 99, "figures": "x" * 1000})
    assert part.results["one"] == {"name": "one", "verdict": "equal", "figures": "x" * 1000}
    for name in "abcde":
        whole.put(part, {"name": name, "verdict": "equal", "figures": "x" * 1000})
    assert [name for name, result in part.results.items() if "shortened" in result] == ["d", "e"]


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Creates a section whose checks are named after their behavior."""

    def made(*names: str) -> Any:
        child = tmp_path / "child.py"
        child.write_text(CHILD.format(names=list(names)))
        monkeypatch.setattr(tool("gpu.process"), "command", lambda section, setting: [sys.executable, str(child)])
        module = types.SimpleNamespace(names=lambda setting: list(names), lines=tool("gpu.page").bullets)
        monkeypatch.setitem(sys.modules, "gpu.fake", module)
        return child

    return made


def setting(folder: Path, seconds: float) -> Any:
    """Where checks run, for so many seconds."""
    return tool("gpu.process").Setting(folder, "cuda", time.monotonic() + seconds, folder)


@pytest.mark.parametrize("together", [1, 100])
def test_what_ends_early_is_a_result_and_the_next_check_runs(tmp_path: Path, fake: Any, together: int) -> None:
    names = ["good", "crash", "hang", "lost", "last"]
    fake(*names)
    work = tool("gpu.process").Work("fake", names, setting(tmp_path, 60), together, patience=3)
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
    assert found["hang"]["note"] == "it took more than 3 s"
    assert found["good"]["process"] != found["last"]["process"]


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone ends a process with its parent")
def test_a_command_ends_with_what_started_it(tmp_path: Path) -> None:
    file = tmp_path / "number"
    command = ["sh", "-c", f"echo $$ > {file}.part; mv {file}.part {file}; exec sleep 100"]
    source = STARTER.format(tools=str(ROOT / "tools"), root=str(ROOT), command=command)
    starter = subprocess.Popen([sys.executable, "-W", "error", "-c", source])
    until(file.exists)
    starter.send_signal(signal.SIGKILL)
    starter.wait()
    number = Path("/proc", file.read_text().strip())
    until(lambda: not number.exists() or " Z " in (number / "stat").read_text())


def until(is_so: Callable[[], bool]) -> None:
    """Waits for something, for seconds at most."""
    end = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_what_a_command_prints() -> None:
    printed = tool("gpu.process").printed
    with ThreadPoolExecutor(2) as threads:
        shown = threads.map(lambda word: printed(["sh", "-c", f"echo {word}; echo error >&2; exit 3"], 20), "ab")
        assert list(shown) == ["a\nerror\n", "b\nerror\n"]
    start = time.monotonic()
    with pytest.raises(TimeoutError):
        printed(["sh", "-c", "sleep 100"], 0.5)
    assert time.monotonic() - start < 10


def test_budgets_are_obeyed(tmp_path: Path, fake: Any) -> None:
    calls, report = tool("gpu.call"), tool("gpu.report")
    names = [*(f"slow{number}" for number in range(3)), "hang", *(f"slow{number}" for number in range(3, 100))]
    fake(*names)
    sections = tuple(calls.Section(title, "fake", 1.0, together=3) for title in ("One", "Two"))
    call = calls.Call("tune", sections)
    whole = report.Report(tmp_path, "tune", [], calls.parts(call))
    start = time.monotonic()
    assert calls.perform(call, setting(tmp_path, 60), whole, 3.0, lambda line: None)
    assert time.monotonic() - start < 3 + tool("gpu.process").ENDING
    for part in whole.parts:
        results = list(part.results.values())
        assert len(results) == len(names)
        assert results[0]["verdict"] == "equal"
        assert results[-1]["verdict"] == "not run" and results[-1]["note"] == "time was up"
        assert part.seconds is not None and part.seconds < 3 + tool("gpu.process").ENDING


def test_an_optional_section_without_time_is_not_wrong(tmp_path: Path, fake: Any) -> None:
    calls, report = tool("gpu.call"), tool("gpu.report")
    fake("slow")
    call = calls.Call("tune", (calls.Section("One", "fake", 1.0, is_optional=True),))
    whole = report.Report(tmp_path, "tune", [], calls.parts(call))
    assert calls.perform(call, setting(tmp_path, 60), whole, 0, lambda line: None)
    assert whole.wrong == 0
    assert whole.parts[0].results["slow"] == {"name": "slow", "verdict": "left out", "note": "not run: time was up"}


def test_checks_without_time_are_one_line(tmp_path: Path, fake: Any) -> None:
    calls, report = tool("gpu.call"), tool("gpu.report")
    fake("good", *(f"late{number}" for number in range(2000)))
    sections = (calls.Section("One", "fake", 1.0), calls.Section("Two", "fake", 1.0, is_optional=True))
    call = calls.Call("tune", sections)
    whole, lines = report.Report(tmp_path, "tune", [], calls.parts(call)), []
    assert calls.perform(call, setting(tmp_path, 60), whole, 0, lines.append)
    assert lines == [
        "\n## One\n",
        "✗ 2001 checks: not run; time was up",
        "\n## Two\n",
        "2001 checks: left out; not run: time was up",
    ]
    assert calls.marked(whole) == "2001 results are marked ✗"


def test_the_first_call_stops_at_a_failure(tmp_path: Path, fake: Any) -> None:
    calls, report = tool("gpu.call"), tool("gpu.report")
    fake("good", "crash", "last")
    sections = tuple(calls.Section(title, "fake", 30.0) for title in ("One", "Two"))
    call = calls.Call("smoke", sections, stops=True)
    whole, lines = report.Report(tmp_path, "smoke", [], calls.parts(call)), []
    assert not calls.perform(call, setting(tmp_path, 60), whole, 60, lines.append)
    assert lines[:2] == ["\n## One\n", "good: equal"]
    assert lines[2].startswith("✗ crash: failed; its process ended with 3: xxx")
    assert lines[3:] == ["\n✗ Two: not run: the call ended before"]
    assert calls.marked(whole) == "2 results are marked ✗"
    assert list(whole.parts[0].results) == ["good", "crash"]
    assert [part.state for part in whole.parts] == ["done", "not run"]
    assert whole.wrong == 2
    assert whole.page.read_text().endswith("## Two\n\n✗ not run: the call ended before\n")
