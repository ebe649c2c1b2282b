"""The option `--lower-3d` of the commands that compile models in order to run them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx.parser
import pytest

from tests import broken_passes
from tests.cli.command import run

POOLED = """<ir_version: 10, opset_import: ["": 21]>
g (float[1, 2, 4, 4, 4] x) => (float[1, 2, 2, 2, 2] y) {
    e = Exp(x)
    y = MaxPool<kernel_shape = [2, 2, 2], strides = [2, 2, 2]>(e)
}"""
QUICK = ("--threads", "1", "--seconds", "0.01")
ZOO = ("--zoo", ".")


@pytest.fixture(autouse=True)
def volumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of one model with a three-dimensional operator."""
    monkeypatch.chdir(tmp_path)
    onnx.save(onnx.parser.parse_model(POOLED), "pooled.onnx")
    np.savez("io.npz", x=np.linspace(-1, 1, 128, dtype=np.float32).reshape(1, 2, 4, 4, 4))
    Path("INDEX.json").write_text(json.dumps([{"name": "pooled", "file": "pooled.onnx", "cases": ["io.npz"]}]))


@pytest.mark.parametrize(
    "arguments",
    [
        ("verify", "pooled.onnx"),
        ("bisect", "pooled.onnx"),
        ("bisect", "pooled.onnx", "--what", "crash"),
        ("diff", "pooled.onnx", "pooled.onnx", "--plans"),
        ("diff", "pooled.onnx", "pooled.onnx", "--run"),
        ("bench", "pooled.onnx", *QUICK),
        ("bench", *ZOO, *QUICK),
        ("zoo", "run", *ZOO),
        ("zoo", "precision", *ZOO),
    ],
    ids=" ".join,
)
def test_the_commands_compile_with_it(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*arguments, "--json") == 1
    assert "CC0301" in "".join(capsys.readouterr())
    assert run(*arguments, "--lower-3d", "--json") == 0
    assert json.loads(capsys.readouterr().out)["ok"]


def test_precision_is_measured_after_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("zoo", "precision", *ZOO, "--lower-3d", "--json") == 0
    assert json.loads(capsys.readouterr().out)["models"]["pooled"]["ratio"] > 0


def test_the_facts_are_those_of_the_lowered_model(capsys: pytest.CaptureFixture[str]) -> None:
    update = ("zoo", "update", *ZOO, "--facts", "facts.toml")
    assert run(*update, "--lower-3d") == 0
    assert 'status = "equal"' in Path("facts.toml").read_text()
    checked = ("zoo", "run", *ZOO, "--facts", "facts.toml", "--results", "results.jsonl")
    assert run(*checked, "--profile", "--lower-3d") == 0
    assert run(*checked, "--resume", "--lower-3d") == 0
    assert "pooled, pinned" not in capsys.readouterr().err.rpartition("profile: ")[2]
    assert run(*checked, "--resume") == 1  # another option is another result
    assert run(*update) == 0
    assert "CC0301" in Path("facts.toml").read_text()


def test_the_program_of_a_wrong_step_lowers_its_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken_passes.let_add_subtract(monkeypatch)
    monkeypatch.setattr("compiler.lower.is_elementwise", lambda *_: False)
    onnx.save(onnx.parser.parse_model(POOLED.replace("Exp(x)", "Add(x, x)")), "pooled.onnx")
    assert run("bisect", "pooled.onnx", "--lower-3d", "--input", "io.npz", "-o", "step") == 1
    assert "compiler.Options(optimize=False, lower_3d=True)" in (tmp_path / "step/replay.py").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("verify", "pooled.onnx", "pooled.plan"), "leave it out, or leave out PLAN"),
        (("diff", "pooled.plan", "pooled.plan"), "both files are plans: leave it out"),
        (("diff", "pooled.onnx", "pooled.onnx"), "add --plans to compile them"),
        (("bench", "pooled.plan"), "FILES have plans: leave it out"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_it_is_refused_where_nothing_is_compiled(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("compile", "pooled.onnx", "--lower-3d") == 0
    capsys.readouterr()
    assert run(*arguments, "--lower-3d") == 2
    assert said in " ".join(capsys.readouterr().err.replace("│", " ").split())
