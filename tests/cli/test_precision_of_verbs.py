"""The option `--precision` of the commands that compile models in order to run them, and `--tolerance` of a folder."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import onnx
import pytest

from compiler.zoo.facts_file import read_facts
from tests.cli.command import run
from tests.passes.weighted import model_of, normal

QUICK = ("--threads", "1", "--seconds", "0.01")
FOLDER = ("--zoo", ".", "--jobs", "1")


@pytest.fixture(autouse=True)
def product(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of one model with a product."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "150")
    text = "(float[n, 48] x) => (float[n, 40] y) { y = MatMul(x, w) }"
    onnx.save(model_of(text, w=normal(48, 40)), "product.onnx")
    np.savez("product.npz", x=normal(3, 48, seed=1))
    Path("INDEX.json").write_text(json.dumps([{"name": "product", "file": "product.onnx", "cases": ["product.npz"]}]))


@pytest.mark.parametrize("precision", ["f16", "bf16", "int8"])
@pytest.mark.parametrize("arguments", [("verify", "product.onnx"), ("zoo", "run", *FOLDER)], ids=" ".join)
def test_results_differ_by_design(
    arguments: tuple[str, ...], precision: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments, "--precision", precision) == 1
    printed = "".join(capsys.readouterr())
    assert "--tolerance to the difference that you allow, such as 0.05" in printed and "candlec bisect" not in printed
    assert run(*arguments, "--precision", precision, "--tolerance", "0.05") == 0


def test_a_tolerance_in_the_index_counts_first() -> None:
    entry = {"name": "product", "file": "product.onnx", "cases": ["product.npz"], "tolerance": 1e-6}
    Path("INDEX.json").write_text(json.dumps([entry]))
    assert run("zoo", "run", *FOLDER, "--precision", "int8", "--tolerance", "0.05") == 1


@pytest.mark.parametrize("arguments", [("bench", "product.onnx"), ("bench", "--zoo", ".")], ids=" ".join)
def test_a_benchmark_times_the_rounded_plan(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*arguments, *QUICK, "--precision", "int8", "--json") == 0
    assert json.loads(capsys.readouterr().out)["ok"]


def test_facts_record_the_price(capsys: pytest.CaptureFixture[str]) -> None:
    exact, rounded = (("zoo", "update", *FOLDER, "--facts", name) for name in ("f32.toml", "int8.toml"))
    chosen = ("--precision", "int8", "--tolerance", "0.05")
    assert run(*exact) == 0 and run(*rounded, *chosen) == 0
    facts = [read_facts(Path(name)).models["product"]["pinned"] for name in ("f32.toml", "int8.toml")]
    assert facts[1].plan["steps"] == {"QuantizedMatMul": 1}
    errors = [each.plan["error_percent"]["y"] for each in facts]  # type: ignore[index, call-overload]
    assert errors[1] > 1000 * errors[0]
    assert run("zoo", "run", *FOLDER, "--facts", "int8.toml", *chosen) == 0
    capsys.readouterr()
    assert run("zoo", "run", *FOLDER, "--facts", "f32.toml", *chosen) == 1
    printed = capsys.readouterr().err
    [advised] = re.findall(r"`(candlec zoo update .*)`", printed)
    assert advised == "candlec zoo update --zoo . --facts f32.toml --tolerance 0.05 --precision int8 --only product"
    assert "candlec bisect" not in printed


def test_a_plan_has_its_precision(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compile", "product.onnx") == 0
    for arguments in (("verify", "product.onnx", "product.plan"), ("bench", "product.plan")):
        assert run(*arguments, "--precision", "bf16") == 2
        assert "--precision rounds products when compiling" in capsys.readouterr().err
