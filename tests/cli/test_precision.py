"""`candlec compile --precision`: the price of each product, the instructions, and wrong use."""

from __future__ import annotations

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


def test_verify_shows_the_error_and_that_it_is_meant(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = model.with_suffix(".plan")
    assert run("compile", str(model), "--precision", "bf16") == 0
    capsys.readouterr()
    assert run("verify", str(model), str(plan)) == 1
    printed = capsys.readouterr().out
    assert printed.count("  help:") == 1
    assert "the plan multiplies rounded numbers (`candlec compile --precision`)" in printed
    errors = re.search(r"the output's error is (\S+), onnxruntime's (\S+)", printed)
    assert errors is not None
    assert 1e3 * float(errors[2]) < float(errors[1]) < np.inf
    assert run("verify", str(model), str(plan), "--tolerance", "0.05") == 0


WRONG = [
    (["--precision", "f16"], "'f16' is not one of 'f32', 'bf16'"),
    (["--precision", "f32", "--keep", "first"], "give --weights or --precision too"),
    (["--precision", "bf16", "--weights", "int8"], "--precision rounds weights: leave it out, or --weights"),
    (["--precision", "bf16", "--keep-weights"], "--precision rounds weights: leave it out, or --keep-weights"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_wrong_use(model: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compile", str(model), *arguments) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not model.with_suffix(".plan").exists()
