"""`candlec compile --precision`: the price of each product, the instructions, and wrong use."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.cli.command import run
from tests.passes.weighted import model_of, normal


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model with two products."""
    text = "(float[n, 48] x) => (float[n, 40] y) { h = MatMul(x, first) y = MatMul(h, second) }"
    path = tmp_path / "two.onnx"
    onnx.save(model_of(text, first=normal(48, 48), second=normal(48, 40, seed=1)), path)
    return path


def test_the_price_of_each_product_is_printed(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compile", str(model), "--precision", "bf16", "--keep", "second") == 0
    printed = capsys.readouterr().out
    assert re.search(r"MatMul\(h\) +bfloat16, 2304 weights, relative error 0\.16%", printed)
    assert "1 not rounded: the option `keep` names them" in printed
    assert run("inspect", str(model.with_suffix(".plan")), "--prepared") == 0
    assert re.search(r"RoundedMatMul .*bfloat16", capsys.readouterr().out)


def test_the_price_of_products_in_8_bits_is_printed(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compile", str(model), "--precision", "int8", "--keep", "second") == 0
    printed = capsys.readouterr().out
    assert re.search(r"MatMul\(h\) +int8, 2304 weights, relative error 0\.\d\d%", printed)
    assert "1 not quantized: the option `keep` names them" in printed
    assert run("inspect", str(model.with_suffix(".plan")), "--prepared") == 0
    assert re.search(r"QuantizedMatMul .*int8", capsys.readouterr().out)


@pytest.mark.parametrize("precision", ["f16", "bf16", "int8"])
def test_verify_shows_the_error_and_that_it_is_meant(
    precision: str, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = model.with_suffix(".plan")
    assert run("compile", str(model), "--precision", precision) == 0
    capsys.readouterr()
    assert run("verify", str(model), str(plan)) == 1
    printed = capsys.readouterr().out
    assert printed.count("  help:") == 1
    assert "the plan multiplies rounded numbers (`candlec compile --precision`)" in printed
    errors = re.search(r"the output's error is (\S+), onnxruntime's (\S+)", printed)
    assert errors is not None
    assert 1e3 * float(errors[2]) < float(errors[1]) < np.inf
    assert run("verify", str(model), str(plan), "--tolerance", "0.05") == 0


def test_auto_quantizes_the_products_that_the_outputs_allow(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["compile", str(model), "--precision", "auto", "--seed", "1", "--max-loss"]
    assert run(*arguments, "50%") == 0
    assert re.search(r"the outputs change by \d\.\d\d% of their norm", capsys.readouterr().out)
    assert run(*arguments, "0.0001%") == 0
    printed = capsys.readouterr().out
    assert re.search(r"first +\d\.\d\d% +f32", printed) and re.search(r"second +\d\.\d\d% +f32", printed)
    assert "the outputs change by 0.00% of their norm" in printed
    assert run(*arguments, "0.0001%", "--json") == 0
    found = json.loads(capsys.readouterr().out)["choice"]
    assert found["loss"] == 0 and {each["weights"] for each in found["products"]} == {"first", "second"}


@pytest.mark.parametrize("option", ["--precision bf16", "--precision f16", "--precision int8", "--weights int4"])
def test_a_kept_product_may_take_an_epilogue(option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "(float[n, 48] x) => (float[n, 40] y) { h = MatMul(x, first) g = Gelu(h) y = MatMul(g, second) }"
    path = tmp_path / "fused.onnx"
    onnx.save(model_of(text, first=normal(48, 48), second=normal(48, 40, seed=1)), path)
    assert run("compile", str(path), *option.split(), "--keep", "first") == 0
    assert re.search(r"1 not \w+: the option `keep` names them", capsys.readouterr().out)


def test_auto_keeps_products_with_epilogues(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "(float[n, 48] x) => (float[n, 40] y) { h = MatMul(x, first) y = Relu(h) }"
    path = tmp_path / "fused.onnx"
    onnx.save(model_of(text, first=normal(48, 40)), path)
    assert run("compile", str(path), "--precision", "auto", "--max-loss", "0.0001%") == 0
    assert re.search(r"first +\d\.\d\d% +f32", capsys.readouterr().out)


def test_the_plan_keeps_its_price(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = str(model.with_suffix(".plan"))
    for arguments, said in [
        (["--precision", "bf16"], r"candle\.price: bf16, 2 matrices, largest relative error 0\.1\d%\n"),
        (["--precision", "f16", "--keep", "first"], r"candle\.price: f16, 1 matrix, largest relative error 0\.0\d%\n"),
        (["--weights", "int4"], r"candle\.price: int4, 2 matrices, largest relative error \d+\.\d\d%\n"),
        (["--precision", "auto", "--max-loss", "50%"], r"candle\.loss: \d\.\d\d% of the norm of the outputs, measured"),
        ([], r"passes: \d+ \(--json lists them\)\n(?!candle)"),
    ]:
        assert run("compile", str(model), *arguments) == 0
        capsys.readouterr()
        assert run("inspect", plan) == 0
        assert re.search(said, capsys.readouterr().out), arguments


def test_an_option_without_effect_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "small.onnx"
    onnx.save(model_of("(float[n, 4] x) => (float[n, 4] y) { y = Relu(x) }"), path)
    assert run("compile", str(path), "--precision", "int8") == 0
    assert "no weights have changed" in capsys.readouterr().out


WRONG = [
    (["--precision", "auto"], "--precision auto needs the largest loss of the outputs: give --max-loss, such as 0.5%"),
    (["--precision", "auto", "--max-loss", "2"], "'2' is no loss: give a percentage, such as 0.5%"),
    (["--precision", "int8", "--max-loss", "1%"], "--max-loss is for --precision auto: leave it out, or give both"),
    (
        ["--precision", "int8", "--size", "n=3"],
        "--size is for --precision auto, --profile and --verify: leave it out,",
    ),
    (["--precision", "fp8"], "'fp8' is not one of 'f32', 'f16', 'bf16', 'int8', 'auto'"),
    (["--precision", "f32", "--keep", "first"], "give --weights or --precision too"),
    (["--precision", "bf16", "--weights", "int8"], "--precision changes weights: leave it out, or --weights"),
    (["--precision", "bf16", "--keep-weights"], "--precision changes weights: leave it out, or --keep-weights"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_wrong_use(model: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compile", str(model), *arguments) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not model.with_suffix(".plan").exists()
