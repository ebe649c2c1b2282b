"""The three commands on a GPU, on the emulator and on the stand-in: their pages, exit codes, and how they end early."""

from __future__ import annotations

import importlib.util
import json
import random
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.gpu_bundle import ENOUGH, ROOT, SANITIZER, called, command, environment, tool, write_bundle
from tests.running import SOON
from tests.standin import device

NEEDED = pytest.mark.skipif(
    importlib.util.find_spec("compiler._runtime_emulator") is None, reason="the emulator is not built: `make emulator`"
)
STANDIN = pytest.mark.skipif(device.reason() is not None, reason=str(device.reason()))
COMMANDS = ("smoke", "compare", "tune")
ABSENT = {
    "Products": "PyTorch cannot be imported (ImportError)",
    "Kernels by name": "PyTorch cannot be imported (ImportError)",
    "Driver calls": "CUPTI is not installed",
    "Convolutions": "PyTorch cannot be imported (ImportError)",
    "Nsight Compute": "ncu is not installed",
}
"""The sections that need PyTorch or a tool of NVIDIA's, and their notes without it."""
PAGE = "# On a GPU\n\nas it was\n"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of small plans, a network in PyTorch, and a fake compute-sanitizer."""
    folder = tmp_path_factory.mktemp("check")
    program = folder / "compute-sanitizer"
    program.write_text(SANITIZER)
    program.chmod(0o755)
    return write_bundle(folder / "bundle")


def check_whole(out: Path, name: str) -> dict[str, object]:
    """The JSON file of a command, both of whose files are whole."""
    page = (out / f"cuda-{name}.md").read_text()
    assert page.startswith(f"# On a GPU: {name}\n") and page.endswith("\n")
    data: dict[str, object] = json.loads((out / f"cuda-{name}.json").read_text())
    titles = [section.title for section in tool("gpu.commands").COMMANDS[name].sections]
    assert re.findall("^## (.*)", page, re.MULTILINE) == titles
    assert [section["title"] for section in data["sections"]] == titles  # type: ignore[attr-defined]
    files = list(out.iterdir())
    assert len(files) <= 8
    assert all(file.stat().st_size < 16 << 20 for file in files)
    return data


@NEEDED
@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_alone(bundle: Path, tmp_path: Path, name: str) -> None:
    done = called(bundle, tmp_path, name, *ENOUGH)
    page = (tmp_path / f"cuda-{name}.md").read_text()
    assert done.returncode == 0, page + done.stderr
    assert "✗" not in page
    data = check_whole(tmp_path, name)
    assert data["wrong"] == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == [f"cuda-{name}.json", f"cuda-{name}.md"]
    assert f"`make cuda-bundle` made it at {tool('gpu.bundle').commit()}" in page and "2 hours old" in page
    wanted = {
        "smoke": [r"^- ✓ the first process: [\d.]+ s until the first result of softmax", r"^\| product \| ✓ \|"],
        "compare": [
            r"^3 of 3 tests of operators equal the CPU's results",
            r"^\| expand \| ✓ \| 1 \|",
            r"^\| network-b1 \| ✓ \|",
            r"^- ✓ two runs give the same bits",
        ],
        "tune": [
            r"^\| racecheck \| ✓ \| 1 of 1 groups of plans are clean",
            r"^\| kernel 1 by time \| – not run: ncu is not installed",
        ],
    }
    for line in wanted[name]:
        assert re.search(line, page, re.MULTILINE), page


@pytest.fixture(scope="module")
def hidden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of modules that hide PyTorch and NVIDIA's libraries, which do not work with the stand-in."""
    folder = tmp_path_factory.mktemp("hidden")
    (folder / "torch.py").write_text('raise ImportError("it is hidden")\n')
    (folder / "nvidia").mkdir()
    (folder / "nvidia/__init__.py").touch()
    return folder


