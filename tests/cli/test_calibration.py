"""`candlec compile --calibration`: data in files and folders, the price of convolutions, and wrong use."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.cli.command import run
from tests.passes.weighted import model_of, normal

TEXT = "(float[n, 8, 9, 9] x) => (float[n, 6, 9, 9] y) { h = Conv(x, first) r = Relu(h) y = Conv(r, second) }"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model with two convolutions, and beside it calibration data in every form."""
    path = tmp_path / "two.onnx"
    onnx.save(model_of(TEXT, first=normal(8, 8, 1, 1), second=normal(6, 8, 1, 1, seed=1)), path)
    (tmp_path / "data/set").mkdir(parents=True)
    (tmp_path / "empty").mkdir()
    for number in range(2):
        np.savez(tmp_path / f"data/{number}.npz", x=normal(1, 8, 9, 9, seed=number))
    (tmp_path / "data/set/input_0.pb").write_bytes(
        numpy_helper.from_array(normal(1, 8, 9, 9, seed=2), "x").SerializeToString()
    )
    np.savez(tmp_path / "nan.npz", x=np.full((1, 8, 9, 9), np.nan, np.float32))
    np.savez(tmp_path / "other.npz", z=normal(1, 8, 9, 9))
    (tmp_path / "text.txt").write_text("x")
    return path


@pytest.mark.parametrize(
    ("data", "count"), [(["data"], 3), (["data/1.npz"], 1), (["data/set"], 1), (["data/1.npz", "data/set"], 2)]
)
def test_every_form_of_data(model: Path, data: list[str], count: int, capsys: pytest.CaptureFixture[str]) -> None:
    options = [word for each in data for word in ("--calibration", str(model.parent / each))]
    assert run("compile", str(model), "--precision", "int8", *options) == 0
    printed = capsys.readouterr().out
    assert re.search(r"Conv\(y\) +int8, 48 weights, relative error 0\.\d\d%", printed)
    assert run("inspect", str(model.with_suffix(".plan"))) == 0
    inputs = "1 input" if count == 1 else f"{count} inputs"
    stated = (
        rf"candle\.price: int8, 2 convolutions, largest relative error 0\.\d\d%, ranges of activations from {inputs}\n"
    )
    assert re.search(stated, capsys.readouterr().out)


def test_without_data_the_command_says_that_convolutions_stay(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compile", str(model), "--precision", "int8") == 0
    assert "2 convolutions stay unquantized: --calibration can quantize more" in capsys.readouterr().out


def test_named_convolutions_stay(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = str(model.parent / "data")
    assert run("compile", str(model), "--precision", "int8", "--calibration", data, "--keep", "second") == 0
    printed = capsys.readouterr().out
    assert "1 not quantized: the option `keep` names them" in printed and "stay unquantized" not in printed


def test_auto_chooses_convolutions(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--precision", "auto", "--calibration", str(model.parent / "data"), "--max-loss"]
    assert run("compile", str(model), *options, "0.0001%", "--json") == 0
    choice = json.loads(capsys.readouterr().out)["choice"]
    assert {each["weights"] for each in choice["products"]} == {"first", "second"} and choice["loss"] == 0
    assert run("compile", str(model), *options, "20%") == 0
    printed = capsys.readouterr()
    assert re.search(r"the outputs change by \d\.\d\d% of their norm", printed.out) and "random" not in printed.err


def test_verify_shows_the_error_beside_onnxruntimes(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = str(model.with_suffix(".plan"))
    assert run("compile", str(model), "--precision", "int8", "--calibration", str(model.parent / "data")) == 0
    capsys.readouterr()
    assert run("verify", str(model), plan, "--input", str(model.parent / "data/0.npz")) == 1
    printed = capsys.readouterr().out
    errors = re.search(r"the output's error is (\S+), onnxruntime's (\S+)", printed)
    assert errors is not None and 1e3 * float(errors[2]) < float(errors[1]) < 0.5
    assert "the plan multiplies rounded numbers (`candlec compile --precision`)" in printed


WRONG = [
    ("--calibration data", 2, "--calibration is for --precision int8 and auto: leave it out, or give both"),
    ("--precision bf16 --calibration data", 2, "--calibration is for --precision int8 and auto"),
    ("--precision int8 --calibration empty", 2, "empty has no .npz or .safetensors file, and no folder with a file"),
    ("--precision int8 --calibration absent", 2, "absent does not exist"),
    ("--precision int8 --calibration text.txt", 2, "text.txt is no .npz or .safetensors file, and no folder"),
    ("--precision int8 --calibration other.npz", 1, "calibration input 1 of 1: there is no input 'z'"),
    ("--precision auto --max-loss 1% --calibration other.npz", 1, "calibration input 1 of 1: there is no input 'z'"),
    ("--precision int8 --calibration nan.npz", 1, "calibration input 1 of 1: 'x' is infinite or NaN"),
]


@pytest.mark.parametrize(("arguments", "code", "message"), WRONG)
def test_wrong_use(
    model: Path,
    arguments: str,
    code: int,
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(model.parent)
    assert run("compile", model.name, *arguments.split()) == code
    captured = capsys.readouterr()
    assert message in " ".join(captured.err.split())
    assert not model.with_suffix(".plan").exists()
