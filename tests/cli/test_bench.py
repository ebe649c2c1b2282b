"""`candlec bench`: it times plans beside their models, and writes tables."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import onnx
import onnx.parser
import pytest

from tests.cli.command import MODEL, OLD, run


def test_bench_times_both(zoo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("bench", "--zoo", ".", "--threads", "1", "--seconds", "0.05", "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    ratio = printed["timings"][0]["ratios"]["onnxruntime"]
    assert ratio > 0
    assert printed["geometric_mean"]["onnxruntime"]["1"] == pytest.approx(ratio)
    assert {"processor", "commit", "date"} <= printed["machine"].keys()


QUICK = ("--threads", "1", "--seconds", "0.01", "--json")


@pytest.mark.parametrize(
    ("files", "beside"),
    [
        (["echo.plan"], [False]),
        (["echo.onnx"], [True]),
        (["echo.plan", "echo.onnx"], [True]),
        (["other.plan", "echo.plan", "echo.onnx"], [False, True]),
        (["echo.onnx", "--against", "nothing"], [False]),
        (["echo.plan", "echo.onnx", "--against", "onnxruntime"], [True]),
    ],
    ids=str,
)
def test_bench_times_plans_beside_their_models(
    files: list[str], beside: list[bool], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    onnx.save(onnx.parser.parse_model(MODEL.replace("echo", "other")), "other.onnx")
    run("compile", "echo.onnx")
    run("compile", "other.onnx")
    capsys.readouterr()
    assert run("bench", *files, *QUICK) == 0
    timings = json.loads(capsys.readouterr().out)["timings"]
    assert [each["model"] for each in timings] == [Path(each).stem for each in files[: len(beside)]]
    assert all(each["engines"]["plan"]["milliseconds"] > 0 for each in timings)
    assert ["onnxruntime" in each["ratios"] for each in timings] == beside
    assert run("bench", *files, *QUICK[:-1]) == 0
    assert ("onnxruntime" in capsys.readouterr().out) == any(beside)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (["echo.plan", "--against", "onnxruntime"], "needs the model of echo.plan: name it too"),
        (["echo.plan", "old.onnx"], "none of these plans was compiled from old.onnx"),
    ],
    ids=str,
)
def test_bench_refuses_to_guess_the_model(
    files: list[str], said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    onnx.save(onnx.parser.parse_model(OLD), "old.onnx")
    run("compile", "echo.onnx")
    assert run("bench", *files, *QUICK) == 2
    assert said in capsys.readouterr().err


def test_bench_goes_on_after_a_model_that_is_refused(zoo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    models = ("refused.onnx", "old.onnx", "echo.onnx")
    onnx.save(onnx.parser.parse_model(OLD), "old.onnx")
    assert run("bench", *models, *QUICK) == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed["refused"]["refused"]["diagnostics"][0]["code"] == "CC0201"
    old, echo = printed["timings"]
    assert "onnxruntime refuses the model" in old["failed"]["onnxruntime"]
    assert [list(each["engines"]) for each in (old, echo)] == [["plan"], ["plan", "onnxruntime"]]


def test_bench_writes_its_tables_as_markdown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(onnx.parser.parse_model(OLD), "old.onnx")
    assert run("bench", "old.onnx", "echo.onnx", *QUICK[:-1], "--markdown", "table.md") == 0
    page = Path("table.md").read_text()
    assert page.startswith("# Times beside other runtimes\n\n`candlec")
    assert "| model | threads | plan | onnxruntime | ratio |\n|---|---:|---:|---:|---:|\n" in page
    assert "| – | – |\n" in page
    assert "- geometric mean of time ÷ onnxruntime, 1 thread, 1 model: " in page
    assert "- – old: onnxruntime refuses the model: " in page
    assert capsys.readouterr().out.count("onnxruntime refuses the model") == 1


def test_without_openvino_bench_says_what_to_install(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "openvino", None)
    assert run("bench", "echo.onnx", "--against", "openvino") == 1
    assert 'pip install "candle-compiler[bench]"' in capsys.readouterr().err