def called_on_standin(bundle: Path, out: Path, name: str, hidden: Path) -> subprocess.CompletedProcess[str]:
    """A command on the device `cuda`, which is the stand-in, as it ended."""
    found = device.environment("")
    kept = {name: found[name] for name in ("LD_LIBRARY_PATH", "STANDIN")}
    variables = environment(bundle.parent, **kept, PYTHONPATH=f"{hidden}:{bundle.parent}:{ROOT}")
    asked = command(bundle, "--out", str(out), name, *ENOUGH, device="cuda")
    return subprocess.run(asked, env=variables, capture_output=True, text=True)


@STANDIN
@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_on_the_stand_in(bundle: Path, tmp_path: Path, hidden: Path, name: str) -> None:
    done = called_on_standin(bundle, tmp_path, name, hidden)
    data: Any = check_whole(tmp_path, name)
    wrong = []
    for section in data["sections"]:
        absent = ABSENT.get(section["title"])
        for result in section["results"]:
            if absent is None:
                assert result["verdict"] in ("equal", "near"), result
            else:
                assert (result["verdict"], result["note"]) == ("not run", absent), result
                wrong.append(result["name"])
    # Tools that a machine with a GPU must have are marked if they are missing.
    assert data["wrong"] == len(wrong)
    assert done.stderr == (f"{name}: {len(wrong)} results are marked ✗\n" if wrong else ""), done.stderr
    assert done.stdout.count("✗ ") == len(wrong)
    assert done.returncode == bool(wrong) == (name != "compare")
    check_results(name, {section["title"]: section["results"] for section in data["sections"]})


def check_results(name: str, found: dict[str, list[dict[str, Any]]]) -> None:
    """Checks that sections about the driver have numbers, and that the others have a result for each plan."""
    if name == "smoke":
        machine = {result["name"]: result["figures"] for result in found["The machine"]}
        assert machine["device"]["name"] == "NVIDIA H100 80GB HBM3"
        assert None not in machine["device"].values()
        assert [list(result["rates"]) for result in found["Copies"]] == [list(tool("gpu.copies").SIZES)] * 5
        assert [result["name"] for result in found["The first result"]] == ["the first process", "the second process"]
        assert [result["name"] for result in found["Backend paths"]] == ["elementwise", "product", "a loop"]
    elif name == "compare":
        assert len(found["The device"]) == len(tool("gpu.device").CHECKS)
        for title, count in {"Operators": 3, "Trained models": 2, "Networks": 1}.items():
            assert len(found[title]) == count
        (network,) = found["Networks"]
        assert "PyTorch cannot be imported" in json.dumps(network)
    else:
        assert [result["name"] for result in found["compute-sanitizer"]] == ["memcheck", "racecheck", "synccheck"]
        assert all(found[title] for title in ABSENT if title != "Products")


def shown(output: str) -> dict[str, list[str]]:
    """The names of the results that a command has printed, by section."""
    sections = (section.splitlines() for section in output.split("\n## ")[1:])
    return {title: [line.partition(": ")[0] for line in lines if ": " in line] for title, *lines in sections}


