"""`candlec check`: it gives a verdict on every operator, even if the model has other errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
import onnx.parser
import pytest

from tests.cli.command import run

VOLUMES = """(float[1, 1, 4, 4, 4] x, float[1, 1, 3, 3, 3] w, float[4] v) => (y, z, a, b) {
    y = Conv (x, w)  c = Neg (y)  z = private.Melt (c)  a = Relu (v)  b = Celu <heat = 1> (v)
}"""
CYCLE = "(float[2] x) => (y, z) { a = Add (x, b)  b = Neg (a)  y = Neg (b)  z = private.Melt (x) }"
DEEP = """(bool c, float[2] x) => (y, z) {
    y = If (c) <then_branch = t () => (p) { p = private.Melt (x) }, else_branch = e () => (q) { q = Neg (x) }>
    z = Abs (x)
}"""
# The library that infers types knows this operator, but the compiler does not trust it for refused operators.
CODES = """(uint8[2, 2] x, uint8 z) => (float[2, 2] y) <float s = {0.5}> {
    c = com.microsoft.GatedAdd (x, x)  y = DequantizeLinear (c, s, z)
}"""
SOUND = "(float[n, 2] x) => (y) { y = Neg (x) }"
DECLARED = "(float[2, 3] x) => (float[3, 2] y) { y = Neg (x) }"


def check(graph: str, *options: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, Any]:
    """The exit code, and the JSON output."""
    text = f'<ir_version: 10, opset_import: ["": 20, "private": 1, "com.microsoft": 1]> m {graph}'
    onnx.save(onnx.parser.parse_model(text), "model.onnx")
    code = run("check", "model.onnx", "--json", *options)
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("graph", "options", "codes", "verdicts"),
    [
        (SOUND, [], [], {"Neg": "accepted"}),
        (SOUND, ["--dim", "n=3"], [], {"Neg": "accepted"}),
        (SOUND, ["--dim", "q=1"], ["CC0403"], {"Neg": "accepted"}),
        (
            VOLUMES,
            [],
            ["CC0301", "CC0201", "CC0203"],
            {"Conv": "refused", "Neg": "accepted", "Melt": "refused", "Relu": "accepted", "Celu": "refused"},
        ),
        (CYCLE, [], ["CC0105", "CC0201"], {"Neg": "unchecked", "Add": "unchecked", "Melt": "refused"}),
        (DEEP, [], ["CC0201"], {"If": "accepted", "Melt": "refused", "Neg": "accepted", "Abs": "accepted"}),
        (DECLARED, [], ["CC0402"], {"Neg": "accepted"}),
        (CODES, [], ["CC0201"], {"GatedAdd": "refused", "DequantizeLinear": "unchecked"}),
    ],
)
def test_every_operator_has_a_verdict(
    graph: str,
    options: list[str],
    codes: list[str],
    verdicts: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    code, shown = check(graph, *options, capsys=capsys)
    assert sorted(each["code"] for each in shown["diagnostics"]) == sorted(codes)
    assert {each["operator"]: each["verdict"] for each in shown["operators"]} == verdicts
    errors = [each for each in shown["diagnostics"] if each["severity"] == "error"]
    assert shown["ok"] is (not errors)
    assert code == bool(errors)


def test_warnings_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    check(DECLARED, capsys=capsys)
    assert run("check", "model.onnx") == 0
    printed = capsys.readouterr()
    assert printed.err.count("warning[CC0402]") == 1
    assert "refuses" not in printed.err
    assert "the compiler supports the model" in printed.out


def test_check_names_what_is_in_the_way(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", "echo.onnx") == 0
    assert run("check", "refused.onnx") == 1
    printed = capsys.readouterr().err
    assert "Melt" in printed
    assert "Freeze" in printed


def test_check_does_not_pass_what_it_could_not_look_at(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = "g (float[2] x) => (y, z) { a = Melt(x) y = Celu<heat = 1>(a) z = Relu(x) }"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 20]> {graph}'), "behind.onnx")
    assert run("check", "behind.onnx") == 1
    rows = {line.split()[1]: line.split()[0] for line in capsys.readouterr().out.splitlines() if line[:1] in set("✓✗?")}
    assert rows == {"Melt": "✗", "Celu": "?", "Relu": "✓"}
    assert run("check", "behind.onnx", "--json") == 1
    assert json.loads(capsys.readouterr().out)["unchecked"] == ["Celu(y)"]


def test_check_tells_programs_too(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", "refused.onnx", "--json") == 1
    shown = json.loads(capsys.readouterr().out)
    assert shown["ok"] is False
    assert [each["code"] for each in shown["diagnostics"]] == ["CC0201", "CC0201"]


def layer(number: int, exporter: str) -> onnx.NodeProto:
    """A refused layer, with the module and the line of Python as a PyTorch exporter records them."""
    node = onnx.helper.make_node("Conv", [f"x{number}", "w"], [f"x{number + 1}"], pads=[1] * 6)
    if exporter == "dynamo":
        node.name = f"node_conv3d_{number}"
        facts = {
            "stack_trace": 'File "/home/ann/net.py", line 7, in forward\n    return self.conv(x)',
            "name_scopes": f"['', 'layers.{number}', 'layers.{number}.conv', 'conv3d']",
            "class_hierarchy": "['net.Net', 'net.Layer', 'torch.nn.modules.conv.Conv3d', 'aten.conv3d']",
        }
        for key, value in facts.items():
            node.metadata_props.add(key=f"pkg.torch.onnx.{key}", value=value)
    else:
        node.name = f"/layers.{number}/conv/Conv"
        node.doc_string = "/lib/site-packages/torch/nn/modules/conv.py(735): forward\n/home/ann/net.py(7): forward\n"
    return node


@pytest.mark.parametrize(
    ("exporter", "opset", "place"),
    [
        ("dynamo", 18, "net.py:7 in forward   layers.{0}.conv : Conv3d   Conv(node_conv3d_{0})"),
        ("dynamo", 20, "net.py:7 in forward   layers.{0}.conv : Conv3d   Conv(node_conv3d_{0})"),
        ("TorchScript", 11, "net.py:7 in forward   layers.{0}.conv   Conv(/layers.{0}/conv/Conv)"),
        ("TorchScript", 17, "net.py:7 in forward   layers.{0}.conv   Conv(/layers.{0}/conv/Conv)"),
    ],
)
def test_equal_layers_are_one_finding_with_a_count(
    exporter: str, opset: int, place: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shapes = {"x0": [1, 2, 4, 4, 4], "w": [2, 2, 3, 3, 3], "x24": None}
    x, w, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shapes[name]) for name in shapes)
    graph = onnx.helper.make_graph([layer(number, exporter) for number in range(24)], "layers", [x, w], [y])
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=8)
    onnx.save(made, "model.onnx")
    for command in (("check", "model.onnx"), ("compile", "model.onnx", "--report", "report.html")):
        assert run(*command) == 1
        printed = capsys.readouterr().err
        assert printed.count("error[CC0301]") == 1
        assert [line for line in printed.splitlines() if line.startswith("  --> ")] == [
            *(f"  --> {place.format(number)}" for number in range(20)),
            "  --> … and 4 more; --json lists all",
        ]
        assert printed.endswith("error: the compiler refuses the model: 1 error in 24 places\n")
    assert run("check", "model.onnx", "--json") == 1
    assert len(json.loads(capsys.readouterr().out)["diagnostics"]) == 24
