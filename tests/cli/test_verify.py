"""`candlec verify`: the comparison of a plan with onnxruntime."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import onnx
import onnx.parser
import pytest

from tests.cli.command import MODEL, OLD, run


def test_verify_compares_with_onnxruntime(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("compile", "echo.onnx")
    assert run("verify", "echo.onnx", "echo.plan", "--input", "io.npz") == 0
    assert "warning" not in capsys.readouterr().err
    assert run("verify", "echo.onnx", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert [(each["name"], each["max_abs"]) for each in shown["outputs"]] == [("y", 0.0), ("m", 0.0)]


def test_verify_fails_for_another_models_plan(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = MODEL.replace("m = Identity(n)", "m = Constant<value_ints = [9, 9]>()")
    onnx.save(onnx.parser.parse_model(other), "other.onnx")
    run("compile", "other.onnx")
    assert run("verify", "echo.onnx", "other.plan", "--input", "io.npz") == 1
    printed = capsys.readouterr()
    assert "2 of 2 elements differ" in printed.out
    assert "warning: other.plan is not the plan of echo.onnx" in printed.err


def test_verify_suggests_the_plan_of_the_model(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = '<ir_version: 9, opset_import: ["": 20]> m (float[4] a) => (float[4] b) { b = Neg (a) }'
    onnx.save(onnx.parser.parse_model(other), "other.onnx")
    run("compile", "other.onnx")
    capsys.readouterr()
    for options in ([], ["--input", "io.npz"]):
        assert run("verify", "echo.onnx", "other.plan", *options) == 1
        printed = capsys.readouterr().err
        assert "warning: other.plan is not the plan of echo.onnx, or the model has changed\n" in printed
        assert printed.endswith("\n  help: pass the plan of this model\n") and printed.count("help:") == 1


def test_verify_says_that_onnxruntime_is_unsure(unsure: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("compile", "unsure.onnx", "--no-optimize")
    capsys.readouterr()
    assert run("verify", "unsure.onnx", "unsure.plan", "--input", "unsure.npz") == 0
    printed = capsys.readouterr().out
    assert "≈" in printed
    assert "y: onnxruntime's results with and without its optimizations differ by " in printed
    assert "0 of 1 output equals onnxruntime's; 1 is uncertain: it differs by at most" in printed
    assert run("verify", "unsure.onnx", "unsure.plan", "--input", "unsure.npz", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["ok"], shown["equal"], shown["outputs"][0]["verdict"]) == (True, False, "uncertain")
    assert shown["outputs"][0]["reference_noise"] > shown["outputs"][0]["allowed"]
    assert shown["outputs"][0]["doubt"] == shown["outputs"][0]["reference_noise"]


def test_verify_gives_advice_on_differences(unsure: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("compile", "unsure.onnx", "--no-optimize")
    capsys.readouterr()
    arguments = ("verify", "unsure.onnx", "unsure.plan", "--input", "unsure.npz", "--tolerance", "1e-5")
    assert run(*arguments) == 1
    printed = capsys.readouterr().out
    assert "✗" in printed
    assert "1 is not equal" in printed
    assert "help: verify a plan of `candlec compile --no-optimize`" in printed
    assert "help: `candlec bisect MODEL` finds this pass" in printed


DICE = (
    '<ir_version: 9, opset_import: ["": 20]> m (float[4] x) => (float[4] y) { y = RandomNormalLike <seed = 1.0> (x) }'
)


def test_verify_does_not_compare_random_numbers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(onnx.parser.parse_model(DICE), "dice.onnx")
    assert run("verify", "dice.onnx") == 0
    printed = capsys.readouterr().out
    assert "y: random numbers differ between any two programs" in printed
    assert "0 of 1 output equals onnxruntime's; 1 is random, and only" in printed
    assert run("verify", "dice.onnx", "--json") == 0
    assert json.loads(capsys.readouterr().out)["outputs"][0]["verdict"] == "random"


FLOAT8 = """<ir_version: 10, opset_import: ["": 21]> m (float[4] x) => (float8e4m3fn[4] y)
<float[1] c = {1}> { product = Mul (x, c)  y = Cast <to = 17> (product) }"""


def test_verify_compares_dtypes_that_numpy_lacks(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(onnx.parser.parse_model(FLOAT8), "float8.onnx")
    onnx.save(onnx.parser.parse_model(FLOAT8.replace("{1}", "{2}")), "other.onnx")
    run("compile", "other.onnx")
    assert run("verify", "float8.onnx") == 0
    printed = capsys.readouterr().out
    assert "float8_e4m3fn" in printed and "1 of 1 output equals onnxruntime's" in printed
    assert run("verify", "float8.onnx", "other.plan") == 1
    assert "y: 4 of 4 elements differ" in capsys.readouterr().out


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have only names in UTF-8")
def test_verify_takes_a_path_that_is_not_utf_8(folder: Path) -> None:
    path = os.fsdecode(b"caf\xe9.onnx")
    Path("echo.onnx").rename(path)
    assert run("verify", path, "--input", "io.npz") == 0


def test_without_onnxruntime_verify_says_what_to_install(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert run("verify", "echo.onnx") == 1
    assert 'pip install "candle-compiler[check]"' in capsys.readouterr().err


def test_verify_gives_advice_on_operators_that_onnxruntime_lacks(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    onnx.save(onnx.parser.parse_model(OLD), "old.onnx")
    assert run("verify", "old.onnx") == 1
    printed = capsys.readouterr().err
    assert "error: onnxruntime refuses the model: " in printed
    assert "`candlec run PLAN --output FILE`" in printed


def test_swapped_arguments_are_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("compile", "echo.onnx")
    capsys.readouterr()
    assert run("verify", "echo.plan", "echo.onnx") == 2
    assert "MODEL and PLAN are swapped: write `candlec verify echo.onnx echo.plan`" in capsys.readouterr().err
