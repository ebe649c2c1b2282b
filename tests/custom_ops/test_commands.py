"""The option `--custom` of the commands, and how they show custom operators."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.cli.command import run
from tests.custom_ops.models import DOUBLE, model_of

OPERATORS = """
import numpy as np

import compiler


@compiler.custom_op("own::Double", lambda x: x)
def double(x):
    return 2 * x
"""
CUSTOM = ("--custom", "my_operators.py")
LISTED = "custom operators, which functions of your program compute: own::Double"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A working folder with a model, its input and its operators."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "150")
    monkeypatch.setattr(sys, "path", sys.path.copy())
    onnx.save(model_of(DOUBLE), "model.onnx")
    np.save("x.npy", np.ones((3, 2), np.float32))
    Path("my_operators.py").write_text(OPERATORS)
    yield
    sys.modules.pop("my_operators", None)


def test_a_model_is_checked_compiled_and_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", "model.onnx", *CUSTOM) == 0
    assert LISTED in capsys.readouterr().out
    assert run("check", "model.onnx", "--device", "cuda", *CUSTOM, "--json") == 0
    checked = json.loads(capsys.readouterr().out)
    assert checked["custom_ops"] == ["own::Double"] and checked["steps"][0]["host"] == "no_kernel"
    assert run("compile", "model.onnx", *CUSTOM) == 0
    printed = capsys.readouterr().out
    assert LISTED in printed and "steps: 1 (1 own::Double)" in printed
    assert run("run", "model.plan", "--input", "x=x.npy", "-o", "y.npz", "--profile", "--custom", "my_operators") == 0
    assert "own::Double" in capsys.readouterr().out
    with np.load("y.npz") as outputs:
        np.testing.assert_array_equal(outputs["y"], np.full((3, 2), 2, np.float32))


def test_a_plan_is_inspected_without_its_functions(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compile", "model.onnx", *CUSTOM, "--json") == 0
    assert json.loads(capsys.readouterr().out)["custom_ops"] == ["own::Double"]
    from compiler import custom

    custom._REGISTERED.clear()
    assert run("inspect", "model.plan") == 0
    assert LISTED in capsys.readouterr().out
    assert run("inspect", "model.plan", "--json") == 0
    assert json.loads(capsys.readouterr().out)["operators"] == {"own::Double": 1}
    assert run("inspect", "model.plan", "--list-steps") == 0
    assert 'Custom(%0:x, domain="own", name="Double", ' in capsys.readouterr().out.replace("attributes={}, ", "")
    assert run("inspect", "model.plan", "--prepared") == 1
    assert run("run", "model.plan") == 1
    missing = "it needs the custom operator own::Double, which is not registered: register a function"
    said = capsys.readouterr().err
    assert said.count(missing) == 2 and "compiles an ONNX model" not in said
    assert run("inspect", "model.plan", "--prepared", *CUSTOM) == 0
    assert "own::Double" in capsys.readouterr().out


def test_verify_runs_the_functions(capsys: pytest.CaptureFixture[str]) -> None:
    """onnxruntime has this operator, and the compiler lacks it."""
    inverse = OPERATORS.replace("own::Double", "com.microsoft::SampleOp").replace("2 * x", "1 * x")
    Path("my_operators.py").write_text(inverse)
    text = model_of("(float[2, 2] x) => (float[2, 2] y) { y = own.SampleOp (x) }")
    text.graph.node[0].domain = text.opset_import[1].domain = "com.microsoft"
    onnx.save(text, "inverse.onnx")
    np.save("x.npy", np.float32([[2, 1], [0, 4]]))
    assert run("verify", "inverse.onnx", "--input", "x=x.npy") == 1
    assert "operator SampleOp of domain 'com.microsoft' is not supported" in capsys.readouterr().err
    assert run("verify", "inverse.onnx", "--input", "x=x.npy", *CUSTOM) == 0


WRONG = {
    "absent.py": (None, 2, "absent.py: "),
    "absent_module": (None, 2, "absent_module: No module named 'absent_module'"),
    "needs.py": ("import absent_package", 2, "needs.py: No module named 'absent_package'"),
    "fails.py": ("1 / 0", 1, "fails.py cannot be imported: ZeroDivisionError: division by zero"),
    "wrong.py": ("def (:", 1, "wrong.py cannot be imported: SyntaxError"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_file_that_cannot_be_imported(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, expected, said = WRONG[name]
    if code is not None:
        Path(name).write_text(code)
    assert run("check", "model.onnx", "--custom", name) == expected
    assert said in capsys.readouterr().err
