"""What checks a GPU, on the emulator: what its page says, and its exit code."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
NEEDED = pytest.mark.skipif(
    importlib.util.find_spec("compiler._runtime_emulator") is None, reason="the emulator is not built: `make emulator`"
)
NETWORK = """
import torch

def build():
    return torch.nn.Softmax(-1)

def inputs():
    return {"x": torch.ones(4, 400)}
"""
SANITIZER = """#!/bin/sh
echo "========= $2 SUMMARY: 0 errors"
shift 2
exec "$@"
"""
PAGE = "# On a GPU\n\nas it was\n"


def tool(name: str) -> Any:
    """A module of tools/."""
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.pop(0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of small plans, a page, a network in PyTorch, and what looks like compute-sanitizer."""
    folder = tmp_path_factory.mktemp("check")
    (folder / "bundle").mkdir()
    small = {model["name"]: model for model in tool("cuda_bundle").small()}
    blank = tool("drawn").blanked(small["softmax"]["plan"])
    files = {
        "small": list(small.values()),
        "zoo": [small["expand"], small["gather"] | {"sanitizer": "memcheck"}],
        "operators": [small["softmax"], small["topk"]],
        "architectures": [
            {**small["softmax"], **blank, "name": "network", "module": "network"},
            {"name": "absent", "left_out": "left out of the bundle"},
        ],
    }
    for name, models in files.items():
        tool("cuda_files").write(folder / "bundle", name, models)
    (folder / "bundle/commit").write_text("v1\n")
    (folder / "network.py").write_text(NETWORK)
    (folder / "compute-sanitizer").write_text(SANITIZER)
    (folder / "compute-sanitizer").chmod(0o755)
    return folder


def check(folder: Path, *options: str, device: str = "emulator") -> tuple[int, str, str]:
    """The exit code, the page, and what is said of errors."""
    page = folder / "page.md"
    page.write_text(PAGE)
    command = [sys.executable, f"{ROOT}/tools/cuda_check.py", "--bundle", f"{folder}/bundle", "--page", str(page)]
    paths = {"PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": f"{folder}:{ROOT}"}
    asked = [*command, "--device", device, *options]
    done = subprocess.run(asked, env={**os.environ, **paths}, capture_output=True, text=True)
    return done.returncode, page.read_text(), done.stderr


@NEEDED
def test_a_page_with_all_that_was_planned(folder: Path) -> None:
    code, page, said = check(folder)
    assert code == 0, page + said
    assert "✗" not in page
    assert re.findall("^## (.*)", page, re.MULTILINE) == [section.title for section in tool("cuda_check").SECTIONS]
    assert re.search(r"^\| expand \| 1 \| ✓ \|( [\d.]+ \|){4}", page, re.MULTILINE)
    assert "2 of 2 tests of operators equal the processor's results." in page
    assert re.search(r"^\| network \| ✓ \|( [\d.]+ \|){3}", page, re.MULTILINE)
    assert "| absent | – left out of the bundle |" in page
    assert len(re.findall(r"^- ✓ \w+, (memcheck: memcheck|racecheck: racecheck) SUMMARY", page, re.MULTILINE)) == 4


@NEEDED
def test_what_has_no_time_is_said(folder: Path) -> None:
    code, page, said = check(folder, "--seconds", "0")
    assert code == 1
    for line in ("| expand |  | ✗ not run: time was up |", "- ✗ 2 tests: not run: time was up"):
        assert line in page
    assert f"{page.count('✗')} lines are marked ✗" in said


@NEEDED
def test_what_cannot_run_is_said_and_what_follows_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A network ends its process, one is nowhere, one needs a package, and one hangs."""
    modules = {
        "torch": "",
        "ending": "import os, sys\nsys.stderr.write('x' * 200_000 + ' of it\\n')\nsys.stderr.flush()\nos._exit(3)",
        "needing": "raise ModuleNotFoundError(name='torchvision.models')",
        "hanging": "import time\ntime.sleep(100)",
        "last": "raise RuntimeError('of its own')",
    }
    for name, source in modules.items():
        (tmp_path / f"{name}.py").write_text(source)
    names = ["ending", "nowhere", "needing", "hanging", "last"]
    tool("cuda_files").write(tmp_path, "architectures", [{"name": name, "module": name} for name in names])
    tool("cuda_files").write(tmp_path, "small", list(tool("cuda_bundle").small()))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{ROOT}")
    monkeypatch.setattr(tool("cuda_process"), "PATIENCE", 10)
    sections = tool("cuda_sections")
    lines = list(sections.beside_torch(sections.Setting(tmp_path, "emulator", time.monotonic() + 60)))
    rows = {line.text.split("|")[1].strip(): line for line in lines if line.text.count("|") > 2}
    said = {name: rows[name].text.split("|")[2].strip() for name in names}
    assert said["ending"].startswith("✗ its process ended with 3: xxx") and said["ending"].endswith("x of it")
    assert said["nowhere"] == "✗ not run: No module named 'nowhere'"
    assert said["needing"] == "– needs torchvision, which is not here"
    assert said["hanging"] == "✗ it took more than 10 s"
    assert said["last"] == "✗ not run: of its own"
    assert [name for name in names if not rows[name].is_wrong] == ["needing"]


@pytest.mark.parametrize("device", ["cuda:999", "abacus"])
def test_without_the_device_the_page_stays(folder: Path, device: str) -> None:
    code, page, said = check(folder, device=device)
    assert (code, page) == (2, PAGE)
    assert said.startswith((f"device {device!r}: ", f'device "{device}": '))


EQUAL, FAR = '{"verdict": "equal"}\n', '{"verdict": "different", "off": 2.0}\n'
RACES = "========= RACECHECK SUMMARY: {} hazards displayed ({} errors, 0 warnings)\n"


@pytest.mark.parametrize(
    ("told", "verdict", "note"),
    [
        (EQUAL + "========= ERROR SUMMARY: 0 errors\n", "equal", "ERROR SUMMARY: 0 errors"),
        (EQUAL + "========= ERROR SUMMARY: 10 errors\n", "different", "ERROR SUMMARY: 10 errors"),
        (EQUAL + RACES.format(0, 0), "equal", "RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)"),
        (EQUAL + RACES.format(3, 3), "different", "RACECHECK SUMMARY: 3 hazards displayed (3 errors, 0 warnings)"),
        (FAR + "= ERROR SUMMARY: 0 errors\n", "failed", "ERROR SUMMARY: 0 errors; ✗ off by 2 of what is allowed"),
        ("= ERROR SUMMARY: 0 errors\n", "failed", "ERROR SUMMARY: 0 errors; the model did not run"),
        ("========= Error: Device not supported\n", "not run", "compute-sanitizer does not support the device"),
        ("Unable to\nfind it\n", "not run", "Unable to find it"),
        ("", "not run", "it said nothing"),
    ],
)
def test_what_the_sanitizer_says(told: str, verdict: str, note: str) -> None:
    assert tool("cuda_sections").sanitizer_verdict(told) == {"verdict": verdict, "note": note}


def test_budgets() -> None:
    assert tool("cuda_check").SECONDS <= 420
