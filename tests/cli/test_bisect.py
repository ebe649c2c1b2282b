"""`candlec bisect`: the first pass after which a plan is wrong, and the first wrong step."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

from compiler.bisect import crash
from tests import broken_passes
from tests.cli.command import REFUSED, run


@pytest.fixture
def model(folder: Path) -> Path:
    """A working folder with a model and its inputs."""
    onnx.save(broken_passes.model(), "m.onnx")
    np.savez("x.npz", x=np.array([[1.5, -2.5, 3, 4], [0, 1, -2, 3]], np.float32))
    return folder


def test_nothing_is_wrong(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("bisect", "m.onnx", "--size", "n=3", "-o", "part") == 0
    printed = capsys.readouterr()
    assert printed.out == "nothing is wrong with the plan of m.onnx: 1 of 1 output equals onnxruntime's\n"
    assert "the inputs are random (seed 0): x [3, 4]" in printed.err
    assert not Path("part").exists()
    assert run("bisect", "m.onnx", "--dim", "n=2", "--input", "x.npz", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["ok"], shown["pass"], shown["step"], shown["files"]) == (True, None, None, [])


def test_a_wrong_pass_is_shown(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken_passes.let_pass_change_constants(monkeypatch, "merge_reshapes")
    assert run("bisect", "m.onnx", "--input", "x.npz", "-o", "new/part") == 1
    printed = capsys.readouterr().out
    assert "the plan of m.onnx is wrong: 0 of 1 output equals onnxruntime's; 1 is not equal\n" in printed
    assert "the plan is different as soon as this optional pass runs: merge_reshapes\n" in printed
    assert ": 1\n  --> Add(shift)\n" in printed
    assert "first to differ" in printed and "\nstep " in printed
    assert "wrote new/part/step.onnx, new/part/step.npz, new/part/replay.py\n" in printed
    assert "do not show" not in printed
    assert {each.name for each in Path("new/part").iterdir()} == {"step.onnx", "step.npz", "replay.py"}
    assert run("bisect", "m.onnx", "--input", "x.npz", "--json") == 1
    shown = json.loads(capsys.readouterr().out)
    assert (shown["ok"], shown["pass"]["name"], shown["pass"]["count"]) == (False, "merge_reshapes", 1)
    assert shown["pass"]["places"][0]["nodes"] == ["Add(shift)"]
    assert {"step", "op", "origin", "max_abs"} <= shown["step"].keys()


def test_a_wrong_lowering_is_shown(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken_passes.let_add_subtract(monkeypatch)
    monkeypatch.setattr("compiler.lower.is_elementwise", lambda *_: False)
    assert run("bisect", "m.onnx", "--input", "x.npz") == 1
    printed = capsys.readouterr().out
    assert "the plan is different without optional passes too, so no optional pass is the cause\n" in printed
    assert "\nstep 3, Binary   Add(shift)\n" in printed


def test_a_large_tolerance_allows_the_difference(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken_passes.let_pass_change_constants(monkeypatch, "merge_reshapes")
    assert run("bisect", "m.onnx", "--input", "x.npz", "--tolerance", "10") == 0


def test_a_crash_is_shown(model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("bisect", "m.onnx", "--what", "crash", "--input", "x.npz", "--threads", "1")
    assert run(*arguments) == 0
    assert capsys.readouterr().out == "nothing is wrong: m.onnx compiles, and its plan runs\n"
    monkeypatch.setattr(crash, "attempt", broken_passes.attempt_with_failing_pass)
    assert run(*arguments) == 1
    printed = capsys.readouterr().out
    assert "compiling m.onnx fails: AssertionError: the pass is broken; in the pass merge_reshapes\n" in printed
    assert "it fails as soon as this optional pass runs: merge_reshapes\n" in printed
    assert run(*arguments, "--json") == 1
    shown = json.loads(capsys.readouterr().out)
    assert (shown["ok"], shown["phase"], shown["pass"]["name"]) == (False, "compile", "merge_reshapes")


def test_a_refused_model_is_no_crash(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(onnx.parser.parse_model(REFUSED), "refused.onnx")
    for what in ("error", "crash"):
        assert run("bisect", "refused.onnx", "--what", what) == 1
        assert "the compiler refuses the model" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--what", "speed"], "'speed' is not one of 'error', 'time', 'memory', 'steps', 'crash'"),
        (["--what", "crash", "-o", "part"], "--what crash compares no values: leave out --output and --tolerance"),
        (["--what", "crash", "--tolerance", "1"], "leave out --output and --tolerance"),
        (["-o", "."], ". is not empty: name a new folder"),
        (["-o", "m.onnx"], "is a file"),
        (["--size", "k=2"], "no input has a dimension 'k'"),
        (["--input", "x.npz", "--size", "n=2"], "--size sets sizes of random inputs"),
        (["--threads", "0"], "--threads"),
        (["--tolerance", "-1"], "--tolerance"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_wrong_arguments(arguments: list[str], said: str, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = set(model.iterdir())
    assert run("bisect", "m.onnx", *arguments) == 2
    assert said in capsys.readouterr().err
    assert set(model.iterdir()) == before


def test_inputs_that_no_program_takes_are_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = "m (float[4] x, int64[k] i) => (float[k] y) { y = Gather (x, i) }"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 20]> {graph}'), "gather.onnx")
    np.savez("bad.npz", x=np.ones(4, np.float32), i=np.array([9]))
    assert run("bisect", "gather.onnx", "--input", "bad.npz") == 1
    said = capsys.readouterr().err
    assert "step 0" in said and "\n  help: --what crash tells whether an optional pass is the cause, and" in said
    assert run("bisect", "gather.onnx", "--input", "bad.npz", "--what", "crash") == 1
    said = capsys.readouterr().out
    assert "it fails without optional passes too, so no optional pass is the cause\n" in said
    assert "onnxruntime fails on these inputs: " in said
    assert said.endswith("\n  help: correct the inputs or the model, not the plan\n")
