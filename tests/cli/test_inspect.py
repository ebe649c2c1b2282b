"""`candlec inspect`: the inputs, operators, constants and steps of models and plans."""

from __future__ import annotations

import json
import re
from pathlib import Path

import onnx
import onnx.parser
import pytest

from tests.cli.command import run
from tests.state.models import cache_plan


@pytest.mark.parametrize("file", ["echo.onnx", "echo.plan"])
def test_inspect_shows_inputs_and_operators(folder: Path, file: str, capsys: pytest.CaptureFixture[str]) -> None:
    run("compile", "echo.onnx")
    capsys.readouterr()
    assert run("inspect", file) == 0
    assert "[batch, 3]" in capsys.readouterr().out
    assert run("inspect", file, "--json") == 0
    assert json.loads(capsys.readouterr().out)["operators"] == {"Identity": 2}


HOLDING = """
<ir_version: 9, opset_import: ["": 20], producer_name: "hand", producer_version: "2">
holding (float[2] x, bool c) => (float[2] y) <float[2] w = {1, 2}, int64[1] n = {3}> {
    y = If (c) <
        then_branch = yes () => (float[2] a) { k = Constant <value = float[1] {4.0}> ()  a = Add (x, k) },
        else_branch = no () => (float[2] b) { b = Mul (x, w) }
    >
}
"""


def test_inspect_counts_all_that_a_model_holds(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(onnx.parser.parse_model(HOLDING), "holding.onnx")
    assert run("inspect", "holding.onnx", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["constants"], shown["constant_bytes"], shown["parameters"]) == (3, 20, 3)
    assert shown["bytes"] == (folder / "holding.onnx").stat().st_size
    assert shown["producer"] == "hand 2"


def test_inspect_omits_absent_parts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("inspect", "echo.onnx") == 0
    (size,) = (line for line in capsys.readouterr().out.splitlines() if "producer" in line or "echo.onnx" in line)
    assert size == f"echo.onnx: a model, {(folder / 'echo.onnx').stat().st_size} B"


def test_inspect_prints_the_steps_of_a_plan(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = "flat (float[batch, 3] x) => (float[n, m] y) { y = Flatten <axis = 1> (x) }"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 20]> {graph}'), "flat.onnx")
    run("compile", "flat.onnx", "--no-optimize")
    capsys.readouterr()
    assert run("inspect", "flat.plan", "--list-steps") == 0
    assert "%1:y = Flatten(%0:x, axis=1): float32 [batch, 3]\n" in capsys.readouterr().out
    assert run("inspect", "flat.plan", "--list-steps", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["operators"] == {"Flatten": 1}
    assert shown["steps"] == [
        {
            "op": "Flatten",
            "inputs": ["%0:x"],
            "outputs": ["%1:y"],
            "types": ["float32 [batch, 3]"],
            "attributes": {"axis": 1},
            "origin": {"nodes": ["Flatten(y)"], "module": "", "source": ""},
        }
    ]


def test_inspect_prints_the_nodes_of_a_model(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(onnx.parser.parse_model(HOLDING), "holding.onnx")
    assert run("inspect", "holding.onnx", "--list-steps") == 0
    printed = capsys.readouterr().out
    assert "y = If(c)\n" in printed
    assert "  else_branch:\n    b = Mul(x, w)\n" in printed
    assert run("inspect", "holding.onnx", "--list-steps", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    (node,) = shown["steps"]
    assert (node["op"], node["inputs"], node["outputs"], shown["functions"]) == ("If", ["c"], ["y"], [])
    assert [each["op"] for each in node["attributes"]["then_branch"]] == ["Constant", "Add"]


def test_inspect_prints_functions_too(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = """<ir_version: 9, opset_import: ["": 20, "own": 1]>
    m (float[n] x) => (float[n] y) { y = own.scale <by = 2.0> (x) }
    <domain: "own", opset_import: ["": 20]>
    scale <by> (x) => (y) { k = Constant <value_float: float = @by> () y = Mul (x, k) }"""
    onnx.save(onnx.parser.parse_model(text), "scaled.onnx")
    assert run("inspect", "scaled.onnx", "--list-steps") == 0
    printed = capsys.readouterr().out
    assert "function own.scale:\n  input x" in printed
    assert "  k = Constant(value_float=@by)\n" in printed
    assert run("inspect", "scaled.onnx", "--list-steps", "--json") == 0
    (function,) = json.loads(capsys.readouterr().out)["functions"]
    assert [each["op"] for each in function["steps"]] == ["Constant", "Mul"]
    assert function["steps"][0]["attributes"] == {"value_float": "@by"}


def test_a_file_is_inspected_as_what_it_is(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("compile", "echo.onnx")
    Path("echo.plan").rename("plan")
    Path("echo.onnx").rename("echo.plan")
    for file, kind in (("plan", "plan"), ("echo.plan", "model")):
        capsys.readouterr()
        assert run("inspect", file, "--json") == 0
        assert json.loads(capsys.readouterr().out)["kind"] == kind


def test_the_advice_on_unknown_memory_is_possible(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = '<ir_version: 9, opset_import: ["": 20]> m (float[n] x) => (int64[1, k] y) { h = Neg(x) y = NonZero(h) }'
    onnx.save(onnx.parser.parse_model(text), "found.onnx")
    run("compile", "found.onnx")
    capsys.readouterr()
    said = {
        ("found.plan",): r"unknown for \d steps? \(inspect the model with --dim\)",
        ("found.onnx",): r"unknown for \d steps? \(fix sizes with --dim\)",
        ("found.onnx", "--dim", "n=4"): r"unknown for 1 step \(step 1, NonZero, is the first that states no bound\)",
    }
    for arguments, expected in said.items():
        assert run("inspect", "--prepared", *arguments) == 0
        assert re.search(expected, capsys.readouterr().out)
    assert run("inspect", "--prepared", "found.plan", "--dim", "n=4") == 2
    assert "a plan is compiled: inspect the model with --dim" in capsys.readouterr().err


def test_inspect_says_which_values_of_a_state_change_in_place(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cache_plan(optimize=False).save("cache.plan")
    assert run("inspect", "--prepared", "cache.plan") == 0
    said = capsys.readouterr().out
    assert "state: 1 of 2 values change in place; each run makes these anew: state_out\n" in said
    assert re.search(r"^each run copies present_x for step \d, Transpose$", said, re.MULTILINE)
    assert run("inspect", "--prepared", "cache.plan", "--json") == 0
    first, second = json.loads(capsys.readouterr().out)["state"]
    assert second == {"output": "state_out", "input": "state", "in_place": False, "copies": []}
    assert (first["output"], first["in_place"], len(first["copies"])) == ("present_x", True, 1)
