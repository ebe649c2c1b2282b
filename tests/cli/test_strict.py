"""The option `--strict`, and the warnings without it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.cli.command import run
from tests.test_tolerance import TOLERATED, X

QUICK = ("--threads", "1", "--seconds", "0.01")


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(TOLERATED["an attribute"][0], "norm.onnx")
    onnx.save(TOLERATED["constants"][0], "constants.onnx")
    np.savez("io.npz", x=X)


@pytest.mark.parametrize("file", ["norm.onnx", "constants.onnx"])
@pytest.mark.parametrize(
    "verb",
    [
        ("check",),
        ("check", "--device", "cuda"),
        ("compile",),
        ("verify",),
        ("bench", *QUICK),
        ("bisect", "--what", "crash"),
    ],
    ids=" ".join,
)
def test_the_verbs_refuse_with_it(verb: tuple[str, ...], file: str, capsys: pytest.CaptureFixture[str]) -> None:
    name, *options = verb
    assert run(name, file, *options) == 0
    assert run(name, file, *options, "--strict") == 1
    found = "".join(capsys.readouterr())
    assert ("CC0203" if file == "norm.onnx" else "CC0106") in found


@pytest.mark.parametrize("options", [(), ("--plans",), ("--run",)], ids=" ".join)
def test_diff_refuses_with_it(options: tuple[str, ...]) -> None:
    files = ("constants.onnx", "constants.onnx")
    assert run("diff", *files, *options) == 0
    assert run("diff", *files, *options, "--strict") == 1


def test_the_zoo_refuses_with_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entry = {"name": "norm", "file": "norm.onnx", "cases": ["io.npz"]}
    (tmp_path / "INDEX.json").write_text(json.dumps([entry]))
    assert run("zoo", "run", "--zoo", ".") == 0
    assert run("zoo", "run", "--zoo", ".", "--strict") == 1
    assert "CC0203" in "".join(capsys.readouterr())
    assert run("bench", "--zoo", ".", *QUICK, "--strict") == 1


@pytest.mark.parametrize("verb", ["check", "compile"])
def test_the_warning_is_visible(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(verb, "norm.onnx") == 0
    assert "warning[CC0408]: LayerNormalization has no attribute epsion" in "".join(capsys.readouterr())


def test_the_warning_is_data(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", "norm.onnx", "--json") == 0
    [found] = json.loads(capsys.readouterr().out)["diagnostics"]
    assert (found["code"], found["severity"]) == ("CC0408", "warning")
    assert run("compile", "norm.onnx", "--json") == 0
    first, *_ = json.loads(capsys.readouterr().out)["passes"]
    assert first["name"] == "load" and "CC0408" in first["warnings"][0]


def test_a_plan_is_compiled_already(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compile", "norm.onnx") == 0
    assert run("verify", "norm.onnx", "norm.plan", "--strict") == 2
    assert "leave out PLAN" in capsys.readouterr().err
