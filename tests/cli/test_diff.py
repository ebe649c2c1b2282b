"""`candlec diff`: what differs between two models or plans."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

from tests import broken_passes
from tests.cli.command import run
from tests.page.elements import data_in


@pytest.fixture
def models(folder: Path) -> Path:
    """A working folder with a model, another one, the plan of the first, and inputs."""
    onnx.save(broken_passes.model(), "a.onnx")
    other = broken_passes.MODEL.replace("axis = 1", "axis = -1").replace("{3, 1, 1, 1}", "{3, 1, 1, 2}")
    onnx.save(onnx.parser.parse_model(other), "b.onnx")
    np.savez("x.npz", x=np.array([[1.5, -2.5, 3, 4], [0, 1, -2, 3]], np.float32))
    assert run("compile", "a.onnx", "-o", "a.plan") == 0
    return folder


def test_equal_files_do_not_differ(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for pair in (("a.onnx", "a.onnx"), ("a.plan", "a.onnx"), ("a.plan", "a.plan")):
        capsys.readouterr()
        assert run("diff", *pair, "--run", "--size", "n=3") == 0
        printed = capsys.readouterr()
        assert f"{pair[0]} and {pair[1]} are equal, also their " in printed.out
        assert "the inputs are random (seed 0): x [3, 4]" in printed.err


def test_the_tables_show_what_differs(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run("diff", "a.onnx", "b.onnx", "--input", "x.npz") == 1
    printed = capsys.readouterr().out
    rows = [" ".join(line.split()) for line in printed.splitlines()]
    assert "TopK 1 1 1" in rows
    assert "changed TopK sorted axis 1 -1 TopK(sort)" in rows
    assert "changed shift float32 [4], 16 B float32 [4], 16 B 1.0e+00" in rows
    assert "first to differ" in printed and any(row.startswith("✗ shifted float32 [2, 4] 1.0e+00") for row in rows)
    assert "step 3, Binary Add(shift)" in rows
    assert rows[-1] == "a.onnx and b.onnx differ: 1 node, 1 constant; they share 2 constants of 24 B"


def test_json_has_everything(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run("diff", "a.plan", "b.onnx", "--json", "--input", "x.npz") == 1
    data = json.loads(capsys.readouterr().out)
    assert (data["ok"], data["kind"]) == (False, "plan")
    assert [each["max_abs"] for each in data["constants"]] == [1.0]
    assert {each["op"] for each in data["operators"]} >= {"TopK"}
    assert data["numbers"]["outputs"][0]["name"] == "y" and data["numbers"]["problem"] == ""
    assert run("diff", "a.onnx", "b.onnx", "--json") == 1
    data = json.loads(capsys.readouterr().out)
    assert data["numbers"] is None
    assert data["nodes"] == [
        {
            "change": "changed",
            "op": "TopK",
            "name": "sorted",
            "origin": "TopK(sort)",
            "details": [{"what": "axis", "before": "1", "after": "-1"}],
        }
    ]


def test_graphs_before_and_after_a_pass(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compile", "a.onnx", "-o", "a.plan", "--dump-passes", "passes") == 0
    dumped = sorted(map(str, Path("passes").glob("*.onnx")))
    capsys.readouterr()
    assert run("diff", dumped[0], dumped[-1], "--run") == 1
    printed = capsys.readouterr().out
    assert "candle.plan." in printed and "✓   y " in printed


def test_the_difference_has_a_page(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run("diff", "a.onnx", "b.onnx", "--run", "--report", "diff.html", "--json") == 1
    shown, data = json.loads(capsys.readouterr().out), data_in(Path("diff.html").read_text())
    kept = ("kind", "inputs", "outputs", "operators", "constants", "shared", "facts")
    assert {key: data[key] for key in kept} == {key: shown[key] for key in kept}
    assert [each["details"] for each in data["nodes"]] == [each["details"] for each in shown["nodes"]]
    assert data["names"] == ["a.onnx", "b.onnx"]
    assert data["summary"].startswith("a.onnx and b.onnx differ: 1 node, 1 constant; ")
    for one, other in zip(data["numbers"]["outputs"], shown["numbers"]["outputs"], strict=True):
        assert one.items() <= {**other, "max_abs": one["max_abs"]}.items()


def test_many_rows_are_not_all_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = [f"v{at + 1} = Abs (v{at})" for at in range(40)]
    text = '<ir_version: 9, opset_import: ["": 20]> m (float[2] v0) => (float[2] v40) { BODY }'
    onnx.save(onnx.parser.parse_model(text.replace("BODY", "\n".join(nodes))), "abs.onnx")
    onnx.save(onnx.parser.parse_model(text.replace("BODY", "\n".join(nodes).replace("Abs", "Neg"))), "neg.onnx")
    assert run("diff", "abs.onnx", "neg.onnx") == 1
    printed = capsys.readouterr().out
    assert printed.count("\nremoved ") == 30 and "… and 50 more rows; --json lists all\n" in printed


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["a.onnx", "b.onnx", "--size", "n=2"], "--size sets sizes of random inputs: add --run"),
        (["a.onnx", "b.onnx", "--dim", "n=2"], "add --plans to compile the models"),
        (["a.plan", "a.plan", "--dim", "n=2"], "both files are plans: leave --dim out"),
        (["a.onnx"], "Missing argument 'AFTER'"),
        (["a.onnx", "b.onnx", "--run", "--size", "k=2"], "no input has a dimension 'k'"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_wrong_usage(arguments: list[str], said: str, models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run("diff", *arguments) == 2
    assert said in capsys.readouterr().err


def test_files_that_cannot_be_read(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("odd.onnx").write_text("odd")
    for name, said in (("missing.onnx", "missing.onnx"), ("odd.onnx", "is not an ONNX model"), (".", "CC0102")):
        capsys.readouterr()
        assert run("diff", "a.onnx", name) == 1
        assert said in capsys.readouterr().err


def test_values_of_other_types_have_no_differences_in_numbers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, dtype, kind in (("whole", 6, "int32"), ("real", 1, "float")):
        graph = f"t (float[2] x) => ({kind}[2] y) {{ y = Cast <to = {dtype}> (x) }}"
        onnx.save(onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 20]> {graph}'), f"{name}.onnx")
    assert run("diff", "real.onnx", "whole.onnx", "--run") == 1
    printed = capsys.readouterr().out
    (row,) = [line for line in printed.splitlines() if line.startswith("✗")]
    assert row.split() == ["✗", "y", "float32", "[2]:", "found", "dtype", "int32"]
