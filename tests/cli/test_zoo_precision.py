"""The distances of plans and of onnxruntime from double precision."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest

import compiler
from compiler.accuracy.precision import ROUNDING, Errors, errors_of, exact_outputs, together
from compiler.accuracy.reference import Reference
from compiler.zoo.index import read_index
from tests.cli.command import run

MODELS = Path(__file__).parents[2] / "models"
AT_MOST = 3.0

EXACT = np.array([1.0, -4.0, 2.0])
SINGLE = EXACT.astype(np.float32)


@pytest.mark.parametrize(
    ("exact", "found", "expected", "errors"),
    [
        (EXACT, SINGLE + np.float32(0.5), SINGLE - np.float32(1), Errors(0.125, 0.25)),
        (EXACT, SINGLE, SINGLE, Errors(0.0, 0.0)),
        (EXACT.astype(np.int64), EXACT.astype(np.int64), EXACT.astype(np.int64), None),
        (EXACT, SINGLE[:2], SINGLE, None),
        (EXACT, SINGLE * np.float32(np.inf), SINGLE, None),
        (np.zeros(2), np.array([0, 1], np.float32), np.zeros(2, np.float32), Errors(float("inf"), 0.0)),
        ([EXACT], [SINGLE], [SINGLE], None),
        (np.zeros(0), np.zeros(0, np.float32), np.zeros(0, np.float32), None),
    ],
    ids=["parts", "none", "integers", "shape", "infinite", "zero", "sequence", "empty"],
)
def test_errors_are_parts_of_the_largest_magnitude(
    exact: Any, found: Any, expected: Any, errors: Errors | None
) -> None:
    assert errors_of({"y": exact}, {"y": found}, {"y": expected}) == errors


def test_the_worst_of_each_counts_and_no_error_is_less_than_a_rounding() -> None:
    assert together([Errors(1e-6, 3e-6), Errors(2e-6, 1e-6)]) == Errors(2e-6, 3e-6)
    assert together([]) is None
    assert Errors(0.0, 0.0).ratio == Errors(ROUNDING / 2, ROUNDING / 4).ratio == 1
    assert Errors(4 * ROUNDING, 0.0).ratio == 4


def test_double_precision_is_as_near_as_can_be() -> None:
    text = """<ir_version: 10, opset_import: ["": 21]> m (float[3, 5] x, int64[2] s) => (float[3, 5] y) {
        zero = ConstantOfShape (s)  e = Exp (x)  sum = Add (e, zero)  y = Softmax (sum)
    }"""
    inputs = {"x": np.linspace(-2, 2, 15, dtype=np.float32).reshape(3, 5), "s": np.array([3, 5])}
    exact = exact_outputs(onnx.parser.parse_model(text), inputs)
    assert exact is not None
    wide = np.exp(np.exp(inputs["x"].astype(np.float64)))
    np.testing.assert_allclose(exact["y"], wide / wide.sum(1, keepdims=True), rtol=1e-14)


def test_what_quantizes_has_no_double_precision() -> None:
    text = """<ir_version: 10, opset_import: ["": 21]> m (float[4] x, float s) => (uint8[4] y) {
        y = QuantizeLinear (x, s)
    }"""
    inputs = {"x": np.ones(4, np.float32), "s": np.float32(0.5)}
    assert exact_outputs(onnx.parser.parse_model(text), inputs) is None


@pytest.mark.parametrize("entry", read_index(MODELS), ids=lambda entry: str(entry.name))
def test_plans_round_about_as_much_as_onnxruntime(entry: Any) -> None:
    for case in entry.cases:
        inputs = entry.inputs(case)
        exact = exact_outputs(entry.path, inputs)
        assert exact is not None
        found = compiler.load(compiler.compile(entry.path)).run(inputs)
        errors = errors_of(exact, found, Reference(entry.path).run(inputs))
        assert errors is not None
        assert errors.ratio <= AT_MOST


def test_the_command_tells_and_judges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    assert run("zoo", "precision", "--zoo", str(MODELS), "--markdown", str(page)) == 0
    assert "worst error ÷ onnxruntime's" in capsys.readouterr().out
    text = page.read_text()
    assert text.startswith("# Rounding errors beside onnxruntime\n")
    assert "| model | cases | plan | onnxruntime | ratio |" in text
    assert "onnxruntime " in text
    assert run("zoo", "precision", "--zoo", str(MODELS), "--at-most", "0.001", "--json") == 1
    data = json.loads(capsys.readouterr().out)
    assert not data["ok"]
    assert all(each["ratio"] > 0.001 for each in data["models"].values())
