"""The advice of `candlec zoo`: commands that work as printed, and the compiler's advice on refused models."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

from compiler.zoo import tasks
from tests.cli.command import run
from tests.tasks import hang

VOLUME = """
<ir_version: 9, opset_import: ["": 20]>
volume (float[1, 1, 2, 2, 2] x, float[1, 1, 1, 1, 1] w) => (y) { y = Conv (x, w) }
"""


def advised(text: str) -> list[list[str]]:
    """The arguments of each `candlec zoo …` in a text."""
    return [shlex.split(command)[1:] for command in re.findall(r"`(candlec zoo [^`]*)`", text)]


@pytest.fixture
def others(folder: Path) -> Path:
    """A folder of a refused model, whose name has a space; the working folder is another one."""
    place = folder / "other models"
    place.mkdir()
    (place / "io.npz").write_bytes((folder / "io.npz").read_bytes())
    onnx.save(onnx.load("refused.onnx"), place / "odd one.onnx")
    (place / "INDEX.json").write_text(json.dumps([{"name": "odd one", "file": "odd one.onnx", "cases": ["io.npz"]}]))
    return place


def test_a_help_line_repeats_the_folder(quantizing: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = quantizing / "other models"
    place.mkdir()
    for name in ("INDEX.json", "unsure.onnx", "unsure.npz"):
        (quantizing / name).rename(place / name)
    assert run("zoo", "run", "--zoo", "other models") == 1
    [command] = advised(capsys.readouterr().err)
    assert command == ["zoo", "update", "--zoo", "other models", "--baseline", "FILE"]
    assert run(*command) == 0
    assert run("zoo", "run", "--zoo", "other models", "--baseline", "FILE") == 0
    Path("FILE").write_text(re.sub("at_most = [^}]*", "at_most = 1.5", Path("FILE").read_text()))
    capsys.readouterr()
    assert run("zoo", "run", "--zoo", "other models", "--baseline", "FILE") == 1
    assert advised(capsys.readouterr().err) == [command]


@pytest.mark.parametrize("verb", ["run", "update", "precision"])
def test_the_advice_on_a_limit_repeats_the_options(
    verb: str, others: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for task in ("check", "measure"):
        monkeypatch.setattr(tasks, task, hang)
    Path("ops.py").touch()
    custom = ["--custom", str(Path("ops.py").absolute())]
    given = {"run": ["--unpin", *custom], "update": ["--baseline", "zoo.toml"], "precision": ["--strict"]}[verb]
    assert run("zoo", verb, "--zoo", "other models", *given, "--timeout", "0.1") == 1
    commands = advised(capsys.readouterr().err)
    repeated = ["zoo", verb, "--zoo", "other models", *given, "--only", "odd one", "--timeout", "SECONDS"]
    assert [sorted(each) for each in commands] == [sorted(repeated)]


@pytest.mark.parametrize("verb", [["zoo", "run"], ["bench"]], ids=" ".join)
def test_a_folder_without_an_index_is_explained(
    verb: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for place in ("nowhere", "."):
        assert run(*verb, "--zoo", place) == 1
        assert capsys.readouterr().err == (
            f"error: {Path(place, 'INDEX.json')}: No such file or directory\n"
            "  help: INDEX.json lists the models of a folder: see `candlec zoo --help`\n"
        )
    assert run(*verb, "--zoo", "io.npz") == 1
    assert "INDEX.json lists the models of a folder" in capsys.readouterr().err


def test_a_refusal_shows_the_advice_of_the_compiler(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(onnx.parser.parse_model(VOLUME), "volume.onnx")
    np.savez("volume.npz", x=np.ones((1, 1, 2, 2, 2), np.float32), w=np.ones((1, 1, 1, 1, 1), np.float32))
    Path("INDEX.json").write_text(json.dumps([{"name": "volume", "file": "volume.onnx", "cases": ["volume.npz"]}]))
    assert run("zoo", "run", "--zoo", ".", "--results", "results.jsonl") == 1
    printed = capsys.readouterr().out
    remark = "3-D convolution is not supported (kernel 1×1×1) (CC0301)"
    advice = "no kernel computes 3-D operators: `candlec compile --lower-3d` or `Options(lower_3d=True)` replaces it "
    advice += "with 2-D ones; see `candlec explain CC0301`"
    assert printed.count(f"✗ volume, {remark}\n  help: {advice}\n") == 1
    assert run("zoo", "run", "--zoo", ".", "--results", "results.jsonl", "--resume") == 1
    assert capsys.readouterr().out == printed
    assert run("zoo", "update", "--zoo", ".", "--baseline", "zoo.toml") == 0
    assert "no kernel computes" not in Path("zoo.toml").read_text()