@NEEDED
@pytest.mark.parametrize("count", [0, 2, 4, 6])
def test_a_call_that_is_killed_keeps_what_it_has_done(bundle: Path, tmp_path: Path, count: int) -> None:
    asked = command(bundle, "--out", str(tmp_path), "compare", *ENOUGH)
    output = ""
    with subprocess.Popen(asked, env=environment(bundle.parent), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while "\n## " not in output or output.count(": equal") < count:
            line = process.stdout.readline()
            assert line, "the command ended before these results"
            output += line
        time.sleep(0.3 * random.Random(count).random())
        process.kill()
        output += process.stdout.read()
    if not (tmp_path / "cuda-compare.json").exists():
        assert ": equal" not in output
        return
    data: Any = check_whole(tmp_path, "compare")
    printed = shown(output)
    for section in data["sections"]:
        names = [result["name"] for result in section["results"]]
        found = printed.get(section["title"], [])
        if section["title"] in [*printed][:-1]:
            assert (section["state"], names) == ("done", found)
        # The results of the last quarter of a second may be missing, and some may not have been printed yet.
        assert all(one == other for one, other in zip(names, found, strict=False))
    is_whole = all(section["state"] == "done" for section in data["sections"])
    assert is_whole == (data["wrong"] == 0), "a command that did not end is marked"


@NEEDED
def test_without_time_nothing_runs(bundle: Path, tmp_path: Path) -> None:
    done = called(bundle, tmp_path, "compare", "--seconds", "0")
    page = (tmp_path / "cuda-compare.md").read_text()
    assert done.returncode == 0, done.stderr
    assert "| expand | – not run: time was up |" in page
    assert "0 of 3 tests of operators equal the CPU's results" in page
    assert check_whole(tmp_path, "compare")["wrong"] == 0
    assert "3 checks: left out; not run: time was up\n" in done.stdout
    assert "expand" not in done.stdout, "one line stands for all checks without time"


# The processes of the second section wait, so that a fast command does not end before the signal.
WAITING = """
import sys, time
if "trained" in sys.orig_argv:
    time.sleep(600)
"""


@NEEDED
def test_an_interrupt_keeps_this_call_and_the_one_before(
    bundle: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    waiting = tmp_path_factory.mktemp("waiting")
    (waiting / "sitecustomize.py").write_text(WAITING)
    variables = environment(bundle.parent, PYTHONPATH=f"{waiting}:{bundle.parent}:{ROOT}")
    assert called(bundle, tmp_path, "compare", "--seconds", "0").returncode == 0
    pages = [(tmp_path / f"cuda-compare.{kind}").read_bytes() for kind in ("md", "json")]
    for _ in range(2):
        process = subprocess.Popen(
            command(bundle, "--out", str(tmp_path), "compare", *ENOUGH),
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's jobs ignore it
        )
        assert process.stdout is not None
        while ": equal" not in process.stdout.readline():
            assert process.poll() is None, "the command ended before its first result"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=SOON)
        assert process.returncode == 130
        assert errors == (
            f"\nInterrupted: {tmp_path}/cuda-compare.md and cuda-compare.json keep the finished results; the command "
            "can be run again. The former results are in cuda-compare.previous.md and cuda-compare.previous.json.\n"
        )
        assert check_whole(tmp_path, "compare")["wrong"]
        assert [(tmp_path / f"cuda-compare.previous.{kind}").read_bytes() for kind in ("md", "json")] == pages
    assert called(bundle, tmp_path, "compare", "--seconds", "0").returncode == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == ["cuda-compare.json", "cuda-compare.md"]


@pytest.mark.parametrize("device", ["cuda:999", "abacus"])
def test_without_the_device_the_pages_stay(bundle: Path, tmp_path: Path, device: str) -> None:
    (tmp_path / "cuda-smoke.md").write_text(PAGE)
    done = called(bundle, tmp_path, device=device)
    assert (done.returncode, (tmp_path / "cuda-smoke.md").read_text()) == (2, PAGE)
    assert [file.name for file in tmp_path.iterdir()] == ["cuda-smoke.md"]
    assert done.stderr.startswith((f"device {device!r}: ", f'device "{device}": '))
    assert done.stderr.count("\n") == 1


def test_results_go_to_the_folder_that_the_environment_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tool("cuda_check").results_folder
    monkeypatch.setenv("OUT", str(tmp_path))
    assert folder("cuda") == folder("emulator") == tmp_path
    monkeypatch.delenv("OUT")
    assert str(folder("cuda:1")).endswith("benchmarks/results")
    assert str(folder("emulator")).endswith("build/cuda-check-results")


def test_every_call_ends_before_ten_minutes() -> None:
    commands = tool("gpu.commands").COMMANDS
    assert commands["smoke"].seconds <= 120
    for each in commands.values():
        assert each.seconds + tool("gpu.process").ENDING + tool("gpu.process").KILLING <= 570
