"""Reports of the commands on a GPU: they are whole after every step, wherever the command ends."""

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
from collections.abc import Iterator
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
    assert page.endswith("## Later\n\n✗ not run: the command ended before\n")
    assert len(list(tmp_path.iterdir())) <= 3


def test_a_report_that_ends_at_any_write_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both files stay valid if the process ends before, within or after any step of a write."""
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
        # The next command removes the remaining temporary file.
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
    """The contents of a JSON file. NaN and infinity are errors."""

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
    """Writes the files of a command. With `is_whole`, all its sections are done."""
    report = tool("gpu.report")
    part = report.Part("Some", tool("gpu.page").bullets)
    whole = report.Report(folder, "tune", [f"command {name}"], [part])
    whole.begin(part, ["a"])
    if is_whole:
        whole.end(part, 1.0)


def kept_in(folder: Path) -> dict[str, str]:
    """The name of the command that wrote each page of a folder. A page and its JSON file must come from one command."""
    pages = {page.name: page.read_text().splitlines()[2].removeprefix("command ") for page in folder.glob("*.md")}
    for page, name in pages.items():
        assert strict(folder / page.replace(".md", ".json"))["heading"] == [f"command {name}"]
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
    assert kept_in(tmp_path) == {now: "e", before: "c"}, "a whole command is worth more"
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
