"""`candlec ops`: the operators that the compiler supports."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import onnx.parser
import pytest

from tests.cli.command import run


def test_ops_knows_what_can_be_compiled(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("ops", "Identity") == 0
    assert run("ops", "Identity", "Melt") == 1
    assert "the compiler does not support Melt" in capsys.readouterr().err
    assert run("ops", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    listed = shown["operators"]
    assert shown["ok"]
    assert {"operator": "HannWindow", "newest": 17, "family": "(its ONNX function body)", "domain": "ai.onnx"} in listed
    assert "candle.plan" not in {each["domain"] for each in listed}
    assert run("ops", "Melt", "relu", "--json") == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out) == {"ok": False, "operators": [], "missing": ["Melt", "relu"]}
    assert printed.err == "the compiler does not support Melt\nthe compiler does not support relu: did you mean Relu?\n"


def test_what_ops_lists_as_expanded_is_compiled(folder: Path) -> None:
    window = '<ir_version: 9, opset_import: ["": 20]> m (int64 n) => (float[k] y) { y = HannWindow (n) }'
    onnx.save(onnx.parser.parse_model(window), "window.onnx")
    assert run("check", "window.onnx") == 0
