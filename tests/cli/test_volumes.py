"""`candlec compile --lower-3d` and `candlec check --lower-3d`: the price of each operator, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import onnx.parser
import pytest

from tests.cli.command import run

MODEL = Path(__file__).parents[2] / "models" / "digits_3d.onnx"
UNPOOLED = """<ir_version: 10, opset_import: ["": 21]>
g (float[1, 2, 2, 2, 2] x, int64[1, 2, 1, 1, 1] i) => (float[a, b, c, d, e] y) {
    z = GlobalMaxPool(x)
    y = MaxUnpool<kernel_shape = [2, 2, 2]>(z, i)
}"""


def test_the_price_of_each_operator_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compile", str(MODEL), "--lower-3d", "-o", str(tmp_path / "a.plan")) == 0
    printed = capsys.readouterr().out
    assert re.search(r"encoder\.0 +Conv: \+9 nodes, \+16\.9 kB written, \+0 multiply-adds for batch = 1", printed)
    assert "lowered: 2 Conv, 1 MaxPool\n" in printed


def test_json_has_the_price_of_each_operator(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compile", str(MODEL), "--lower-3d", "--json", "--dim", "batch=2", "-o", str(tmp_path / "a.plan")) == 0
    passes = {each["name"]: each for each in json.loads(capsys.readouterr().out)["passes"]}
    assert passes["lower_3d_conv"]["fired"] == {"Conv": 2}
    assert passes["lower_3d_norm"]["fired"] == {"FoldBatchNorm3d": 2}
    notes = [each["note"] for each in passes["lower_3d_pool"]["notes"]]
    assert notes == ["MaxPool: +4 nodes, +4.1 kB written, +0 multiply-adds"]


def test_without_the_option_the_refusal_names_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compile", str(MODEL), "-o", str(tmp_path / "a.plan")) == 1
    advice = "`candlec compile --lower-3d` or `Options(lower_3d=True)` replaces it with 2-D ones"
    assert capsys.readouterr().err.count(f"help: no kernel computes 3-D operators: {advice}") == 3


def test_check_shows_what_is_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", str(MODEL)) == 1
    assert run("check", str(MODEL), "--lower-3d", "--device", "cuda") == 0
    assert "the compiler supports the model\n" in capsys.readouterr().out
    model = onnx.parser.parse_model(UNPOOLED)
    onnx.save(model, tmp_path / "unpooled.onnx")
    assert run("check", str(tmp_path / "unpooled.onnx"), "--lower-3d", "--json") == 1
    verdicts = {each["operator"]: each["verdict"] for each in json.loads(capsys.readouterr().out)["operators"]}
    assert verdicts == {"GlobalMaxPool": "accepted", "MaxUnpool": "refused"}
