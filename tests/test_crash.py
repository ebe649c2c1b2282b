"""The message of the command line on a bug. A refusal or a wrong file is not a bug."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import onnx.parser
import pytest

from compiler import CompileError, DeviceError, Diagnostic, ExportError, InputError, PlanError, RunError, pipeline
from compiler.accuracy.reference import ReferenceFailed, ReferenceMissing
from compiler.cli import main
from compiler.cli.failure import Failed, report
from compiler.passes import drop_noops
from compiler.processes.fresh import ProcessDied

DIGITS = Path(__file__).parent.parent / "models/digits.onnx"
DROPOUT = '<ir_version: 9, opset_import: ["": 17]> g (float[2] x) => (float[2] y) { y = Dropout (x) }'


class Panic(BaseException):
    """Like PyO3's PanicException, it is no subclass of Exception."""


EXPECTED = [
    CompileError([Diagnostic("CC0201", "there is no operator Foo")]),
    DeviceError("there is no GPU"),
    ExportError("a module"),
    Failed("a check"),
    FileNotFoundError(2, "No such file", "a.plan"),
    InputError("x", "float32", "int64"),
    MemoryError(),
    PlanError(["a.plan: a step"]),
    ProcessDied("a process"),
    ReferenceFailed("a node"),
    ReferenceMissing("onnxruntime"),
    RunError(0, "Gemm", [], "", "a shape"),
]


@pytest.mark.parametrize("error", EXPECTED, ids=lambda error: type(error).__name__)
def test_the_projects_own_errors_are_no_bugs(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(error) == 1
    said = capsys.readouterr().err
    assert said.startswith("error")
    assert "bug" not in said


def crashed(monkeypatch: pytest.MonkeyPatch, error: BaseException, *options: str) -> int:
    """The exit code of a compilation that ends with the error."""

    def fail(*_arguments: object, **_named: object) -> None:
        raise error

    monkeypatch.setattr(pipeline, "write", fail)
    arguments = [*options[:1], "compile", str(DIGITS), "--dim", "batch=1", "-o", "digits.plan", *options[1:]]
    with pytest.raises(SystemExit) as ended:
        main([each for each in arguments if each])
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.mark.parametrize("error", [KeyError("n"), RecursionError("deep"), AssertionError(), Panic("index")], ids=repr)
def test_a_bug_has_an_exit_code_of_its_own(
    error: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert crashed(monkeypatch, error) == 70
    first, second = capsys.readouterr().err.strip().splitlines()
    assert first == f"error: {type(error).__name__}: {error}".removesuffix(": ")
    assert second.strip() == (
        "help: this is a bug in the compiler: please report it with the model and with the output of "
        "`candlec --verbose COMMAND …`"
    )
    assert not Path("digits.plan").exists()


def test_verbose_shows_the_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert crashed(monkeypatch, KeyError("n"), "--verbose") == 70
    said = capsys.readouterr().err
    assert "Traceback (most recent call last)" in said
    assert "in fail" in said


def test_programs_get_an_exception_for_a_bug(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert crashed(monkeypatch, KeyError("n"), "", "--json") == 70
    assert json.loads(capsys.readouterr().out) == {"ok": False, "error": "KeyError: 'n'", "bug": True}


def test_a_bug_of_a_rule_names_the_pass_and_the_node(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def fail(_rule: object, _match: object) -> str:
        raise KeyError("n")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(drop_noops.DropDropout, "attempt", fail)
    onnx.save(onnx.parser.parse_model(DROPOUT), "dropout.onnx")
    with pytest.raises(SystemExit, match="70"):
        main(["compile", "dropout.onnx"])
    lines = [line.strip() for line in capsys.readouterr().err.splitlines()]
    assert lines[:3] == ["error: KeyError: 'n'", "in the rule DropDropout, at Dropout(y)", "in the pass drop_noops"]
